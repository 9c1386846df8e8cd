from __future__ import annotations

import datetime as dt
import io
import json
import struct
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_ds.errors import CorruptFileError, SchemaError, UnsupportedTableError
from hoodie_ds.formats.avro.encoder import joined_bytes, zigzag
from hoodie_ds.formats.avro.schema import arrow_to_avro
from hoodie_ds.formats.log.data_block import (
    decode_data_block,
    encode_avro_block,
    encode_parquet_block,
)
from hoodie_ds.formats.log.log_block import BlockType, HeaderKey, LogBlock, read_blocks

UTC = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema(
    {
        "i": pa.int32(),
        "l": pa.int64(),
        "f": pa.float32(),
        "d": pa.float64(),
        "o": pa.bool_(),
        "s": pa.string(),
        "b": pa.binary(),
        "day": pa.date32(),
        "at": UTC,
        "price": pa.decimal128(10, 5),
        "tags": pa.list_(pa.struct([("label", pa.string()), ("n", pa.int32())])),
        "by_name": pa.map_(pa.string(), pa.decimal128(3, 1)),
        "outer": pa.struct([("inner", pa.struct([("x", pa.float64())]))]),
    }
)
ROWS: list[dict[str, Any]] = [
    {
        "i": -1,
        "l": 2**63 - 1,
        "f": 1.5,
        "d": -0.25,
        "o": True,
        "s": "é😀",
        "b": b"\0\xff",
        "day": dt.date(1969, 12, 31),
        "at": dt.datetime(2025, 1, 2, 3, 4, 5, 678901, dt.timezone.utc),
        "price": Decimal("-12345.67891"),
        "tags": [{"label": "x", "n": None}, None],
        "by_name": {"a": Decimal("-0.1"), "b": None},
        "outer": {"inner": {"x": 1.0}},
    },
    dict.fromkeys(SCHEMA.names),
    {
        **dict.fromkeys(SCHEMA.names),
        "s": "",
        "b": b"",
        "tags": [],
        "by_name": {},
        "outer": {"inner": None},
    },
]
TABLE = pa.Table.from_pylist(
    [{**row, "by_name": row["by_name"] and list(row["by_name"].items())} for row in ROWS], SCHEMA
)
AVRO = arrow_to_avro(SCHEMA, "t")


def only_block(data: bytes) -> LogBlock:
    (block,) = read_blocks(data, "f")
    return block


def avro_block(content: bytes, schema: str = AVRO) -> LogBlock:
    return LogBlock(BlockType.AVRO_DATA, {HeaderKey.SCHEMA: schema}, content)


def framed(*records: bytes) -> bytes:
    head = struct.pack(">ii", 3, len(records))
    return head + b"".join(struct.pack(">i", len(record)) + record for record in records)


def records_in(block: LogBlock) -> list[bytes]:
    content = bytes(block.content)
    version, count = struct.unpack_from(">ii", content)
    assert version == 3
    at, records = 8, []
    for _ in range(count):
        (length,) = struct.unpack_from(">i", content, at)
        records.append(content[at + 4 : at + 4 + length])
        at += 4 + length
    assert at == len(content)
    return records


def test_fastavro_reads_what_we_encode() -> None:
    schema = fastavro.parse_schema(json.loads(AVRO))
    records = records_in(only_block(encode_avro_block(TABLE, AVRO, "20250101000000000")))
    assert [fastavro.schemaless_reader(io.BytesIO(data), schema) for data in records] == ROWS


def test_we_read_what_fastavro_encodes() -> None:
    schema = fastavro.parse_schema(json.loads(AVRO))
    records = []
    for row in ROWS:
        buffer = io.BytesIO()
        fastavro.schemaless_writer(buffer, schema, row)
        records.append(buffer.getvalue())
    assert decode_data_block(avro_block(framed(*records)), "f") == TABLE


@pytest.mark.parametrize("encoded", [encode_avro_block, encode_parquet_block])
def test_few_columns_are_those_of_the_whole_block(encoded: Callable[..., bytes]) -> None:
    more = () if encoded is encode_avro_block else ("zstd",)
    block = only_block(encoded(TABLE, AVRO, "1", *more))
    for first, name in enumerate(SCHEMA.names):
        for wanted in ([name], [name, "none such"], SCHEMA.names[first : first + 5]):
            names = [n for n in SCHEMA.names if n in wanted]
            assert decode_data_block(block, "f", columns=wanted) == TABLE.select(names)


def test_pyarrow_reads_the_content_of_a_parquet_block() -> None:
    block = only_block(encode_parquet_block(TABLE, AVRO, "20250101000000000", "zstd"))
    file = pq.ParquetFile(io.BytesIO(block.content))
    assert file.read() == TABLE
    assert file.metadata.metadata[b"parquet.avro.schema"] == AVRO.encode()


@pytest.mark.parametrize("kind", [BlockType.AVRO_DATA, BlockType.PARQUET_DATA])
def test_the_header_names_instant_and_schema(kind: Any) -> None:
    data = (
        encode_avro_block(TABLE, AVRO, "20250101000000000")
        if kind is BlockType.AVRO_DATA
        else encode_parquet_block(TABLE, AVRO, "20250101000000000", "none")
    )
    block = only_block(data)
    assert block.block_type is kind
    assert block.header == {
        HeaderKey.INSTANT_TIME: "20250101000000000",
        HeaderKey.SCHEMA: AVRO,
    }


def test_dictionary_columns_and_missing_columns_are_taken() -> None:
    schema = pa.schema([("a", pa.string()), ("b", pa.int32())])
    avro = arrow_to_avro(schema, "t")
    table = pa.table({"a": pa.array(["x", None, "x"]).dictionary_encode()})
    expected = [{"a": "x", "b": None}, {"a": None, "b": None}, {"a": "x", "b": None}]
    for data in (
        encode_avro_block(table, avro, "1"),
        encode_parquet_block(table, avro, "1", "lz4"),
    ):
        assert decode_data_block(only_block(data), "f").to_pylist() == expected


def test_not_a_number_survives() -> None:
    table = pa.table({"d": [float("nan"), float("-inf")]})
    avro = arrow_to_avro(table.schema, "t")
    decoded = decode_data_block(only_block(encode_avro_block(table, avro, "1")), "f")
    assert str(decoded.column("d").to_pylist()) == "[nan, -inf]"


@pytest.mark.parametrize(
    ("number", "encoded"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (-64, "7f"),
        (64, "8001"),
        (8192, "808001"),
        (2**63 - 1, "feffffffffffffffff01"),
        (-(2**63), "ffffffffffffffffff01"),
    ],
)
def test_whole_numbers_are_zigzag_varints(number: int, encoded: str) -> None:
    assert joined_bytes(zigzag(np.array([number]))).hex() == encoded


def other_avro(kind: object) -> str:
    return json.dumps({"type": "record", "name": "r", "fields": [{"name": "c", "type": kind}]})


@pytest.mark.parametrize(
    ("kind", "value", "encoded"),
    [
        ("int", 3, "06"),
        (["int", "null"], None, "02"),
        (["int", "null"], 3, "0006"),
        (["string"], "a", "000261"),
        ({"type": "long", "logicalType": "timestamp-millis"}, 5, "0a"),
        ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, "B", "02"),
        ({"type": "fixed", "name": "f", "size": 2}, b"ab", "6162"),
        (
            {"type": "fixed", "name": "f", "size": 18, "logicalType": "decimal", "precision": 3},
            Decimal(-2),
            "ff" * 17 + "fe",
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 3},
            Decimal(-2),
            "20" + "ff" * 15 + "fe",
        ),
        ({"type": "array", "items": "int"}, [1, 2], "04020400"),
        ({"type": "map", "values": "int"}, [("k", 1)], "02026b0200"),
        ({"type": "string", "logicalType": "uuid"}, "u", "0275"),
        ({"type": "long", "logicalType": "time-micros"}, 7, "0e"),
    ],
)
def test_schemas_of_other_writers_are_written_to_the_letter(
    kind: Any, value: Any, encoded: str
) -> None:
    avro = other_avro(kind)
    schema = decode_data_block(avro_block(framed(), avro), "f").schema
    table = pa.table({"c": pa.array([value], schema.field(0).type)})
    block = only_block(encode_avro_block(table, avro, "1"))
    assert [record.hex() for record in records_in(block)] == [encoded]
    assert decode_data_block(block, "f") == table


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        ("int", pa.array([1, None], pa.int32())),
        ({"type": "array", "items": "int"}, pa.array([[1, None]])),
        (
            {"type": "map", "values": "int"},
            pa.array([[("k", None)]], pa.map_(pa.string(), pa.int32())),
        ),
        ({"type": "enum", "name": "e", "symbols": ["A"]}, pa.array(["A", "C"])),
        ({"type": "fixed", "name": "f", "size": 2}, pa.array([b"abc"])),
        ({"type": "long", "logicalType": "timestamp-millis"}, pa.array([1], UTC)),
        (
            {"type": "fixed", "name": "f", "size": 1, "logicalType": "decimal", "precision": 3},
            pa.array([Decimal(999)]),
        ),
        ("int", pa.array(["1"])),
    ],
)
def test_values_that_the_schema_does_not_allow_are_refused(kind: Any, column: pa.Array) -> None:
    with pytest.raises(SchemaError, match="column 'c"):
        encode_avro_block(pa.table({"c": column}), other_avro(kind), "1")


def test_a_null_struct_may_have_required_fields() -> None:
    point = {"type": "record", "name": "p", "fields": [{"name": "x", "type": "int"}]}
    avro = other_avro(["null", point])
    table = pa.table({"c": pa.array([{"x": 1}, None], pa.struct([("x", pa.int32())]))})
    assert decode_data_block(only_block(encode_avro_block(table, avro, "1")), "f") == table
    broken = pa.table({"c": pa.array([{"x": None}], pa.struct([("x", pa.int32())]))})
    with pytest.raises(SchemaError, match=r"'c\.x' has nulls"):
        encode_avro_block(broken, avro, "1")


def test_a_record_cut_or_lengthened_anywhere_is_corrupt() -> None:
    (record, *_) = records_in(only_block(encode_avro_block(TABLE, AVRO, "1")))
    for length in range(len(record)):
        with pytest.raises(CorruptFileError, match="dir/f"):
            decode_data_block(avro_block(framed(record[:length])), "dir/f")
    with pytest.raises(CorruptFileError, match="dir/f"):
        decode_data_block(avro_block(framed(record + b"\0")), "dir/f")


def test_content_cut_anywhere_is_corrupt() -> None:
    for data in (
        encode_avro_block(TABLE, AVRO, "1"),
        encode_parquet_block(TABLE, AVRO, "1", "none"),
    ):
        block = only_block(data)
        step = 1 if block.block_type is BlockType.AVRO_DATA else 101
        for length in range(0, len(block.content), step):
            with pytest.raises(CorruptFileError):
                decode_data_block(
                    LogBlock(block.block_type, block.header, block.content[:length]), "f"
                )


LONG_MAX = "feffffffffffffffff01"


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("int", struct.pack(">ii", 3, 2**31 - 1)),
        ("int", struct.pack(">ii", 3, -1)),
        ("int", struct.pack(">iii", 3, 1, -1)),
        ("int", struct.pack(">iii", 3, 1, 2**31 - 1)),
        ("int", framed(b"\x02") + b"x"),
        ("int", framed(bytes.fromhex(LONG_MAX))),
        ("int", framed(b"\xff" * 1000)),
        ("string", framed(bytes.fromhex(LONG_MAX) + b"abc")),
        ("string", framed(b"\x05")),
        ("string", framed(b"\x04\xff\xfe")),
        ("bytes", framed(bytes.fromhex("ffffffffffffffffff01"))),
        (["null", "int"], framed(b"\x04")),
        (["null", "int"], framed(b"\x01")),
        ({"type": "array", "items": "int"}, framed(bytes.fromhex(LONG_MAX) + b"\x02")),
        ({"type": "array", "items": "int"}, framed(b"\x01" + bytes.fromhex(LONG_MAX) + b"\x02")),
        ({"type": "map", "values": "int"}, framed(bytes.fromhex(LONG_MAX))),
        ({"type": "enum", "name": "e", "symbols": ["A"]}, framed(b"\x04")),
        ({"type": "enum", "name": "e", "symbols": ["A"]}, framed(b"\x01")),
        ({"type": "bytes", "logicalType": "decimal", "precision": 2}, framed(b"\x04\x7f\xff")),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 2},
            framed(b"\x22\x01" + b"\0" * 16),
        ),
        ({"type": "bytes", "logicalType": "decimal", "precision": 2}, framed(b"\x42" + b"\0" * 33)),
    ],
    ids=range(21),
)
def test_hostile_content_is_corrupt(kind: Any, content: bytes) -> None:
    with pytest.raises(CorruptFileError, match="f:"):
        decode_data_block(avro_block(content, other_avro(kind)), "f")


def test_a_block_without_schema_is_corrupt() -> None:
    with pytest.raises(CorruptFileError, match="no schema"):
        decode_data_block(LogBlock(BlockType.AVRO_DATA, {}, framed()), "f")


def test_versions_and_types_unknown_here_are_refused() -> None:
    with pytest.raises(UnsupportedTableError, match="version 2"):
        decode_data_block(avro_block(struct.pack(">ii", 2, 0)), "f")
    with pytest.raises(UnsupportedTableError, match="HFILE_DATA"):
        decode_data_block(LogBlock(BlockType.HFILE_DATA, {HeaderKey.SCHEMA: AVRO}, b""), "f")


def test_data_blocks_of_hudi_decode_and_avro_ones_encode_to_the_same_bytes(
    golden: Callable[[str], list[Path]],
) -> None:
    seen = set()
    for path in golden(""):
        if ".log." not in path.name:
            continue
        for block in read_blocks(path.read_bytes(), path.name):
            if block.block_type not in (BlockType.AVRO_DATA, BlockType.PARQUET_DATA):
                continue
            if HeaderKey.IS_PARTIAL in block.header:  # whose rows have no meta columns
                continue
            table = decode_data_block(block, path.name)
            table.validate(full=True)
            instant = block.header[HeaderKey.INSTANT_TIME]
            virtual = any("virtual_keys" in part for part in path.parts)
            times = set(table.column("_hoodie_commit_time").to_pylist())
            assert times == {None if virtual else instant}
            if block.block_type is BlockType.AVRO_DATA:
                again = encode_avro_block(table, block.header[HeaderKey.SCHEMA], instant)
                assert only_block(again).content == block.content
            seen.add(block.block_type)
    assert seen == {BlockType.AVRO_DATA, BlockType.PARQUET_DATA}
