"""A snapshot query: the latest rows of a table as of one moment (Hudi's default query type)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from hoodie_ds.filters.predicate import ALL, Predicate
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.reader.scan_plan import ScanPlan, ScanTask
from hoodie_ds.reader.slice_executor import SliceExecutor


@dataclass(frozen=True, slots=True)
class SnapshotQuery:
    """The query of all rows of a table as it was at one moment.

    A read-optimized one reads base files only, without what log files have changed in them.
    """

    pinned: PinnedTable
    read_optimized: bool = False

    @property
    def schema(self) -> pa.Schema:
        """Columns of the rows."""
        return self.pinned.schema

    def plan(self, predicate: Predicate = ALL) -> ScanPlan:
        """Return what to read; files are listed when its tasks are iterated over."""
        pruner = self.pinned.pruner(predicate)
        slices = self.pinned.slices(pruner)
        if self.read_optimized:
            slices = (replace(found, logs=()) for found in slices if found.base is not None)
        tasks = (ScanTask(found) for found in slices)
        return ScanPlan(self.schema, SliceExecutor(self.pinned, pruner), tasks)
