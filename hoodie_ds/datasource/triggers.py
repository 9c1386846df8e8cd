"""Refusal of what Spark accepts for a stream into any sink, and does not do for a Python sink.

With ``trigger(continuous=...)`` it passes no rows, commits empty epochs for ever and ignores what
``commit`` raises; ``partitionBy`` it leaves out. The data source learns of neither before, so
PySpark's `DataStreamWriter` in the user's own process refuses them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hoodie_ds.errors import OptionError


def refuse_left_out(seen: Mapping[str, Any]) -> None:
    """Refuse what Spark would leave out of what a ``DataStreamWriter`` was given."""
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
