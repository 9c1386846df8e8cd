"""Files of rows, and the containers that rows and plans are in."""

from __future__ import annotations

import base64
import io
import json
import struct
from collections.abc import Callable
from functools import lru_cache
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie_ds.errors import HoodieError
from hoodie_ds.formats.avro.container import read_record
from hoodie_ds.formats.hfile.container import TRAILER_BYTES, Codec
from hoodie_ds.formats.hfile.protobuf import read_delimited, read_fields
from hoodie_ds.formats.hfile.reader import HFile
from hoodie_ds.formats.log.data_block import decode_data_block
from hoodie_ds.formats.log.delete_block import decode_delete_block
from hoodie_ds.formats.log.log_block import (
    BlockType,
    HeaderKey,
    LogBlock,
    encode_block,
    read_blocks,
)
from hoodie_ds.formats.parquet.base_file_reader import BaseFileReader
from hoodie_ds.formats.parquet.bloom_filter import (
    BLOOM_FILTER_FOOTER,
    BLOOM_TYPE_FOOTER,
    BloomFilter,
)
from hoodie_ds.timeline.bodies.replace_plan import empty_plan, is_clustering
from hoodie_ds.timeline.bodies.rollback_metadata import (
    PartitionRollback,
    metadata_to_bytes,
    plan_to_bytes,
    rolled_back_time,
)
from hoodie_ds.timeline.instant import Action, Instant, State
from tests.hfiles import golden_hfiles, hfile, leveled_hfile, trailer, with_other_contents
from tests.hostile import seeds as s
from tests.hostile.format import FILE, must_name, read_table, write_on
from tests.hostile.mutations import (
    DEEP,
    DEPTH,
    NUMBERS,
    TEXTS,
    damaged,
    forged_json,
    varint,
)
from tests.hostile.seeds import Seed

# Avro containers.


def _container(schema: bytes, datum: bytes, sync: bytes, count: int, size: int) -> bytes:
    key = b"avro.schema"
    head = [b"Obj\1", varint(1), varint(len(key)), key, varint(len(schema)), schema, b"\0", sync]
    return b"".join([*head, varint(count), varint(size), datum, sync])


def forged_container(rng: Random, data: bytes) -> bytes:
    start = data.index(b"{")
    schema, end = json.JSONDecoder().raw_decode(data[start:].decode("latin-1"))
    text = data[start : start + end]
    sync = data[start + end + 1 : start + end + 17]
    datum = data[start + end + 17 : -16]
    while datum[0] & 0x80:  # the count and the length before it
        datum = datum[1:]
    datum = datum[1:]
    while datum[0] & 0x80:
        datum = datum[1:]
    datum = datum[1:]
    match rng.randrange(4):
        case 0:
            text = forged_json(rng, json.dumps(schema).encode())
        case 1:
            nested = json.dumps({"type": "array", "items": DEEP, "name": rng.choice(TEXTS)})
            text = nested.replace(f'"{DEEP}"', '{"type":' * DEPTH + '"int"' + "}" * DEPTH).encode(
                "utf-8", "surrogatepass"
            )
        case _:
            datum = damaged(rng, datum)
    count = rng.choice((1, 1, 1, 1, 0, -1, 2**62))
    size = rng.choice((len(datum), len(datum), len(datum), rng.choice(NUMBERS[:10])))
    return _container(text, datum, sync, count, size)


@lru_cache
def containers() -> list[Seed]:
    instant = Instant("20260101000000000", Action.DELTA_COMMIT, State.INFLIGHT)
    files = PartitionRollback(("x/a", "x/b"), {"x/.l": 7}, {"x/.c": 9})
    plan = plan_to_bytes("/t", instant, {"x": files, "y": files})
    done = metadata_to_bytes("/t", "20260101000000001", instant, {"x": files}, 5)
    found = [Seed(data, FILE) for data in (plan, done, empty_plan())]
    return found + [
        Seed(seed.data, FILE) for seed in s.golden("rollback") if seed.data[:3] == b"Obj"
    ]


def read_container(_: Seed, data: bytes) -> None:
    for read in (rolled_back_time, is_clustering):
        try:
            read(data, FILE)
        except HoodieError as error:
            must_name(error, FILE)
    read_record(data, FILE)


# Log files and their blocks.


def logs() -> list[Seed]:
    found = [seed for kind in ("mor", "avro") for seed in s.ours(kind, ".log.")]
    found = [seed for seed in found if not seed.path.startswith(".hoodie")]
    return [*found, *(seed for seed in s.golden(".log.") if ".hoodie/" not in seed.path)]


def log_file(seed: Seed, data: bytes) -> None:
    write_on(seed, data)
    read_table(seed, data)
    list(read_blocks(data, seed.path, lenient=True))
    read_block_file(seed, data)


def _decode(block: LogBlock, path: str) -> None:
    if block.block_type is BlockType.DELETE:
        decode_delete_block(block, path)
    elif block.block_type not in (BlockType.COMMAND, BlockType.CORRUPT):
        decode_data_block(block, path)


def forged_block(rng: Random, data: bytes) -> bytes:
    blocks = list(read_blocks(data, FILE))
    at = rng.randrange(len(blocks))
    block = blocks[at]
    header, content, kind = dict(block.header), bytes(block.content), block.block_type
    match rng.randrange(6):
        case 0 if HeaderKey.SCHEMA in header:
            forged = forged_json(rng, header[HeaderKey.SCHEMA].encode())
            header[HeaderKey.SCHEMA] = forged.decode("utf-8", "ignore")
        case 1:
            key = rng.choice((*header, *HeaderKey))
            text = str(rng.choice(TEXTS))
            header[key] = text.encode("utf-8", "ignore").decode()
        case 2:
            kind = rng.choice(tuple(BlockType))
        case 3:
            content = struct.pack(">ii", rng.choice((3, 3, 2, -1)), rng.choice(NUMBERS[:8]) % 2**31)
            content += bytes(block.content)[8:]
        case _:
            content = content[:8] + damaged(rng, content[8:])
            if kind is BlockType.DELETE:
                content = content[:4] + struct.pack(">i", len(content) - 8) + content[8:]
    parts = [
        encode_block(kind, header, content)
        if number == at
        else encode_block(other.block_type, other.header, other.content)
        for number, other in enumerate(blocks)
    ]
    return b"".join(parts)


def read_block_file(seed: Seed, data: bytes) -> None:
    for block in read_blocks(data, seed.path):
        _decode(block, seed.path)


def blocks_of(*kinds: BlockType) -> Callable[[], list[Seed]]:
    def found() -> list[Seed]:
        return [
            Seed(encode_block(block.block_type, block.header, block.content), FILE)
            for seed in logs()
            for block in read_blocks(seed.data, FILE)
            if block.block_type in kinds
        ]

    return lru_cache(found)


def bomb_of_deletes(rng: Random, data: bytes) -> bytes:
    """A delete whose ordering values are far too many, or none of a byte each."""
    count = rng.choice((1_001, 200_000, 2**62))
    item = rng.choice((b"\0", b"\4\0", b"\2"))
    body = b"\2\2\2k\2\2x" + bytes([24, 2]) + varint(count) + item * min(count, 200_000) + b"\0\0"
    content = struct.pack(">ii", 3, len(body)) + body
    return encode_block(BlockType.DELETE, {HeaderKey.INSTANT_TIME: "1"}, content)


# Base files.


def bases() -> list[Seed]:
    found = [seed for kind in ("cow", "bloom") for seed in s.ours(kind, ".parquet")]
    found += [seed for seed in s.golden(".parquet") if ".hoodie/" not in seed.path][:6]
    return [seed for seed in found if not seed.path.startswith(".hoodie")]


def base_file(seed: Seed, data: bytes) -> None:
    write_on(seed, data)
    read_table(seed, data)
    _read_parquet(data, seed.path)


def _read_parquet(data: bytes, path: str) -> None:
    schema = pa.schema([("_hoodie_record_key", pa.string()), ("fare", pa.float64())])
    reader = BaseFileReader(io.BytesIO(data), schema, path, keep_dictionaries=True)
    reader.key_range()
    bloom = reader.bloom_filter()
    if bloom is not None:
        bloom.may_contain(pa.array(["k1", "none"]))
    reader.read(["fare"])
    for _ in reader.pieces():
        pass


def other_parquet(rng: Random, data: bytes) -> bytes:
    """A whole Parquet file, but not one that a table has."""
    rows = pq.read_table(io.BytesIO(data))
    codec = rng.choice(("zstd", "gzip", "snappy", "none"))
    match rng.randrange(6):
        case 0:  # a bomb: a page of the same value over and over
            count = rng.choice((10_000, 1_000_000))
            columns = (pa.repeat("k" * 10, count), pa.repeat(0.5, count))
            rows = pa.table(columns, names=["_hoodie_record_key", "fare"])
        case 1:
            rows = pa.table({"fare": pa.nulls(rng.choice((0, 1, 5_000_000)))})
        case 2:
            kinds = (pa.int8(), pa.string(), pa.list_(pa.int32()), pa.timestamp("ns"), pa.null())
            column = pa.nulls(3, rng.choice(kinds))
            rows = pa.table({"_hoodie_record_key": ["a", None, "b"], "fare": column})
        case 3:
            rows = pa.table([rows.column(0), rows.column(0)], names=["fare", "fare"])
        case 4:
            value = pa.array([1.0])
            for _ in range(rng.choice((3, 90))):
                value = pa.StructArray.from_arrays([value], ["fare"])
            rows = pa.table({"fare": value})
        case _:
            text = "x" * rng.choice((0, 1, 1 << 20))
            rows = rows.replace_schema_metadata(
                {
                    "hoodie_min_record_key": text,
                    "hoodie_max_record_key": b"\xff\xfe",
                    BLOOM_FILTER_FOOTER: rng.choice(("", text, "AAAA")),
                    BLOOM_TYPE_FOOTER: rng.choice(("SIMPLE", "DYNAMIC_V0", text)),
                }
            )
    out = io.BytesIO()
    pq.write_table(rows, out, compression=codec)
    return out.getvalue()


# Bloom filters.


@lru_cache
def blooms() -> list[Seed]:
    found = []
    for seed in bases():
        footers = pq.read_metadata(io.BytesIO(seed.data)).metadata or {}
        text = footers.get(BLOOM_FILTER_FOOTER.encode())
        if text is not None and len(text) < 10_000:
            found.append(Seed(text, FILE))
    return found


def forged_bloom(rng: Random, data: bytes) -> bytes:
    body = bytearray(base64.b64decode(data))
    for _ in range(rng.choice((1, 2))):
        at = rng.choice((0, 4, 8, 9, 13, 17, 21, 25, 29, 33, 34))
        number = rng.choice((*NUMBERS[:8], 1000, 1075, 1076, 100_000)) % 2**32
        body[at : at + 4] = struct.pack(">I", number)
    return base64.b64encode(bytes(body) + bytes(rng.choice((0, 0, 100_000))))


def read_bloom(_: Seed, data: bytes) -> None:
    for kind in (b"DYNAMIC_V0", b"SIMPLE"):
        footers = {BLOOM_FILTER_FOOTER.encode(): data, BLOOM_TYPE_FOOTER.encode(): kind}
        found = BloomFilter.from_footers(footers, FILE)
        if found is not None:
            found.may_contain(pa.array([f"k{i}" for i in range(2000)]))


# HFiles.


@lru_cache
def hfiles() -> list[Seed]:
    entries = [(b"k%03d" % i, b"v" * (i % 5)) for i in range(60)]
    made = [hfile(entries, Codec.NONE, 200)]
    made += [leveled_hfile(entries, fanout, codec) for fanout in (3, 10) for codec in Codec]
    golden = [data for _, data in golden_hfiles("v9_mor_metadata")]
    return [Seed(data, FILE) for data in (*made, *golden[:6])]


def forged_hfile(rng: Random, data: bytes) -> bytes:
    """Other contents of blocks, in blocks and under an index as whole as before."""

    def others(contents: list[bytes]) -> list[bytes]:
        at = rng.randrange(len(contents))
        contents[at] = damaged(rng, contents[at])
        return contents

    return with_other_contents(data, others)


def forged_trailer(rng: Random, data: bytes) -> bytes:
    """A number of the trailer is another one."""
    tail = data[-TRAILER_BYTES:]
    message, _ = read_delimited(tail, 8)
    fields = dict(read_fields(message))
    fields[rng.choice((2, 2, 5, 6, 7, 8, 12, 13))] = rng.choice(NUMBERS[:-1]) % 2**64
    return data[:-TRAILER_BYTES] + trailer(fields)


def read_hfile(_: Seed, data: bytes) -> None:
    keys = [b"", b"k003", b"k0041", b"k059", b"city=ams", b"zz"]
    for read in (HFile.scan, lambda f: f.get_many(keys), lambda f: f.scan_prefixes(keys[1:])):
        try:
            for _key, _value in read(HFile(io.BytesIO(data), FILE)):
                pass
        except HoodieError as error:
            must_name(error, FILE)
    file = HFile(io.BytesIO(data), FILE)
    file.meta_block("bloomFilter")
    list(file.scan())
