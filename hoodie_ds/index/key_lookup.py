"""Finding the file group that holds a record key, where keys do not name it (bloom, simple).

As in Hudi: files whose key range cannot hold a key are passed over, then those whose bloom filter
denies it; what is left is read. So the answer is exact, and the filters save reading only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.arrow_columns import Mask, Numbers, ranks
from hoodie_ds.columns.meta_columns import RECORD_KEY
from hoodie_ds.formats.parquet.base_file_reader import BaseFileReader, MadeColumn
from hoodie_ds.index.key_cache import KeyCache
from hoodie_ds.index.stored_keys import KeyQuery, KeySource, SliceKeys
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.checksums import check_once
from hoodie_ds.table.file_slice import FileSlice

_KEYS: Final = pa.schema([pa.field(RECORD_KEY, pa.string())])
_FIRST_DISORDERED: Final = "\ue000"
"""From this character on Java's order of strings and that of UTF-8 bytes differ."""


@dataclass(frozen=True, slots=True)
class RecordLocations:
    """The file slices in which keys are stored; a key may be in several.

    Apache Hudi's bloom and simple indexes join incoming records with all that are stored, so each
    copy of a key is a location.

    Parameters
    ----------
    keys : numpy.ndarray of int64, shape (locations,)
        Position of the key that is located, ascending.
    slices : numpy.ndarray of int64, shape (locations,)
        Position of the slice; those of a key ascend. -1 for a key that is in none.
    tombstones : numpy.ndarray of bool, shape (locations,)
        Whether no more than a delete of the key is there; the key has another location too.
    num_keys : int
        Keys that were asked for.
    """

    keys: Numbers
    slices: Numbers
    tombstones: Mask
    num_keys: int

    @classmethod
    def nowhere(cls, num_keys: int) -> RecordLocations:
        """Return the answer for keys none of which is stored."""
        nowhere = np.full(num_keys, -1, dtype=np.int64)
        return cls(np.arange(num_keys), nowhere, np.zeros(num_keys, np.bool_), num_keys)

    @property
    def first(self) -> Numbers:
        """The first slice (int64) of each key; -1 for a key without a location."""
        first = np.full(self.num_keys, -1, dtype=np.int64)
        first[self.keys[::-1]] = self.slices[::-1]
        return first

    @property
    def most(self) -> int:
        """How many locations a key has at most."""
        return int(np.bincount(self.keys).max(initial=0))

    def nth(self, number: int) -> tuple[Numbers, Numbers]:
        """Return the keys (int64) with more locations than `number`, and that one of each."""
        every = np.arange(len(self.keys))
        begins = np.maximum.accumulate(np.where(np.diff(self.keys, prepend=-1) > 0, every, 0))
        here = np.flatnonzero(every - begins == number)
        return self.keys[here], self.slices[here]

    def only(self, wanted: Mask) -> RecordLocations:
        """Return some of the locations."""
        kept = self.keys[wanted], self.slices[wanted], self.tombstones[wanted]
        return RecordLocations(*kept, self.num_keys)

    def take(self, positions: Numbers) -> RecordLocations:
        """Return the locations of some keys, by position, each as often as it is named."""
        counts = np.bincount(self.keys, minlength=self.num_keys)
        starts = np.cumsum(counts) - counts
        taken = counts[positions]
        keys = np.repeat(np.arange(len(positions)), taken)
        # Of the locations of one key, the first, the second, and so on.
        at = np.repeat(starts[positions], taken) + ranks(taken)
        return RecordLocations(keys, self.slices[at], self.tombstones[at], len(positions))


class KeyLookup:
    """Looks record keys up in file slices.

    Parameters
    ----------
    storage : Storage
        Rooted at the table's base path.
    use_bloom : bool
        Whether to ask bloom filters before keys are read.
    merged_keys : callable
        Reads the keys of a slice that has log files, those merged.
    cache : KeyCache
        Keeps keys for the next look-up.
    as_of : str
        Names the timeline by which log files are read.
    virtual_keys : MadeColumn, optional
        Makes the record keys of rows, where files are without them.
    """

    def __init__(
        self,
        storage: Storage,
        use_bloom: bool,
        merged_keys: Callable[[FileSlice], SliceKeys],
        cache: KeyCache,
        as_of: str,
        virtual_keys: MadeColumn | None = None,
    ) -> None:
        self._storage = storage
        self._use_bloom = use_bloom
        self._merged_keys = merged_keys
        self._cache = cache
        self._as_of = as_of
        self._virtual_keys = virtual_keys

    def find(
        self, slices: Sequence[FileSlice], keys: pa.Array, live_only: bool = False
    ) -> RecordLocations:
        """Find the slices of each key.

        A key that was deleted in a log file is still in the base file: what comes later of it
        belongs there too, where its delete is remembered, unless it is stored elsewhere by now.
        Where several slices remember deletes, the one that goes back furthest knows of all.

        Parameters
        ----------
        slices : sequence of FileSlice
            Where the keys may be: the latest slices of their partition.
        keys : pyarrow.Array of string
            Without nulls.
        live_only : bool
            Whether a deleted key is in no slice.

        Returns
        -------
        RecordLocations
            Each key has at least one location, if only that of a key which is in no slice.

        Raises
        ------
        CorruptFileError
            A file is damaged; names it.
        """
        encoded = keys.dictionary_encode()
        query, order = KeyQuery.of(encoded.dictionary)
        sources = [KeySource(self._storage.root, s, self._as_of if s.logs else "") for s in slices]
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

    def _holds(self, source: KeySource, query: KeyQuery) -> tuple[Mask, Mask]:
        """Which keys are those of rows, and which those of deleted ones."""
        slice_, stored = source.slice, self._cache.get(source)
        if stored is not None:
            return stored.live.search(query), stored.dead.search(query)
        if slice_.logs or slice_.base is None:
            stored = self._merged_keys(slice_)
        else:
            if slice_.base.checksum is not None:
                check_once(self._storage, slice_.base.path, slice_.base.checksum)
            with self._storage.open_input(slice_.base.path) as file:
                base, made = slice_.base, self._virtual_keys
                reader = BaseFileReader(file, _KEYS, base.path, trusted=base.trusted, made=made)
                may = _in_range(query.keys, reader.key_range())
                bloom = reader.bloom_filter() if self._use_bloom and may.any() else None
                if bloom is not None:
                    keys = query.keys.filter(pa.array(may))
                    may[may] = bloom.may_contain(keys, query.first_hashes[:, may])
                if not may.any():
                    return may, may
                stored = SliceKeys.of(reader.read().column(RECORD_KEY).combine_chunks())
        self._cache.put(source, stored)
        return stored.live.look(query), stored.dead.look(query)


def _located(
    at: Numbers, numbers: Numbers, dead: Mask, begins: Sequence[str], num_keys: int
) -> RecordLocations:
    """Give keys that are not live one location, and put all in order."""
    is_live = np.zeros(num_keys, dtype=np.bool_)
    is_live[at[~dead]] = True
    homeless = np.flatnonzero(dead & ~is_live[at])
    age = np.argsort(np.argsort(np.array(begins, np.str_), kind="stable"))
    oldest_last = homeless[np.argsort(-age[numbers[homeless]], kind="stable")]
    home = np.full(num_keys, -1, dtype=np.int64)
    home[at[oldest_last]] = numbers[oldest_last]
    tombstones = dead & (is_live[at] | (numbers != home[at]))
    nowhere = np.flatnonzero(~is_live & (home < 0))
    at, numbers = np.append(at, nowhere), np.append(numbers, home[nowhere])
    tombstones = np.append(tombstones, np.zeros(len(nowhere), np.bool_))
    by_key = np.argsort(at, kind="stable")
    return RecordLocations(at[by_key], numbers[by_key], tombstones[by_key], num_keys)


def _in_range(keys: pa.Array, bounds: tuple[str, str] | None) -> Mask:
    if bounds is None or max(*bounds[0], *bounds[1], "") >= _FIRST_DISORDERED:
        return np.ones(len(keys), dtype=np.bool_)
    inside = pc.and_(pc.greater_equal(keys, bounds[0]), pc.less_equal(keys, bounds[1]))
    result: Mask = inside.to_numpy(zero_copy_only=False)
    return result
