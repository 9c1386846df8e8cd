"""The meta columns of rows on their way into a file, whole columns at a time."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from hoodie_ds.columns.meta_columns import (
    COMMIT_SEQNO,
    COMMIT_TIME,
    FILE_NAME,
    META_COLUMNS,
    PARTITION_PATH,
    RECORD_KEY,
)
from hoodie_ds.handles.context import WriteContext

_BLOCK: Final = 1000
_DIGITS: Final = np.array([list(f"{n:03}".encode()) for n in range(_BLOCK)], np.uint8)
"""The last three digits of the rows of a block."""


def fill_meta_columns(
    context: WriteContext, rows: pa.Table, partition_path: str, file_name: str
) -> pa.Table:
    """Return rows of one partition with the columns of ``context.schema``.

    Without ``_hoodie_record_key`` they get Hudi's automatic keys, ``<instant>_<task>_<row>``.
    Constant columns are dictionary arrays, which Parquet writes without looking at each value. In
    a table with virtual keys the meta columns are null, as Hudi writes them.
    """
    count = rows.num_rows
    if context.virtual_keys is not None:
        return _without_meta(context, rows)
    sequence = _next_numbers(context, count)
    keys = rows.column(RECORD_KEY) if RECORD_KEY in rows.column_names else sequence
    meta = {
        COMMIT_TIME: constant(context.instant_time, count),
        COMMIT_SEQNO: sequence,
        RECORD_KEY: keys,
        PARTITION_PATH: constant(partition_path, count),
        FILE_NAME: constant(file_name, count),
    }
    user_columns = context.schema.names[len(META_COLUMNS) :]
    return pa.table({**meta, **{name: rows.column(name) for name in user_columns}})


def with_automatic_keys(context: WriteContext, rows: pa.Table) -> pa.Table:
    """Return rows with Hudi's automatic keys in place of none."""
    at, keys = rows.schema.get_field_index(RECORD_KEY), _next_numbers(context, rows.num_rows)
    return rows.set_column(at, RECORD_KEY, keys)


def _next_numbers(context: WriteContext, count: int) -> pa.StringArray:
    first = context.row_numbers.reserve(count)
    return sequence_numbers(f"{context.instant_time}_{context.writer}_", first, count)


def fill_file_name(context: WriteContext, rows: pa.Table, file_name: str) -> pa.Table:
    """Return stored rows for a new file of their group, with all but the file's name unchanged.

    `rows` have the context's ``kept_columns``, and may have others.
    """
    if context.virtual_keys is not None:
        return _without_meta(context, rows)
    return rows.append_column(FILE_NAME, constant(file_name, rows.num_rows))


def _without_meta(context: WriteContext, rows: pa.Table) -> pa.Table:
    nothing = pa.nulls(rows.num_rows, pa.string())
    columns = context.schema.names
    return pa.table(
        {name: nothing if name in META_COLUMNS else rows.column(name) for name in columns}
    )


def constant(value: str, count: int) -> pa.DictionaryArray:
    """Return a column that repeats one string without storing it `count` times."""
    indices = pa.array(np.zeros(count, dtype=np.int32))
    return pa.DictionaryArray.from_arrays(indices, pa.array([value]))


def sequence_numbers(prefix: str, first: int, count: int) -> pa.StringArray:
    """Return strings of `prefix` and consecutive numbers from `first` on.

    This takes a quarter of the time that Arrow takes to print the numbers and join them, which
    matters because every row of an append gets such a string.
    """
    parts = [pa.array([], pa.string())]
    start, end = first, first + count
    while start < end:  # numbers with as many digits
        num_digits = len(str(start))
        stop = min(end, 10**num_digits)
        parts.append(_of_one_width(prefix.encode(), start, stop, num_digits))
        start = stop
    return parts[-1] if len(parts) <= 2 else pa.concat_arrays(parts)


def _of_one_width(prefix: bytes, start: int, stop: int, num_digits: int) -> pa.StringArray:
    """Write thousands of rows as copies of one block, then the digits before the last three."""
    width, last = len(prefix) + num_digits, min(3, num_digits)
    block = np.empty((_BLOCK, width), np.uint8)
    block[:, : len(prefix)] = np.frombuffer(prefix, np.uint8)
    block[:, width - last :] = _DIGITS[:, 3 - last :]
    above = np.arange(start // _BLOCK, -(-stop // _BLOCK))
    characters = np.tile(block, (len(above), 1, 1))
    for column in range(width - last - 1, len(prefix) - 1, -1):
        characters[:, :, column] = (above % 10 + ord("0"))[:, np.newaxis]
        above //= 10
    offsets = np.arange(0, (stop - start + 1) * width, width, dtype=np.int32)
    data = pa.py_buffer(characters).slice(start % _BLOCK * width, (stop - start) * width)
    return pa.StringArray.from_buffers(stop - start, pa.py_buffer(offsets), data)
