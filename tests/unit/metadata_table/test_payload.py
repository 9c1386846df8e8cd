"""What an older and a newer record of a key make, by the rules of Hudi's payload."""

from __future__ import annotations

from typing import Any

import pytest

from hoodie_ds.metadata_table.payload import (
    BLOOM_FILTER,
    FILES,
    SECONDARY_INDEX,
    STATS,
    Record,
    RecordType,
    combined,
    without_deletes,
)

Size = int | None
"""Bytes of a file; None of a deleted one."""


def listed(**sizes: Size) -> Record:
    entries = {n: {"size": size or 0, "isDeleted": size is None} for n, size in sizes.items()}
    return {"type": RecordType.FILE_LIST, FILES: entries}


def statistics(low: Any, high: Any, *, count: int = 1, **more: Any) -> Record:
    wrapped = {"minValue": low, "maxValue": high, "valueCount": count, "nullCount": 0}
    sizes = {"totalSize": 10, "totalUncompressedSize": 20}
    flags = {"isDeleted": False, "isTightBound": False}
    return {"type": RecordType.COLUMN_STATS, STATS: {**wrapped, **sizes, **flags, **more}}


@pytest.mark.parametrize(
    ("older", "newer", "expected"),
    [
        (listed(a=1), listed(b=2), listed(a=1, b=2)),
        (listed(a=1, b=2), listed(a=None), listed(b=2)),
        (listed(a=9), listed(a=5), listed(a=9)),
        (listed(a=5), listed(a=9), listed(a=9)),
        (listed(), listed(a=None), listed(a=None)),
        (listed(a=None), listed(a=4), listed(a=4)),
    ],
)
def test_files_are_added_deleted_and_never_shrink(
    older: Record, newer: Record, expected: Record
) -> None:
    assert combined(older, newer) == expected


@pytest.mark.parametrize(
    ("older", "newer", "expected"),
    [
        (({"3": 5}, {"3": 7}), ({"3": 6}, {"3": 9}), ({"3": 5}, {"3": 9})),
        (({"9": b"\xff"}, {"9": b"\x01"}), ({"9": b"\x02"}, {"9": b"\x00\x80"}),
         ({"9": b"\xff"}, {"9": b"\x00\x80"})),
        (({"7": "\uffff"}, {"7": "a"}), ({"7": "\U00010000"}, {"7": "\U00010000"}),
         ({"7": "\U00010000"}, {"7": "\U00010000"})),
        ((None, None), ({"5": 1.5}, {"5": 2.5}), ({"5": 1.5}, {"5": 2.5})),
    ],
)  # fmt: skip
def test_statistics_of_one_file_are_merged_in_the_order_of_java(
    older: tuple[Any, Any], newer: tuple[Any, Any], expected: tuple[Any, Any]
) -> None:
    found = combined(statistics(*older), statistics(*newer, count=2))[STATS]
    assert (found["minValue"], found["maxValue"]) == expected
    assert (found["valueCount"], found["totalSize"]) == (3, 20)


@pytest.mark.parametrize("whole", [{"isTightBound": True}, {"isDeleted": True}])
def test_statistics_of_a_whole_file_take_the_place_of_older_ones(whole: dict[str, bool]) -> None:
    newer = statistics({"3": 6}, {"3": 6}, **whole)
    assert combined(statistics({"3": 5}, {"3": 9}), newer) == newer


def test_of_other_records_the_newest_counts() -> None:
    older, newer = ({"type": RecordType.RECORD_INDEX, "at": at} for at in (1, 2))
    assert combined(older, newer) == newer
    assert combined(None, older) == older


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (listed(a=1, b=None), listed(a=1)),
        (listed(a=None), listed()),
        (statistics({"3": 1}, {"3": 1}, isDeleted=True), None),
        ({"type": RecordType.BLOOM_FILTER, BLOOM_FILTER: {"isDeleted": True}}, None),
        ({"type": RecordType.SECONDARY_INDEX, SECONDARY_INDEX: {"isDeleted": True}}, None),
    ],
)
def test_deletes_are_left_out_where_nothing_is_older(
    record: Record, expected: Record | None
) -> None:
    assert without_deletes(record) == expected


def test_other_records_stay_where_nothing_is_older() -> None:
    for record in (statistics({"3": 1}, {"3": 1}), {"type": RecordType.RECORD_INDEX, "at": 1}):
        assert without_deletes(record) == record
