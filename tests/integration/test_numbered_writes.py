"""Batch writes with a writer's name and a number: a second time they change nothing (S14)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable, foreach_batch
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import OptionError, ReplayMismatchError
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.messages import TaskId, WriteResult
from hoodie_ds.sink.task_writer import write_task
from tests.tables import TRIPS, TYPE, TYPES, found, tree, trips

OPERATION = "hoodie.datasource.write.operation"
WRITER = "hoodie.datasource.write.streaming.checkpoint.identifier"
NUMBER = "hoodie.datasource.write.batch.identifier"
ACCEPT = "hoodie.py.replay.accept.different"
ONE = trips(("a", "x", 1, 1.0), ("b", "y", 1, 1.0))
TWO = trips(("a", "x", 2, 2.0), ("c", "z", 2, 2.0))


def numbered(number: int, writer: str = "nightly load") -> dict[str, str]:
    return {WRITER: writer, NUMBER: str(number)}


Write = Callable[[HoodieTable, pa.Table, dict[str, str]], WriteResult]
WRITES: dict[str, Write] = {
    "insert": lambda table, rows, options: table.insert(rows, options),
    "bulk_insert": lambda table, rows, options: table.insert(
        rows, {**options, OPERATION: "bulk_insert"}
    ),
    "upsert": lambda table, rows, options: table.upsert(rows, options),
    "insert_overwrite": lambda table, rows, options: table.overwrite(
        rows, options, partitions_only=True
    ),
    "insert_overwrite_table": lambda table, rows, options: table.overwrite(rows, options),
    "delete": lambda table, rows, options: table.delete(rows, options),
}


@pytest.fixture(params=[*TYPES, ""])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> HoodieTable:
    if request.param:
        return HoodieTable(str(tmp_path / "t"), {**TRIPS, TYPE: request.param})
    options = {"hoodie.table.name": "trips", "hoodie.datasource.write.partitionpath.field": "city"}
    return HoodieTable(str(tmp_path / "t"), options)


@pytest.mark.parametrize("operation", WRITES)
def test_a_second_time_changes_nothing_whatever_lies_between(
    table: HoodieTable, tmp_path: Path, operation: str
) -> None:
    write = WRITES[operation]
    table.insert(ONE)
    if operation in ("upsert", "delete") and not table.properties.record_key_fields:
        return
    write(table, TWO, numbered(7))
    write(table, TWO, numbered(0, "another writer"))
    table.insert(trips(("e", "x", 3, 3.0)))
    before = tree(tmp_path)
    write(table, TWO, numbered(7))
    write(table, TWO.take([1, 0]), numbered(7))
    assert tree(tmp_path) == before
    with pytest.raises(ReplayMismatchError, match="batch 7 of writer nightly load") as raised:
        write(table, ONE, numbered(7))
    assert "Give the write a number greater than 7, or its writer another " in str(raised.value)
    assert "checkpoint of the query" not in str(raised.value)
    assert tree(tmp_path) == before
    write(table, ONE, {**numbered(7), ACCEPT: "true"})
    assert tree(tmp_path) == before
    write(table, ONE, numbered(8))
    assert len(table.timeline.commits) == 5


def test_inserts_without_a_number_repeat_themselves(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), TRIPS)
    for _ in range(2):
        table.insert(ONE, numbered(1))
    assert found(table) == [("a", "x", 1, 1.0), ("b", "y", 1, 1.0)]
    for _ in range(2):
        table.insert(ONE)
    assert len(found(table)) == 6


@pytest.mark.parametrize("options", [{}, {ACCEPT: "true"}])
@pytest.mark.parametrize("came_without_rows", [False, True])
def test_a_number_that_was_passed_over_is_refused(
    tmp_path: Path, options: dict[str, str], came_without_rows: bool
) -> None:
    table = HoodieTable(str(tmp_path), TRIPS)
    table.insert(ONE, numbered(20251121))
    if came_without_rows:
        table.insert(TWO.slice(0, 0), numbered(20251122))
    table.insert(ONE, numbered(20251123))
    before = tree(tmp_path)
    with pytest.raises(ReplayMismatchError) as raised:
        table.insert(TWO, {**numbered(20251122), **options})
    assert str(raised.value).endswith(
        ": batch 20251122 of writer nightly load came with 2 rows after a later one, and no rows "
        "were ever written under its number: the table has batches 20251121, 20251123 of the "
        "writer, and numbers must ascend. Nothing was written. Give the write a number greater "
        f"than 20251123, or its writer another {WRITER}; {ACCEPT} does not accept the batch, as "
        "its rows are not in the table"
    )
    assert tree(tmp_path) == before
    table.insert(TWO, numbered(20251124))
    assert "c" in table.read(["id"])["id"].to_pylist()


def test_another_operation_under_a_number_is_named(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), TRIPS)
    table.upsert(ONE, numbered(1))
    with pytest.raises(ReplayMismatchError, match=r"as upsert with 2 rows.*again as delete with 2"):
        table.delete(ONE, numbered(1))
    with pytest.raises(ReplayMismatchError, match=r"in the table with 2 rows.*came again with 2"):
        table.upsert(TWO, numbered(1))


def test_partition_deletes_are_known_by_the_partitions(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), TRIPS)
    table.upsert(ONE)
    table.delete_partitions(["x"], numbered(1))
    table.upsert(ONE)
    before = tree(tmp_path)
    table.delete_partitions(["x"], numbered(1))
    assert tree(tmp_path) == before
    with pytest.raises(ReplayMismatchError):
        table.delete_partitions(["y"], numbered(1))


def test_partition_deletes_are_known_by_their_rows(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), TRIPS)
    table.upsert(ONE)
    more = {"path": str(tmp_path), OPERATION: "delete_partition", **numbered(2)}

    def by_rows() -> None:
        rows = ONE.select(["city"]).slice(0, 1)
        writer = Coordinator.of(WriteOptions.parse({**TRIPS, **more}))
        batch = writer.begin(rows.schema)
        task = write_task(batch, TaskId(), batch.given_id, rows.to_batches(), sole_writer=True)
        writer.commit([task])

    by_rows()
    assert found(table) == [("b", "y", 1, 1.0)]
    table.upsert(ONE)
    before = tree(tmp_path)
    by_rows()
    assert tree(tmp_path) == before


def test_an_overwrite_without_rows_is_one_too(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), TRIPS)
    table.upsert(ONE)
    table.overwrite(ONE.slice(0, 0), numbered(1))
    assert found(table) == []
    table.upsert(ONE)
    table.overwrite(ONE.slice(0, 0), numbered(1))
    assert len(found(table)) == 2


def test_the_name_of_hudis_proposal_is_taken_too(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), TRIPS)
    for key in (WRITER, "hoodie.datasource.write.writer.identifier"):
        table.insert(ONE, {key: "me", NUMBER: "1"})
    assert len(found(table)) == 2


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({NUMBER: "1"}, NUMBER),
        ({**numbered(1), NUMBER: "-1"}, NUMBER),
        ({**numbered(1), NUMBER: "2025-11-21"}, NUMBER),
        (
            {**numbered(1), "hoodie.streaming.batches.per.commit": "2"},
            "hoodie.streaming.batches.per.commit",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, options: dict[str, str], key: str) -> None:
    with pytest.raises(OptionError, match=key):
        HoodieTable(str(tmp_path), TRIPS).insert(ONE, options)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "write", [*WRITES.values(), lambda table, _, more: table.delete(where="id = a", options=more)]
)
def test_a_named_writer_has_to_number_its_writes(tmp_path: Path, write: Write) -> None:
    """Without a number it would be written again each time, which the name says it must not."""
    table = HoodieTable(str(tmp_path), TRIPS)
    table.upsert(ONE)
    before = tree(tmp_path)
    with pytest.raises(OptionError, match=f"{WRITER}.*'nightly'.*{NUMBER}"):
        write(table, TWO, {WRITER: "nightly"})
    assert tree(tmp_path) == before


def test_a_stream_numbers_its_batches_itself(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="a stream numbers its batches itself"):
        foreach_batch({**TRIPS, "path": str(tmp_path), **numbered(1)})
