"""Bloom filters of record keys, as base files carry them in their footers (Hudi tech spec).

Invariant: the same keys in the same order give the bytes that Hudi writes, and a key that was
added is never denied.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie_ds.columns.arrow_columns import Mask
from hoodie_ds.config.enums import BloomFilterType
from hoodie_ds.errors import CorruptFileError
from hoodie_ds.formats.parquet.murmur import Murmur, UInts
from hoodie_ds.hints import REBUILD_FILTER

BLOOM_FILTER_FOOTER: Final = "org.apache.hudi.bloomfilter"
BLOOM_TYPE_FOOTER: Final = "hoodie_bloom_filter_type_code"
_OLD_FOOTER: Final = "com.uber.hoodie.bloomfilter"

_HEADER: Final = struct.Struct(">iibi")
_GROWTH: Final = struct.Struct(">iii")
_VERSION: Final = -1
_MURMUR: Final = 1
_POSITIONS_AT_ONCE: Final = 1 << 21
"""Positions of keys that are in memory together, eight bytes each."""
_FIRST_HASHES: Final = 4
"""After so many, one in sixteen keys that are not there is left, or fewer."""
_MOST_HASHES: Final = 1075
"""What the smallest share of false positives that a double can hold asks for."""
_MOST_FILTERS: Final = 1000
"""Beyond so many within one, to ask them takes longer than to read the keys."""
_MOST_BITS: Final = 2**31 - 1
_NO_LIMIT: Final = 2**31 - 1

Packed = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class BloomParams:
    """How the filter of a base file is made.

    Parameters
    ----------
    num_entries : int
        Keys that one filter is made for.
    false_positives : float
        Share of other keys that such a filter does not deny.
    kind : BloomFilterType
        ``DYNAMIC_V0`` adds filters as keys come, ``SIMPLE`` is a single one.
    max_entries : int
        Keys from which on a dynamic filter grows no more.
    """

    num_entries: int
    false_positives: float
    kind: BloomFilterType
    max_entries: int

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
    """A filter that is being filled.

    Parameters
    ----------
    params : BloomParams
        Size and kind.
    """

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
        """How many keys the last filter still takes; and how many filters share those after."""
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
class BloomFilter:
    """A filter that was read.

    Parameters
    ----------
    num_hashes : int
        Bits that each key has set.
    num_bits : int
        Bits of each filter.
    rows : tuple of numpy.ndarray of uint8
        The bits of each filter, eight to a byte, the lowest first, as they are stored; a key is in
        if it is in one of them.
    """

    num_hashes: int
    num_bits: int
    rows: tuple[Packed, ...]

    @classmethod
    def from_footers(cls, footers: Mapping[bytes, bytes], name: str) -> BloomFilter | None:
        """Read the filter of a base file.

        Parameters
        ----------
        footers : mapping of bytes to bytes
            The file's footer entries.
        name : str
            The file's path, for errors.

        Returns
        -------
        BloomFilter or None
            None if the file has none, or one of the ancient form, which uses another hash, or of
            a kind that is not known here, or one of more filters than it pays to ask.

        Raises
        ------
        CorruptFileError
            The entry is no bloom filter.
        """
        text = footers.get(BLOOM_FILTER_FOOTER.encode()) or footers.get(_OLD_FOOTER.encode())
        if text is None:
            return None
        try:
            data = base64.b64decode(text, validate=True)
            version, num_hashes, hash_kind, num_bits = _HEADER.unpack_from(data)
            kind = footers.get(BLOOM_TYPE_FOOTER.encode(), b"SIMPLE").decode().upper()
            known = version == _VERSION and hash_kind == _MURMUR
            if not known or kind not in tuple(BloomFilterType):
                return None
            if not 0 < num_hashes <= _MOST_HASHES or num_bits <= 0:
                raise ValueError(f"{num_hashes} hashes and {num_bits} bits")
            start, count = 0, 1
            if kind == BloomFilterType.DYNAMIC_V0:
                *_, count = _GROWTH.unpack_from(data, _HEADER.size)
                start = _HEADER.size + _GROWTH.size
            if count > _MOST_FILTERS and count <= len(data):
                return None
            rows = _rows(memoryview(data)[start:], count, _HEADER.pack(*_HEADER.unpack_from(data)))
            return cls(num_hashes, num_bits, rows)
        except (binascii.Error, struct.error, UnicodeDecodeError, ValueError) as error:
            raise CorruptFileError(
                f"{name}: the footer {BLOOM_FILTER_FOOTER} holds no bloom filter ({error}); "
                f"{REBUILD_FILTER}"
            ) from error

    def may_contain(self, keys: pa.Array, first: UInts | None = None) -> Mask:
        """Say which keys may be in the file.

        Parameters
        ----------
        keys : pyarrow.Array of string, without nulls
        first : numpy.ndarray of uint32, optional
            Their `first_hashes`, where many files are asked for the same keys.

        Returns
        -------
        numpy.ndarray of bool, shape (keys,)
            False only for keys that were never added.
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


def first_hashes(keys: pa.Array) -> UInts:
    """Return the first hashes (uint32, shape (4, keys)) of keys, the same for every filter."""
    murmur = Murmur(keys)
    seeds = np.zeros(len(keys), np.uint32)
    return np.array([seeds := murmur.hashes(seeds) for _ in range(_FIRST_HASHES)], np.uint32)


def _keys_at_once(num_hashes: int) -> int:
    return max(1, _POSITIONS_AT_ONCE // num_hashes)


def _positions(keys: pa.Array, num_hashes: int, num_bits: int) -> npt.NDArray[np.int64]:
    """Bits of each key, shape (num_hashes, keys): each hash is the seed of the next."""
    murmur = Murmur(keys)
    seeds = np.zeros(len(keys), np.uint32)
    positions = np.empty((num_hashes, len(keys)), np.int64)
    for number in range(num_hashes):
        seeds = murmur.hashes(seeds)
        positions[number] = _bits_of(seeds, num_bits)
    return positions


def _bits_of(hashes: UInts, num_bits: int) -> npt.NDArray[np.int64]:
    bits: npt.NDArray[np.int64] = np.abs(hashes.view(np.int32).astype(np.int64)) % num_bits
    return bits


def _row_bytes(params: BloomParams, row: Mask) -> bytes:
    head = _HEADER.pack(_VERSION, params.num_hashes, _MURMUR, params.num_bits)
    return head + np.packbits(row, bitorder="little").tobytes()


def _rows(data: memoryview, count: int, head: bytes) -> tuple[Packed, ...]:
    """The filters, each of which begins as all of them do; views of what was read."""
    *_, num_bits = _HEADER.unpack(head)
    size = _HEADER.size + -(-num_bits // 8)
    if count <= 0 or count * size > len(data):
        raise ValueError(f"{len(data)} bytes where {count} filters of {num_bits} bits should be")
    parts = [data[at : at + size] for at in range(0, count * size, size)]
    if any(part[: _HEADER.size] != head for part in parts):
        raise ValueError("its filters differ in kind or size")
    return tuple(np.frombuffer(part[_HEADER.size :], np.uint8) for part in parts)
