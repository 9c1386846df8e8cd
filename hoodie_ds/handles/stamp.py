"""Putting the meta columns on rows, whole columns at a time."""

from __future__ import annotations

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
from hoodie_ds.handles.numbered import numbered


def stamp(context: WriteContext, rows: pa.Table, partition_path: str, file_name: str) -> pa.Table:
    """Complete rows for a file.

    Parameters
    ----------
    context : WriteContext
        Gives instant, task and the schema to reach.
    rows : pyarrow.Table
        User columns in the table's types, and ``_hoodie_record_key`` unless the table has no
        record keys; then the key is Hudi's automatic one, ``<instant>_<task>_<row>``.
    partition_path : str
        Partition of all the rows.
    file_name : str
        Value of ``_hoodie_file_name``.

    Returns
    -------
    pyarrow.Table
        Columns of ``context.schema``. Constant columns are dictionary arrays, which Parquet
        writes without looking at each value. The meta columns are null in a table with virtual
        keys, as Hudi writes them.
    """
    count = rows.num_rows
    if context.virtual_keys is not None:
        return _without_meta(context, rows)
    sequence = _sequence_numbers(context, count)
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


def keep(context: WriteContext, rows: pa.Table, file_name: str) -> pa.Table:
    """Complete stored rows for a file of their group: they keep all but the file's name.

    Parameters
    ----------
    context : WriteContext
        Gives the schema to reach.
    rows : pyarrow.Table
        The context's ``kept_columns``, and others.
    file_name : str
        Value of ``_hoodie_file_name``.
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


def constant(text: str, count: int) -> pa.DictionaryArray:
    """Return a column that repeats one string without storing it `count` times."""
    indices = pa.array(np.zeros(count, dtype=np.int32))
    return pa.DictionaryArray.from_arrays(indices, pa.array([text]))


def _sequence_numbers(context: WriteContext, count: int) -> pa.Array:
    first = context.row_numbers.reserve(count)
    return numbered(f"{context.instant_time}_{context.writer}_", first, count)
