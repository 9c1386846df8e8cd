"""Identity as a parameter: nothing in this library draws a random id but through an `IdSource`."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Protocol


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
