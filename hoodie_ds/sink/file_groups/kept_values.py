"""Keeps the stored values of columns that a batch lacks: its rows take them over by key.

Readers of log files, Hudi's too, take the newest record of a key as a whole. So the values are in
the rows when they are written, in both table types. They are as of the batch's begin: a batch
conflicts with other writers that have changed them since.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.arrow_columns import one_chunk
from hoodie_ds.columns.meta_columns import COMMIT_TIME, RECORD_KEY
from hoodie_ds.config.enums import MergeMode
from hoodie_ds.record.merge.merger import Merger, RecordSet
from hoodie_ds.sink.write_plan import WritePlan
from hoodie_ds.table.file_slice import FileSlice


def kept_values(plan: WritePlan, slice_: FileSlice | None, keys: pa.Array) -> pa.Table:
    """Return the values of `WritePlan.kept` that a slice has under some keys, of all copies.

    Next to them are the columns that `with_kept_values` compares.
    """
    schema = plan.stored_schema
    ordering = (p if p in schema.names else p.partition(".")[0] for p in _ordering_fields(plan))
    names = list(dict.fromkeys([RECORD_KEY, COMMIT_TIME, *ordering, *plan.kept]))
    found = [pa.schema([schema.field(name) for name in names]).empty_table()]
    if slice_ is not None:
        pieces = plan.slice_reader(plan.view).read(slice_, names)
        found += [p.filter(pc.is_in(p.column(RECORD_KEY), value_set=keys)) for p in pieces]
    return pa.concat_tables(found)


def with_kept_values(plan: WritePlan, rows: pa.Table, kept: pa.Table) -> pa.Table:
    """Return rows with the kept values of their keys, of several copies those of the newest."""
    if not kept.num_rows:
        return rows
    copies = RecordSet.of_rows(kept, (*_ordering_fields(plan), COMMIT_TIME))
    newest = Merger(MergeMode.EVENT_TIME_ORDERING).combine(copies).rows
    at = pc.index_in(rows.column(RECORD_KEY), value_set=one_chunk(newest.column(RECORD_KEY)))
    for name in plan.kept:
        number = rows.schema.get_field_index(name)
        rows = rows.set_column(number, rows.schema.field(name), newest.column(name).take(at))
    return rows


def _ordering_fields(plan: WritePlan) -> tuple[str, ...]:
    """The fields that decide which record is newer; none if the commit order does."""
    properties = plan.table.properties
    update = properties.partial_update
    order = properties.merge_mode if update is None else update.order
    return properties.ordering_fields if order is MergeMode.EVENT_TIME_ORDERING else ()
