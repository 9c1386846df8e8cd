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
from hoodie_ds.record.meta_columns import RECORD_KEY
from hoodie_ds.sink.batch import Batch
from hoodie_ds.sink.records import split, split_by_partition
from hoodie_ds.sink.stored_places import key_lookup
from hoodie_ds.sink.target import Target
from hoodie_ds.table.file_slice import FileGroupId, FileSlice
from hoodie_ds.table.fs_view import FileSystemView

_NOWHERE: Final = -1


class IndexRouter:
    """Updates go where their key is stored, other rows to groups of their own.

    Parameters
    ----------
    batch : Batch
        The batch.
    """

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._view = FileSystemView(batch.table.storage, batch.timeline)
        self._slices: dict[str, list[FileSlice]] = {}
        self._lookup = key_lookup(batch)

    def route(self, rows: pa.Table) -> Iterator[tuple[Target, pa.Table]]:
        """Part rows by file group; see `Router`."""
        keyed = rows.append_column(RECORD_KEY, self._batch.key_generator.record_keys(rows))
        for path, part in split_by_partition(self._batch, keyed):
            slices = self._latest(path)
            for number, some in split(part, self._find(slices, part)):
                if number != _NOWHERE:
                    yield Target(slices[number].group, slices[number]), some
                elif self._batch.operation is not Operation.DELETE:
                    yield Target(FileGroupId(path, ""), None), some

    def _latest(self, path: str) -> list[FileSlice]:
        known = self._slices.get(path)
        if known is None:
            slices = [] if self._batch.operation.replaces else self._view.latest_slices(path)
            known = self._slices[path] = slices
        return known

    def _find(self, slices: list[FileSlice], rows: pa.Table) -> Numbers:
        if not self._batch.looks_up or not slices:
            return np.full(rows.num_rows, _NOWHERE, dtype=np.int64)
        return self._lookup.find(slices, rows.column(RECORD_KEY).combine_chunks())
