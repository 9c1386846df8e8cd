"""The logger ``hoodie_ds``: every record of it says which table and instant it is about."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final

LOGGER: Final = logging.getLogger("hoodie_ds")
_CALLER: Final = 3
"""Frames from a method of `Log` up to the code that calls it."""


@dataclass(frozen=True, slots=True)
class Log:
    """What a line of the log is about: fields of its record, whose message begins with the table.

    Both are empty for lines that are about no table, such as those about options.
    """

    table: str = ""
    """Base path: the field ``hoodie_table``."""
    instant: str = ""
    """Instant time: the field ``hoodie_instant``."""

    def debug(self, message: str, *args: object) -> None:
        """Log why something slower was done, or something done again."""
        self._write(logging.DEBUG, message, args)

    def info(self, message: str, *args: object) -> None:
        """Log what was done."""
        self._write(logging.INFO, message, args)

    def warning(self, message: str, *args: object) -> None:
        """Log what an operator or a user should know, or change."""
        self._write(logging.WARNING, message, args)

    def _write(self, level: int, message: str, args: tuple[object, ...]) -> None:
        if self.table:
            message, args = f"%s: {message}", (self.table, *args)
        fields = {"hoodie_table": self.table, "hoodie_instant": self.instant}
        LOGGER.log(level, message, *args, extra=fields, stacklevel=_CALLER)
