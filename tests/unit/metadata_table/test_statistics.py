"""Which statistics of a metadata table are sure bounds of a column of some type."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hoodie_ds.filters.bounds import Bounds
from hoodie_ds.metadata_table.statistics import recorded_bounds

DATE = {"typeOrdinal": 12, "additionalInfo": None}
LONG = {"typeOrdinal": 4, "additionalInfo": None}
DECIMAL = {"typeOrdinal": 10, "additionalInfo": "10,2"}
MICROS = {"typeOrdinal": 16, "additionalInfo": None}


def statistics(low: Any, high: Any, kind: Any = None, **more: Any) -> dict[str, Any]:
    ends = {"minValue": low, "maxValue": high, "valueType": kind}
    return {**ends, "valueCount": 3, "nullCount": 0, "isDeleted": False, **more}


@pytest.mark.parametrize(
    ("low", "high", "stored", "kind", "expected"),
    [
        ({"1": False}, {"1": True}, None, pa.bool_(), (False, True)),
        ({"2": -1}, {"2": 5}, None, pa.int32(), (-1, 5)),
        ({"2": -1}, {"2": 5}, None, pa.int64(), (-1, 5)),
        ({"3": -1}, {"3": 5}, LONG, pa.int64(), (-1, 5)),
        ({"5": 1.5}, {"5": 2.5}, None, pa.float64(), (1.5, 2.5)),
        ({"5": 1.5}, {"5": math.nan}, None, pa.float64(), (1.5, math.inf)),
        ({"4": -2.5}, {"4": -1.5}, None, pa.float32(), (-2.5, -1.5)),
        ({"7": "a"}, {"7": "b"}, None, pa.string(), ("a", "b")),
        ({"7": "\ufdd0"}, {"7": "\U0001f600"}, None, pa.string(), ("\ufdd0", "\U0001f600")),
        ({"8": 0}, {"8": 9}, None, pa.date32(), (0, 9)),
        ({"2": 0}, {"2": 9}, DATE, pa.date32(), (0, 9)),
        ({"6": b"\xff"}, {"6": b"\x01\x00"}, DECIMAL, pa.decimal128(10, 2),
         (Decimal("-0.01"), Decimal("2.56"))),
        ({"9": b"\x03\x8d\x7e\xa4\xc6\x80\x00"}, {"9": b"\x03\x8d\x7e\xa4\xc6\x80\x00"}, None,
         pa.decimal128(10, 2), (Decimal(1), Decimal(1))),
    ],
)  # fmt: skip
def test_ends_are_those_of_the_values(
    low: Any, high: Any, stored: Any, kind: pa.DataType, expected: tuple[Any, Any]
) -> None:
    assert recorded_bounds(statistics(low, high, stored), kind) == Bounds(*expected, nulls=False)


@pytest.mark.parametrize(
    ("low", "high", "stored", "kind"),
    [
        ({"3": 1}, {"3": 5}, None, pa.timestamp("us", "UTC")),
        ({"3": 1}, {"3": 5}, MICROS, pa.timestamp("us", "UTC")),
        ({"8": -200_000}, {"8": 9}, None, pa.date32()),
        ({"2": 1}, {"2": 5}, None, pa.date32()),
        ({"2": 1}, {"2": 5}, None, pa.string()),
        ({"4": 1.5}, {"4": 2.5}, None, pa.float64()),
        ({"6": b"a"}, {"6": b"b"}, None, pa.binary()),
        (None, None, None, pa.float64()),
        ({"5": 0.0}, {"5": 0.0}, None, pa.float64()),
        ({"5": -1.5}, {"5": 2.5}, None, pa.float64()),
        ({"4": math.nan}, {"4": math.nan}, None, pa.float32()),
        ({"7": "a"}, {"7": "b\ufdd0"}, None, pa.string()),
        ({"7": "a\U0001f600"}, {"7": "b"}, None, pa.string()),
    ],
)
def test_where_a_file_may_hold_other_values_nothing_is_sure(
    low: Any, high: Any, stored: Any, kind: pa.DataType
) -> None:
    assert recorded_bounds(statistics(low, high, stored), kind) is None


def test_counts_say_whether_there_are_nulls_and_values() -> None:
    ends = {"2": 1}, {"2": 5}
    assert recorded_bounds(statistics(*ends, nullCount=1), pa.int32()) == Bounds(1, 5, nulls=True)
    empty = recorded_bounds(statistics(None, None, nullCount=3), pa.int32())
    assert empty == Bounds(nulls=True, values=False)
    for kind in (pa.string(), pa.large_string(), pa.binary()):  # all may be too long for a footer
        assert recorded_bounds(statistics(None, None, nullCount=3), kind) is None
        assert recorded_bounds(statistics({"7": "a"}, {"7": "b"}, nullCount=1), kind) is None
    for unknown in ({"nullCount": None}, {"valueCount": None}, {"nullCount": -1}, {"nullCount": 4}):
        assert recorded_bounds(statistics(*ends, **unknown), pa.int32()) is None
    assert recorded_bounds(statistics(*ends, isDeleted=True), pa.int32()) is None
