"""Bloom filters against those that Apache Hudi wrote, and against the algorithm told key by key."""

from __future__ import annotations

import base64
import io
import struct
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_ds.config.enums import BloomFilterType
from hoodie_ds.errors import CorruptFileError
from hoodie_ds.formats.avro.schema import arrow_to_avro
from hoodie_ds.formats.parquet.base_file import BaseFileWriter
from hoodie_ds.formats.parquet.base_file_reader import BaseFileReader
from hoodie_ds.formats.parquet.bloom_filter import (
    BLOOM_FILTER_FOOTER,
    BLOOM_TYPE_FOOTER,
    BloomFilter,
    BloomFilterBuilder,
    BloomParams,
    FilterText,
)
from hoodie_ds.formats.parquet.murmur import Murmur
from tests.golden.golden_tables import unzip_table

DYNAMIC, SIMPLE = BloomFilterType.DYNAMIC_V0, BloomFilterType.SIMPLE
DEFAULT = BloomParams(60_000, 1e-9, DYNAMIC, 100_000)
FEW = BloomParams(50, 1e-9, DYNAMIC, 100)
# Java's hashes with seed 0, of Hadoop's MurmurHash.
HASHES = {
    "a": -1838653602,
    "ab": 1525573013,
    "abc": 1775488903,
    "abcd": 646393889,
    "abcdefg": -14544559,
    "TXN-001": -1349093075,
    "é": -384040333,
    "日本語": -343686998,
    "ключ-1": -1463505529,
}


# Filters that the classes of Apache Hudi 1.2.0 made of these keys on the JVM.
OF_THE_JVM = [
    (
        BloomParams(4, 0.01, DYNAMIC, 100),
        [f"k{i}" for i in range(11)],
        "/////wAAAAcBAAAAJwAAAAQAAAADAAAAA/////8AAAAHAQAAACdC/UKRRv////8AAAAHAQAAACe90L4pAf////8A"
        "AAAHAQAAACeUUODSFQ==",
    ),
    (
        BloomParams(4, 0.01, DYNAMIC, 12),
        [f"k{i}" for i in range(13)],
        "/////wAAAAcBAAAAJwAAAAQAAAAFAAAAA/////8AAAAHAQAAACdG/ULZTv////8AAAAHAQAAACe90L4pAf////8A"
        "AAAHAQAAACf0UuHTFQ==",
    ),
    (
        BloomParams(4, 0.01, DYNAMIC, 12),
        [f"k{i}" for i in range(15)],
        "/////wAAAAcBAAAAJwAAAAQAAAAHAAAAA/////8AAAAHAQAAACdO/0rbTv////8AAAAHAQAAACe9074pC/////8A"
        "AAAHAQAAACf0UuHTFQ==",
    ),
    (
        BloomParams(4, 0.01, DYNAMIC, 12),
        [f"ключ-{i}" for i in range(23)],
        "/////wAAAAcBAAAAJwAAAAQAAAAPAAAAA/////8AAAAHAQAAACfv9vvfa/////8AAAAHAQAAACd9/PwfP/////8A"
        "AAAHAQAAACfx8/5XBw==",
    ),
    (
        BloomParams(4, 0.01, DYNAMIC, 3),
        [f"k{i}" for i in range(9)],
        "/////wAAAAcBAAAAJwAAAAQAAAAJAAAAAf////8AAAAHAQAAACf//f75Rw==",
    ),
    (
        BloomParams(4, 1e-5, SIMPLE, 12),
        [f"\U0001f600{i}" for i in range(20)],
        "/////wAAABEBAAAAYN///////3///////w==",
    ),
    (BloomParams(1, 0.5, SIMPLE, 1), ["x0", "x1", "x2"], "/////wAAAAIBAAAAAgM="),
]


def hashed(texts: list[str], seed: int = 0) -> list[int]:
    seeds = np.full(len(texts), seed, np.uint32)
    found: list[int] = Murmur(pa.array(texts, pa.string())).hashes(seeds).view(np.int32).tolist()
    return found


def murmur(data: bytes, seed: int) -> int:
    """One string, byte by byte."""
    m, n = 0x5BD1E995, len(data)
    h = (seed ^ n) & 0xFFFFFFFF
    for (word,) in struct.iter_unpack("<I", data[: n & ~3]):
        k = word * m & 0xFFFFFFFF
        k = (k ^ k >> 24) * m & 0xFFFFFFFF
        h = (h * m & 0xFFFFFFFF) ^ k
    if n & 3:
        for back in range(n & 3, 0, -1):
            byte = struct.unpack("b", data[n - back : n - back + 1])[0]
            h ^= (byte << 8 * (back - 1)) & 0xFFFFFFFF
        h = h * m & 0xFFFFFFFF
    h = (h ^ h >> 13) * m & 0xFFFFFFFF
    h ^= h >> 15
    return h - (1 << 32) if h >> 31 else h


def positions(key: str, num_hashes: int, num_bits: int) -> Iterator[int]:
    seed = 0
    for _ in range(num_hashes):
        seed = murmur(key.encode(), seed)
        yield abs(seed) % num_bits


def built(keys: list[str], params: BloomParams, chunk: int = 7) -> dict[str, str]:
    builder = BloomFilterBuilder(params)
    for start in range(0, len(keys), chunk):
        builder.add(pa.chunked_array([pa.array(keys[start : start + chunk], pa.string())]))
    return builder.footers()


def read(footers: dict[str, str]) -> BloomFilter:
    found = BloomFilter.from_footers({k.encode(): v.encode() for k, v in footers.items()}, "f")
    assert found is not None
    return found


def set_bits(packed: np.ndarray) -> set[int]:
    return set(np.flatnonzero(np.unpackbits(packed, bitorder="little")).tolist())


def test_hashes_of_the_jvm() -> None:
    assert dict(zip(HASHES, hashed(list(HASHES)), strict=True)) == HASHES


@given(st.lists(st.text(max_size=20), max_size=30), st.integers(0, 2**32 - 1))
def test_many_at_once_hash_as_each_alone(texts: list[str], seed: int) -> None:
    assert hashed(texts, seed) == [murmur(text.encode(), seed) for text in texts]


def test_long_keys_take_memory_by_their_bytes() -> None:
    count, length = 4_096, 1_003
    texts = pa.array([f"{i:0{length}}" for i in range(count)])
    seeds = np.zeros(count, np.uint32)
    tracemalloc.start()
    try:
        found = Murmur(texts).hashes(seeds)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.view(np.int32)[:3].tolist() == [murmur(t.as_py().encode(), 0) for t in texts[:3]]
    assert peak < 5 * count * length


def test_the_usual_sizes() -> None:
    assert (DEFAULT.num_bits, DEFAULT.num_hashes) == (2_587_966, 30)


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("v6_cow_types", DEFAULT),
        ("v9_cow_types", DEFAULT),
        *((name, FEW) for name in ("v6_cow_url_encoded", "v6_cow_history", "v9_mor_history")),
    ],
)
def test_footers_of_apache_hudi_byte_for_byte(
    name: str, params: BloomParams, tmp_path: Path
) -> None:
    compared = 0
    for path in unzip_table(name, tmp_path).rglob("*.parquet"):
        if ".hoodie" in path.parts:
            continue
        file = pq.ParquetFile(path)
        footers = file.metadata.metadata
        if BLOOM_FILTER_FOOTER.encode() not in footers:
            continue
        keys = file.read(columns=["_hoodie_record_key"]).column(0)
        builder = BloomFilterBuilder(params)
        builder.add(keys)
        found = {key.encode(): value.encode() for key, value in builder.footers().items()}
        assert {key: footers[key] for key in found} == found
        read_back = BloomFilter.from_footers(footers, path.name)
        assert read_back is not None
        assert read_back.may_contain(keys.combine_chunks()).all()
        compared += 1
    assert compared


@given(st.lists(st.text(max_size=12), max_size=60), st.sampled_from([DYNAMIC, SIMPLE]))
def test_bits_are_those_of_the_algorithm(keys: list[str], kind: BloomFilterType) -> None:
    """Four keys a filter, twelve at most before keys go round."""
    params = BloomParams(4, 0.01, kind, 12)
    rows: list[set[int]] = [set()]
    count = turn = 0
    for key in keys:
        row = rows[-1]
        if kind is DYNAMIC and count >= 4 and len(rows) * 4 < 12:
            rows.append(set())
            row, count = rows[-1], 0
        if kind is DYNAMIC and count >= 4:
            # The first key beyond the cap goes to the first row without taking a turn.
            row = rows[0 if count == 4 else turn % len(rows)]
            turn += count > 4
        count += 1
        row |= set(positions(key, params.num_hashes, params.num_bits))
    found = read(built(keys, params))
    assert [set_bits(packed) for packed in found.rows] == rows
    assert found.may_contain(pa.array(keys, pa.string())).all()


@pytest.mark.parametrize(("params", "keys", "expected"), OF_THE_JVM)
@pytest.mark.parametrize("chunk", [1, 5, 100])
def test_filters_of_the_jvm_byte_for_byte(
    params: BloomParams, keys: list[str], expected: str, chunk: int
) -> None:
    footers = built(keys, params, chunk)
    assert footers == {BLOOM_FILTER_FOOTER: expected, BLOOM_TYPE_FOOTER: params.kind.value}
    assert read(footers).may_contain(pa.array(keys)).all()


def test_keys_beyond_the_cap_of_usual_filters() -> None:
    keys = pa.array([f"key{i}" for i in range(150_000)])
    builder = BloomFilterBuilder(DEFAULT)
    builder.add(pa.chunked_array([keys.slice(0, 100_000), keys.slice(100_000)]))
    footers = builder.footers()
    head = struct.unpack_from(">iibiiii", base64.b64decode(footers[BLOOM_FILTER_FOOTER]))
    assert head == (-1, 30, 1, 2_587_966, 60_000, 90_000, 2)
    assert read(footers).may_contain(keys).all()


def test_no_more_bits_than_java_has_integers() -> None:
    assert BloomParams(100_000_000, 1e-9, SIMPLE, 1).num_bits == 2**31 - 1


def test_few_other_keys_pass() -> None:
    found = read(built([f"k{i}" for i in range(2000)], BloomParams(2000, 0.01, SIMPLE, 1)))
    others = pa.array([f"other{i}" for i in range(20_000)])
    assert 50 < found.may_contain(others).sum() < 400


def simple(num_hashes: int) -> str:
    return base64.b64encode(struct.pack(">iibi", -1, num_hashes, 1, 8) + b"\xff").decode()


@pytest.mark.parametrize(
    "text", ["###", "AAAA", "/////wAAAB4BACd9Xg==", simple(0), simple(-1), simple(1 << 30)]
)
def test_a_damaged_filter_names_its_file(text: str) -> None:
    with pytest.raises(CorruptFileError, match="dir/f"):
        BloomFilter.from_footers({BLOOM_FILTER_FOOTER.encode(): text.encode()}, "dir/f")


def test_a_file_without_filter_or_with_the_ancient_one_has_none() -> None:
    assert BloomFilter.from_footers({}, "f") is None
    ancient = base64.b64encode(struct.pack(">iibi", 30, 1, 0, 8) + b"\xff")
    assert BloomFilter.from_footers({BLOOM_FILTER_FOOTER.encode(): ancient}, "f") is None


def test_the_kind_is_read_in_any_case_and_an_unknown_one_is_no_filter() -> None:
    footers = built(["a", "b"], BloomParams(4, 0.01, DYNAMIC, 12))
    found = read({**footers, BLOOM_TYPE_FOOTER: "dynamic_v0"})
    assert found.may_contain(pa.array(["a", "b"])).all()
    data = {key.encode(): value.encode() for key, value in footers.items()}
    assert BloomFilter.from_footers({**data, BLOOM_TYPE_FOOTER.encode(): b"NEWER"}, "f") is None


def test_the_footer_of_ubers_releases_is_read() -> None:
    text = built(["a"], BloomParams(4, 0.01, SIMPLE, 12))[BLOOM_FILTER_FOOTER]
    found = BloomFilter.from_footers({b"com.uber.hoodie.bloomfilter": text.encode()}, "f")
    assert found is not None
    assert found.may_contain(pa.array(["a"])).all()


@pytest.mark.parametrize("part", [1, 3, 100])
def test_a_base_file_carries_the_filter_of_its_keys(part: int) -> None:
    params = BloomParams(4, 0.01, DYNAMIC, 12)
    keys = [f"k{i}" for i in range(15)]
    table = pa.table({"_hoodie_record_key": keys})
    avro = arrow_to_avro(table.schema, "t")
    sink = io.BytesIO()
    writer = BaseFileWriter(sink, table.schema, avro, "snappy", 1 << 20, bloom=params)
    for start in range(0, len(keys), part):
        writer.write(table.slice(start, part))
    writer.close()
    footers = pq.read_metadata(io.BytesIO(sink.getvalue())).metadata
    assert footers[BLOOM_FILTER_FOOTER.encode()].decode() == OF_THE_JVM[2][2]
    reader = BaseFileReader(io.BytesIO(sink.getvalue()), table.schema, "f")
    assert reader.key_range() == ("k0", "k9")
    found = reader.bloom_filter()
    assert found is not None
    assert found.may_contain(pa.array(keys)).all()


def test_a_base_file_without_filter_or_keys_says_so() -> None:
    schema = pa.schema([pa.field("_hoodie_record_key", pa.string())])
    sink = io.BytesIO()
    BaseFileWriter(sink, schema, arrow_to_avro(schema, "t"), "snappy", 1 << 20).close()
    reader = BaseFileReader(io.BytesIO(sink.getvalue()), schema, "f")
    assert (reader.bloom_filter(), reader.key_range()) == (None, None)


@pytest.mark.parametrize("kind", [SIMPLE, DYNAMIC])
def test_what_is_asked_of_a_text_is_that_of_the_filter(kind: BloomFilterType) -> None:
    keys = [f"k{number}" for number in range(300)]
    footers = built(keys, BloomParams(70, 0.2, kind, 210))
    text = FilterText(kind.value, footers[BLOOM_FILTER_FOOTER].encode())
    found = BloomFilter.from_footers({k.encode(): v.encode() for k, v in footers.items()}, "f")
    assert found is not None
    others = pa.array([*keys[:20], *(f"{key}x" for key in keys)])
    one_by_one = [text.may_have_any(others.slice(at, 1)) for at in range(len(others))]
    assert one_by_one == found.may_contain(others).tolist()
    assert text.may_have_any(others)
    assert not all(one_by_one)


@pytest.mark.parametrize("cut", [0, 8, 20, 36, 100])
def test_every_key_may_be_in_a_text_that_is_no_filter(cut: int) -> None:
    footers = built(["a"], BloomParams(70, 0.01, DYNAMIC, 210))
    text = FilterText("DYNAMIC_V0", footers[BLOOM_FILTER_FOOTER][:cut].encode())
    assert text.may_have_any(pa.array(["b"]))
    assert text.share_of_others(1) == 1.0 or cut >= 36
