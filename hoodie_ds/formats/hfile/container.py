"""The container of an HFile: blocks, the index of blocks, file info and trailer.

This is the part of HBase's version 3 of the format that Hudi uses. Blocks are compressed one by
one. The trailer, at the end, says where the section is that a reader loads first: the root index of
data blocks, the index of meta blocks, the file info.

Invariant: what is damaged is a `ValueError`, a `struct.error` or a `zlib.error`. No length that a
file claims leads to an allocation: contents of blocks are limited, and indexes name blocks that do
not overlap, so no more than their file has room for.
"""

from __future__ import annotations

import struct
import zlib
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import compress, pairwise
from operator import lt
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.arrow_columns import Numbers, as_numpy
from hoodie_ds.columns.java_order import java_order
from hoodie_ds.formats.hfile.protobuf import read_delimited, read_fields

DATA: Final = b"DATABLK*"
META: Final = b"METABLKc"
ROOT_INDEX: Final = b"IDXROOT2"
INTERMEDIATE_INDEX: Final = b"IDXINTE2"
LEAF_INDEX: Final = b"IDXLEAF2"
FILE_INFO: Final = b"FILEINF2"

HEADER: Final = struct.Struct(">8siiqBii")
"""Magic, size with checksums but without header, size of the content, offset of the previous block,
type of the checksums, bytes of each checksum, size with header but without checksums."""
ENTRY: Final = struct.Struct(">iiH")
"""Sizes of the key, of the value, and of the row in the key: all of the key that Hudi uses."""
ROW: Final = struct.Struct(">H")
PLACE: Final = struct.Struct(">qi")
"""Offset and size of a block that an index names."""
COUNT: Final = struct.Struct(">i")

KEY_TAIL: Final = b"\0\x7f\xff\xff\xff\xff\xff\xff\xff\x04"
"""What follows the row in a key: an empty column family, the latest of all times, and "put"."""
KEY_TAIL_BYTES: Final = len(KEY_TAIL)
_KEY_MORE: Final = ROW.size + KEY_TAIL_BYTES
"""Bytes of a key beyond its row."""
_HEAD_BYTES: Final = 8
_FEW_BYTES: Final = 8 << 10
"""Bytes of entries that are read sooner one by one than all at once."""
_ROW_COST: Final = 8
"""Taking a key out of a block by itself costs as much as taking so many together."""
_SEARCH_COST: Final = 32
"""A search by halves costs as much as taking so many keys out of a block."""

TRAILER_MAGIC: Final = b'TRABLK"$'
TRAILER_BYTES: Final = 4096
MAJOR_VERSION: Final = 3
INFO_MAGIC: Final = b"PBUF"

_CONTENT_BYTES_MAX: Final = 64 << 20
"""Hudi's blocks are of a mebibyte, or of one value."""
_LEVELS_MAX: Final = 16


class Codec(IntEnum):
    """How blocks are compressed, by HBase's numbers."""

    GZIP = 1
    NONE = 2


class Block(NamedTuple):
    """A block as an index names it: where it is, and a key that is not above those in it."""

    offset: int
    size: int
    key: bytes


@dataclass(frozen=True, slots=True)
class Entries:
    """The entries of a data block: where its content has their keys and values."""

    content: bytes
    keys: Numbers
    key_ends: Numbers
    values: Numbers
    value_ends: Numbers

    def rows(self, numbers: Sequence[int] | slice = slice(None)) -> list[bytes]:
        """Return the keys of all entries, or of some."""
        return self._parts(self.keys[numbers], self.key_ends[numbers])

    def row(self, number: int) -> bytes:
        """Return the key of an entry."""
        return self.content[self.keys[number] : self.key_ends[number]]

    def read(self, numbers: Sequence[int] | slice = slice(None)) -> tuple[list[bytes], list[bytes]]:
        """Return the keys and the values of all entries, or of some."""
        values = self._parts(self.values[numbers], self.value_ends[numbers])
        return self.rows(numbers), values

    def find(self, rows: pa.Array, are_in_order: bool) -> tuple[Numbers, pa.Array]:
        """Return the numbers of those of some sorted keys (binary) that are there, and the values.

        See `among`.
        """
        numbers: list[int] | slice = slice(None)
        if are_in_order and len(rows) * _SEARCH_COST <= len(self.keys):
            numbers = [*self.among(rows.to_pylist(), are_in_order)]
        keys = self._column(self.keys[numbers], self.key_ends[numbers])
        values = self._column(self.values[numbers], self.value_ends[numbers])
        at = pc.index_in(keys, value_set=rows)
        return as_numpy(at.drop_null()), values.filter(at.is_valid())

    def _column(self, starts: Numbers, ends: Numbers) -> pa.Array:
        """Parts of the content, which ascend: every other one, as what is between is one too."""
        bounds = np.stack([starts, ends], axis=1).astype(np.int32).reshape(-1)
        buffers = [None, pa.py_buffer(bounds), pa.py_buffer(self.content)]
        every = pa.Array.from_buffers(pa.binary(), max(0, len(bounds) - 1), buffers)
        return every.take(pa.array(np.arange(0, len(every), 2)))

    def _parts(self, starts: Numbers, ends: Numbers) -> list[bytes]:
        content, bounds = self.content, zip(starts.tolist(), ends.tolist(), strict=True)
        return [content[start:end] for start, end in bounds]

    def check_order(self) -> None:
        """Refuse keys that ascend neither by their bytes nor as Java sorts them."""
        if len(self.content) < _FEW_BYTES:
            for key, following in pairwise(self.rows()):
                check_order(key, following)
            return
        data, heads = np.frombuffer(self.content, np.uint8), np.zeros(len(self.keys), np.uint64)
        for at in range(_HEAD_BYTES):  # behind a key are more bytes than these
            byte = np.where(self.keys + at < self.key_ends, data[self.keys + at], 0)
            heads = heads << np.uint64(8) | byte
        pairs: Iterator[tuple[bytes, bytes]]
        alike = np.flatnonzero(heads[1:] <= heads[:-1]).tolist()
        if len(alike) * _ROW_COST > len(self.keys):
            rows = self.rows()
            pairs = iter(() if all(map(lt, rows, rows[1:])) else pairwise(rows))
        else:
            pairs = ((self.row(number), self.row(number + 1)) for number in alike)
        for key, following in pairs:
            check_order(key, following)

    def among(self, rows: Sequence[bytes], are_in_order: bool) -> Iterator[int]:
        """Yield the numbers of the entries whose keys are among some sorted ones.

        `are_in_order` says that all those stand where the order of their bytes puts them.
        """
        if not are_in_order or len(rows) * _SEARCH_COST > len(self.keys):
            is_wanted = frozenset(rows).__contains__
            yield from compress(range(len(self.keys)), map(is_wanted, self.rows()))
            return
        end = len(self.keys)
        for row in rows:
            number = bisect_left(range(end), row, key=self.row)
            if number < end and self.row(number) == row:
                yield number


@dataclass(frozen=True, slots=True)
class Trailer:
    """What a reader needs of a trailer."""

    loaded_offset: int
    data_blocks: int
    """Entries of the root index."""
    meta_blocks: int
    entries: int
    levels: int
    """Levels of the index of data blocks, 1 if the root names the blocks itself."""
    codec: int
    encrypted: bool


def read_trailer(data: bytes) -> Trailer:
    """Read the last 4,096 bytes of a file."""
    if len(data) != TRAILER_BYTES or data[: len(TRAILER_MAGIC)] != TRAILER_MAGIC:
        raise ValueError("it does not end with a trailer")
    if int.from_bytes(data[-3:], "big") != MAJOR_VERSION:
        raise ValueError(f"its version is {int.from_bytes(data[-3:], 'big')}, not {MAJOR_VERSION}")
    message, _ = read_delimited(data, len(TRAILER_MAGIC))
    found = dict(read_fields(message))

    def number(field: int, default: int = 0) -> int:
        value = found.get(field, default)
        if not isinstance(value, int):
            raise ValueError(f"field {field} of its trailer is no number")
        return value

    trailer = Trailer(
        loaded_offset=number(2),
        data_blocks=number(5),
        meta_blocks=number(6),
        entries=number(7),
        levels=number(8, 1),
        codec=number(12, Codec.NONE),
        encrypted=bool(found.get(13)),
    )
    if not 1 <= trailer.levels <= _LEVELS_MAX:
        raise ValueError(f"its index has {trailer.levels} levels")
    return trailer


def read_block(data: memoryview, kind: bytes, codec: Codec) -> tuple[bytes, int]:
    """Return the content of the block at the beginning of `data`, and the size of the block."""
    magic, stored, size, _, _, _, end = HEADER.unpack_from(data)
    total = HEADER.size + stored
    if magic != kind:
        raise ValueError(f"a block begins with {magic!r}, not {kind!r}")
    if not HEADER.size <= end <= total <= len(data):
        raise ValueError(f"a block's sizes {end} and {total} do not fit into {len(data)} bytes")
    if not 0 <= size <= _CONTENT_BYTES_MAX:
        raise ValueError(f"a block claims to hold {size} bytes")
    stored_content = data[HEADER.size : end]
    content = inflate(stored_content, size) if codec is Codec.GZIP else bytes(stored_content)
    if len(content) != size:
        raise ValueError(f"a block holds other than {size} bytes")
    return content, total


def inflate(data: memoryview, size: int) -> bytes:
    """Return what a gzip stream holds; no more than a byte above `size` is kept."""
    stream = zlib.decompressobj(zlib.MAX_WBITS | 16)
    content = stream.decompress(data, size + 1)
    if not stream.eof or stream.unused_data:
        raise ValueError("a compressed block is not whole")
    return content


def read_root_index(content: bytes, count: int, end: int, *, rows: bool = True) -> list[Block]:
    """Read the index of data blocks, or, without `rows`, that of meta blocks by their names.

    Blocks have to be where `end` is not reached.
    """

    def entries() -> Iterator[Block]:
        at = 0
        for _ in range(count):
            offset, size = PLACE.unpack_from(content, at)
            length, at = _read_vint(content, at + PLACE.size)
            key = content[at : at + length]
            at += length
            if length < 0 or at > len(content):
                raise ValueError("a key of its index runs past the end")
            yield Block(offset, size, _row(key) if rows else key)

    return _checked(entries(), end, rows=rows)


def read_leaf_index(content: bytes, end: int) -> list[Block]:
    """Read an index below the root: offsets of its entries come first."""
    (count,) = COUNT.unpack_from(content)
    start = COUNT.size * (count + 2)
    if not 0 < start <= len(content):
        raise ValueError(f"an index of {len(content)} bytes claims {count} entries")

    def entries() -> Iterator[Block]:
        for number in range(count):
            at, next_at = struct.unpack_from(">ii", content, COUNT.size * (number + 1))
            if not 0 <= at <= next_at - PLACE.size <= len(content) - start - PLACE.size:
                raise ValueError("the offsets of an index are wrong")
            offset, size = PLACE.unpack_from(content, start + at)
            yield Block(offset, size, _row(content[start + at + PLACE.size : start + next_at]))

    return _checked(entries(), end)


def check_order(key: bytes, following: bytes) -> None:
    """Refuse keys that ascend neither by their bytes nor as Java sorts them."""
    if following <= key and _java_order(following) <= _java_order(key):
        raise ValueError("its keys are not in order")


def _java_order(key: bytes) -> bytes:
    """Return what sorts as Java sorts strings, which is by the halves of UTF-16."""
    return java_order(key.decode("utf-8", "surrogateescape"))


def read_info(content: bytes) -> dict[str, bytes]:
    """Read the file info."""
    if content[: len(INFO_MAGIC)] != INFO_MAGIC:
        raise ValueError("its file info does not begin with the magic")
    message, _ = read_delimited(content, len(INFO_MAGIC))
    info = {}
    for _, pair in read_fields(message):
        if not isinstance(pair, bytes):
            raise ValueError("its file info has a number for a pair")
        found = dict(read_fields(pair))
        name, value = found.get(1), found.get(2)
        if not (isinstance(name, bytes) and isinstance(value, bytes)):
            raise ValueError("its file info has a pair without name or value")
        info[str(name, "utf-8")] = value
    return info


def read_entries(content: bytes) -> Entries:
    """Read where the entries of a data block are.

    Sizes can only be read one after the other. So all bytes at once are asked whether an entry may
    begin there, and if each that may ends where the next begins, those are the entries. Where a
    value looks like an entry, or there is damage, they are followed one by one, and so are few.
    """
    if len(content) < _FEW_BYTES:
        return _followed(content)
    data = np.frombuffer(content, np.uint8)
    # The last bytes of the sizes of a key and of its row differ by a constant: few others do.
    starts = np.flatnonzero(data[3:-6] - data[9:] == _KEY_MORE)
    starts = starts[(data[starts] == 0) & (data[starts + 4] == 0)]
    key_sizes, row_sizes = _number(data, starts + 1, 3), _number(data, starts + 8, 2)
    are_sizes = key_sizes == row_sizes + _KEY_MORE
    starts, row_sizes = starts[are_sizes], row_sizes[are_sizes]
    keys = starts + ENTRY.size
    key_ends = keys + row_sizes
    values = key_ends + KEY_TAIL_BYTES
    value_ends = values + _number(data, starts + 5, 3)
    ends, expected = np.append(0, value_ends + 1), np.append(starts, len(data))
    if not np.array_equal(ends, expected) or data[value_ends].any():
        return _followed(content)
    return Entries(content, keys, key_ends, values, value_ends)


def _number(data: npt.NDArray[np.uint8], at: Numbers, size: int) -> Numbers:
    """Return the big-endian numbers of some bytes that begin at some places."""
    found: Numbers = data[at].astype(np.int64)
    for more in range(1, size):
        found = found << 8 | data[at + more]
    return found


def _followed(content: bytes) -> Entries:
    """Read where entries are, following their sizes from the first on."""
    found: list[tuple[int, int, int, int]] = []
    unpack, head, end, at = ENTRY.unpack_from, ENTRY.size, len(content), 0
    while at < end:
        key_size, value_size, row_size = unpack(content, at)
        row_end = at + head + row_size
        value_at = row_end + KEY_TAIL_BYTES
        value_end = value_at + value_size
        if key_size != row_size + _KEY_MORE or not value_at <= value_end < end:
            raise ValueError("the sizes of an entry do not fit")
        if content[value_end]:
            raise ValueError("an entry has a version")
        found.append((at + head, row_end, value_at, value_end))
        at = value_end + 1
    return Entries(content, *np.array(found, np.int64).reshape(-1, 4).T)


def _row(key: bytes) -> bytes:
    """Return the row of a key, which in an index may be all there is of it."""
    (size,) = ROW.unpack_from(key)
    if size > len(key) - ROW.size:
        raise ValueError("a row is longer than its key")
    return key[ROW.size : ROW.size + size]


def _checked(blocks: Iterable[Block], end: int, *, rows: bool = True) -> list[Block]:
    reached = 0
    found: list[Block] = []
    for block in blocks:
        if block.offset < reached or block.size < HEADER.size:
            raise ValueError("blocks of its index overlap")
        if rows and found:
            check_order(found[-1].key, block.key)
        reached = block.offset + block.size
        if reached > end:
            raise ValueError("a block of its index is not where blocks are")
        found.append(block)
    return found


def _read_vint(data: bytes, at: int) -> tuple[int, int]:
    """Read a length as Hadoop's ``WritableUtils`` writes it."""
    (first,) = struct.unpack_from(">b", data, at)
    if first >= -112:
        return first, at + 1
    size = -112 - first
    return int.from_bytes(data[at + 1 : at + 1 + size], "big"), at + 1 + size
