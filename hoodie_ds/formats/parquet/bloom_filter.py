"""Bloom filters of record keys, which base files store in their footers (Hudi tech spec).

Invariant: the same keys in the same order give the bytes that Hudi writes, and an added key is
never ruled out.
"""

from __future__ import annotations

import base64
import binascii
import math
import string
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie_ds.columns.arrow_columns import Mask, Numbers
from hoodie_ds.config.enums import BloomFilterType
from hoodie_ds.errors import CorruptFileError
from hoodie_ds.formats.parquet.murmur import Murmur, UInts
from hoodie_ds.hints import REBUILD_FILTER

BLOOM_FILTER_FOOTER: Final = "org.apache.hudi.bloomfilter"
BLOOM_TYPE_FOOTER: Final = "hoodie_bloom_filter_type_code"
_OLD_FOOTER: Final = "com.uber.hoodie.bloomfilter"

_HEADER: Final = struct.Struct(">iibi")
_GROWTH: Final = struct.Struct(">iii")
_BASE64: Final = f"{string.ascii_uppercase}{string.ascii_lowercase}{string.digits}+/".encode()
_HEAD_CHARACTERS: Final = 36
"""As many characters, of base64, as hold both."""
_SIX_BITS: Final = np.zeros(256, np.int64)
_SIX_BITS[np.frombuffer(_BASE64, np.uint8)] = np.arange(64)
_SHIFTS: Final = np.array([18, 12, 6, 0])
_VERSION: Final = -1
_MURMUR: Final = 1
_POSITIONS_AT_ONCE: Final = 1 << 21
"""Positions of keys that are in memory together, eight bytes each."""
_FIRST_HASHES: Final = 4
"""After so many, at most one in sixteen keys that are not in the filter is left."""
_MOST_HASHES: Final = 1075
"""The number of hashes for the smallest share of false positives that a double can hold."""
_MOST_FILTERS: Final = 1000
"""With more filters in one, testing them takes longer than reading the keys."""
_MOST_BITS: Final = 2**31 - 1
_NO_LIMIT: Final = 2**31 - 1

Packed = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class BloomParams:
    """How the filter of a base file is made."""

    num_entries: int  # keys that one filter is made for
    false_positives: float  # share of other keys that such a filter lets pass
    kind: BloomFilterType  # ``DYNAMIC_V0`` adds filters as keys are added
    max_entries: int  # keys at which a dynamic filter stops growing

    @property
    def num_bits(self) -> int:
        """Bits of one filter; as in Java, no more than an int holds."""
        per_key = -math.log(self.false_positives) / math.log(2) ** 2
        return min(_MOST_BITS, math.ceil(self.num_entries * per_key))

    @property
    def num_hashes(self) -> int:
        """Bits that each key sets."""
        return math.ceil(math.log(2) * self.num_bits / self.num_entries)


class BloomFilterBuilder:
    """A filter that is being filled."""

    def __init__(self, params: BloomParams) -> None:
        self._params = params
        self._rows = [np.zeros(params.num_bits, dtype=np.bool_)]
        self._since_last_row = 0
        self._next_turn = -1

    def add(self, keys: pa.ChunkedArray) -> None:
        """Add a column of keys (string, without nulls)."""
        for chunk in keys.chunks:
            while len(chunk):
                room, rows = self._room()
                count = min(room, _keys_at_once(self._params.num_hashes))
                self._set(chunk.slice(0, count), rows)
                chunk = chunk.slice(count)

    def footers(self) -> dict[str, str]:
        """Return the footer entries of the filter and its kind."""
        params = self._params
        body = b"".join(_row_bytes(params, row) for row in self._rows)
        if params.kind is BloomFilterType.DYNAMIC_V0:
            head = _HEADER.pack(_VERSION, params.num_hashes, _MURMUR, params.num_bits)
            counts = (params.num_entries, self._since_last_row, len(self._rows))
            body = head + _GROWTH.pack(*counts) + body
        return {
            BLOOM_FILTER_FOOTER: base64.b64encode(body).decode(),
            BLOOM_TYPE_FOOTER: params.kind.value,
        }

    def _room(self) -> tuple[int, int]:
        """How many keys the last filter still takes; how many filters share the next ones."""
        params = self._params
        if params.kind is BloomFilterType.SIMPLE:
            return _NO_LIMIT, 1
        if self._since_last_row >= params.num_entries:
            if len(self._rows) * params.num_entries >= params.max_entries:
                return _NO_LIMIT, len(self._rows)
            self._rows.append(np.zeros(params.num_bits, dtype=np.bool_))
            self._since_last_row = 0
        return params.num_entries - self._since_last_row, 1

    def _set(self, keys: pa.Array, sharing: int) -> None:
        positions = _positions(keys, self._params.num_hashes, self._params.num_bits)
        self._since_last_row += len(keys)
        if sharing == 1:
            self._rows[-1][positions.ravel()] = True
            return
        # Full: keys go round the filters. Hudi gives the first filter the first two of them.
        turns = np.maximum(self._next_turn + np.arange(len(keys)), 0) % sharing
        for number, row in enumerate(self._rows):
            row[positions[:, turns == number].ravel()] = True
        self._next_turn += len(keys)


@dataclass(frozen=True, slots=True)
class KeptFilter:
    """The filter of a file that has all keys of the one to be written, in place of a new one."""

    text: str
    kind: BloomFilterType

    @classmethod
    def of(
        cls, footers: Mapping[bytes, bytes], params: BloomParams, name: str
    ) -> KeptFilter | None:
        """Return the filter of a file's footer entries; None unless it was made so."""
        text, found = (
            footers.get(BLOOM_FILTER_FOOTER.encode()),
            BloomFilter.from_footers(footers, name),
        )
        kind = footers.get(BLOOM_TYPE_FOOTER.encode(), b"").decode()
        if text is None or found is None or kind != params.kind.value:
            return None
        if (found.num_hashes, found.num_bits) != (params.num_hashes, params.num_bits):
            return None
        return cls(text.decode(), params.kind)

    def add(self, keys: pa.ChunkedArray) -> None:
        """Do nothing: the filter has the keys."""

    def footers(self) -> dict[str, str]:
        """Return the footer entries of the filter and its kind."""
        return {BLOOM_FILTER_FOOTER: self.text, BLOOM_TYPE_FOOTER: self.kind.value}


@dataclass(frozen=True, slots=True)
class BloomFilter:
    """A filter that was read; a key may be in it if it may be in one of `rows`."""

    num_hashes: int  # bits that each key sets
    num_bits: int  # of each filter
    rows: tuple[Packed, ...]  # the bits of each filter as stored, lowest first

    @classmethod
    def from_footers(cls, footers: Mapping[bytes, bytes], name: str) -> BloomFilter | None:
        """Read the filter from a base file's footer entries.

        None if there is none, or one of the ancient form, which uses another hash, of an unknown
        kind, or of too many filters to be worth testing. An entry that is no bloom filter is a
        `CorruptFileError` of the file `name`.
        """
        text = footers.get(BLOOM_FILTER_FOOTER.encode()) or footers.get(_OLD_FOOTER.encode())
        if text is None:
            return None
        try:
            data = base64.b64decode(text, validate=True)
            kind = footers.get(BLOOM_TYPE_FOOTER.encode(), b"SIMPLE").decode().upper()
            head = _head(data, kind)
            if head is None:
                return None
            num_hashes, num_bits, start, count = head
            if count > _MOST_FILTERS and count <= len(data):
                return None
            rows = _rows(memoryview(data)[start:], count, _HEADER.pack(*_HEADER.unpack_from(data)))
            return cls(num_hashes, num_bits, rows)
        except (binascii.Error, struct.error, UnicodeDecodeError, ValueError) as error:
            raise CorruptFileError(
                f"{name}: the footer {BLOOM_FILTER_FOOTER} holds no bloom filter ({error})",
                REBUILD_FILTER,
            ) from error

    def may_contain(self, keys: pa.Array, first: UInts | None = None) -> Mask:
        """Return which keys may be in the file; false only for keys that were never added.

        `keys` are strings without nulls; `first` are their `first_hashes`, if many files are
        tested.
        """
        left = np.arange(len(keys))
        # Of the keys that are not there, one hash rules out half or more.
        for hashes in (first_hashes(keys) if first is None else first)[: self.num_hashes]:
            positions = _bits_of(hashes[left], self.num_bits)
            places, bits = positions >> 3, np.uint8(1) << (positions & 7).astype(np.uint8)
            hit = np.zeros(len(left), dtype=np.bool_)
            for row in self.rows:
                hit |= (row[places] & bits).astype(np.bool_)
            left = left[hit]
        found = np.zeros(len(keys), dtype=np.bool_)
        step = _keys_at_once(self.num_hashes)
        for start in range(0, len(left), step):
            some = left[start : start + step]
            found[some] = self._may_contain(keys.take(pa.array(some)))
        return found

    def _may_contain(self, keys: pa.Array) -> Mask:
        positions = _positions(keys, self.num_hashes, self.num_bits)
        places, bits = positions >> 3, np.uint8(1) << (positions & 7).astype(np.uint8)
        hit = np.zeros(len(keys), dtype=np.bool_)
        for row in self.rows:
            hit |= (row[places] & bits).astype(np.bool_).all(axis=0)
        return hit


@dataclass(frozen=True, slots=True)
class FilterText:
    """A filter as a footer has it, of which only what is asked is decoded.

    A text that is no such filter is one that every key may be in.
    """

    kind: str
    text: bytes

    def share_of_others(self, num_keys: int) -> float:
        """Return about which share of other keys it lets pass if it has some keys."""
        head = self._usable_head()
        if head is None:
            return 1.0
        num_hashes, num_bits, _, count = head
        used = -math.expm1(-num_hashes * num_keys / (count * num_bits))
        return float(min(1.0, count * used**num_hashes))

    def may_have_any(self, keys: pa.Array) -> bool:
        """Whether it may have one of a few keys (string, without nulls)."""
        head = self._usable_head()
        if head is None:
            return True
        num_hashes, num_bits, start, count = head
        positions = _positions(keys, num_hashes, num_bits)
        size = _HEADER.size + -(-num_bits // 8)
        end = start + count * size
        if len(self.text) < -(-end // 3) * 4:
            return True
        firsts = range(start + _HEADER.size, end, size)
        rows = (self._bytes_at(first + (positions >> 3)) for first in firsts)
        return any(((row >> (positions & 7)) & 1).all(axis=0).any() for row in rows)

    def _usable_head(self) -> _Head | None:
        try:
            head = _head(base64.b64decode(self.text[:_HEAD_CHARACTERS], validate=True), self.kind)
        except (ValueError, struct.error):
            return None
        return head if head is not None and 0 < head.num_filters <= _MOST_FILTERS else None

    def _bytes_at(self, offsets: Numbers) -> Numbers:
        """The decoded bytes at some offsets: three are in four characters."""
        fours = (offsets // 3 * 4)[..., np.newaxis] + np.arange(4)
        sixes = _SIX_BITS[np.frombuffer(self.text, np.uint8)[fours]]
        found: Numbers = (sixes << _SHIFTS).sum(axis=-1) >> (16 - offsets % 3 * 8) & 255
        return found


class _Head(NamedTuple):
    """What stands before the filters: hashes of a key, bits of each, where they begin, how many."""

    num_hashes: int
    num_bits: int
    start: int
    num_filters: int


def _head(data: bytes, kind: str) -> _Head | None:
    """Read what stands before the filters; None of another hash or kind, an error of damage."""
    version, num_hashes, hash_kind, num_bits = _HEADER.unpack_from(data)
    known = version == _VERSION and hash_kind == _MURMUR
    if not known or kind not in tuple(BloomFilterType):
        return None
    if not 0 < num_hashes <= _MOST_HASHES or num_bits <= 0:
        raise ValueError(f"{num_hashes} hashes and {num_bits} bits")
    if kind != BloomFilterType.DYNAMIC_V0:
        return _Head(num_hashes, num_bits, 0, 1)
    *_, count = _GROWTH.unpack_from(data, _HEADER.size)
    return _Head(num_hashes, num_bits, _HEADER.size + _GROWTH.size, count)


def first_hashes(keys: pa.Array) -> UInts:
    """Return the first hashes (uint32, shape (4, keys)) of keys, the same for every filter."""
    murmur = Murmur(keys)
    seeds = np.zeros(len(keys), np.uint32)
    return np.array([seeds := murmur.hashes(seeds) for _ in range(_FIRST_HASHES)], np.uint32)


def _keys_at_once(num_hashes: int) -> int:
    return max(1, _POSITIONS_AT_ONCE // num_hashes)


def _positions(keys: pa.Array, num_hashes: int, num_bits: int) -> Numbers:
    """Bits of each key, shape (num_hashes, keys): each hash is the seed of the next."""
    murmur = Murmur(keys)
    seeds = np.zeros(len(keys), np.uint32)
    positions = np.empty((num_hashes, len(keys)), np.int64)
    for number in range(num_hashes):
        seeds = murmur.hashes(seeds)
        positions[number] = _bits_of(seeds, num_bits)
    return positions


def _bits_of(hashes: UInts, num_bits: int) -> Numbers:
    bits: Numbers = np.abs(hashes.view(np.int32).astype(np.int64)) % num_bits
    return bits


def _row_bytes(params: BloomParams, row: Mask) -> bytes:
    head = _HEADER.pack(_VERSION, params.num_hashes, _MURMUR, params.num_bits)
    return head + np.packbits(row, bitorder="little").tobytes()


def _rows(data: memoryview, count: int, head: bytes) -> tuple[Packed, ...]:
    """The filters, each of which begins with the same header; views of the data."""
    *_, num_bits = _HEADER.unpack(head)
    size = _HEADER.size + -(-num_bits // 8)
    if count <= 0 or count * size > len(data):
        raise ValueError(f"{len(data)} bytes where {count} filters of {num_bits} bits should be")
    parts = [data[at : at + size] for at in range(0, count * size, size)]
    if any(part[: _HEADER.size] != head for part in parts):
        raise ValueError("its filters differ in kind or size")
    return tuple(np.frombuffer(part[_HEADER.size :], np.uint8) for part in parts)
