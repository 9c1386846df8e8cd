"""What the footer of a Parquet file says about the values of its columns."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie_ds.columns.java_numbers import widen
from hoodie_ds.filters.bounds import Bounds, kind_of, sortable
from hoodie_ds.formats.timestamp_repair import repaired

_DICTIONARY_BYTES: Final = 3
"""Encoded bytes per value up to which a string column is kept as a dictionary."""


def column_bounds(
    metadata: pq.FileMetaData, stored: pa.Schema, row_group: int, field: pa.Field
) -> Bounds | None:
    """Return what a footer says about a table's column in a row group.

    None if nothing is certain, for example if the file has another kind of values.
    """
    if field.name not in stored.names:
        return Bounds(values=False)
    kind = kind_of(field.type)
    held = stored.field(field.name).type
    if kind is None or kind_of(held) != kind or repaired(held, field.type) != held:
        return None
    group = metadata.row_group(row_group)
    columns = map(group.column, range(group.num_columns))
    column = next((c for c in columns if c.path_in_schema == field.name), None)
    statistics = None if column is None else column.statistics
    if statistics is None:
        return None
    nulls = statistics.null_count if statistics.has_null_count else None
    known = Bounds(nulls=nulls != 0, values=nulls is None or nulls < group.num_rows)
    if not statistics.has_min_max:
        return known
    try:
        ends = _widened([statistics.min, statistics.max], held, field.type)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        return known
    low, high = map(sortable, ends)
    return Bounds(low, high, known.nulls, known.values)


def _widened(ends: list[object], held: pa.DataType, wanted: pa.DataType) -> pa.Array:
    """Ends in the type of the table's column, as the values between them are read."""
    if pa.types.is_float32(held) and pa.types.is_float64(wanted):
        return widen(pa.array(ends, held))
    return pa.array(ends, wanted)


def repetitive_strings(metadata: pq.FileMetaData, schema: pa.Schema) -> frozenset[str]:
    """Return the string columns that the file stores as short references to a dictionary."""
    strings = {field.name for field in schema if pa.types.is_string(field.type)}
    values: dict[str, int] = {}
    sizes: dict[str, int] = {}
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for at in range(group.num_columns):
            column = group.column(at)
            name = column.path_in_schema
            if name in strings and column.has_dictionary_page:
                values[name] = values.get(name, 0) + column.num_values
                sizes[name] = sizes.get(name, 0) + column.total_uncompressed_size
    return frozenset(
        name for name, count in values.items() if sizes[name] <= _DICTIONARY_BYTES * count
    )
