"""Time as a parameter: nothing in this library reads a clock or waits but through these."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import Protocol


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
    """Pauses of random length, so that those who failed together do not come back together."""

    def pause(self, longest_ms: int) -> int:
        """Wait between half of the time and all of it."""
        chosen = max(1, round(longest_ms * random.uniform(0.5, 1)))  # noqa: S311 - no secret
        time.sleep(chosen / 1000)
        return chosen
