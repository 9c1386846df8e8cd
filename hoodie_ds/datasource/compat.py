"""The differences between Spark versions (4.1 and newer), all in one place."""

from __future__ import annotations

import inspect
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import PySparkTypeError
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from hoodie_ds.formats.avro.schema import unsupported_type

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadMaxFiles,
        SupportsTriggerAvailableNow,
    )
except ImportError:  # before 4.2 a Python source cannot limit a micro-batch

    class ReadAllAvailable:  # type: ignore[no-redef]
        """A micro-batch takes all that is there."""

    class ReadMaxFiles:  # type: ignore[no-redef]
        """A micro-batch is limited, which these releases never ask for."""

        def __init__(self, max_files: int) -> None:
            self.max_files = max_files

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """A source that knows where a query ends that takes what is there now."""


__all__ = ["ReadAllAvailable", "ReadMaxFiles", "SupportsTriggerAvailableNow", "arrow_schema"]

# Newer releases want a time zone for timestamps, older ones take UTC by themselves.
_ZONE: Final[dict[str, Any]] = (
    {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}
)


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow form of a Spark schema, timestamps in UTC.

    `SchemaError` names a column of a type that Arrow lacks, such as an interval of years.
    """
    return pa.schema(map(_arrow_field, schema.fields))


def _arrow_field(field: StructField) -> pa.Field:
    try:
        return to_arrow_schema(StructType([field]), **_ZONE).field(0)
    except PySparkTypeError as error:
        raise unsupported_type(field.name, field.dataType.simpleString()) from error
