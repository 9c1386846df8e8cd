"""Routes rows by looking their keys up: updates to where the key is, the rest to new file groups.

Only file groups of the batch's own view of the table are looked at, which all tasks share, so a
second attempt decides the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from hoodie_ds.config.kinds import Operation
from hoodie_ds.index.key_lookup import Numbers
from hoodie_ds.index.spread import first_task
from hoodie_ds.record.meta_columns import RECORD_KEY
from hoodie_ds.sink.assignment import PLACE_COLUMN
from hoodie_ds.sink.batch import Batch
from hoodie_ds.sink.records import split, split_by_partition
from hoodie_ds.sink.stored_places import key_lookup
from hoodie_ds.sink.target import Target
from hoodie_ds.table.file_slice import FileGroupId, FileSlice

_NOWHERE: Final = -1


class IndexRouter:
    """Updates go where their key is stored, other rows to groups of their own.

    Parameters
    ----------
    batch : Batch
        The batch.
    task : int
        Number of the task.
    """

    def __init__(self, batch: Batch, task: int = 0) -> None:
        self._batch = batch
        self._task = task
        self._num_tasks = 0
        self._view = batch.view
        self._slices: dict[str, list[FileSlice]] = {}
        self._lookup = key_lookup(batch)

    def route(
        self, rows: pa.Table, places: Numbers | None = None
    ) -> Iterator[tuple[Target, pa.Table]]:
        """Part rows by file group; see `Router`."""
        for path, part, numbers in self.locate(rows, places):
            slices = self.latest_slices(path)
            for number, some in split(part, numbers):
                if number >= 0:
                    yield Target(slices[number].group, slices[number]), some
                elif self._batch.operation is not Operation.DELETE:
                    yield Target(FileGroupId(path, ""), None), some

    def locate(
        self, rows: pa.Table, places: Numbers | None = None
    ) -> Iterator[tuple[str, pa.Table, Numbers]]:
        """Part rows by partition, and find the file group of each.

        Parameters
        ----------
        rows : pyarrow.Table
            User columns; further ones stay.
        places : numpy.ndarray of int64, optional
            What is yielded for each row, where it is known already.

        Yields
        ------
        tuple of str, pyarrow.Table and numpy.ndarray of int64
            Partition path; rows, with ``_hoodie_record_key``; for each the position of its slice
            among the `latest_slices`, or a negative number if its key is in none.
        """
        keyed = rows.append_column(RECORD_KEY, self._batch.key_generator.record_keys(rows))
        if places is not None:
            keyed = keyed.append_column(PLACE_COLUMN, pa.array(places))
        for path, part in split_by_partition(self._batch, keyed):
            if places is None:
                yield path, part, self._find(self.latest_slices(path), part)
            else:
                known = part.column(PLACE_COLUMN).to_numpy()
                self._num_tasks = max(self._num_tasks, -int(known.min(initial=0)))
                yield path, part.drop_columns(PLACE_COLUMN), known

    def latest_slices(self, path: str) -> list[FileSlice]:
        """Latest slices of a partition, by file id, in which keys are looked up."""
        known = self._slices.get(path)
        if known is None:
            slices = [] if self._batch.operation.replaces else self._view.latest_slices(path)
            known = self._slices[path] = slices
        return known

    def own_slices(self, path: str) -> Iterator[int]:
        """Yield the positions of the `latest_slices` that are this task's in a batch.

        All of them, unless the rows told over how many tasks an assigner spread them.
        """
        first = first_task(path, self._num_tasks) if self._num_tasks else 0
        for position in range(len(self.latest_slices(path))):
            if not self._num_tasks or (first + position) % self._num_tasks == self._task:
                yield position

    def _find(self, slices: list[FileSlice], rows: pa.Table) -> Numbers:
        if not self._batch.looks_up or not slices:
            return np.full(rows.num_rows, _NOWHERE, dtype=np.int64)
        return self._lookup.find(slices, rows.column(RECORD_KEY).combine_chunks())
