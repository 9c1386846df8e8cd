"""A snapshot query: the latest rows of a table as of one moment (Hudi's default query type)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa

from hoodie_ds.errors import CorruptFileError, NotFoundError
from hoodie_ds.filters.predicate import ALL, Predicate
from hoodie_ds.hints import MISSING
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.reader.pruner import Pruner
from hoodie_ds.reader.scan_plan import PartTask, ScanPlan, ScanTask
from hoodie_ds.slices.file_slice_reader import WHOLE
from hoodie_ds.table.file_slice import FileSlice
from hoodie_ds.table.live_files import taken_since


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


@dataclass(frozen=True, slots=True)
class SliceExecutor:
    """Reads file slices of a table as it was at one moment; an `Executor`."""

    pinned: PinnedTable
    pruner: Pruner | None = None

    def read(self, task: ScanTask, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield the rows of a slice, or a part of them; see `FileSliceReader.read`.

        Raises `TimelineError` if a rollback or a clean has deleted a file since the table was
        opened.
        """
        part = (task.part, task.parts) if isinstance(task, PartTask) else WHOLE
        with refusing_deleted_files(self.pinned, task.slice):
            reader = self.pinned.reader(remembers=True)
            yield from reader.read(task.slice, columns, pruner=self.pruner, part=part)


@contextmanager
def refusing_deleted_files(pinned: PinnedTable, slice_: FileSlice) -> Iterator[None]:
    """Raise `TimelineError` for the rollback or clean that deleted a file of a slice.

    One that is missing for another reason is a `CorruptFileError`.
    """
    try:
        yield
    except NotFoundError as error:
        files = [file.path for file in slice_.files]
        commits = pinned.timeline.commits_backwards()
        taken = taken_since(pinned.table.storage, pinned.timeline, files, commits)
        raise taken or CorruptFileError(str(error), MISSING) from error
