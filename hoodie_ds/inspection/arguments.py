"""Arguments of `HoodieTable` other than rows: instants, options, strings.

An invalid one is refused before the table is read, by an `OptionError` that names the argument,
its value and what to give instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Final

from hoodie_ds.errors import OptionError
from hoodie_ds.services.savepoint import Savepoint
from hoodie_ds.sink.messages import WriteResult
from hoodie_ds.timeline.instant import Instant

_NO_TIME: Final = "give an instant time as a string, an Instant, a Savepoint or a WriteResult"

Moment = str | Instant | WriteResult | Savepoint
"""An instant time, or an object that has one."""


def instant_time(name: str, given: Moment) -> str:
    """Return the instant time of an argument; a write without a commit has none and is refused."""
    if isinstance(given, str):
        return text(name, given)
    if isinstance(given, (Instant, Savepoint)):
        return given.time
    if not isinstance(given, WriteResult):
        raise OptionError(name, given, _no_time(given))
    if given.instant_time is None:
        remedy = "this write made no commit; name one of the table's timeline"
        raise OptionError(name, given, remedy)
    return given.instant_time


def text(name: str, given: str) -> str:
    """Return a string that UTF-8 can store; anything else is refused."""
    if not isinstance(given, str):
        raise OptionError(name, given, _with_type("give a string", given))
    try:
        given.encode()
    except UnicodeEncodeError as error:
        shown = ascii(given)
        raise OptionError(name, shown, "it has half a character (a lone surrogate)") from error
    return given


def options(given: Mapping[str, str] | None) -> Mapping[str, str]:
    """Return the options of a call, empty if None; errors leave values out: they may be secrets."""
    if given is None:
        return {}
    remedy = "give a mapping of the options' names to their values"
    if not isinstance(given, Mapping):
        raise OptionError("options", type(given).__name__, remedy)
    for key in given:
        if not isinstance(key, str):
            raise OptionError("options", key, _with_type("give the names as strings", key))
    return given


def _with_type(remedy: str, given: object) -> str:
    return remedy if given is None else f"{remedy}; this is of type {type(given).__name__}"


def _no_time(given: object) -> str:
    """Say what to give; a date of Python may have a time zone, or lack that of the table."""
    remedy = _with_type(_NO_TIME, given)
    if isinstance(given, date):
        remedy += f"; queries take '{given:%Y-%m-%d %H:%M:%S}', in the timeline's time zone"
    return remedy
