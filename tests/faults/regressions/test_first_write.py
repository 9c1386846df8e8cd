"""A first merge-on-read write without a shuffle makes base files, not a log file for each task."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.limits import Limits
from hoodie_ds.errors import OutOfSpaceError
from hoodie_ds.handles.append_handle import AppendHandle
from hoodie_ds.sink.messages import TaskId
from hoodie_ds.sink.task_writer import write_task
from tests.tables import limited

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
}
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("part", pa.string()),
        ("ts", pa.int64()),
        ("_hoodie_is_deleted", pa.bool_()),
    ]
)


def write(
    path: Path,
    tasks: Sequence[Sequence[tuple[str, str, int, bool]]],
    limits: Limits | None = None,
) -> None:
    """Write a batch of which each task has some rows, without a shuffle."""
    coordinator = limited(path, OPTIONS, limits)
    batch = coordinator.begin(SCHEMA)
    columns = [[list(column) for column in zip(*rows, strict=True)] for rows in tasks]
    messages = [
        write_task(batch, TaskId(number), None, [pa.record_batch(data, schema=SCHEMA)])
        for number, data in enumerate(columns)
    ]
    coordinator.commit(messages)


def rows_of(task: int, ts: int = 1) -> list[tuple[str, str, int, bool]]:
    return [(f"k{n}", "abc"[n % 3], ts, False) for n in range(task * 75, task * 75 + 75)]


def files(path: Path) -> tuple[int, int]:
    """How many base files and log files the table has."""
    data = [p for p in path.rglob("*") if ".hoodie" not in p.parts]
    return sum(p.suffix == ".parquet" for p in data), sum(".log." in p.name for p in data)


def test_300_rows_in_4_tasks_made_48_log_files(tmp_path: Path) -> None:
    write(tmp_path, [rows_of(task) for task in range(4)])
    assert files(tmp_path) == (12, 0)
    table = HoodieTable(str(tmp_path), OPTIONS)
    assert sorted(table.read(["id"])["id"].to_pylist()) == sorted(f"k{n}" for n in range(300))
    write(tmp_path, [rows_of(task, 2) for task in range(4)])
    assert files(tmp_path)[0] == 12  # what there is already is appended to
    assert set(table.read(["ts"])["ts"].to_pylist()) == {2}


def test_a_delete_of_a_new_group_stays_one_for_older_rows(tmp_path: Path) -> None:
    write(tmp_path, [[("a", "a", 5, True), ("b", "a", 5, False)], [("a", "a", 4, False)]])
    table = HoodieTable(str(tmp_path), OPTIONS)
    assert table.read(["id"])["id"].to_pylist() == ["b"]
    write(tmp_path, [[("a", "a", 3, False)]])
    assert table.read(["id"])["id"].to_pylist() == ["b"]
    write(tmp_path, [[("a", "a", 6, False)]])
    assert sorted(table.read(["id"])["id"].to_pylist()) == ["a", "b"]


def test_a_group_of_nothing_but_deletes_begins_with_a_log(tmp_path: Path) -> None:
    write(tmp_path, [[("a", "a", 5, True)], [("a", "a", 4, True)]])
    assert files(tmp_path) == (0, 1)
    write(tmp_path, [[("a", "a", 4, False)]])
    assert HoodieTable(str(tmp_path), OPTIONS).read().num_rows == 0


@pytest.mark.parametrize(("most_bytes", "expected"), [(0, (0, 4)), (700, (1, 3))])
def test_rows_of_a_task_that_has_many_are_beside_those_of_one_that_has_few(
    tmp_path: Path, most_bytes: int, expected: tuple[int, int]
) -> None:
    many = [("a", "a", n, False) for n in range(50)]
    tasks = [many, [("a", "a", 60, False), ("b", "a", 1, False)], many]
    write(tmp_path, tasks, Limits(gathered_bytes=most_bytes))
    assert files(tmp_path) == expected  # of a group that has a log there is no base file
    rows = HoodieTable(str(tmp_path), OPTIONS).read(["id", "ts"])
    assert sorted(zip(*rows.to_pydict().values(), strict=True)) == [("a", 60), ("b", 1)]


def test_a_failed_log_file_is_given_up(tmp_path: Path) -> None:
    full = patch.object(AppendHandle, "write", side_effect=OutOfSpaceError("no room"))
    with full, pytest.raises(OutOfSpaceError, match="no room"):
        write(tmp_path, [[("a", "a", 5, True)], [("a", "a", 4, True)]])
    assert files(tmp_path) == (0, 0)
    write(tmp_path, [[("a", "a", 5, True)], [("a", "a", 4, True)]])
    assert files(tmp_path) == (0, 1)
