"""Rows that won in one table and lost in another, or in one batch and not in several."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from tests.golden.histories import BLOCKS, TABLES
from tests.partial_updates import without_columns
from tests.tables import BUCKETS, KEY, ORDERING, TRIPS, TYPE, found, trips

Told = tuple[str, Any]
"""An upsert (u) or a delete (d), and its ordering value."""


def left(folder: Path, table: str, kind: pa.DataType, *batches: list[Told]) -> list[int]:
    """Numbers of the records of one key that are left after some batches."""
    options = {"hoodie.table.name": "t", KEY: "id", ORDERING: "ts", BUCKETS: "1", **TABLES[table]}
    ours = HoodieTable(str(folder / table), options)
    number = 0
    for batch in batches:
        columns = {
            "id": pa.array(["k"] * len(batch)),
            "ts": pa.array([order for _, order in batch], kind),
            "v": pa.array(range(number, number + len(batch)), pa.int64()),
            "_hoodie_is_deleted": pa.array([told == "d" for told, _ in batch]),
        }
        ours.upsert(pa.table(columns))
        number += len(batch)
    found: list[int] = ours.read(columns=["v"])["v"].to_pylist()
    return found


NULLS: dict[str, tuple[pa.DataType, list[Any], int]] = {
    "a null between two doubles split them": (pa.float64(), [1.0, None, -3.0], 0),
    "a null between two texts split them": (pa.string(), ["m", None, "a"], 0),
    "a null took the place of a double": (pa.float64(), [5.0, None], 0),
    "a null took the place of a number below zero": (pa.int64(), [-5, None], 0),
    "a time before 1970 lost against a null": (
        pa.timestamp("us", "UTC"),
        [None, dt.datetime(1960, 1, 1, tzinfo=dt.timezone.utc)],
        1,
    ),
}
"""The type of the ordering column, ordering values, and which record is to win."""


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("what", NULLS)
def test_a_null_is_lower_than_any_value(what: str, table: str, tmp_path: Path) -> None:
    kind, values, winner = NULLS[what]
    rows = [("u", value) for value in values]
    assert left(tmp_path / "several", table, kind, *([row] for row in rows)) == [winner]
    assert left(tmp_path / "two", table, kind, rows[:1], rows[1:]) == [winner]
    assert left(tmp_path / "one", table, kind, rows) == [winner]


AGAIN: list[Told] = [("u", 5), ("d", None), ("u", 1)]


def test_a_row_after_a_delete_in_its_batch_was_merged_into_the_deleted_one(tmp_path: Path) -> None:
    for name, batches in {
        "several": [[told] for told in AGAIN],
        "two": [AGAIN[:1], AGAIN[1:]],
    }.items():
        assert left(tmp_path / name, "cow", pa.int64(), *batches) == [2]


@pytest.mark.parametrize("table", ["mor_avro", "mor_parquet"])
def test_a_deleted_row_of_a_base_file_is_back_as_in_hudi(table: str, tmp_path: Path) -> None:
    assert TABLES[table][BLOCKS] in table
    for name, batches in {
        "several": [[told] for told in AGAIN],
        "two": [AGAIN[:1], AGAIN[1:]],
    }.items():
        assert left(tmp_path / name, table, pa.int64(), *batches) == [0]


@pytest.mark.parametrize("table", TABLES)
def test_a_batch_forgot_that_a_row_came_after_a_delete(table: str, tmp_path: Path) -> None:
    """The log had the row alone, which lost against an earlier one in the log."""
    batches: list[list[Told]] = [[("u", 0)], [("u", 9)], [("d", None), ("u", 1)]]
    assert left(tmp_path, table, pa.int64(), *batches) == [3]


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("order", [None, 3])
def test_a_delete_of_a_deleted_row_is_ignored(
    table: str, order: int | None, tmp_path: Path
) -> None:
    told: list[Told] = [("d", None), ("d", 5), ("u", order)]
    assert left(tmp_path / "several", table, pa.int64(), *([each] for each in told)) == [2]
    assert left(tmp_path / "one", table, pa.int64(), told) == [2]


def test_missing_values_come_from_strings_that_a_base_file_repeats(tmp_path: Path) -> None:
    """A compaction takes such columns as dictionaries, beside those of log files."""
    table = HoodieTable(str(tmp_path), {**TRIPS, TYPE: "MERGE_ON_READ", BUCKETS: "1"})
    table.upsert(trips(*((f"k{number}", "x", 1, 1.0) for number in range(50))))
    with without_columns("id", "city"):
        table.upsert(trips(("k7", "x", 2, 7.0)))
    expected = found(table)
    assert ("k7", "x", 2, 7.0) in expected
    table.compact()
    assert found(table) == expected
