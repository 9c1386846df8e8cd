"""Time, pauses and random ids as parameters: no other module reads a clock, waits or draws ids."""

from __future__ import annotations

import os
import random
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


def forget_at_fork(forget: Callable[[], None]) -> None:
    """Call `forget` in each child of a fork, to drop what is cached here under a lock.

    The child would wait forever for a lock that another thread of its parent holds. Windows has no
    forks.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=forget)


class Clock(Protocol):
    """A source of wall-clock time."""

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch, UTC."""
        ...


@dataclass(frozen=True, slots=True)
class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch, UTC."""
        return time.time_ns() // 1_000_000


class Pauses(Protocol):
    """Waits between two tries of the same thing."""

    def pause(self, longest_ms: int) -> int:
        """Wait no longer than given; return the milliseconds, at least 1."""
        ...


@dataclass(frozen=True, slots=True)
class RandomPauses:
    """Pauses of random length, so that processes that failed together do not retry together."""

    def pause(self, longest_ms: int) -> int:
        """Wait between half of the time and all of it."""
        chosen = max(1, round(longest_ms * random.uniform(0.5, 1)))  # noqa: S311 - no secret
        time.sleep(chosen / 1000)
        return chosen


class IdSource(Protocol):
    """A source of ids that no other call, process or machine is given."""

    def unique(self) -> str:
        """Return 32 lower-case hexadecimal digits."""
        ...


@dataclass(frozen=True, slots=True)
class RandomIds:
    """Ids from the operating system's random source."""

    def unique(self) -> str:
        """Return 32 lower-case hexadecimal digits."""
        return secrets.token_hex(16)
