"""The outcome of a merge without a record key: log blocks may say which base rows they are about.

Which of two records is newer is decided as by their keys, with positions in place of keys (Hudi's
``PositionBasedFileGroupRecordBuffer``). Of the base file only ordering values are read, and only of
row groups with a row that may be newer than its record.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.arrow_columns import Mask, Numbers, as_numpy
from hoodie_ds.columns.meta_columns import RECORD_KEY
from hoodie_ds.config.enums import MergeMode
from hoodie_ds.formats.log.record_positions import record_positions
from hoodie_ds.formats.parquet.base_file_reader import BaseFileReader
from hoodie_ds.formats.schema_conversion import conform
from hoodie_ds.record.merge.merger import Merger, RecordSet
from hoodie_ds.record.merge.ordering import unconditional
from hoodie_ds.slices.late_columns import Places
from hoodie_ds.slices.log_reader import BlockRecords
from hoodie_ds.slices.merge_outcomes import MergeOutcome

_KEY: Final = "_hoodie_py_key"


def outcome_by_positions(
    blocks: Iterable[BlockRecords],
    places: Places,
    merger: Merger,
    ordering_fields: tuple[str, ...],
    compared: pa.Schema,
    base: BaseFileReader,
) -> tuple[MergeOutcome, pa.Table] | None:
    """Return what the merge of a slice comes to, and the rows from log files among it.

    None if a block has no usable positions. `places` marks the records, and the ordering fields are
    of the columns `compared`.
    """
    parts = list[RecordSet]()
    for block in blocks:
        at = record_positions(block.header, block.records.num_rows)
        if at is None or at[-1:].sum() >= base.num_rows:
            return None
        parts.append(_keyed(places.marked(block), at))
    records = merger.combine(RecordSet.concat(parts))
    wins = surely_wins(merger, ordering_fields, records, base)
    sure, unsure = records.take(np.flatnonzero(wins)), records.take(np.flatnonzero(~wins))
    stays = np.ones(base.num_rows, dtype=np.bool_)
    stays[as_numpy(sure.rows.column(RECORD_KEY))] = False
    merge, asked = merger.over(unsure), np.sort(as_numpy(unsure.rows.column(RECORD_KEY)))
    start = 0
    for number in range(base.num_row_groups):
        first, end = np.searchsorted(asked, [start, start + base.rows_in(number)])
        at, group = asked[first:end], start
        start += base.rows_in(number)
        if len(at):
            rows = pa.concat_tables(base.pieces(compared.names, [number])).take(at - group)
            old = RecordSet.of_rows(conform(rows, compared), ordering_fields)
            stays[at] = merge.keep(_keyed(old, at))
    rows = pa.concat_tables([sure.changed_rows(), merge.new_rows()])
    names = [name for name in rows.column_names if name != RECORD_KEY]
    stored = rows.select(names).rename_columns([RECORD_KEY if n == _KEY else n for n in names])
    return MergeOutcome.of([stays], places.of(rows)), stored


def surely_wins(
    merger: Merger, ordering_fields: tuple[str, ...], records: RecordSet, base: BaseFileReader
) -> Mask:
    """Return which records replace any row of a base file that has their key."""
    if merger.mode is MergeMode.COMMIT_TIME_ORDERING or not records.ordering:
        return np.ones(records.num_rows, dtype=np.bool_)
    wins = unconditional(records.ordering, records.deleted)
    field, *others = ordering_fields
    greatest = base.greatest(field) if field in base.schema.names else None
    if greatest is not None:
        values = records.ordering[0]
        if pa.types.is_date32(values.type):
            values = values.cast(pa.int32())
        values = values.cast(pa.int64())
        newer = pc.greater(values, greatest) if others else pc.greater_equal(values, greatest)
        wins = wins | as_numpy(pc.fill_null(newer, False))
    return wins


def _keyed(records: RecordSet, positions: Numbers) -> RecordSet:
    """The records with their positions as keys; these have another name."""
    names = [_KEY if name == RECORD_KEY else name for name in records.rows.column_names]
    rows = records.rows.rename_columns(names)
    return replace(records, rows=rows.append_column(RECORD_KEY, pa.array(positions)))
