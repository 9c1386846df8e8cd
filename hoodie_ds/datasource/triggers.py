"""Refusal of what Spark accepts for a stream into any sink, and does not do for a Python sink.

With ``trigger(continuous=...)`` it passes no rows, commits empty epochs for ever and ignores what
``commit`` raises; ``partitionBy`` it leaves out. The data source learns of neither before, so
PySpark's `DataStreamWriter` in the user's own process refuses them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final

from hoodie_ds.errors import OptionError

_MARK: Final = "_hoodie_ds_given"


def refuse_left_out(writer: type[Any], name: str) -> None:
    """Make a ``DataStreamWriter`` class refuse what Spark leaves out for a data source.

    A second call for the same class does nothing.
    """
    if hasattr(writer, _MARK):
        return
    setattr(writer, _MARK, {})
    for method in ("trigger", "format", "partitionBy", "start", "toTable"):
        setattr(writer, method, _watching(getattr(writer, method), name))


def _watching(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    @wraps(method)
    def watched(self: Any, *args: Any, **given: Any) -> Any:  # noqa: ANN401
        named = {key: value for key, value in given.items() if value is not None}
        seen = {**getattr(self, _MARK), **named}
        if method.__name__ == "trigger":  # in place of an earlier one
            seen["continuous"] = given.get("continuous")
        elif method.__name__ == "format":
            seen["format"] = args[0] if args else given.get("source")
        elif method.__name__ == "partitionBy":
            seen["partitionBy"] = args[0] if len(args) == 1 else args
        elif len(args) > 1:  # start(path, format), toTable(name, format)
            seen["format"] = args[1]
        setattr(self, _MARK, seen)
        if method.__name__ in ("start", "toTable") and seen.get("format") == name:
            _check(seen)
        return method(self, *args, **given)

    return watched


def _check(seen: dict[str, Any]) -> None:
    if seen.get("continuous") is not None:
        raise continuous_error(seen["continuous"])
    columns = seen.get("partitionBy")
    if columns:
        fields = columns if isinstance(columns, str) else ",".join(columns)
        raise OptionError(
            "partitionBy(...)",
            fields,
            "Spark does not pass it to a Python sink; set "
            f"hoodie.datasource.write.partitionpath.field={fields}",
        )


def continuous_error(value: object) -> OptionError:
    """Return the error for a continuous trigger."""
    return OptionError(
        "trigger(continuous=...)",
        value,
        "Spark passes a Python sink no rows in continuous mode; use trigger(processingTime=...) or "
        "trigger(availableNow=True)",
    )
