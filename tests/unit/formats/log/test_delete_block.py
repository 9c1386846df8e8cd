from __future__ import annotations

import datetime as dt
import io
import struct
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie_ds.errors import CorruptFileError, SchemaError, UnsupportedTableError
from hoodie_ds.formats.log.delete_block import decode_delete_block, encode_delete_block
from hoodie_ds.formats.log.log_block import BlockType, HeaderKey, LogBlock, read_blocks

UTC = pa.timestamp("us", tz="UTC")


def encoded(keys: list[str], ordering: pa.Array | None = None) -> LogBlock:
    data = encode_delete_block(
        pa.array(keys, pa.string()), pa.repeat("p", len(keys)), ordering, "1", "{}"
    )
    (block,) = read_blocks(data, "f")
    return block


def ordering_bytes(value: object, kind: pa.DataType) -> str:
    """What stands after key and partition path in the only entry."""
    content = bytes(encoded(["k"], pa.array([value], kind)).content)
    assert content.startswith(
        struct.pack(">ii", 3, len(content) - 8) + b"\x02" + b"\x02\x02k" + b"\x02\x02p"
    )
    assert content.endswith(b"\0")
    return content[15:-1].hex()


def block_of(body: bytes, version: int = 3, length: int | None = None) -> LogBlock:
    head = struct.pack(">ii", version, len(body) if length is None else length)
    return LogBlock(BlockType.DELETE, {}, head + body)


def test_an_unconditional_delete_has_the_bytes_that_spark_writes() -> None:
    keys = pa.array(["TXN-005"])
    data = encode_delete_block(keys, pa.array(["region=eu"]), None, "20260307162609526", "{}")
    (block,) = read_blocks(data, "f")
    assert block.content == (
        b"\0\0\0\x03\0\0\0\x18"
        + b"\x02"
        + b"\x02\x0eTXN-005"
        + b"\x02\x12region=eu"
        + b"\4\0"
        + b"\0"
    )
    assert block.block_type is BlockType.DELETE
    assert block.header == {
        HeaderKey.INSTANT_TIME: "20260307162609526",
        HeaderKey.SCHEMA: "{}",
    }


def test_an_empty_list_is_a_single_zero() -> None:
    assert encoded([]).content == b"\0\0\0\x03\0\0\0\x01\0"
    assert decode_delete_block(encoded([]), "f").num_rows == 0


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (True, pa.bool_(), "0201"),
        (3, pa.int8(), "0406"),
        (3, pa.int32(), "0406"),
        (3, pa.int64(), "0606"),
        (0, pa.int64(), "0600"),
        (1.0, pa.float32(), "080000803f"),
        (1.0, pa.float64(), "0a000000000000f03f"),
        ("é", pa.large_string(), "0e04c3a9"),
        (dt.date(1970, 1, 2), pa.date32(), "0402"),
        (
            Decimal("-1.5"),
            pa.decimal128(5, 2),
            "1220" + (-15 * 10**14).to_bytes(16, "big", signed=True).hex(),
        ),
        (5, UTC, "060a"),
        (5, pa.timestamp("us"), "060a"),
        (5, pa.timestamp("ms", tz="UTC"), "060a"),
        (None, pa.int64(), "0400"),
        (None, pa.string(), "0400"),
    ],
)
def test_ordering_values_are_wrapped_by_type(value: Any, kind: Any, expected: Any) -> None:
    assert ordering_bytes(value, kind) == expected


@pytest.mark.parametrize(
    "ordering",
    [
        pa.array([True, None, False]),
        pa.array([7, None, -7], pa.int32()),
        pa.array([7, None, 0]),
        pa.array([1.5, None, 0.0], pa.float32()),
        pa.array([1.5, None, 0.0]),
        pa.array(["\U0001f600", None, ""]),
        pa.array([2**31 - 1, None, -1], pa.int32()).cast(pa.date32()),
        pa.array([2**63 - 1, None, -(2**63)]).cast(UTC),
        pa.array(["9" * 15 + "." + "9" * 15, None, "-1"]).cast(pa.decimal128(30, 15)),
    ],
    ids=lambda array: str(array.type),
)
def test_deletes_come_back(ordering: pa.Array) -> None:
    table = decode_delete_block(encoded(["a", "é\0", ""], ordering), "f")
    assert table.column("record_key").to_pylist() == ["a", "é\0", ""]
    assert table.column("partition_path").to_pylist() == ["p"] * 3
    assert table.column("ordering").combine_chunks().cast(ordering.type) == ordering
    assert table.column("unconditional").to_pylist() == [False, True, False]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (b"\x0c\x04ab", pa.array([b"ab"])),
        (b"\x10\x02", pa.array([dt.date(1970, 1, 2)])),
        (b"\x12\x02\xff", pa.array([Decimal("-0.000000000000001")], pa.decimal128(30, 15))),
        (b"\x14\x0a", pa.array([5], pa.time64("us"))),
        (b"\x16\x0a", pa.array([5], UTC)),
    ],
)
def test_wrappers_that_only_others_write_are_read(entry: bytes, expected: pa.Array) -> None:
    body = b"\x02" + b"\x02\x02k" + b"\x02\x02p" + entry + b"\0"
    table = decode_delete_block(block_of(body), "f")
    assert table.column("ordering").combine_chunks() == expected
    assert table.column("unconditional").to_pylist() == [False]


def test_integer_zero_is_the_unconditional_delete() -> None:
    table = decode_delete_block(encoded(["a", "b"], pa.array([0, 5], pa.int32())), "f")
    assert table.column("ordering").to_pylist() == [None, 5]
    assert table.column("unconditional").to_pylist() == [True, False]


def test_a_null_value_is_an_unconditional_delete() -> None:
    table = decode_delete_block(block_of(b"\x02" + b"\x02\x02k" + b"\0" + b"\0" + b"\0"), "f")
    assert table.to_pylist() == [
        {"record_key": "k", "partition_path": None, "ordering": None, "unconditional": True}
    ]


def test_chunks_and_dictionaries_are_taken() -> None:
    keys = pa.chunked_array([["a"], [], ["b", "c"]])
    partitions = pa.array(["x", "y", "x"]).dictionary_encode()
    ordering = pa.chunked_array([pa.array([1, 2, 3, 4])]).slice(1)
    (block,) = read_blocks(encode_delete_block(keys, partitions, ordering, "1", "{}"), "f")
    table = decode_delete_block(block, "f")
    assert table.column("record_key").to_pylist() == ["a", "b", "c"]
    assert table.column("partition_path").to_pylist() == ["x", "y", "x"]
    assert table.column("ordering").to_pylist() == [2, 3, 4]


@pytest.mark.parametrize(
    "ordering",
    [
        pa.array(["1" + "0" * 15]).cast(pa.decimal128(20, 0)),
        pa.array(["0." + "0" * 15 + "1"]).cast(pa.decimal128(20, 16)),
        pa.array([[1]]),
        pa.array([{"a": {"b": 1}}]),
        pa.array([{"a": 1, "b": b"a"}]),
        pa.array([1], pa.time64("us")),
        pa.array([b"a"]),
        pa.array([1], pa.duration("us")),
    ],
    ids=lambda array: str(array.type),
)
def test_ordering_values_that_hudi_cannot_hold_are_refused(ordering: pa.Array) -> None:
    with pytest.raises(SchemaError, match="ordering value"):
        encoded(["k"], ordering)


@pytest.mark.parametrize("version", [1, 2, 4])
def test_versions_other_than_three_are_refused(version: int) -> None:
    with pytest.raises(UnsupportedTableError, match=f"version {version}"):
        decode_delete_block(block_of(b"\0", version), "f")


# Hudi 1.2.0's HoodieDeleteRecord.avsc, without its documentation.
def wrapper(name: str, kind: object) -> dict[str, object]:
    return {"type": "record", "name": name, "fields": [{"name": "value", "type": kind}]}


DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 15}
WRAPPERS = [
    wrapper("BooleanWrapper", "boolean"),
    wrapper("IntWrapper", "int"),
    wrapper("LongWrapper", "long"),
    wrapper("FloatWrapper", "float"),
    wrapper("DoubleWrapper", "double"),
    wrapper("BytesWrapper", "bytes"),
    wrapper("StringWrapper", "string"),
    wrapper("DateWrapper", "int"),
    wrapper("DecimalWrapper", DECIMAL),
    wrapper("TimeMicrosWrapper", {"type": "long", "logicalType": "time-micros"}),
    wrapper("TimestampMicrosWrapper", "long"),
]
ITEMS = ["null", *(w["name"] for w in WRAPPERS), wrapper("LocalDateWrapper", "int")]
WRAPPED_VALUES = {
    "name": "wrappedValues",
    "type": ["null", {"type": "array", "items": ITEMS}],
    "default": None,
}
ARRAY_WRAPPER = {"type": "record", "name": "ArrayWrapper", "fields": [WRAPPED_VALUES]}
DELETE_RECORD = {
    "type": "record",
    "name": "HoodieDeleteRecord",
    "fields": [
        {"name": "recordKey", "type": ["null", "string"], "default": None},
        {"name": "partitionPath", "type": ["null", "string"], "default": None},
        {"name": "orderingVal", "type": ["null", *WRAPPERS, ARRAY_WRAPPER], "default": None},
    ],
}
DELETES = fastavro.parse_schema(
    {
        "type": "record",
        "name": "HoodieDeleteRecordList",
        "fields": [{"name": "deleteRecordList", "type": {"type": "array", "items": DELETE_RECORD}}],
    }
)


def by_schema_of_hudi(block: LogBlock) -> list[Any]:
    """Ordering values as pairs (or lists of pairs) of wrapper and value, by fastavro."""
    body = io.BytesIO(bytes(block.content)[8:])
    read = fastavro.schemaless_reader(body, DELETES, None, return_record_name=True)
    assert not body.read()
    return [_named(record["orderingVal"]) for record in read["deleteRecordList"]]


def _named(found: Any) -> Any:
    if found is None:
        return None
    name, held = found
    values = held.get("wrappedValues")
    return (name, held["value"] if values is None else [_named(value) for value in values])


def block_by_schema_of_hudi(*ordering: Any) -> LogBlock:
    """Deletes of keys k0, k1, ... with ordering values written by fastavro."""
    body = io.BytesIO()
    records = [
        {"recordKey": f"k{i}", "partitionPath": "p", "orderingVal": value}
        for i, value in enumerate(ordering)
    ]
    fastavro.schemaless_writer(body, DELETES, {"deleteRecordList": records})
    return block_of(body.getvalue())


def several(*items: tuple[str, Any] | None) -> tuple[str, Any]:
    wrapped = [None if item is None else (item[0], {"value": item[1]}) for item in items]
    return ("ArrayWrapper", {"wrappedValues": wrapped})


def test_values_of_several_fields_are_wrapped_one_by_one() -> None:
    columns = {
        "l": pa.array([5, 0, None, None], pa.int64()),
        "i": pa.array([-3, 0, None, 7], pa.int32()),
        "s": pa.array(["é", "", None, None]),
        "d": pa.array([dt.date(1970, 1, 2), dt.date(1970, 1, 1), None, None]),
        "t": pa.array([5, 0, None, None], UTC),
        "m": pa.array([Decimal("-1.5"), Decimal(0), None, None], pa.decimal128(5, 2)),
        "f": pa.array([0.5, 0.0, None, None], pa.float32()),
        "b": pa.array([True, False, None, None]),
    }
    ordering = pa.StructArray.from_arrays(
        list(columns.values()), list(columns), mask=pa.array([False, False, True, False])
    )
    block = encoded(["a", "b", "c", "d"], ordering)
    names = ["Long", "Int", "String", "Int", "Long", "Decimal", "Float", "Boolean"]

    def wrapped(*values: Any) -> Any:
        pairs = zip(names, values, strict=True)
        items = [None if value is None else (f"{name}Wrapper", value) for name, value in pairs]
        return ("ArrayWrapper", items)

    assert by_schema_of_hudi(block) == [
        wrapped(5, -3, "é", 1, 5, Decimal("-1.5"), 0.5, True),
        wrapped(0, 0, "", 0, 0, Decimal(0), 0.0, False),
        ("IntWrapper", 0),
        wrapped(-(2**63), 7, None, -(2**31), -(2**63), None, None, None),
    ]
    table = decode_delete_block(block, "f")
    assert table.column("unconditional").to_pylist() == [False, False, True, False]
    decoded = table.column("ordering").combine_chunks()
    assert decoded.is_null().to_pylist() == [False, False, True, False]
    for field, column in zip(decoded.flatten(), columns.values(), strict=True):
        assert field.cast(column.type)[:3] == column[:3]


def test_chunks_of_several_fields_are_taken() -> None:
    ordering = pa.array([{"a": i, "b": str(i)} for i in range(4)])
    chunked = pa.chunked_array([ordering[:1], ordering[1:]])
    keys, partitions = pa.array(["b", "c", "d"]), pa.repeat("p", 3)
    (block,) = read_blocks(encode_delete_block(keys, partitions, chunked.slice(1), "1", "{}"), "f")
    assert block.content == encoded(["b", "c", "d"], ordering[1:]).content
    assert by_schema_of_hudi(block)[2] == (
        "ArrayWrapper",
        [("LongWrapper", 3), ("StringWrapper", "3")],
    )


def test_values_of_several_fields_that_hudi_wraps_are_read() -> None:
    block = block_by_schema_of_hudi(
        several(("LocalDateWrapper", 1), ("TimestampMicrosWrapper", 5), None),
        ("IntWrapper", {"value": 0}),
        # After release 1.2.0, Hudi writes the integer 0 for null.
        several(("IntWrapper", 0), None, ("StringWrapper", "x")),
        None,
        several(None, ("TimestampMicrosWrapper", 6), ("IntWrapper", 0)),
    )
    table = decode_delete_block(block, "f")
    assert table.column("record_key").to_pylist() == ["k0", "k1", "k2", "k3", "k4"]
    assert table.column("unconditional").to_pylist() == [False, True, False, True, False]
    dates, times, texts = (
        pc.struct_field(table.column("ordering"), [i]).to_pylist() for i in range(3)
    )
    assert dates == [dt.date(1970, 1, 2), None, None, None, None]
    assert [time and time.microsecond for time in times] == [5, None, None, None, 6]
    assert texts == [None, None, "x", None, None]


@pytest.mark.parametrize(
    "ordering",
    [
        (several(("LongWrapper", 1)), several(("LongWrapper", 1), ("LongWrapper", 1))),
        (several(("LongWrapper", 1)), ("LongWrapper", {"value": 1})),
        (several(("LongWrapper", 1)), several(("StringWrapper", "1"))),
        (several(),),
        (("ArrayWrapper", {"wrappedValues": None}),),
    ],
    ids=["number", "one-and-several", "types", "none", "null"],
)
def test_deletes_ordered_by_different_fields_are_corrupt(ordering: tuple[Any, ...]) -> None:
    with pytest.raises(CorruptFileError, match="ordering values"):
        decode_delete_block(block_by_schema_of_hudi(*ordering), "f")


def test_ordering_values_of_two_types_are_corrupt() -> None:
    body = b"\x04" + b"\x02\x02k\x02\x02p\x06\x02" + b"\x02\x02l\x02\x02p\x0e\x02x" + b"\0"
    with pytest.raises(CorruptFileError, match="several types"):
        decode_delete_block(block_of(body), "f")


def test_a_block_cut_anywhere_is_corrupt() -> None:
    content = bytes(encoded(["a", "b"], pa.array(["x", "y"])).content)
    for length in range(len(content)):
        with pytest.raises(CorruptFileError, match="dir/f"):
            decode_delete_block(LogBlock(BlockType.DELETE, {}, content[:length]), "dir/f")
    for length in range(8, len(content)):
        with pytest.raises(CorruptFileError, match="dir/f"):
            decode_delete_block(block_of(content[8:length]), "dir/f")


@pytest.mark.parametrize(
    "block",
    [
        block_of(b"\0", length=-1),
        block_of(b"\0", length=2**31 - 1),
        block_of(b"\0\0"),
        block_of(bytes.fromhex("feffffffffffffffff01") + b"\0\0\0"),
        block_of(b"\x02\x02" + bytes.fromhex("feffffffffffffffff01") + b"k"),
        block_of(b"\x02\x02\x02\xff\0\0\0"),
        block_of(b"\x02\0\0\x7e\0"),
        block_of(b"\x02\0\0\x01\0"),
        block_of(b"\x02\0\0\x04" + bytes.fromhex("feffffffffffffffff01") + b"\0"),
        block_of(b"\x02\0\0\x12\x22" + b"\x01" * 17 + b"\0"),
    ],
    ids=range(10),
)
def test_hostile_content_is_corrupt(block: LogBlock) -> None:
    with pytest.raises(CorruptFileError, match="f:"):
        decode_delete_block(block, "f")


def test_delete_blocks_of_hudi_decode_and_encode_to_the_same_bytes(
    golden: Callable[[str], list[Path]],
) -> None:
    deleted: list[tuple[str, str]] = []
    for path in golden(""):
        if ".log." not in path.name:
            continue
        for block in read_blocks(path.read_bytes(), path.name):
            if block.block_type is not BlockType.DELETE:
                continue
            table = decode_delete_block(block, path.name)
            assert all(table.column("unconditional").to_pylist())
            keys, partitions = table.column("record_key"), table.column("partition_path")
            (again,) = read_blocks(encode_delete_block(keys, partitions, None, "1", ""), "f")
            assert again.content == block.content
            deleted += zip(keys.to_pylist(), partitions.to_pylist(), strict=True)
    assert {("k06", "city=nyc"), ("k05", "")} <= set(deleted)
