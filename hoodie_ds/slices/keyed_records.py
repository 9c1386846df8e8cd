"""What merging records of log files comes to, by the record keys of the base file."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.arrow_columns import Mask, as_numpy
from hoodie_ds.columns.meta_columns import RECORD_KEY
from hoodie_ds.formats.schema_conversion import conform
from hoodie_ds.record.merge.merger import Merge, Merger, RecordSet
from hoodie_ds.slices.base_rows import BaseRows
from hoodie_ds.slices.located_records import surely_wins


@dataclass(frozen=True, slots=True)
class KeyedRecords:
    """Records of log files, one of each key; ordering fields are of the columns `compared`."""

    records: RecordSet
    merger: Merger
    ordering_fields: tuple[str, ...]
    compared: pa.Schema

    def over(self, base: BaseRows) -> tuple[list[Mask], pa.Table]:
        """Return which rows of a base file stay, piece by piece, and the rows among the records.

        Ordering values of the file are read only if its statistics do not show that every record
        is newer.
        """
        keys = self.records.rows.column(RECORD_KEY)
        if self._surely_win(base).all():
            return [*without(base, keys)], self.records.changed_rows()
        merge = self.merger.over(self.records)
        return [*self._stays(merge, base, keys)], merge.new_rows()

    def rows(self, base: BaseRows) -> pa.Table:
        """Return the rows among the records; of the base file few keys are read, or none."""
        wins = self._surely_win(base)
        sure = self.records.take(np.flatnonzero(wins))
        unsure = self.records.take(np.flatnonzero(~wins))
        merge = self.merger.over(unsure)
        deque(self._stays(merge, base, unsure.rows.column(RECORD_KEY)), maxlen=0)
        return pa.concat_tables([sure.changed_rows(), merge.new_rows()])

    def _surely_win(self, base: BaseRows) -> Mask:
        if base.reader is None:
            return np.ones(self.records.num_rows, dtype=np.bool_)
        return surely_wins(self.merger, self.ordering_fields, self.records, base.reader)

    def _stays(self, merge: Merge, base: BaseRows, keys: pa.ChunkedArray) -> Iterator[Mask]:
        def keep(rows: pa.Table) -> Mask:
            compared = conform(rows, self.compared)
            return merge.keep(RecordSet.of_rows(compared, self.ordering_fields))

        return base.stays(self.compared.names, keys, keep)


def without(base: BaseRows, keys: pa.ChunkedArray) -> Iterator[Mask]:
    """Yield which rows of a base file have none of some record keys, piece by piece."""

    def keep(rows: pa.Table) -> Mask:
        return ~as_numpy(pc.is_in(rows.column(RECORD_KEY), value_set=keys))

    return base.stays([RECORD_KEY], keys, keep)
