"""Records of columns: each type in its wrapper, and what is said of files that are gone."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from hoodie_ds.formats.column_ranges import ColumnRange
from hoodie_ds.metadata_table.column_records import (
    deleted_file_statistics,
    file_statistics,
    has_wrapper,
    partition_statistics,
    recorded_range,
    widest,
)
from hoodie_ds.metadata_table.payload import STATS, combined, encode_record


def stored(kind: pa.DataType, end: Any, version: str = "V2") -> dict[str, Any]:
    known = ColumnRange(kind, end, end, rows=1)
    (record,) = file_statistics("p", "f", {"c": known}, version).values()
    encode_record(record)
    statistics: dict[str, Any] = record[STATS]
    return statistics


@pytest.mark.parametrize(
    ("kind", "end", "wrapped", "ordinal", "first"),
    [
        (pa.bool_(), True, {"1": True}, 2, None),
        (pa.int32(), 5, {"2": 5}, 3, None),
        (pa.int64(), 5, {"3": 5}, 4, None),
        (pa.float32(), 1.5, {"4": 1.5}, 5, None),
        (pa.float64(), 1.5, {"5": 1.5}, 6, None),
        (pa.string(), "a", {"7": "a"}, 7, None),
        (pa.binary(), b"a", {"6": b"a"}, 8, None),
        (pa.binary(1), b"a", {"6": b"a"}, 9, None),
        (pa.decimal128(10, 2), -129, {"6": b"\xff\x7f"}, 10, None),
        (pa.date32(), 7, {"2": 7}, 12, {"8": 7}),
        (pa.time32("ms"), 7, {"2": 7}, 13, None),
        (pa.time64("us"), 7, {"3": 7}, 14, None),
        (pa.timestamp("ms", "UTC"), 7, {"3": 7}, 15, None),
        (pa.timestamp("us", "UTC"), 7, {"3": 7}, 16, None),
        (pa.timestamp("ms"), 7, {"3": 7}, 18, None),
        (pa.timestamp("us"), 7, {"3": 7}, 19, None),
    ],
)
def test_each_type_has_its_wrapper(
    kind: pa.DataType, end: Any, wrapped: Any, ordinal: int, first: Any
) -> None:
    of_second = stored(kind, end)
    assert of_second["minValue"] == of_second["maxValue"] == wrapped
    assert of_second["valueType"]["typeOrdinal"] == ordinal
    of_first = stored(kind, end, "V1")
    assert of_first["valueType"] is None
    if not pa.types.is_decimal(kind):
        assert of_first["minValue"] == (first or wrapped)


def test_a_decimal_of_the_first_version_has_fifteen_digits_after_the_point() -> None:
    wrapped = stored(pa.decimal128(10, 2), -129, "V1")["minValue"]["9"]
    assert int.from_bytes(wrapped, "big", signed=True) == -1_290_000_000_000_000


@pytest.mark.parametrize(
    ("kind", "first", "second"),
    [
        (pa.decimal128(30, 15), True, True),
        (pa.decimal128(20, 2), False, True),
        (pa.decimal128(20, 16), False, True),
        (pa.string(), True, True),
        (pa.timestamp("us"), True, True),
        (pa.list_(pa.int32()), False, False),
        (pa.struct([("x", pa.int32())]), False, False),
    ],
)
def test_what_has_no_wrapper_is_not_recorded(kind: pa.DataType, first: bool, second: bool) -> None:
    assert (has_wrapper(kind, "V1"), has_wrapper(kind, "V2")) == (first, second)


@pytest.mark.parametrize("version", ["V1", "V2"])
@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [
        (pa.int32(), -5, 5),
        (pa.float64(), -1.5, 2.5),
        (pa.string(), "a", "b"),
        (pa.decimal128(10, 2), -129, 300),
        (pa.date32(), -7, 7),
    ],
)
def test_the_range_of_a_record_is_what_was_recorded(
    kind: pa.DataType, low: Any, high: Any, version: str
) -> None:
    for known in (ColumnRange(kind, low, high, 3, 1), ColumnRange(kind, rows=2, nulls=2)):
        (record,) = file_statistics("p", "f", {"c": known}, version).values()
        assert recorded_range(record[STATS], kind, version) == known


@pytest.mark.parametrize("version", ["V1", "V2"])
def test_the_range_of_a_record_of_another_type_has_all_values(version: str) -> None:
    older = ColumnRange(pa.int32(), 1, 2, 3, 1)
    (record,) = file_statistics("p", "f", {"c": older}, version).values()
    newer = ColumnRange(pa.int64(), rows=3, nulls=1)
    assert recorded_range(record[STATS], pa.int64(), version) == widest(newer)


@pytest.mark.parametrize(
    "unknown",
    [{"isDeleted": True}, {"valueCount": None}, {"nullCount": 2}, {"maxValue": None}],
)
def test_a_record_may_say_too_little_for_a_range(unknown: dict[str, Any]) -> None:
    assert recorded_range({**stored(pa.int32(), 5), **unknown}, pa.int32(), "V2") is None


def test_files_of_a_partition_widen_what_older_records_say() -> None:
    old, new = ColumnRange(pa.int32(), 5, 9, 2, 1, 3, 4), ColumnRange(pa.int32(), 7, 11, 1)
    before = partition_statistics("p", [{"c": old}], {}, "V2")
    ((key, after),) = partition_statistics("p", [{"c": new}, {"c": new}], before, "V2").items()
    for both in (combined(before[key], after), combined(after, before[key])):
        statistics = both[STATS]
        assert (statistics["minValue"], statistics["maxValue"]) == ({"2": 5}, {"2": 11})
        assert (statistics["valueCount"], statistics["nullCount"]) == (4, 1)
        assert (statistics["fileName"], statistics["isTightBound"]) == ("p", False)


def test_a_file_without_rows_says_nothing_of_its_partition() -> None:
    assert partition_statistics("p", [{"c": ColumnRange(pa.null())}], {}, "V2") == {}


def test_a_partition_that_was_emptied_begins_anew() -> None:
    known = {"c": ColumnRange(pa.int32(), 1, 2, 1)}
    fresh = partition_statistics("p", [known], {}, "V2")
    ((key, record),) = fresh.items()
    emptied = {key: {**record, STATS: {**record[STATS], "isDeleted": True, "minValue": None}}}
    assert partition_statistics("p", [known], emptied, "V2") == fresh


@pytest.mark.parametrize(
    ("older", "newer", "value", "low", "high"),
    [
        (pa.int32(), pa.int64(), 1, -(1 << 63), (1 << 63) - 1),
        (pa.int32(), pa.float64(), 1.0, -math.inf, math.nan),
        (pa.int64(), pa.decimal128(5, 1), 1, -99_999, 99_999),
        (pa.int32(), pa.string(), "a", "", chr(0x10FFFF) * 64),
        (pa.int32(), pa.binary(), b"a", b"", b"\xff" * 64),
        (pa.int32(), pa.bool_(), True, False, True),
        (pa.int64(), pa.date32(), 1, -(1 << 31), (1 << 31) - 1),
    ],
    ids=lambda value: str(value)[:9].encode("ascii", "replace").decode(),
)
@pytest.mark.parametrize("version", ["V1", "V2"])
def test_a_column_of_another_type_may_have_any_value(
    older: pa.DataType, newer: pa.DataType, value: Any, low: Any, high: Any, version: str
) -> None:
    before = partition_statistics("p", [{"c": ColumnRange(older, 1, 1, 1)}], {}, version)
    added = [{"c": ColumnRange(newer, value, value, 1)}]
    ((key, record),) = partition_statistics("p", added, before, version).items()
    encode_record(record)
    assert combined(before[key], record) == record
    assert record[STATS]["valueCount"] == 2
    widest = stored(newer, low, version)["minValue"], stored(newer, high, version)["maxValue"]
    assert repr((record[STATS]["minValue"], record[STATS]["maxValue"])) == repr(widest)


def test_a_decimal_of_another_scale_may_have_any_value() -> None:
    kinds = pa.decimal128(4, 2), pa.decimal128(5, 1)
    first, second = ([{"c": ColumnRange(kind, 1, 1, 1)}] for kind in kinds)
    before = partition_statistics("p", first, {}, "V2")
    (record,) = partition_statistics("p", second, before, "V2").values()
    assert record[STATS]["maxValue"] == stored(kinds[1], 99_999)["maxValue"]


def test_negative_decimals_are_less_than_positive_ones() -> None:
    ranges = [{"c": ColumnRange(pa.decimal128(9, 0), end, end, 1)} for end in (300, -1, 5)]
    (record,) = partition_statistics("p", ranges, {}, "V2").values()
    assert (record[STATS]["minValue"], record[STATS]["maxValue"]) == (
        {"6": b"\xff"},
        {"6": b"\x01\x2c"},
    )


def test_nan_is_the_highest_number_of_a_partition() -> None:
    ranges = [{"c": ColumnRange(pa.float64(), 1.0, end, 1)} for end in (math.nan, 9.0)]
    (record,) = partition_statistics("p", ranges, {}, "V2").values()
    assert math.isnan(record[STATS]["maxValue"]["5"])


@pytest.mark.parametrize("version", ["V1", "V2"])
def test_a_file_that_is_gone_takes_the_place_of_what_was_there(version: str) -> None:
    there = file_statistics("p", "f", {"c": ColumnRange(pa.int32(), 1, 2, 1)}, version)
    gone = deleted_file_statistics("p", "f", ["c"], version)
    assert there.keys() == gone.keys()
    for key, record in gone.items():
        assert combined(there[key], record) == record
        assert record[STATS]["isDeleted"]
        encode_record(record)
