"""The formats that are read, how each is damaged, and what reading may come to.

A format's ``read`` is given damaged bytes. It returns if they were read, asserts what can be known
of the rows, and otherwise raises a `HoodieError`, which has to say which file is meant.
"""

from __future__ import annotations

import base64
import io
import json
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie_ds import HoodieTable
from hoodie_ds.errors import CorruptFileError, HoodieError, UnsupportedTableError
from hoodie_ds.formats.avro_container import read_record
from hoodie_ds.formats.base_file_reader import BaseFileReader
from hoodie_ds.formats.bloom_filter import BLOOM_FILTER_FOOTER, BLOOM_TYPE_FOOTER, BloomFilter
from hoodie_ds.formats.data_block import decode_data_block
from hoodie_ds.formats.delete_block import decode_delete_block
from hoodie_ds.formats.log_block import BlockType, HeaderKey, LogBlock, encode_block, read_blocks
from hoodie_ds.sink.pinned_view import pin_view
from hoodie_ds.sink.replay_guard import BatchId
from hoodie_ds.table.hashing_config import load_hashing_config
from hoodie_ds.testing import MemoryStorage
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.replace_plan import empty_plan, is_clustering
from hoodie_ds.timeline.rollback_metadata import (
    PartitionRollback,
    metadata_to_bytes,
    plan_to_bytes,
    rolled_back_time,
)
from hoodie_ds.timeline.timeline import Timeline, load_timeline
from tests.hostile import seeds as s
from tests.hostile.mutations import (
    DEEP,
    DEPTH,
    NUMBERS,
    TEXTS,
    damaged,
    forged_json,
    forged_lines,
    varint,
)
from tests.hostile.seeds import Seed

FILE = "a/file-of-the-table"
"""What parsers are told their input is."""
MAGIC_BYTES = 8


@dataclass(frozen=True)
class Format:
    """A format.

    Parameters
    ----------
    seeds : callable
        Files as they were written.
    mutate : callable
        From a random source, a seed and all seeds to damaged bytes.
    read : callable
        See above.
    named_by : str
        What an error says of the file: its name by default, a blank where ``read`` looks itself.
    is_refused : bool
        Whether some inputs have to be refused; others are to be passed over.
    """

    seeds: Callable[[], Sequence[Seed]]
    mutate: Callable[[Random, Seed, Sequence[bytes]], bytes]
    read: Callable[[Seed, bytes], None]
    named_by: str = ""
    is_refused: bool = True


def must_name(error: HoodieError, *texts: str) -> None:
    """Fail unless the error mentions one of some texts."""
    if not any(text in str(error) for text in texts):
        raise AssertionError(f"{type(error).__name__} does not name {texts}: {error}")


def _either(
    *ways: Callable[[Random, bytes], bytes],
) -> Callable[[Random, Seed, Sequence[bytes]], bytes]:
    """Bytes damaged blindly, or one of some ways that keep to the structure."""

    def mutate(rng: Random, seed: Seed, others: Sequence[bytes]) -> bytes:
        way = rng.choice((None, *ways))
        return damaged(rng, seed.data, others) if way is None else way(rng, seed.data)

    return mutate


def _tail(rng: Random, data: bytes) -> bytes:
    """Damage near the end, where Parquet keeps what it says of the rest."""
    return damaged(rng, data, tail=min(len(data), rng.choice((8, 64, 1000, 4000))))


# Whole tables: right rows, or an error; and after that a write.


def _read_table(seed: Seed, data: bytes) -> None:
    found = s.rows_of(seed.table(data))
    assert found == seed.rows or not seed.ours, "other rows"


def _read_any(seed: Seed, data: bytes) -> None:
    """Rows may be others: nothing in the table says what they ought to be."""
    s.rows_of(seed.table(data))


def _write_on(seed: Seed, data: bytes) -> None:
    """A write to such a table, which may be refused."""
    table = seed.table(data)
    try:
        if seed.ours:
            table.upsert(s.MORE)
        else:
            rows = table.read()
            table.upsert(rows.select([n for n in rows.column_names if not n.startswith("_hoodie")]))
    except HoodieError:
        return
    s.rows_of(table)


def _properties(seed: Seed, data: bytes) -> None:
    _write_on(seed, data)
    try:
        _read_any(seed, data)
    except CorruptFileError:
        raise
    except HoodieError as error:
        # What a table is said to be, or to have, is an error of the table.
        must_name(error, "table", "hoodie.", "field")


def _commit(seed: Seed, data: bytes) -> None:
    _write_on(seed, data)
    written_by_us = b"_hoodie_ds_digest" in data
    (_read_table if written_by_us else _read_any)(seed, data)


def _forged_commit(rng: Random, data: bytes) -> bytes:
    return forged_json(rng, s.without_digest(data) if rng.random() < 0.8 else data)


def _commits() -> list[Seed]:
    found = [seed for kind in ("cow", "mor", "bloom") for seed in s.ours(kind, "commit")]
    found = [seed for seed in [*found, *s.golden("commit")] if seed.path.endswith("commit")]
    return [seed for seed in found if seed.path.startswith(".hoodie/2")]


# Names on the timeline: the input is the name, the content goes with it.


def _forged_name(rng: Random, seed: Seed, _: Sequence[bytes]) -> bytes:
    time = rng.choice(
        ("20251231235959999", "20260101000000000", "20991231235959999", "99991231235959999")
        + ("00000000000000000", "99999999999999999", "20260101000000", "٢٠٢٦٠١٠١٠٠٠٠٠٠٠٠٠")
        + ("20260101000000001", "2026010100000000", "202601010000000000", "-2026010100000000")
    )
    action = rng.choice((*(action.value for action in Action), "", "x", "COMMIT", "commit "))
    state = rng.choice(("", "", ".requested", ".inflight", ".completed", ".requested.inflight"))
    name = rng.choice((f"{time}.{action}{state}", f"{time}{state}", f"{time}_{time}.{action}"))
    content = rng.choice((b"", b"{}", b"[]", seed.data, empty_plan(), rng.randbytes(20)))
    return name.encode() + b"\0" + content


def _names(seed: Seed, data: bytes) -> None:
    name, _, content = data.partition(b"\0")
    path = f".hoodie/{name.decode()}"
    forged = Seed(content, path, seed.files, seed.rows, True, seed.options)
    if path in seed.files:  # that is damage to an instant, which other formats are for
        return
    _write_on(forged, content)
    try:
        _read_table(forged, content)
    except HoodieError as error:
        must_name(error, name.decode())
        raise


# Avro containers.


def _container(schema: bytes, datum: bytes, sync: bytes, count: int, size: int) -> bytes:
    key = b"avro.schema"
    head = [b"Obj\1", varint(1), varint(len(key)), key, varint(len(schema)), schema, b"\0", sync]
    return b"".join([*head, varint(count), varint(size), datum, sync])


def _forged_container(rng: Random, data: bytes) -> bytes:
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
def _containers() -> list[Seed]:
    instant = Instant("20260101000000000", Action.DELTA_COMMIT, State.INFLIGHT)
    files = PartitionRollback(("x/a", "x/b"), {"x/.l": 7}, {"x/.c": 9})
    plan = plan_to_bytes("/t", instant, {"x": files, "y": files})
    done = metadata_to_bytes("/t", "20260101000000001", instant, {"x": files}, 5)
    found = [Seed(data, FILE) for data in (plan, done, empty_plan())]
    return found + [
        Seed(seed.data, FILE) for seed in s.golden("rollback") if seed.data[:3] == b"Obj"
    ]


def _read_container(_: Seed, data: bytes) -> None:
    for read in (rolled_back_time, is_clustering):
        try:
            read(data, FILE)
        except HoodieError as error:
            must_name(error, FILE)
    read_record(data, FILE)


# Log files and their blocks.


def _logs() -> list[Seed]:
    found = [seed for kind in ("mor", "avro") for seed in s.ours(kind, ".log.")]
    found = [seed for seed in found if not seed.path.startswith(".hoodie")]
    return [*found, *(seed for seed in s.golden(".log.") if ".hoodie/" not in seed.path)]


def _log_file(seed: Seed, data: bytes) -> None:
    _write_on(seed, data)
    _read_table(seed, data)
    list(read_blocks(data, seed.path, lenient=True))
    _read_blocks(seed, data)


def _decode(block: LogBlock, path: str) -> None:
    if block.block_type is BlockType.DELETE:
        decode_delete_block(block, path)
    elif block.block_type not in (BlockType.COMMAND, BlockType.CORRUPT):
        decode_data_block(block, path)


def _forged_block(rng: Random, data: bytes) -> bytes:
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


def _read_blocks(seed: Seed, data: bytes) -> None:
    for block in read_blocks(data, seed.path):
        _decode(block, seed.path)


def _blocks_of(*kinds: BlockType) -> Callable[[], list[Seed]]:
    def found() -> list[Seed]:
        return [
            Seed(encode_block(block.block_type, block.header, block.content), FILE)
            for seed in _logs()
            for block in read_blocks(seed.data, FILE)
            if block.block_type in kinds
        ]

    return lru_cache(found)


def _bomb_of_deletes(rng: Random, data: bytes) -> bytes:
    """A delete whose ordering values are far too many, or none of a byte each."""
    count = rng.choice((1_001, 200_000, 2**62))
    item = rng.choice((b"\0", b"\4\0", b"\2"))
    body = b"\2\2\2k\2\2x" + bytes([24, 2]) + varint(count) + item * min(count, 200_000) + b"\0\0"
    content = struct.pack(">ii", 3, len(body)) + body
    return encode_block(BlockType.DELETE, {HeaderKey.INSTANT_TIME: "1"}, content)


# Base files.


def _bases() -> list[Seed]:
    found = [seed for kind in ("cow", "bloom") for seed in s.ours(kind, ".parquet")]
    found += [seed for seed in s.golden(".parquet") if ".hoodie/" not in seed.path][:6]
    return [seed for seed in found if not seed.path.startswith(".hoodie")]


def _base_file(seed: Seed, data: bytes) -> None:
    _write_on(seed, data)
    _read_table(seed, data)
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


def _other_parquet(rng: Random, data: bytes) -> bytes:
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
def _blooms() -> list[Seed]:
    found = []
    for seed in _bases():
        footers = pq.read_metadata(io.BytesIO(seed.data)).metadata or {}
        text = footers.get(BLOOM_FILTER_FOOTER.encode())
        if text is not None and len(text) < 10_000:
            found.append(Seed(text, FILE))
    return found


def _forged_bloom(rng: Random, data: bytes) -> bytes:
    body = bytearray(base64.b64decode(data))
    for _ in range(rng.choice((1, 2))):
        at = rng.choice((0, 4, 8, 9, 13, 17, 21, 25, 29, 33, 34))
        number = rng.choice((*NUMBERS[:8], 1000, 1075, 1076, 100_000)) % 2**32
        body[at : at + 4] = struct.pack(">I", number)
    return base64.b64encode(bytes(body) + bytes(rng.choice((0, 0, 100_000))))


def _read_bloom(_: Seed, data: bytes) -> None:
    for kind in (b"DYNAMIC_V0", b"SIMPLE"):
        footers = {BLOOM_FILTER_FOOTER.encode(): data, BLOOM_TYPE_FOOTER.encode(): kind}
        found = BloomFilter.from_footers(footers, FILE)
        if found is not None:
            found.may_contain(pa.array([f"k{i}" for i in range(2000)]))


# What lies in the temporary folder.


def _forged_marker(rng: Random, seed: Seed, _: Sequence[bytes]) -> bytes:
    victims = [path for path in seed.files if "/.temp/" not in path]
    target = rng.choice((*victims, *TEXTS, "x", ".hoodie", "..", "../../x", ".hoodie/.temp"))
    kind = rng.choice(("CREATE", "MERGE", "APPEND", "", "x", "/"))
    marker = rng.choice((f"{target}.marker.{kind}", f"{target}.marker", str(target)))
    return marker.encode("utf-8", "surrogatepass")


def _marker(seed: Seed, data: bytes) -> None:
    """Recovery deletes what markers announce: never a file that a commit names."""
    path = f"{seed.path}/{data.decode('utf-8', 'surrogatepass')}"
    storage = MemoryStorage(s.ROOT, {**seed.files, path: b""})
    table = HoodieTable(s.ROOT, seed.options, storage=storage)
    assert s.rows_of(table) == seed.rows
    try:
        table.upsert(s.MORE)
    finally:
        kept = {path for path in seed.files if path.startswith(("x/", ".hoodie/2", ".hoodie/h"))}
        gone = {path for path in kept - set(storage.files) if seed.path[-17:] not in path}
        assert not {path for path in gone if ".log." not in path}, gone


def _pending_instant() -> list[Seed]:
    files = s.pending_files(committed=True)
    time = max(path for path in files if path.endswith(".inflight")).split("/")[1][:17]
    rows = s.rows_text("mor")
    return [Seed(b"", f".hoodie/.temp/{time}", files, rows, True, s.options_of("mor"))]


def _temp_seeds(name: str) -> list[Seed]:
    files = s.pending_files()
    chosen = [path for path in files if name in path]
    options = {**s.options_of("mor"), **s.SPAN}
    rows = s.rows_text("mor")
    return [Seed(files[path], path, files, rows, True, options) for path in chosen]


def _pending(seed: Seed, data: bytes) -> None:
    """The rows of an instant that is pending are not there, or all there once it was finished."""
    _read_table(seed, data)
    table = seed.table(data)
    try:
        table.upsert(s.MORE)
        table.upsert(s.MORE, {"hoodie.streaming.batches.per.commit": "1"})
    except UnsupportedTableError:
        assert b"_hoodie_ds_digest" not in data  # forged, and so were the file groups it names
        return
    ids = {row["id"] for row in table.read(["id"]).to_pylist()}
    assert ids >= {"k1", "n"}
    # Spark has moved past the batch that is in the manifest. (Without a digest, or with another
    # owner, an inflight file is not a damaged one of ours but another writer's.)
    assert "p" in ids or "manifest" in seed.path or b"_hoodie_ds_digest" not in data


# Small JSON files.


def _hashing_configs() -> list[Seed]:
    return s.ours("rules", "hashing_config")


def _hashing_config(seed: Seed, data: bytes) -> None:
    _write_on(seed, data)
    load_hashing_config(MemoryStorage(s.ROOT, {**seed.files, seed.path: data}), Timeline())


@lru_cache
def _views() -> list[Seed]:
    storage = MemoryStorage(s.ROOT, s.table_files("bloom"))
    pin_view(storage, BatchId("q", 3), lambda: load_timeline(storage))
    (path,) = (path for path in storage.files if "/views/" in path)
    return [Seed(storage.files[path], path)]


def _view(seed: Seed, data: bytes) -> None:
    storage = MemoryStorage(s.ROOT, {seed.path: data})
    pin_view(storage, BatchId("q", 3), Timeline)


FORMATS = {
    "hoodie.properties": Format(
        lambda: [
            *s.ours("cow", "/hoodie.properties"),
            *s.ours("mor", "/hoodie.properties"),
            *s.golden("hoodie.properties"),
        ],
        _either(forged_lines, forged_lines),
        _properties,
        named_by="hoodie",
    ),
    "instant name": Format(
        lambda: s.ours("mor", "commit")[:1], _forged_name, _names, " ", is_refused=False
    ),
    "commit": Format(_commits, _either(_forged_commit, _forged_commit), _commit),
    "Avro container": Format(
        _containers, _either(_forged_container, _forged_container), _read_container
    ),
    "log file": Format(_logs, _either(_forged_block), _log_file),
    "data block": Format(
        _blocks_of(BlockType.AVRO_DATA, BlockType.PARQUET_DATA),
        _either(_forged_block, _forged_block),
        _read_blocks,
    ),
    "delete block": Format(
        _blocks_of(BlockType.DELETE),
        _either(_forged_block, _forged_block, _bomb_of_deletes),
        _read_blocks,
    ),
    "base file": Format(_bases, _either(_tail, _other_parquet), _base_file),
    "bloom filter": Format(_blooms, _either(_forged_bloom, _forged_bloom), _read_bloom),
    "marker": Format(_pending_instant, _forged_marker, _marker, is_refused=False),
    "manifest": Format(
        lambda: _temp_seeds("/manifest_"),
        _either(_forged_commit, _forged_commit),
        _pending,
        is_refused=False,
    ),
    "inflight file": Format(
        lambda: [x for x in _temp_seeds("commit.inflight") if x.path not in s.table_files("mor")],
        _either(forged_json),
        _pending,
        is_refused=False,
    ),
    "hashing config": Format(_hashing_configs, _either(forged_json, forged_json), _hashing_config),
    "pinned view": Format(_views, _either(forged_json, forged_json), _view),
}
