"""Looks record keys up in the data files themselves.

As in Hudi: files whose key range or bloom filter rules a key out are skipped, and the others are
read. So the answer is exact, and the filters only avoid reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa

from hoodie_ds.columns.arrow_columns import Mask, Numbers
from hoodie_ds.columns.meta_columns import RECORD_KEY
from hoodie_ds.formats.parquet.base_file_reader import BaseFileReader
from hoodie_ds.index.key_cache import KeyCache
from hoodie_ds.index.protocol import KeyLookup, LookupContext
from hoodie_ds.index.record_locations import RecordLocations
from hoodie_ds.index.stored_keys import KeyQuery, KeySource, SliceKeys
from hoodie_ds.table.checksums import check_once
from hoodie_ds.table.file_slice import BaseFile, FileSlice

_KEYS: Final = pa.schema([pa.field(RECORD_KEY, pa.string())])


class FileLookup(KeyLookup):
    """Looks record keys up in the files of slices, and in a cache of the keys read from them.

    With `use_bloom`, bloom filters are tested before keys are read.
    """

    def __init__(self, context: LookupContext, cache: KeyCache, *, use_bloom: bool) -> None:
        timeline = context.timeline
        self._context = context
        self._cache = cache
        self._use_bloom = use_bloom
        self._as_of = f"{timeline.latest_time} {timeline.digest}"

    def find(
        self, slices: Sequence[FileSlice], keys: pa.Array, live_only: bool = False
    ) -> RecordLocations:
        """Return the slices of each key; see `KeyLookup`.

        A key that was deleted in a log file is still in the base file: later rows of it belong
        there too, where its delete is stored, unless the key is stored elsewhere by now. If several
        slices store deletes, the oldest one has all of them.
        """
        encoded = keys.dictionary_encode()
        query, order = KeyQuery.of(encoded.dictionary)
        sources = list(map(self._source, slices))
        fronted, may = self._cache.ask_front(sources, query)
        every, passed = np.arange(len(order)), np.flatnonzero(may)
        fewer = query if len(passed) == len(order) else query.only(passed)
        at, numbers, tombstones = [every[:0]], [every[:0]], [np.zeros(0, np.bool_)]
        for number, source in enumerate(sources):
            asked, wanted = (passed, fewer) if source in fronted else (every, query)
            if not len(asked):
                continue
            live, dead = self._holds(source, wanted)
            for held, is_dead in ((live, False), (dead, True)):
                some = order[asked[held]]
                if len(some) and not (live_only and is_dead):
                    at.append(some)
                    numbers.append(np.full(len(some), number))
                    tombstones.append(np.full(len(some), is_dead))
        found = np.concatenate(at), np.concatenate(numbers), np.concatenate(tombstones)
        located = _located(*found, [slice_.base_instant for slice_ in slices], len(order))
        return located.take(encoded.indices.to_numpy(zero_copy_only=False))

    def positions(self, slice_: FileSlice, keys: pa.Array) -> Numbers | None:
        """Return where keys are in a base file whose keys are cached; see `KeyLookup`."""
        stored = self._cache.get(self._source(slice_))
        known = None if stored is None else stored.in_base
        return None if known is None else known.positions(keys)

    def _source(self, slice_: FileSlice) -> KeySource:
        return KeySource(self._context.storage.root, slice_, self._as_of if slice_.logs else "")

    def _holds(self, source: KeySource, query: KeyQuery) -> tuple[Mask, Mask]:
        """Which keys are live in a slice, and which deleted."""
        slice_, stored = source.slice, self._cache.get(source)
        if stored is not None:
            return stored.live.search(query), stored.dead.search(query)
        if slice_.base is not None:
            may, stored = self._in_base(slice_.base, query, reads=not slice_.logs)
            if not may.any() and not slice_.logs:
                return may, may
            if not may.any() and self._context.splits_slices:
                return self._holds(replace(source, slice=replace(slice_, base=None)), query)
        if stored is None:
            stored = self._context.merged_keys(slice_)
        self._cache.put(source, stored)
        return stored.live.look(query), stored.dead.look(query)

    def _in_base(
        self, base: BaseFile, query: KeyQuery, *, reads: bool
    ) -> tuple[Mask, SliceKeys | None]:
        """Which keys a base file may have, and its own keys if it may and they are to be read."""
        context, stored = self._context, None
        if reads and base.checksum is not None:
            check_once(context.storage, base.path, base.checksum)
        with context.storage.open_input(base.path) as file:
            made = context.virtual_keys
            reader = BaseFileReader(file, _KEYS, base.path, trusted=base.trusted, made=made)
            may = reader.in_key_range(query.keys)
            bloom = reader.bloom_filter() if self._use_bloom and may.any() else None
            if bloom is not None:
                keys = query.keys.filter(pa.array(may))
                may[may] = bloom.may_contain(keys, query.first_hashes[:, may])
            if reads and may.any():
                keys = reader.read().column(RECORD_KEY).combine_chunks()
                stored = SliceKeys.of(keys, in_base=keys)
        return may, stored


def _located(
    at: Numbers, numbers: Numbers, dead: Mask, begins: Sequence[str], num_keys: int
) -> RecordLocations:
    """Give keys that are not live one location, and put all in order."""
    is_live = np.zeros(num_keys, dtype=np.bool_)
    is_live[at[~dead]] = True
    deleted = np.flatnonzero(dead & ~is_live[at])
    age = np.argsort(np.argsort(np.array(begins, np.str_), kind="stable"))
    oldest_last = deleted[np.argsort(-age[numbers[deleted]], kind="stable")]
    home = np.full(num_keys, -1, dtype=np.int64)
    home[at[oldest_last]] = numbers[oldest_last]
    tombstones = dead & (is_live[at] | (numbers != home[at]))
    nowhere = np.flatnonzero(~is_live & (home < 0))
    at, numbers = np.append(at, nowhere), np.append(numbers, home[nowhere])
    tombstones = np.append(tombstones, np.zeros(len(nowhere), np.bool_))
    by_key = np.argsort(at, kind="stable")
    return RecordLocations(at[by_key], numbers[by_key], tombstones[by_key], num_keys)
