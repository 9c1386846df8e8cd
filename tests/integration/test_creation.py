"""A table comes to be with its first row, or with the commit of a batch that had none."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import WriteConflictError
from hoodie_ds.sink.messages import TaskId
from hoodie_ds.sink.task_writer import write_task
from tests.tables import BUCKETS, TRIPS, coordinator, found, tree, trips

ROWS = trips(("a", "x", 1, 1.5), ("b", "y", 1, 2.5))


def test_begin_alone_leaves_no_trace(tmp_path: Path) -> None:
    coordinator(tmp_path / "t").begin(ROWS.schema)
    assert tree(tmp_path / "t") == {}


def test_two_first_batches_share_the_table_that_one_of_them_creates(tmp_path: Path) -> None:
    writer = coordinator(tmp_path / "t")
    batches = [writer.begin(ROWS.schema), writer.begin(ROWS.schema)]
    halves = [ROWS.slice(0, 1), ROWS.slice(1, 1)]
    for batch, rows in zip(batches, halves, strict=True):
        writer.commit([write_task(batch, TaskId(), None, rows.to_batches(), sole_writer=True)])
    assert [row[0] for row in found(HoodieTable(str(tmp_path / "t"), TRIPS))] == ["a", "b"]


def test_another_table_that_came_in_between_is_left_alone(tmp_path: Path) -> None:
    batch = coordinator(tmp_path / "t").begin(ROWS.schema)
    HoodieTable(str(tmp_path / "t"), {**TRIPS, BUCKETS: "3"}).upsert(ROWS)
    before = tree(tmp_path / "t")
    with pytest.raises(WriteConflictError, match="run the write again"):
        write_task(batch, TaskId(), None, ROWS.to_batches(), sole_writer=True)
    assert tree(tmp_path / "t") == before
