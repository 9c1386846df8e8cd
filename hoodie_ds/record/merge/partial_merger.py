"""Merging rows that have only some columns: missing values come from an older row.

Log blocks of ``MERGE INTO`` and ``UPDATE`` in Hudi 1.x hold only the columns that were set (the
header ``IS_PARTIAL``). As Hudi merges two by two, in commit order, the greater one of two records
by the table's merge mode is filled from the other (Hudi's ``KEEP_VALUES``). So each column has the
value of the last record that has it and was the greatest in its turn, or, if there is none, of the
first other record that has it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.arrow_columns import Mask, as_numpy, one_chunk
from hoodie_ds.columns.meta_columns import RECORD_KEY
from hoodie_ds.config.enums import MergeMode
from hoodie_ds.record.merge.merger import Merge, Merger, Positions, RecordSet, last_of, matching
from hoodie_ds.record.merge.ordering import order_codes, unconditional


@dataclass(frozen=True, slots=True)
class PartialMerger:
    """Merges records of which some lack columns; an `AnyMerger`.

    `merger` decides which of two records is the greater one.
    """

    merger: Merger
    needs_complete_rows: ClassVar[bool] = True

    def combine(self, records: RecordSet) -> RecordSet:
        """Leave the winner of each key, filled from others; some columns may still be missing.

        See `hoodie_ds.record.merge.hook_merger.AnyMerger.combine`.
        """
        combined = self.merger.combine(records)
        if records.lacking is None or combined.lacking is None or combined is records:
            return combined
        encoded = pc.dictionary_encode(one_chunk(records.rows.column(RECORD_KEY)))
        keys = as_numpy(encoded.indices).astype(np.int64)
        own = as_numpy(pc.index_in(combined.rows.column(RECORD_KEY), value_set=encoded.dictionary))
        history = _History.of(self.merger, records, keys)
        lacking, rows = combined.lacking.copy(), combined.rows
        for number in np.flatnonzero((lacking & ~combined.deleted[:, np.newaxis]).any(axis=0)):
            source = history.sources(~records.lacking[:, number])[own]
            at = np.flatnonzero(lacking[:, number] & ~combined.deleted & (source >= 0))
            rows = _filled(rows, int(number), at, records.rows, source[at])
            lacking[at, number] = False
        return replace(combined, rows=rows, lacking=lacking)

    def over(self, new: RecordSet) -> PartialMerge:
        """Begin to merge records, one per key, into older stored rows."""
        return PartialMerge(self.merger, new)


@dataclass(frozen=True, slots=True)
class _History:
    """The records of each key in sequence."""

    order: Positions  # positions of the records by key and then in commit order, that of the rest
    keys: Positions  # integers that identify the keys
    wins: Mask  # which records are not less than any before them of their key
    fills: Mask  # which rows take part: no later delete removes or hides them

    @classmethod
    def of(cls, merger: Merger, records: RecordSet, keys: Positions) -> _History:
        """Sort records by their keys, which integers identify."""
        order = np.argsort(keys, kind="stable")
        keys, deleted = keys[order], records.deleted[order]
        codes, resets = np.zeros(len(keys), dtype=np.int64), deleted
        if merger.mode is MergeMode.EVENT_TIME_ORDERING and records.ordering:
            codes = np.asarray(order_codes(records.ordering, len(keys)), dtype=np.int64)[order]
            resets = unconditional(records.ordering, records.deleted)[order]
        starts = np.diff(keys, prepend=-1) != 0
        starts[1:] |= resets[:-1]
        levels = np.cumsum(starts) * (int(codes.max(initial=0)) + 1) + codes
        wins = (levels >= np.maximum.accumulate(levels)) | resets
        num_keys, positions = int(keys.max(initial=0)) + 1, np.arange(len(keys))
        ends = _last(keys, positions[wins & deleted], num_keys)
        live = ~deleted & (positions > ends[keys])
        begins = _last(keys, positions[wins & live][::-1], num_keys)
        return cls(order, keys, wins, live & (begins[keys] >= 0) & (positions >= begins[keys]))

    def sources(self, given: Mask) -> Positions:
        """Return the record that each key takes a column from, -1 if none.

        It is the last winner with the column, or else the first other record with it. `given` says
        which records have it.
        """
        given, positions = given[self.order] & self.fills, np.arange(len(self.order))
        num_keys = int(self.keys.max(initial=0)) + 1
        top = _last(self.keys, positions[given & self.wins], num_keys)
        below = _last(self.keys, positions[given & ~self.wins][::-1], num_keys)
        found = np.where(top >= 0, top, below)
        return np.where(found >= 0, self.order[found], -1)


def _last(keys: Positions, positions: Positions, num_keys: int) -> Positions:
    """The last of some positions for each key, -1 if there is none; of reversed ones the first."""
    return last_of(keys[positions], positions, num_keys)


class PartialMerge(Merge):
    """New records that may lack columns, merged into stored rows, which have all."""

    def __init__(self, merger: Merger, new: RecordSet) -> None:
        super().__init__(merger, new)
        self._rows = new.rows
        lacking = np.zeros((new.num_rows, 1)) if new.lacking is None else new.lacking
        self._lacks = np.asarray(lacking.any(axis=1), dtype=np.bool_)

    def keep(self, old: RecordSet) -> Mask:
        """Merge into a piece of the stored rows, with all columns; see `Merge.keep`."""
        keep = super().keep(old)
        lacking = self._new.lacking
        if lacking is None or keep.all():
            return keep
        gone = old.rows.filter(pa.array(~keep))
        source, at = matching(gone, self._keys)
        for number in np.flatnonzero(lacking.any(axis=0)):
            needed = lacking[at, number]
            self._rows = _filled(self._rows, int(number), at[needed], gone, source[needed])
        self._lacks[at] = False
        return keep

    def new_rows(self) -> pa.Table:
        """Return the new records that are rows of the result, in addition to the kept ones."""
        return self._rows.filter(pa.array(self._take_new))

    def complete_rows(self, lacking: list[pa.Array]) -> pa.Table:
        """Return those of `new_rows` that lack no column; append the keys of the others."""
        lacks = self._take_new & self._lacks
        if lacks.any():
            lacking.append(self._keys.filter(pa.array(lacks)))
        return self._rows.filter(pa.array(self._take_new & ~self._lacks))


def _filled(
    rows: pa.Table, number: int, at: Positions, source: pa.Table, source_at: Positions
) -> pa.Table:
    """Rows with some values of a column taken from other rows."""
    if not len(at):
        return rows
    own = rows.column(number)
    chosen = np.arange(rows.num_rows)
    chosen[at] = rows.num_rows + source_at
    given = source.column(number)
    if pa.types.is_dictionary(given.type):  # as base files may be read
        given = given.cast(own.type)
    both = pa.chunked_array([*own.chunks, *given.chunks], own.type)
    return rows.set_column(number, rows.field(number), both.take(pa.array(chosen)))
