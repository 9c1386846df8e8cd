"""Reads HFiles: all entries, those of sorted keys, or those of sorted prefixes.

Invariant: damage is a `CorruptFileError` that names the file. Memory is bounded by the largest
block, which is limited, and by the indexes, which are smaller than the file.
"""

from __future__ import annotations

import io
import struct
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from itertools import compress
from typing import BinaryIO, Final, TypeAlias

import pyarrow as pa

from hoodie_ds.columns.arrow_columns import Numbers
from hoodie_ds.errors import CorruptFileError, UnsupportedTableError
from hoodie_ds.formats.hfile import container
from hoodie_ds.formats.hfile.container import Block, Codec, Entries, Trailer
from hoodie_ds.hints import COPY

Entry: TypeAlias = tuple[bytes, bytes]

_TAIL_BYTES: Final = 32 << 10
"""What is read at once from the end: it usually has all that is needed to open the file."""
_READ_BYTES_MAX: Final = 80 << 20
"""More than any block that is whole takes."""
_MAX_VERSION: Final = "MAX_MEMSTORE_TS_KEY"


class HFile:
    """An HFile: keys, sorted by their bytes, with a value each.

    It keeps the file open and does not close it. Keys are in the order of their bytes or in that of
    Java's strings, in which Hudi writes them.
    """

    def __init__(self, source: BinaryIO, path: str) -> None:
        """Read the trailer, the root index and the file info."""
        self._source = source
        self._path = path
        size = source.seek(0, io.SEEK_END)
        self._tail_at = max(0, size - _TAIL_BYTES)
        source.seek(self._tail_at)
        self._tail = source.read(_TAIL_BYTES)
        with self._damage():
            trailer = container.read_trailer(self._tail[-container.TRAILER_BYTES :])
            self._codec = self._known_codec(trailer)
            self._load(trailer, size - container.TRAILER_BYTES)

    @property
    def num_entries(self) -> int:
        """How many entries the file says it has."""
        return self._trailer.entries

    @property
    def info(self) -> Mapping[str, bytes]:
        """The file info: the schema of values, the last key and others, by name."""
        return self._info

    def meta_block(self, name: str) -> bytes | None:
        """Return a meta block, such as a bloom filter; None if there is none of the name."""
        block = self._metas.get(name.encode())
        if block is None:
            return None
        with self._damage():
            return self._content(block, container.META)

    def columns(self) -> tuple[list[bytes], list[bytes]]:
        """Return all keys, which are in order, and all values."""
        keys, values = list[bytes](), list[bytes]()
        for some, of_them in self._matching(_Prefixes([b""])):
            keys += some
            values += of_them
        return keys, values

    def scan(self) -> Iterator[Entry]:
        """Yield all entries."""
        count = 0
        with self._damage():
            for entries, _ in self._blocks(_Prefixes([b""])):
                count += len(entries.keys)
                yield from zip(*entries.read(), strict=True)
            if count != self.num_entries:
                raise ValueError(f"it has {count} entries, not {self.num_entries}")

    def get_many(self, keys: Collection[bytes]) -> Iterator[Entry]:
        """Yield the entries of those keys that are there, in the order of the file.

        Only blocks in which keys may be are read, each once.
        """
        for found in self._matching(_Wanted(keys)):
            yield from zip(*found, strict=True)

    def find(self, keys: pa.Array) -> Iterator[tuple[Numbers, pa.Array]]:
        """Yield the numbers of those of some keys that are there, and their values (binary).

        The keys (binary) are sorted, each once. As `get_many`, those of a block at a time.
        """
        wanted = _Wanted(keys.to_pylist())
        with self._damage():
            for entries, end in self._blocks(wanted):
                entries.check_order()
                start, stop = wanted.range(end)
                numbers, values = entries.find(keys[start:stop], not wanted.depend_on_order)
                yield numbers + start, values

    def scan_prefixes(self, prefixes: Collection[bytes]) -> Iterator[Entry]:
        """Yield the entries whose keys begin with one of some prefixes, in the order of the file.

        Only blocks in which such keys may be are read, each once.
        """
        for found in self._matching(_Prefixes(prefixes)):
            yield from zip(*found, strict=True)

    def _load(self, trailer: Trailer, end: int) -> None:
        start = trailer.loaded_offset
        section = self._bytes(start, end - start)

        def next_block(kind: bytes) -> bytes:
            nonlocal section
            content, size = container.read_block(section, kind, self._codec)
            section = section[size:]
            return content

        self._trailer = trailer
        self._end = start
        root = next_block(container.ROOT_INDEX)
        self._root = container.read_root_index(root, trailer.data_blocks, start)
        metas = next_block(container.ROOT_INDEX)
        named = container.read_root_index(metas, trailer.meta_blocks, start, rows=False)
        self._metas = {block.key: block for block in named}
        self._info = container.read_info(next_block(container.FILE_INFO))
        if any(self._info.get(_MAX_VERSION, b"")):
            raise ValueError("its entries have versions")

    def _known_codec(self, trailer: Trailer) -> Codec:
        if trailer.codec not in Codec._value2member_map_ or trailer.encrypted:
            how = "encrypted" if trailer.encrypted else f"compressed with codec {trailer.codec}"
            raise UnsupportedTableError(
                f"{self._path}: it is {how}, and only HFiles compressed with GZIP or not at all "
                "are read; let Hudi on the JVM rebuild the metadata table"
            )
        return Codec(trailer.codec)

    def _matching(self, wanted: _Wanted) -> Iterator[tuple[list[bytes], list[bytes]]]:
        with self._damage():
            for entries, end in self._blocks(wanted):
                entries.check_order()
                yield entries.read([*wanted.of(entries, end)])

    def _blocks(self, wanted: _Wanted) -> Iterator[tuple[Entries, bytes | None]]:
        """Yield the data blocks in which wanted keys may be, and what all of their keys are below.

        That is None for the last one.
        """
        reached = 0
        wanted = _Prefixes([b""]) if wanted.depend_on_order else wanted
        for block, end in self._visit(self._root, self._trailer.levels, None, wanted):
            if block.offset < reached:
                raise ValueError("blocks of its index overlap")
            reached = block.offset + block.size
            yield container.read_entries(self._content(block, container.DATA)), end

    def _visit(
        self, index: list[Block], levels: int, end: bytes | None, wanted: _Wanted
    ) -> Iterator[tuple[Block, bytes | None]]:
        """Yield the data blocks below an index, as `_blocks`; all of their keys are below `end`."""
        keys = [block.key for block in index]
        number = 0
        while number < len(index):
            wanted.skip_to(keys[number])
            if wanted.current is None or (end is not None and wanted.current >= end):
                return
            number = max(number, bisect_right(keys, wanted.current) - 1)
            block = index[number]
            number += 1
            end_below = keys[number] if number < len(keys) else end
            if levels == 1:
                yield block, end_below
                continue
            below = self._index_below(block, levels - 1, end_below)
            yield from self._visit(below, levels - 1, end_below, wanted)

    def _index_below(self, block: Block, levels: int, end: bytes | None) -> list[Block]:
        kind = container.LEAF_INDEX if levels == 1 else container.INTERMEDIATE_INDEX
        index = container.read_leaf_index(self._content(block, kind), self._end)
        # Each index has a range of keys of its own, so none is visited twice.
        if not index or index[0].key != block.key or (end is not None and index[-1].key >= end):
            raise ValueError("a part of its index has other keys than its place says")
        return index

    def _content(self, block: Block, kind: bytes) -> bytes:
        content, size = container.read_block(
            self._bytes(block.offset, block.size), kind, self._codec
        )
        if size != block.size:
            raise ValueError(f"a block has {size} bytes, and {block.size} by the index")
        return content

    def _bytes(self, offset: int, size: int) -> memoryview:
        if not (0 <= size <= _READ_BYTES_MAX and offset >= 0):
            raise ValueError(f"{size} bytes at {offset} are too many")
        if offset >= self._tail_at:
            start = offset - self._tail_at
            data = memoryview(self._tail)[start : start + size]
        else:
            self._source.seek(offset)
            data = memoryview(self._source.read(size))
        if len(data) != size:
            raise ValueError(f"{size} bytes at {offset} run past its end")
        return data

    @contextmanager
    def _damage(self) -> Iterator[None]:
        try:
            yield
        except (ValueError, struct.error, zlib.error) as error:
            raise CorruptFileError(
                f"{self._path}: is not a whole HFile: {error}",
                COPY,
                self._path,
            ) from error


class _Wanted:
    """Keys that are looked up in the order of a file."""

    def __init__(self, keys: Collection[bytes]) -> None:
        self._keys = [*dict.fromkeys(sorted(keys))]
        self._at = 0

    @cached_property
    def depend_on_order(self) -> bool:
        """Whether it depends on the order of the file where they are.

        Characters from U+E000 on, whose first byte is at least 0xEE, sort otherwise in Java among
        one another; what has none of them has the same place in both orders.
        """
        together = b"".join(self._keys)
        return not together.isascii() and max(together) >= 0xEE

    @property
    def current(self) -> bytes | None:
        """The first of them that has not been skipped."""
        return self._keys[self._at] if self._at < len(self._keys) else None

    def skip_to(self, key: bytes) -> None:
        """Skip what is neither `key` nor can be behind it."""
        self._at = bisect_left(self._keys, key, self._at)

    def of(self, entries: Entries, end: bytes | None) -> Iterator[int]:
        """Yield the numbers of the entries of a block that are looked up; see `HFile._blocks`."""
        start, stop = self.range(end)
        return entries.among(self._keys[start:stop], not self.depend_on_order)

    def range(self, end: bytes | None) -> tuple[int, int]:
        """Return which of them may be in a block; see `HFile._blocks`."""
        if self.depend_on_order:
            return 0, len(self._keys)
        stop = len(self._keys) if end is None else bisect_left(self._keys, end, self._at)
        return self._at, stop


class _Prefixes(_Wanted):
    """Prefixes of keys that are looked up; none begins with another."""

    def __init__(self, prefixes: Collection[bytes]) -> None:
        kept: list[bytes] = []
        for prefix in sorted(prefixes):
            if not (kept and prefix.startswith(kept[-1])):
                kept.append(prefix)
        super().__init__(kept)

    def skip_to(self, key: bytes) -> None:
        super().skip_to(key)
        if self._at and key.startswith(self._keys[self._at - 1]):
            self._at -= 1

    def of(self, entries: Entries, end: bytes | None) -> Iterator[int]:
        """Yield the numbers of the entries whose keys begin with a prefix."""
        return compress(range(len(entries.keys)), map(self._begin, entries.rows()))

    def _begin(self, key: bytes) -> bool:
        """Whether a key begins with a prefix, which can only be the one before it."""
        return bool(self._keys) and key.startswith(self._keys[bisect_right(self._keys, key) - 1])
