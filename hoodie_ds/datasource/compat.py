"""What differs between Spark versions, and nowhere else (4.1 and newer)."""

from __future__ import annotations

import inspect
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

# Newer releases want a time zone for timestamps, older ones take UTC by themselves.
_ZONE: Final[dict[str, Any]] = (
    {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}
)


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow form of a Spark schema, timestamps in UTC."""
    return to_arrow_schema(schema, **_ZONE)
