"""Inserts: rows are added to what is stored, whatever their keys (``HoodieConcatHandle``)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from hoodie_ds.columns.arrow_columns import Mask
from hoodie_ds.record.merge.hook_merger import HookMerger
from hoodie_ds.record.merge.merger import Merger, RecordSet


@dataclass(frozen=True, slots=True)
class ConcatMerger:
    """Adds records to stored rows; an `AnyMerger`.

    `combiner` combines records of one key within a batch; None keeps them all.
    """

    combiner: Merger | HookMerger | None = None

    @property
    def needs_complete_rows(self) -> bool:
        """Whether merging needs more of a row than its key and ordering columns."""
        return self.combiner is not None and self.combiner.needs_complete_rows

    def combine(self, records: RecordSet) -> RecordSet:
        """Combine records of one key if there is a combiner; see `Merger.combine`."""
        if self.combiner is None:
            return records
        # A hook takes part in combining rows, not in inserting the combined ones.
        return replace(self.combiner.combine(records), hook=None)

    def over(self, new: RecordSet) -> ConcatMerge:
        """Begin to add records to stored rows; see `Merger.over`."""
        return ConcatMerge(new)


@dataclass(frozen=True, slots=True)
class ConcatMerge:
    """New records added to stored rows; an `AnyMerge`. Deletes among them have no effect."""

    new: RecordSet

    def keep(self, old: RecordSet) -> Mask:
        """Keep every stored row."""
        return np.ones(old.num_rows, dtype=np.bool_)

    @property
    def num_inserts(self) -> int:
        """Number of rows that are added."""
        return int(self.new_rows().num_rows)

    @property
    def num_updates(self) -> int:
        """None of the stored rows is replaced."""
        return 0

    @property
    def num_deletes(self) -> int:
        """None of the stored rows is removed."""
        return 0

    @property
    def changes_nothing(self) -> bool:
        """Whether no row is added."""
        return self.num_inserts == 0

    def new_rows(self) -> pa.Table:
        """Return the rows that are added."""
        return self.new.live_rows()
