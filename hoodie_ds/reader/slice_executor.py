"""Tasks that are file slices to rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from hoodie_ds.reader.file_slice_reader import WHOLE
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.reader.pruning.pruner import Pruner
from hoodie_ds.reader.scan_plan import PartTask, ScanTask


@dataclass(frozen=True, slots=True)
class SliceExecutor:
    """Reads file slices of a table as it was at one moment; an `Executor`.

    Parameters
    ----------
    pinned : PinnedTable
        The table at that moment.
    pruner : Pruner, optional
        Says what need not be read.
    """

    pinned: PinnedTable
    pruner: Pruner | None = None

    def read(self, task: ScanTask, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield the rows of a slice, or a part of them; see `FileSliceReader.read`."""
        part = (task.part, task.parts) if isinstance(task, PartTask) else WHOLE
        return self.pinned.reader().read(task.slice, columns, pruner=self.pruner, part=part)
