"""The latest file slices of a table, of whose partitions those are listed that are needed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from hoodie_ds.columns.arrow_columns import Numbers
from hoodie_ds.index.buckets import first_task
from hoodie_ds.table.file_slice import FileSlice
from hoodie_ds.table.fs_view import FileSystemView


class TableSlices:
    """The slices that are known so far of a view of a table."""

    def __init__(self, view: FileSystemView) -> None:
        self.view = view
        self.known: Sequence[FileSlice] = ()
        self._listed: set[str] = set()
        self._has_all = False

    def of(self, partitions: Iterable[str]) -> Sequence[FileSlice]:
        """Return slices, those of some partitions among them."""
        new = [] if self._has_all else sorted({*partitions} - self._listed)
        if new:
            self._listed.update(new)
            here = (slice_ for path in new for slice_ in self.view.latest_slices(path))
            self.known = (*self.known, *here)
        return self.known

    def all(self) -> Sequence[FileSlice]:
        """Return the slices of all partitions, by one listing."""
        if not self._has_all:
            self._has_all = True
            self.known = (*self.view.slices_among(self.view.data_files()),)
        return self.known


def tasks_of(slices: Sequence[FileSlice], num_tasks: int) -> Numbers:
    """Return the task of each slice, those of a partition round-robin.

    Of a partition all latest slices are there, by file id, or none.
    """
    tasks = np.zeros(len(slices), dtype=np.int64)
    places: dict[str, list[int]] = {}
    for at, slice_ in enumerate(slices):
        places.setdefault(slice_.group.partition_path, []).append(at)
    for path, here in places.items():
        tasks[here] = (first_task(path, num_tasks) + np.arange(len(here))) % num_tasks
    return tasks
