"""The record keys of one file slice, arranged to find a few keys among many.

The invariant: an answer is exact. Hashes only say where to compare keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.arrow_columns import Mask, ranks
from hoodie_ds.columns.java_hash import UInts, string_hashes
from hoodie_ds.formats.parquet.bloom_filter import first_hashes
from hoodie_ds.table.file_slice import FileSlice

Positions = npt.NDArray[np.int64]

_HASH_BITS: Final = np.uint64(32)
_POSITION: Final = np.uint64(0xFFFFFFFF)


@dataclass(frozen=True)
class KeyQuery:
    """Distinct keys to look up, by ascending hash, so that a search reads memory in order."""

    keys: pa.Array
    hashes: UInts

    @classmethod
    def of(cls, keys: pa.Array) -> tuple[KeyQuery, Positions]:
        """Return a query, and for each of its keys the position in `keys`."""
        hashes = string_hashes(keys)
        order = np.argsort(hashes)
        return cls(keys.take(pa.array(order)), hashes[order]), order

    @cached_property
    def first_hashes(self) -> UInts:
        """What every bloom filter tests first of the keys; see `bloom_filter.first_hashes`."""
        return first_hashes(self.keys)

    def only(self, positions: Positions) -> KeyQuery:
        """Return the query for some of its keys, by ascending position."""
        return KeyQuery(self.keys.take(pa.array(positions)), self.hashes[positions])


@dataclass(frozen=True)
class StoredKeys:
    """Record keys (string) of one file slice, without nulls and fewer than 2**32."""

    keys: pa.Array

    @property
    def nbytes(self) -> int:
        """Bytes in memory, with those of the hashes before they are computed."""
        return int(self.keys.nbytes) + 8 * len(self.keys)

    @property
    def hashes(self) -> UInts:
        """The hashes (uint32) of the keys, ascending."""
        return (self._by_hash >> _HASH_BITS).astype(np.uint32)

    def look(self, query: KeyQuery) -> Mask:
        """Which keys are stored, by the cheapest way while no hashes are computed."""
        return self.search(query) if len(self.keys) < len(query.keys) else self.scan(query)

    def scan(self, query: KeyQuery) -> Mask:
        """Which keys are stored, by one pass over all."""
        return _are_in(query.keys, self.keys)

    def search(self, query: KeyQuery) -> Mask:
        """Which keys are stored, by their hashes: the work is that of the shorter side."""
        found = self._pairs(query)
        if found is None:
            return self.scan(query)
        held = np.zeros(len(query.keys), dtype=np.bool_)
        held[found[0]] = True
        return held

    def positions(self, keys: pa.Array) -> Positions:
        """Return where each key is; -1 for one that is stored nowhere or twice."""
        query, order = KeyQuery.of(keys)
        found, positions = self._pairs(query), np.full(len(keys), -1)
        if found is None:
            return positions
        asked, stored = found
        once = np.bincount(asked, minlength=len(keys))[asked] == 1
        positions[order[asked[once]]] = stored[once]
        return positions

    def _pairs(self, query: KeyQuery) -> tuple[Positions, Positions] | None:
        """Where equal keys are in the query and among those stored; None if hashes do not tell."""
        if len(self.keys) < len(query.keys):
            first, last = (np.searchsorted(query.hashes, self.hashes, s) for s in ("left", "right"))
        else:
            least = query.hashes.astype(np.uint64) << _HASH_BITS
            first = np.searchsorted(self._by_hash, least)
            last = np.searchsorted(self._by_hash, least | _POSITION)
        counts = last - first
        if counts.sum() > len(query.keys) + len(self.keys):
            return None  # so many share a hash
        sought = np.repeat(np.arange(len(counts)), counts)
        # For keys with one hash on the other side: the first, the second, and so on.
        met = first[sought] + ranks(counts)
        asked, stored = (met, sought) if len(self.keys) < len(query.keys) else (sought, met)
        candidates = self._by_hash[stored] & _POSITION
        same = pc.equal(query.keys.take(pa.array(asked)), self.keys.take(pa.array(candidates)))
        equal = same.to_numpy(zero_copy_only=False)
        return asked[equal], candidates[equal].astype(np.int64)

    @cached_property
    def _by_hash(self) -> npt.NDArray[np.uint64]:
        """Each key's hash and, in the lower half, its position; ascending."""
        hashes = string_hashes(self.keys).astype(np.uint64) << _HASH_BITS
        return np.sort(hashes | np.arange(len(self.keys), dtype=np.uint64))


@dataclass(frozen=True)
class SliceKeys:
    """Record keys of a file slice: of its rows, and those that only log files delete.

    Some repeat.
    """

    live: StoredKeys
    dead: StoredKeys
    in_base: StoredKeys | None = None  # those of the base file, in the order of its rows

    @classmethod
    def of(
        cls, live: pa.Array, dead: pa.Array | None = None, in_base: pa.Array | None = None
    ) -> SliceKeys:
        """Arrange keys (string)."""
        stored = StoredKeys(live)
        base = None if in_base is None else stored if in_base is live else StoredKeys(in_base)
        return cls(stored, StoredKeys(live.slice(0, 0) if dead is None else dead), base)

    @property
    def num_keys(self) -> int:
        """How many there are."""
        return len(self.live.keys) + len(self.dead.keys)

    @property
    def nbytes(self) -> int:
        """Bytes of all of them."""
        base = 0 if self.in_base is None or self.in_base is self.live else self.in_base.nbytes
        return self.live.nbytes + self.dead.nbytes + base


def _are_in(keys: pa.Array, stored: pa.Array) -> Mask:
    """Which of some distinct keys are stored; the shorter side is hashed."""
    if len(stored) < len(keys):
        result: Mask = pc.is_in(keys, value_set=stored).to_numpy(zero_copy_only=False)
        return result
    held = np.zeros(len(keys), dtype=np.bool_)
    held[pc.index_in(stored, value_set=keys).drop_null().to_numpy()] = True
    return held


@dataclass(frozen=True, slots=True)
class KeySource:
    """Identifies the slice that keys were read from; differs once the slice changes.

    `root` is that of the table's storage. `as_of` names the timeline by which log files were read,
    and is empty without log files.
    """

    root: str
    slice: FileSlice
    as_of: str
