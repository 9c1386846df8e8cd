"""Writes HFiles, byte for byte as Hudi 1.2 does.

Invariant: keys ascend by their bytes, so that every reader finds each of them.
"""

from __future__ import annotations

import itertools
import struct
import zlib
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import BinaryIO, Final

from hoodie_ds.errors import RecordKeyError
from hoodie_ds.formats.hfile import container
from hoodie_ds.formats.hfile.container import Block, Codec
from hoodie_ds.formats.hfile.protobuf import delimited, field

BLOCK_BYTES: Final = 1 << 20
"""Content of a data block by default, as that of Hudi's option ``hoodie.hfile.block.size``."""

KEY_BYTES_MAX: Final = (1 << 15) - 1
"""Bytes that a key may have."""

_KEY_BYTES: Final = container.ROW.size + container.KEY_TAIL_BYTES
"""What a key has besides its row."""
_ENTRY_BYTES: Final = container.ENTRY.size + container.KEY_TAIL_BYTES + 1
"""What an entry has besides its row and its value."""
_CHECKSUM_STEP: Final = 16 << 10
_COMPARATOR: Final = b"org.apache.hudi.io.storage.HoodieHBaseKVComparator"
_INFO_ORDER: Final = (
    "schema",
    "bloomFilterTypeCode",
    "hfile.LASTKEY",
    "hfile.AVG_VALUE_LEN",
    "minRecordKey",
    "hfile.AVG_KEY_LEN",
    "maxRecordKey",
    "KEY_VALUE_VERSION",
    "MAX_MEMSTORE_TS_KEY",
    "hfile.CREATE_TIME_TS",
)
"""The order in which Hudi's hash map has the names; no reader depends on it."""
_NOTHING: Final[Mapping[str, bytes]] = MappingProxyType({})


def write_hfile(
    sink: BinaryIO,
    entries: Iterable[tuple[bytes, bytes]],
    created_ms: int,
    *,
    codec: Codec = Codec.GZIP,
    block_bytes: int = BLOCK_BYTES,
    metas: Mapping[str, bytes] = _NOTHING,
    info: Mapping[str, bytes] = _NOTHING,
) -> None:
    """Write a file of entries whose keys ascend; no more than a data block is kept in memory.

    `metas` are meta blocks by name, and `info` the file info besides what follows from the entries
    and from `created_ms`. A key that is too long, or not above the one before, is a
    `RecordKeyError`.
    """
    writer = _Writer(sink, codec)
    writer.write(entries, block_bytes)
    writer.finish(created_ms, metas, info)


class _Writer:
    def __init__(self, sink: BinaryIO, codec: Codec) -> None:
        self._sink = sink
        self._codec = codec
        self._offset = 0
        self._blocks: list[Block] = []
        self._last_key: bytes | None = None
        self._entries = self._key_bytes = self._value_bytes = 0

    def write(self, entries: Iterable[tuple[bytes, bytes]], block_bytes: int) -> None:
        parts: list[bytes] = []
        size = 0
        first_key = b""
        for key, value in entries:
            self._check(key)
            self._last_key = key
            added = len(key) + len(value) + _ENTRY_BYTES
            if parts and size + added > block_bytes:
                self._put_data(first_key, parts)
                parts, size = [], 0
            if not parts:
                first_key = key
            head = container.ENTRY.pack(_KEY_BYTES + len(key), len(value), len(key))
            parts += (head, key, container.KEY_TAIL, value, b"\0")
            size += added
            self._entries += 1
            self._key_bytes += len(key)
            self._value_bytes += len(value)
        if parts:
            self._put_data(first_key, parts)

    def _check(self, key: bytes) -> None:
        last = self._last_key
        if len(key) > KEY_BYTES_MAX or (last is not None and key <= last):
            before = (last or b"")[:100]
            raise RecordKeyError(
                f"the key {key[:100]!r} of {len(key)} bytes comes after {before!r} in an HFile; "
                f"keys have to ascend, and have at most {KEY_BYTES_MAX} bytes"
            )

    def _put_data(self, first_key: bytes, parts: list[bytes]) -> None:
        # Hudi names the offset of the block itself as that of the one before it.
        previous = self._offset if self._blocks else -1
        self._blocks.append(self._put(container.DATA, b"".join(parts), first_key, previous))

    def finish(
        self, created_ms: int, metas: Mapping[str, bytes], info: Mapping[str, bytes]
    ) -> None:
        named = [self._put(container.META, data, name.encode()) for name, data in metas.items()]
        loaded = self._offset
        self._put(container.ROOT_INDEX, _index(self._blocks, rows=True))
        self._put(container.ROOT_INDEX, _index(named, rows=False))
        info_offset = self._offset
        self._put(container.FILE_INFO, _info({**info, **self._own_info(created_ms)}))
        trailer = {
            1: info_offset,
            2: loaded,
            3: self._key_bytes + self._value_bytes + self._entries * _ENTRY_BYTES,
            5: len(self._blocks),
            6: len(named),
            7: self._entries,
            8: 1,
            9: self._blocks[0].offset if self._blocks else (1 << 64) - 1,
            10: self._blocks[-1].offset if self._blocks else 0,
            11: _COMPARATOR,
            12: int(self._codec),
        }
        message = b"".join(itertools.starmap(field, trailer.items()))
        head = container.TRAILER_MAGIC + delimited(message)
        version = container.MAJOR_VERSION.to_bytes(4, "big")
        self._sink.write(head.ljust(container.TRAILER_BYTES - len(version), b"\0") + version)

    def _own_info(self, created_ms: int) -> dict[str, bytes]:
        count = max(1, self._entries)
        return {
            "hfile.LASTKEY": b"" if self._last_key is None else _row(self._last_key),
            "hfile.AVG_VALUE_LEN": (self._value_bytes // count).to_bytes(4, "big"),
            "hfile.AVG_KEY_LEN": (self._key_bytes // count).to_bytes(4, "big"),
            "KEY_VALUE_VERSION": (1).to_bytes(4, "big"),
            "MAX_MEMSTORE_TS_KEY": bytes(8),
            "hfile.CREATE_TIME_TS": created_ms.to_bytes(8, "big"),
        }

    def _put(self, kind: bytes, content: bytes, key: bytes = b"", previous: int = -1) -> Block:
        data = encode_block(kind, content, self._codec, previous)
        self._sink.write(data)
        block = Block(self._offset, len(data), key)
        self._offset += len(data)
        return block


def encode_block(kind: bytes, content: bytes, codec: Codec, previous: int = -1) -> bytes:
    """Return a block; its checksums have the type "none", and are zeros."""
    stored = _deflated(content) if codec is Codec.GZIP else content
    end = container.HEADER.size + len(stored)
    checksums = bytes(4 * -(-end // _CHECKSUM_STEP))
    size = len(stored) + len(checksums)
    header = container.HEADER.pack(kind, size, len(content), previous, 0, _CHECKSUM_STEP, end)
    return b"".join((header, stored, checksums))


def _deflated(content: bytes) -> bytes:
    """Return a gzip stream with the header that Java writes."""
    deflate = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    head = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
    tail = struct.pack("<II", zlib.crc32(content), len(content))
    return b"".join((head, deflate.compress(content), deflate.flush(), tail))


def _index(blocks: Iterable[Block], *, rows: bool) -> bytes:
    parts = []
    for block in blocks:
        key = _row(block.key) if rows else block.key
        parts += [container.PLACE.pack(block.offset, block.size), _vint(len(key)), key]
    return b"".join(parts)


def _info(info: Mapping[str, bytes]) -> bytes:
    known = [name for name in _INFO_ORDER if name in info]
    names = [*known, *(name for name in info if name not in _INFO_ORDER)]
    pairs = (field(1, field(1, name.encode()) + field(2, info[name])) for name in names)
    return container.INFO_MAGIC + delimited(b"".join(pairs))


def _row(key: bytes) -> bytes:
    return container.ROW.pack(len(key)) + key


def _vint(length: int) -> bytes:
    """A length as Hadoop's ``WritableUtils`` writes it."""
    if length < 128:
        return bytes([length])
    digits = length.to_bytes((length.bit_length() + 7) // 8, "big")
    return bytes([256 - 112 - len(digits)]) + digits
