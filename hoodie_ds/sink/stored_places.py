"""Where record keys are stored, asked in the batch's own view of the table.

All tasks, and every further attempt of each, share that view, so they get the same answers.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from hoodie_ds.config.kinds import IndexType
from hoodie_ds.index.key_cache import KeyCache, shared_key_cache
from hoodie_ds.index.key_lookup import KeyLookup, Numbers
from hoodie_ds.sink.batch import Batch
from hoodie_ds.sink.duplicates import known_keys
from hoodie_ds.sink.memory_budget import MemoryBudget
from hoodie_ds.table.file_slice import FileSlice

_READ_WHOLE: Final = (IndexType.SIMPLE, IndexType.GLOBAL_SIMPLE)
"""Indexes that ask no bloom filters."""


class StoredPlaces:
    """The file slices of all partitions, and which of them holds a key.

    Parameters
    ----------
    batch : Batch
        The batch; its operation looks at what is stored, or nothing is found.
    """

    def __init__(self, batch: Batch) -> None:
        self._lookup = key_lookup(batch)
        self.view = batch.view
        self.slices: list[FileSlice] = []
        if batch.looks_up and batch.timeline.commits:
            self.slices += self.view.slices_among(self.view.data_files())

    def find(self, keys: pa.Array) -> Numbers:
        """Return the position in `slices` of each key (string); -1 for one that is in none.

        A deleted key is free again, as in Hudi: a record that moved away is one, too.
        """
        if not self.slices:
            return np.full(len(keys), -1, dtype=np.int64)
        return self._lookup.find(self.slices, keys, live_only=True)


def key_lookup(batch: Batch) -> KeyLookup:
    """Return what looks keys up in slices of the table as a batch sees it."""
    return KeyLookup(
        batch.table.storage,
        batch.index not in _READ_WHOLE,
        lambda found: known_keys(batch, found),
        _key_cache(batch),
        f"{batch.timeline.latest_time} {batch.timeline.digest}",
    )


def _key_cache(batch: Batch) -> KeyCache:
    """The state of the state index lives on from batch to batch; the others remember for one."""
    if batch.index is IndexType.FLINK_STATE:
        return shared_key_cache(batch.options.state_max_bytes)
    return KeyCache(MemoryBudget.of(batch.options).lookup_bytes)
