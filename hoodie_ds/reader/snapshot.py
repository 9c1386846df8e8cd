"""A snapshot query: the latest rows of a table as of one moment (Hudi's default query type)."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.reader.pruning.predicate import ANYTHING, Predicate
from hoodie_ds.reader.scan_plan import ScanPlan, ScanTask
from hoodie_ds.reader.slice_executor import SliceExecutor


@dataclass(frozen=True, slots=True)
class SnapshotQuery:
    """Asks for all rows of a table as it was at one moment.

    Parameters
    ----------
    pinned : PinnedTable
        The table at that moment.
    """

    pinned: PinnedTable

    @property
    def schema(self) -> pa.Schema:
        """Columns of the rows."""
        return self.pinned.schema

    def plan(self, predicate: Predicate = ANYTHING) -> ScanPlan:
        """Return what to read; files are listed when its tasks are iterated over.

        Parameters
        ----------
        predicate : Predicate
            Which rows are wanted; others need not, but may come.
        """
        pruner = None if predicate is ANYTHING else self.pinned.pruner(predicate)
        tasks = (ScanTask(found) for found in self.pinned.slices(pruner))
        return ScanPlan(self.schema, SliceExecutor(self.pinned, pruner), tasks)
