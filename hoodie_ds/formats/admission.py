"""Which values of a batch are accepted: only those that can be read back.

Arrow accepts any bytes as a string, and its buffers can hold numbers outside their type's range. A
file with such a value could be written, but neither Avro's decoders nor Arrow's in Rust would read
it. Invariant: accepted rows are readable in every kind of file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.meta_columns import ROW_OPERATION, ROW_OPERATIONS
from hoodie_ds.columns.vectors import bytes_of, is_vector
from hoodie_ds.errors import HoodieError, RecordKeyError, SchemaError
from hoodie_ds.formats.schema_conversion import conform, map_as_lists

_TYPES: Final = pa.types


def admit(
    rows: pa.Table, schema: pa.Schema, first_row: int = 0, keys: Collection[str] = ()
) -> pa.Table:
    """Return rows in the types of a table's columns; refuse values that could not be read back.

    A `SchemaError` names the column and the row, counted from `first_row` of the batch. For a value
    of a column of `keys`, those of the record key and the partition, it is a `RecordKeyError`.
    """
    try:
        return _admitted(rows, schema)
    except SchemaError as error:
        raise _located(error, rows, schema, first_row, keys) from error


def _admitted(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    found, known = conform(rows, schema), pa.array(ROW_OPERATIONS)
    for name, column in zip(found.column_names, found.columns, strict=True):
        if _is_to_be_checked(column.type):
            for chunk in column.chunks:
                _check(chunk, name)
        if name == ROW_OPERATION and not pc.all(pc.is_in(column, known), min_count=0).as_py():
            raise SchemaError(
                f"column {name!r} holds a value that is none of {', '.join(ROW_OPERATIONS)}, on "
                "which Hudi's readers of log files fail; say of each row which kind of change it "
                "is, or write the column under another name"
            )
    return found


def _is_to_be_checked(kind: pa.DataType) -> bool:
    """Whether a type's buffers can hold what no file can."""
    if kind.num_fields:
        inner = any(_is_to_be_checked(kind.field(i).type) for i in range(kind.num_fields))
        return inner or is_vector(kind)
    return bool(_TYPES.is_string(kind) or _TYPES.is_decimal(kind) or _TYPES.is_time(kind))


def _check(array: pa.Array, path: str) -> None:
    """Refuse values that no reader accepts; nulls and values outside the slice do not count."""
    kind = array.type
    if _TYPES.is_struct(kind):
        for number, column in enumerate(array.flatten()):
            _check(column, f"{path}.{kind.field(number).name}")
    elif _TYPES.is_list(kind):
        _check(array.flatten(), f"{path}.element")
    elif _TYPES.is_map(kind):
        keys, items = map_as_lists(array).flatten().flatten()
        _check(keys, f"{path}.key")
        _check(items, f"{path}.value")
    elif is_vector(kind):
        bytes_of(array, path)
    elif _is_to_be_checked(kind):
        try:
            array.validate(full=True)
        except pa.ArrowInvalid as error:
            text = _TYPES.is_string(kind)
            what = "bytes that are not UTF-8 text" if text else f"what is no {kind} ({error})"
            raise SchemaError(
                f"column {path!r} holds {what[:200]}, on which readers of the table would fail; "
                "decode or correct the values"
            ) from error


def _located(
    error: SchemaError,
    rows: pa.Table,
    schema: pa.Schema,
    first_row: int,
    keys: Collection[str],
) -> HoodieError:
    """Find the first refused row by bisection; an error of the whole column stays as it is."""

    def fails(name: str, start: int, stop: int) -> bool:
        column = rows.select([name]).slice(start, stop - start)
        try:
            _admitted(column, pa.schema([schema.field(name)]))
        except SchemaError:
            return True
        return False

    names = [name for name in schema.names if rows.column_names.count(name) == 1]
    name = next((name for name in names if fails(name, 0, rows.num_rows)), None)
    if name is None or fails(name, 0, 0):
        return error
    row = first_row + _first(lambda start, stop: fails(name, start, stop), rows.num_rows)
    kind = RecordKeyError if name in keys else SchemaError
    return kind(f"row {row} of the batch: {error}")


def _first(fails: Callable[[int, int], bool], count: int) -> int:
    """Position of the first row that fails, at least one of which does."""
    start, stop = 0, count
    while stop - start > 1:
        middle = (start + stop) // 2
        start, stop = (start, middle) if fails(start, middle) else (middle, stop)
    return start
