from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hoodie_ds.errors import SchemaError
from hoodie_ds.formats.schema_conversion import conform

UTC = pa.timestamp("us", tz="UTC")


def column(values: list[Any], source: pa.DataType, target: pa.DataType) -> Any:
    table = conform(pa.table({"c": pa.array(values, source)}), pa.schema([("c", target)]))
    table.validate(full=True)
    assert table.schema == pa.schema([("c", target)])
    return table.column("c").to_pylist()


def test_a_table_that_fits_is_handed_back_untouched() -> None:
    table = pa.table({"a": [1], "b": ["x"]})
    assert conform(table, table.schema) is table


def test_columns_are_ordered_added_as_null_and_left_out_by_name() -> None:
    table = pa.table({"b": [1, 2], "gone": [0, 0], "a": ["x", None]})
    schema = pa.schema([("a", pa.string()), ("new", pa.list_(pa.int32())), ("b", pa.int64())])
    expected = [{"a": "x", "new": None, "b": 1}, {"a": None, "new": None, "b": 2}]
    assert conform(table, schema).to_pylist() == expected


@pytest.mark.parametrize(
    ("values", "source", "target", "expected"),
    [
        ([1, None], pa.int32(), pa.int64(), [1, None]),
        ([2**40], pa.int64(), pa.float64(), [2.0**40]),
        ([2**60 + 1], pa.int64(), pa.float64(), [2.0**60]),
        ([1.5], pa.float32(), pa.float64(), [1.5]),
        ([0.1, None, -3.3], pa.float32(), pa.float64(), [0.1, None, -3.3]),
        ([[0.1], None], pa.list_(pa.float32()), pa.list_(pa.float64()), [[0.1], None]),
        (
            [[("k", 0.1)]],
            pa.map_(pa.string(), pa.float32()),
            pa.map_(pa.string(), pa.float64()),
            [[("k", 0.1)]],
        ),
        ([1.5, 1e10, None], pa.float64(), pa.string(), ["1.5", "1.0E10", None]),
        ([0.1, 1e-4], pa.float32(), pa.string(), ["0.1", "1.0E-4"]),
        ([0], pa.date32(), pa.string(), ["1970-01-01"]),
        ([7], pa.int64(), pa.int32(), [7]),
        ([-7], pa.int32(), pa.string(), ["-7"]),
        ([7, None], pa.int32(), pa.decimal128(5, 2), [Decimal("7.00"), None]),
        ([Decimal("1.50")], pa.decimal128(5, 2), pa.decimal128(9, 3), [Decimal("1.500")]),
        ([0.1, None], pa.float32(), pa.decimal128(20, 4), [Decimal("0.1000"), None]),
        ([1e10 + 0.125], pa.float64(), pa.decimal128(20, 4), [Decimal("10000000000.1250")]),
        (["1.25", None], pa.string(), pa.decimal128(20, 4), [Decimal("1.2500"), None]),
        (["2020-01-02", None], pa.string(), pa.date32(), [dt.date(2020, 1, 2), None]),
        (["é"], pa.string(), pa.binary(), ["é".encode()]),
        (["é".encode()], pa.binary(), pa.string(), ["é"]),
        ([b"ab"], pa.binary(2), pa.binary(), [b"ab"]),
        ([None], pa.null(), pa.list_(pa.int32()), [None]),
        (["x", None], pa.large_string(), pa.string(), ["x", None]),
        (["x", None], pa.string_view(), pa.string(), ["x", None]),
        ([[1], None, []], pa.large_list(pa.int8()), pa.list_(pa.int32()), [[1], None, []]),
        ([[1, 2], None], pa.list_(pa.int8(), 2), pa.list_(pa.int64()), [[1, 2], None]),
        ([[1]], pa.list_view(pa.int64()), pa.list_(pa.int64()), [[1]]),
        ([[1], None, [2]], pa.list_view(pa.int8()), pa.list_(pa.int64()), [[1], None, [2]]),
        (
            [[("k", 1), ("l", None)], None, []],
            pa.map_(pa.string(), pa.int8()),
            pa.map_(pa.string(), pa.int64()),
            [[("k", 1), ("l", None)], None, []],
        ),
    ],
)
def test_values_take_the_tables_type(
    values: list[Any], source: pa.DataType, target: pa.DataType, expected: Any
) -> None:
    assert column(values, source, target) == expected


def test_decimals_become_the_strings_of_javas_bigdecimal() -> None:
    """As Python's, they follow the General Decimal Arithmetic."""
    digits = [Decimal(text).scaleb(-10) for text in ("0", "-1", "12", "12345", "98765432109")]
    strings = ["0E-10", "-1E-10", "1.2E-9", "0.0000012345", "9.8765432109", None]
    assert column([*digits, None], pa.decimal128(12, 10), pa.string()) == strings
    assert column([Decimal("-1.50")], pa.decimal128(5, 2), pa.string()) == ["-1.50"]


@pytest.mark.parametrize("kind", [pa.string(), pa.string_view(), pa.binary_view()])
@pytest.mark.parametrize("start", [0, 1])
def test_dictionaries_are_decoded_with_their_nulls(kind: pa.DataType, start: int) -> None:
    values = pa.array(["x", None, "y"], pa.string()).cast(kind)
    array = pa.DictionaryArray.from_arrays(pa.array([0, None, 2, 1, 0], pa.int8()), values)
    table = conform(pa.table({"c": array.slice(start)}), pa.schema([("c", pa.string())]))
    assert table.column("c").to_pylist() == ["x", None, "y", None, "x"][start:]


@pytest.mark.parametrize(
    ("value", "source", "micros"),
    [
        (3, pa.timestamp("ms"), 3_000),
        (3, pa.timestamp("s", tz="Europe/Paris"), 3_000_000),
        (3_000, pa.timestamp("ns", tz="UTC"), 3),
        (-(2**63) + 1, pa.timestamp("us"), -(2**63) + 1),
    ],
)
def test_timestamps_keep_their_instant(value: Any, source: pa.DataType, micros: int) -> None:
    table = conform(pa.table({"c": pa.array([value], source)}), pa.schema([("c", UTC)]))
    assert table.column("c").cast(pa.int64()).to_pylist() == [micros]


def test_struct_fields_are_matched_by_name_at_every_depth() -> None:
    source = pa.list_(pa.struct([("m", pa.map_(pa.string(), pa.struct([("old", pa.int32())])))]))
    values = [[{"m": [("k", {"old": 5}), ("n", None)]}, None, {"m": None}], None, []]
    entry = pa.struct([("new", pa.string()), ("old", pa.int64())])
    target = pa.list_(pa.struct([("added", pa.bool_()), ("m", pa.map_(pa.string(), entry))]))
    assert column(values, source, target) == [
        [
            {"added": None, "m": [("k", {"new": None, "old": 5}), ("n", None)]},
            None,
            {"added": None, "m": None},
        ],
        None,
        [],
    ]


def test_a_slice_of_nested_columns_is_converted_as_a_slice() -> None:
    kinds = {"l": pa.list_(pa.int32()), "m": pa.map_(pa.string(), pa.int32())}
    rows = [{"l": [i, None], "m": [(str(i), i)]} for i in range(9)]
    rows[4] = {"l": None, "m": None}
    table = pa.Table.from_pylist(rows, pa.schema(kinds)).slice(3, 4)
    wide = pa.schema({"l": pa.list_(pa.int64()), "m": pa.map_(pa.string(), pa.int64())})
    converted = conform(table, wide)
    converted.validate(full=True)
    assert converted.to_pylist() == rows[3:7]


@pytest.mark.parametrize(
    ("value", "source", "target"),
    [
        ("5", pa.string(), pa.int32()),
        (1.5, pa.float64(), pa.int64()),
        (1.5, pa.float64(), pa.float32()),
        (1.5, pa.float16(), pa.string()),
        (1, pa.timestamp("us"), pa.string()),
        (2**40, pa.int64(), pa.int32()),
        (True, pa.bool_(), pa.int32()),
        (1, pa.int32(), pa.bool_()),
        (Decimal("1.55"), pa.decimal128(5, 2), pa.decimal128(5, 1)),
        ("1.55", pa.string(), pa.decimal128(5, 1)),
        ("one", pa.string(), pa.decimal128(5, 1)),
        ("1 May", pa.string(), pa.date32()),
        (0.25, pa.float64(), pa.decimal128(5, 1)),
        (float("nan"), pa.float64(), pa.decimal128(5, 1)),
        (Decimal("155.5"), pa.decimal128(4, 1), pa.decimal128(3, 1)),
        (1234, pa.int32(), pa.decimal128(5, 2)),
        (b"\xff", pa.binary(), pa.string()),
        (1, pa.timestamp("ns"), UTC),
        (2**62, pa.timestamp("s"), UTC),
        ([1], pa.list_(pa.int32()), pa.int32()),
        (1, pa.int32(), pa.list_(pa.int32())),
        ([("a", 1)], pa.map_(pa.string(), pa.int32()), pa.struct([("a", pa.int32())])),
        (1, pa.timestamp("us"), pa.date32()),
    ],
)
def test_lossy_conversions_are_refused_by_path(
    value: Any, source: pa.DataType, target: pa.DataType
) -> None:
    table = pa.table({"c": pa.array([{"f": [value]}], pa.struct([("f", pa.list_(source))]))})
    wanted = pa.schema([("c", pa.struct([("f", pa.list_(target))]))])
    with pytest.raises(SchemaError, match=r"'c\.f\.element'"):
        conform(table, wanted)


def test_two_columns_of_one_name_are_refused() -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"])
    with pytest.raises(SchemaError, match="'a' occurs twice"):
        conform(table, pa.schema([("a", pa.int64())]))
