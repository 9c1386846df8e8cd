"""Rows in the forms of callers, converted to Arrow record batches."""

from __future__ import annotations

from typing import Any, TypeAlias

import pyarrow as pa

from hoodie_ds.errors import SchemaError

Rows: TypeAlias = Any
"""Rows in a form that `arrow_rows` accepts."""

_FORMS = (
    "a pyarrow Table, RecordBatch or RecordBatchReader, a pandas or Polars frame, or anything "
    "that has __arrow_c_stream__ or __arrow_c_array__; pyarrow.table makes one of a dict of "
    "columns, pyarrow.Table.from_pylist of a list of rows"
)


def arrow_rows(rows: Rows) -> pa.RecordBatchReader:
    """Return rows, of one of `_FORMS`, as a reader of record batches that can be read once.

    An index of a pandas frame becomes a column if it has a name, and is left out otherwise.
    """
    try:
        return _reader(rows)
    except (pa.ArrowException, TypeError, ValueError) as error:
        kind = f"{type(rows).__module__}.{type(rows).__qualname__}"
        raise SchemaError(f"rows of type {kind} cannot be read as Arrow data: {error}") from error


def _reader(rows: Rows) -> pa.RecordBatchReader:
    if isinstance(rows, pa.RecordBatchReader):
        return rows
    if type(rows).__name__ == "LazyFrame":
        raise TypeError("it has no rows yet: give rows.collect()")
    if isinstance(rows, pa.Table):
        return rows.to_reader()
    if type(rows).__module__.partition(".")[0] == "pandas" and hasattr(rows, "columns"):
        named = any(name is not None for name in rows.index.names)
        return pa.Table.from_pandas(rows, preserve_index=named).to_reader()
    if hasattr(rows, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(rows)
    if hasattr(rows, "__arrow_c_array__"):
        return pa.Table.from_batches([pa.record_batch(rows)]).to_reader()
    raise TypeError(f"give {_FORMS}")
