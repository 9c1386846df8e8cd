"""Looks record keys up in the record index of Hudi's metadata table.

The index is believed where it has caught up with the timeline of the write and is not ahead of it.
Elsewhere the data files are asked, as by GLOBAL_BLOOM: a key that is stored is never inserted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.arrow_columns import Numbers, as_numpy
from hoodie_ds.config.properties.table_properties import RECORD_INDEX
from hoodie_ds.hints import command
from hoodie_ds.index.file_lookup import FileLookup
from hoodie_ds.index.key_cache import KeyCache
from hoodie_ds.index.protocol import KeyLookup, LookupContext
from hoodie_ds.index.record_locations import RecordLocations
from hoodie_ds.index.table_slices import TableSlices
from hoodie_ds.log import Log
from hoodie_ds.metadata_table.record_index import places_of
from hoodie_ds.metadata_table.record_keys import index_of
from hoodie_ds.metadata_table.stored import MetadataTable
from hoodie_ds.table.file_slice import FileGroupId, FileSlice
from hoodie_ds.table.metadata_table import Scope


class RecordLookup(KeyLookup):
    """Looks record keys up in the record index, or in the data files where it may be wrong."""

    def __init__(self, context: LookupContext, scope: Scope) -> None:
        self._context = context
        self._scope = scope
        self._files = FileLookup(context, KeyCache(context.memory_bytes), use_bloom=True)
        self._slices: Sequence[FileSlice] | None = None
        self._numbers: dict[FileGroupId, int] = {}

    @cached_property
    def _index(self) -> MetadataTable | None:
        return self._context.record_index(self._scope)

    def find(
        self, slices: Sequence[FileSlice], keys: pa.Array, live_only: bool = False
    ) -> RecordLocations:
        """Return the slice of each key; see `KeyLookup`. In the index a deleted key is in none.

        All slices are of one partition if the index is of each by itself.
        """
        index = RECORD_INDEX
        if slices and self._scope == "partition":
            index = index_of(slices[0].group.partition_path)
        found = self._by_index(index, keys, lambda _: slices)
        return found or self._files.find(slices, keys, live_only)

    def positions(self, slice_: FileSlice, keys: pa.Array) -> Numbers | None:
        """Return where keys are in a base file that was read; see `KeyLookup`."""
        return self._files.positions(slice_, keys)

    def find_anywhere(self, slices: TableSlices, keys: pa.Array) -> RecordLocations:
        """Return the slice of each key of a table, whose partitions are listed that have some."""
        return self._by_index(RECORD_INDEX, keys, slices.of) or self._files.find_anywhere(
            slices, keys
        )

    @cached_property
    def asks_index(self) -> bool:
        """Whether the index was believed at first; see `KeyLookup`."""
        return self._index is not None

    def place(self, slices: TableSlices, keys: pa.Array) -> Numbers | None:
        """Return the slice of each key; see `KeyLookup`.

        Of a key that the index has elsewhere it is the first one whose files have it.
        """
        if self._index is None:
            return None
        places = places_of(self._index, keys.cast(pa.string()), RECORD_INDEX)
        positions = self._positions(slices.of({one.partition_path for one in places.groups}))
        is_there = np.array([*map(positions.__contains__, places.groups), True])
        elsewhere = ~is_there[places.numbers]
        strange = keys.filter(pa.array(elsewhere))
        distinct = strange.unique()
        in_files = self._files.find_anywhere(slices, distinct).first if len(distinct) else None
        positions = self._positions(slices.known)
        found = np.array([*(positions.get(one, -1) for one in places.groups), -1], np.int64)
        found = found[places.numbers]
        if in_files is not None:
            found[elsewhere] = in_files[as_numpy(pc.index_in(strange, value_set=distinct))]
        return found

    def _by_index(
        self, index: str, keys: pa.Array, slices_of: Callable[[set[str]], Sequence[FileSlice]]
    ) -> RecordLocations | None:
        """Where keys are by the index, in the slices of its partitions; None if it may be wrong."""
        if self._index is None:
            return None
        places = places_of(self._index, keys.cast(pa.string()), index)
        positions = self._positions(slices_of({one.partition_path for one in places.groups}))
        strange = {*places.groups} - positions.keys()
        if not strange:
            found = np.array([*map(positions.__getitem__, places.groups), -1], np.int64)
            return replace(RecordLocations.nowhere(len(keys)), slices=found[places.numbers])
        self._index = None
        root = self._context.storage.root
        Log(root).warning(
            "the record index has keys in %s, which is not there, so keys are looked up in "
            "data files; once %s has dropped the index the next write makes it again",
            min(strange, key=str),
            command("metadata", "drop", root, "--partition", RECORD_INDEX),
        )
        return None

    def _positions(self, slices: Sequence[FileSlice]) -> Mapping[FileGroupId, int]:
        """The positions of slices, which are mostly those of the look-up before."""
        if slices is not self._slices:
            self._slices = slices
            self._numbers = {slice_.group: number for number, slice_ in enumerate(slices)}
        return self._numbers
