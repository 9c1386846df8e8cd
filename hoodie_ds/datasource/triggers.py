"""Refusal of ``trigger(continuous=...)``, which Spark accepts for any sink and cannot serve.

In continuous mode Spark passes no rows to a Python sink, commits empty epochs for ever and ignores
what ``commit`` raises. The data source does not learn of the trigger before, so PySpark's
`DataStreamWriter` in the user's own process refuses it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final

from hoodie_ds.errors import OptionError

_MARK: Final = "_hoodie_ds_given"


def refuse_continuous(writer: type[Any], name: str) -> None:
    """Make a ``DataStreamWriter`` class refuse to start a continuous query into a data source.

    A second call for the same class does nothing.
    """
    if hasattr(writer, _MARK):
        return
    setattr(writer, _MARK, {})
    for method in ("trigger", "format", "start", "toTable"):
        setattr(writer, method, _watching(getattr(writer, method), name))


def _watching(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    @wraps(method)
    def watched(self: Any, *args: Any, **given: Any) -> Any:  # noqa: ANN401
        seen = {**getattr(self, _MARK), **given}
        if method.__name__ == "format":
            seen["format"] = args[0] if args else given.get("source")
        elif len(args) > 1:  # start(path, format), toTable(name, format)
            seen["format"] = args[1]
        setattr(self, _MARK, seen)
        starts = method.__name__ in ("start", "toTable")
        if starts and seen.get("continuous") is not None and seen.get("format") == name:
            raise continuous_error(seen["continuous"])
        return method(self, *args, **given)

    return watched


def continuous_error(value: object) -> OptionError:
    """Return the error for a continuous trigger."""
    return OptionError(
        "trigger(continuous=...)",
        value,
        "Spark passes a Python sink no rows in continuous mode; use trigger(processingTime=...) or "
        "trigger(availableNow=True)",
    )
