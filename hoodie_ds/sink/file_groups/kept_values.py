"""Keeps the stored values of columns that a batch lacks: its rows take them over by key.

Readers of log files, Hudi's too, take the newest record of a key as a whole. So the values are in
the rows when they are written, in both table types. They are as of the batch's begin: a batch
conflicts with other writers that have changed them since.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.arrow_columns import one_chunk
from hoodie_ds.columns.meta_columns import RECORD_KEY
from hoodie_ds.sink.write_plan import WritePlan
from hoodie_ds.table.file_slice import FileSlice


def kept_values(plan: WritePlan, slices: Iterable[FileSlice], keys: pa.Array) -> pa.Table:
    """Return the values of `WritePlan.kept` that slices have under some keys, next to the key."""
    names = [RECORD_KEY, *plan.kept]
    found = [pa.schema([plan.stored_schema.field(name) for name in names]).empty_table()]
    for slice_ in slices:
        pieces = plan.slice_reader(plan.view).read(slice_, names)
        found += [p.filter(pc.is_in(p.column(RECORD_KEY), value_set=keys)) for p in pieces]
    return pa.concat_tables(found)


def with_kept_values(rows: pa.Table, kept: pa.Table) -> pa.Table:
    """Return rows with the kept values of their keys."""
    if not kept.num_rows:
        return rows
    at = pc.index_in(rows.column(RECORD_KEY), value_set=one_chunk(kept.column(RECORD_KEY)))
    for name in kept.column_names[1:]:
        number = rows.schema.get_field_index(name)
        rows = rows.set_column(number, rows.schema.field(name), kept.column(name).take(at))
    return rows
