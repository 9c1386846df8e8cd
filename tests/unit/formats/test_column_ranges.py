"""The ranges of columns hold every value, also of rows that come in parts."""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_ds.columns.java_order import java_order
from hoodie_ds.formats.column_ranges import ColumnRange, ColumnRanges

LONG = 512


def range_of(*parts: pa.Array, column: str = "a") -> ColumnRange:
    ranges = ColumnRanges([column])
    for part in parts:
        ranges.add(pa.table({column.partition(".")[0]: part}))
    return ranges.found[column]


def test_nested_columns_have_none() -> None:
    ranges = ColumnRanges(["v"])
    ranges.add(pa.table({"v": pa.array([[1.0, 2.0]], pa.list_(pa.float32(), 2))}))
    assert not ranges.found


@pytest.mark.parametrize(
    ("values", "kind", "low", "high"),
    [
        ([3, None, -1], pa.int32(), -1, 3),
        ([True, False], pa.bool_(), False, True),
        ([date(1970, 1, 3), date(1969, 12, 31)], pa.date32(), -1, 2),
        ([5, 7], pa.timestamp("us", "UTC"), 5, 7),
        ([Decimal("-1.50"), Decimal("0.07")], pa.decimal128(10, 2), -150, 7),
        ([b"b", b"a"], pa.binary(), b"a", b"b"),
        (["b", "a", "a"], pa.dictionary(pa.int32(), pa.string()), "a", "b"),
        ([1.5, -0.5], pa.float64(), -0.5, 1.5),
    ],
)
def test_ends_are_numbers_of_the_type(values: Any, kind: pa.DataType, low: Any, high: Any) -> None:
    whole = range_of(pa.array(values, kind))
    assert (whole.low, whole.high, whole.rows) == (low, high, len(values))
    assert whole.nulls == values.count(None)
    parts = [pa.array([value], kind) for value in values]
    assert range_of(*parts, pa.array([], kind)) == whole


def test_a_dictionary_counts_only_with_values_that_rows_have() -> None:
    encoded = pa.array(["a", "z", "b"]).dictionary_encode()
    found = range_of(encoded.filter(pa.array([True, False, True])))
    assert (found.low, found.high) == ("a", "b")


def test_nan_is_the_highest_number() -> None:
    for parts in ([[1.0, math.nan]], [[1.0], [math.nan]], [[math.nan], [1.0]]):
        found = range_of(*(pa.array(part) for part in parts))
        assert found.low == 1.0
        assert math.isnan(found.high)
    assert math.isnan(range_of(pa.array([math.nan])).low)


def test_without_values_there_are_no_ends_and_without_rows_no_type() -> None:
    found = range_of(pa.array([None, None], pa.int64()))
    assert (found.kind, found.low, found.high, found.nulls) == (pa.int64(), None, None, 2)
    assert range_of(pa.array([], pa.int64())) == ColumnRange(pa.null())


def test_a_field_of_a_null_struct_is_null() -> None:
    struct = pa.array([{"x": 1}, None, {"x": 2}], pa.struct([("x", pa.int32())]))
    found = range_of(struct, column="a.x")
    assert (found.low, found.high, found.rows, found.nulls) == (1, 2, 3, 1)


def test_a_column_that_the_rows_lack_is_left_out() -> None:
    ranges = ColumnRanges(["a", "b", "a.x"])
    ranges.add(pa.table({"a": [1]}))
    assert list(ranges.found) == ["a"]


EDGES = st.sampled_from("a\ud7ff\ue000\uffff\U0010ffff")


@given(
    st.text(EDGES, min_size=LONG, max_size=LONG + 9) | st.binary(min_size=LONG, max_size=LONG + 9)
)
def test_ends_of_a_long_value_are_shorter_and_still_hold_it(value: Any) -> None:
    found = range_of(pa.array([value]))
    assert found.low <= value <= found.high
    assert len(found.low) == LONG
    if isinstance(value, str):
        assert java_order(found.low) <= java_order(value) <= java_order(found.high)


@pytest.mark.parametrize(
    ("value", "high"),
    [
        ("a" * LONG, "a" * LONG),
        ("a" * (LONG + 1), "a" * (LONG - 1) + "b"),
        ("a" * (LONG - 1) + "\U0010ffff" * 2, "a" * (LONG - 2) + "b"),
        ("\U0010ffff" * (LONG + 1), "\U0010ffff" * (LONG + 1)),
        (b"a" * (LONG - 1) + b"\xff" * 2, b"a" * (LONG - 2) + b"b"),
    ],
)
def test_a_long_highest_value_becomes_the_next_shorter_one(value: Any, high: Any) -> None:
    assert range_of(pa.array([value])).high == high
