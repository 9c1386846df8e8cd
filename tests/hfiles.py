"""HFiles for tests: those of golden tables, and files with an index of several levels.

Hudi's writers keep the index in one block. HBase's, which Hudi had before version 1.1, split one of
more than 128 KB: the root names blocks of the index.
"""

from __future__ import annotations

import io
import itertools
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from hoodie_ds.formats.hfile import container
from hoodie_ds.formats.hfile.container import Block, Codec
from hoodie_ds.formats.hfile.protobuf import delimited, field, read_delimited, read_fields
from hoodie_ds.formats.hfile.writer import encode_block, write_hfile
from hoodie_ds.formats.log.log_block import BlockType, read_blocks

Entries = Sequence[tuple[bytes, bytes]]

TABLES = Path(__file__).parent / "golden/tables"
GOLDEN = ("v6_cow_metadata", "v9_mor_metadata")


def golden_hfiles(table: str) -> Iterator[tuple[str, bytes]]:
    """The base files of a golden table's metadata table, and the blocks of its log files."""
    with zipfile.ZipFile(TABLES / f"{table}.zip") as files:
        for name in files.namelist():
            if name.endswith(".hfile"):
                yield name, files.read(name)
            elif "/metadata/" in name and ".log." in name:
                for block in read_blocks(files.read(name), name):
                    if block.block_type is BlockType.HFILE_DATA:
                        yield name, bytes(block.content)


def hfile(entries: Entries, codec: Codec = Codec.GZIP, block_bytes: int = 1 << 20) -> bytes:
    """A file as Hudi writes it, with a meta block and an item of its own in the file info."""
    sink = io.BytesIO()
    more = {"metas": {"bloomFilter": b"AAAA" * 20}, "info": {"schema": b'"bytes"'}}
    write_hfile(sink, entries, 1_700_000_000_000, codec=codec, block_bytes=block_bytes, **more)
    return sink.getvalue()


def leveled_hfile(entries: Entries, fanout: int, codec: Codec = Codec.GZIP) -> bytes:
    """A file as HBase writes it: blocks of `fanout` entries, under as many levels as it takes."""
    out = bytearray()

    def put(kind: bytes, content: bytes, key: bytes = b"") -> Block:
        data = encode_block(kind, content, codec)
        out.extend(data)
        return Block(len(out) - len(data), len(data), key)

    level = [
        put(container.DATA, b"".join(itertools.starmap(_entry, some)), some[0][0])
        for some in _batched(entries, fanout)
    ]
    first, last = level[0].offset, level[-1].offset
    levels = 1
    while len(level) > fanout:
        kind = container.LEAF_INDEX if levels == 1 else container.INTERMEDIATE_INDEX
        level = [put(kind, leaf_index(some), some[0].key) for some in _batched(level, fanout)]
        levels += 1
    loaded = put(container.ROOT_INDEX, root_index(level)).offset
    put(container.ROOT_INDEX, b"")
    said = {
        "hfile.AVG_KEY_LEN": bytes(4),
        "hfile.AVG_VALUE_LEN": bytes(4),
        "hfile.LASTKEY": _key(entries[-1][0]),
        "KEY_VALUE_VERSION": b"\0\0\0\1",
        "MAX_MEMSTORE_TS_KEY": bytes(8),
    }
    pairs = b"".join(itertools.starmap(_pair, said.items()))
    info = put(container.FILE_INFO, b"PBUF" + delimited(pairs))
    numbers = {1: info.offset, 2: loaded, 5: len(level), 6: 0, 7: len(entries), 8: levels}
    numbers |= {9: first, 10: last, 12: int(codec)}
    return bytes(out) + trailer(numbers)


def with_other_contents(data: bytes, others: Callable[[list[bytes]], list[bytes]]) -> bytes:
    """A file of which other contents of blocks were made; its indexes name where they are."""
    old = container.read_trailer(data[-container.TRAILER_BYTES :])
    codec = Codec(old.codec)
    kinds, contents, places = [], [], []
    at = 0
    while at < len(data) - container.TRAILER_BYTES:
        kinds.append(data[at : at + 8])
        content, size = container.read_block(memoryview(data)[at:], kinds[-1], codec)
        contents.append(content)
        places.append((at, size))
        at += size
    out = bytearray()
    moved: list[tuple[bytes, bytes]] = []
    moved_to = {}
    for kind, content, place in zip(kinds, others(contents), places, strict=True):
        if b"IDX" in kind:
            for before, after in moved:
                content = content.replace(before, after)
        block = encode_block(kind, content, codec)
        moved.append((container.PLACE.pack(*place), container.PLACE.pack(len(out), len(block))))
        moved_to[place[0]] = len(out)
        out += block
    message, _ = read_delimited(data[-container.TRAILER_BYTES :], 8)
    fields = dict(read_fields(message)) | {2: moved_to[old.loaded_offset]}
    return bytes(out) + trailer(fields)


def trailer(fields: Mapping[int, int] | Mapping[int, int | bytes]) -> bytes:
    """A trailer of version 3.3, as HBase writes it."""
    message = delimited(b"".join(itertools.starmap(field, fields.items())))
    return (b'TRABLK"$' + message).ljust(4092, b"\0") + b"\3\0\0\3"


def leaf_index(blocks: Sequence[Block]) -> bytes:
    """The content of an index block below the root."""
    parts = [struct.pack(">qi", block.offset, block.size) + _key(block.key) for block in blocks]
    offsets = [0, *itertools.accumulate(map(len, parts))]
    return struct.pack(f">i{len(offsets)}i", len(parts), *offsets) + b"".join(parts)


def root_index(blocks: Sequence[Block]) -> bytes:
    """The content of a root index of data blocks, with keys of up to 127 bytes."""
    keys = [_key(block.key) for block in blocks]
    return b"".join(
        struct.pack(">qib", block.offset, block.size, len(key)) + key
        for block, key in zip(blocks, keys, strict=True)
    )


def _key(row: bytes) -> bytes:
    return struct.pack(">H", len(row)) + row + b"\0" + struct.pack(">qb", 2**63 - 1, 4)


def _entry(row: bytes, value: bytes) -> bytes:
    key = _key(row)
    return struct.pack(">ii", len(key), len(value)) + key + value + b"\0"


def _pair(name: str, value: bytes) -> bytes:
    return field(1, field(1, name.encode()) + field(2, value))


def _batched(items: Sequence, count: int) -> Iterator[Sequence]:  # type: ignore[type-arg]
    return (items[at : at + count] for at in range(0, len(items), count))
