"""Moments that queries name: Hudi's instant times, and dates in the forms that Hudi takes for them.

Instant times are compared as text, as Hudi does. A date is turned into the same digits, whatever
the time zone of the table's timeline is.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

EARLIEST: Final = "earliest"
LATEST: Final = "latest"
FIRST: Final = "000"
"""What Hudi's users write for a time before every instant."""

_DATE: Final = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})(?: (\d{2}):(\d{2}):(\d{2})(?:\.(\d{3}))?)?", re.ASCII
)
_DIGITS: Final = re.compile(r"\d{14}(?:\d{3})?", re.ASCII)
_UNTIL_ITS_END: Final = "999"

ALLOWED: Final = (
    "an instant time (yyyyMMddHHmmss or yyyyMMddHHmmssSSS) or a date (yyyy-MM-dd, "
    "yyyy-MM-dd HH:mm:ss or yyyy-MM-dd HH:mm:ss.SSS)"
)


def query_instant(text: str) -> str | None:
    """Return the instant time that a text means; None for a text that is none.

    A date without milliseconds means the last one of its second, as in Hudi.
    """
    if _DIGITS.fullmatch(text):
        return text
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second, millis = match.groups("")
    parts = [int(part or 0) for part in (year, month, day, hour, minute, second)]
    try:
        datetime(*parts)  # type: ignore[arg-type]
    except ValueError:
        return None
    return "".join([year, month, day, hour or "00", minute or "00", second or "00"]) + (
        millis or _UNTIL_ITS_END
    )


def query_begin(text: str) -> str | None:
    """Return what an incremental query begins after; see `query_instant`.

    ``000`` is before every instant. ``earliest`` is after every one, as Hudi compares strings.
    """
    if text in (FIRST, EARLIEST):
        return text
    return query_instant(text)


def stream_start(text: str) -> str | None:
    """Return where a stream begins: the first commit, the newest one, or after a moment."""
    if text.lower() in (EARLIEST, LATEST):
        return text.lower()
    return FIRST if text == FIRST else query_instant(text)
