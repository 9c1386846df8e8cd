"""Operations beside upsert, seen by our reader and by hudi-rs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.enums import Operation
from hoodie_ds.errors import RecordKeyError, WriteConflictError
from hoodie_ds.sink.messages import TaskId
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.testing import Effect, Fault, FaultyStorage, SimulatedCrash
from hoodie_ds.timeline.instant import Action
from tests.faults.writers import Place
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.rows import assert_same_rows
from tests.tables import PARTITION, TRIPS, TYPE, TYPES, coordinator, found, trips

ROWS = trips(("a", "x", 1, 1.5), ("b", "y", 1, 2.5), ("c", "y", 1, 3.5))
POLICY = "hoodie.datasource.insert.dup.policy"


@pytest.fixture(params=TYPES)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> HoodieTable:
    table = HoodieTable(str(tmp_path / "t"), {**TRIPS, TYPE: request.param})
    table.upsert(ROWS)
    return table


def ids(table: HoodieTable) -> list[str]:
    """Record keys as we read them, which hudi-rs must too."""
    rows = table.read()
    assert_same_rows(read_with_hudi_rs(Path(table._options["path"])), rows)
    return sorted(rows["id"].to_pylist())


def test_an_overwrite_leaves_nothing_of_what_was_there(table: HoodieTable) -> None:
    table.overwrite(trips(("d", "x", 0, 4.5)))
    assert ids(table) == ["d"]
    commit = table.timeline.commits[-1]
    assert commit.action is Action.REPLACE_COMMIT
    # Rows that come later, under keys that were replaced and with lower order, are seen.
    table.upsert(trips(("a", "x", 0, 9.5), ("b", "y", 0, 9.5)))
    assert ids(table) == ["a", "b", "d"]
    table.overwrite(ROWS)
    table.upsert(trips(("a", "x", 5, 7.5)))
    assert found(table)[0] == ("a", "x", 5, 7.5)
    assert ids(table) == ["a", "b", "c"]


def test_an_overwrite_of_partitions_leaves_the_others(table: HoodieTable) -> None:
    table.overwrite(trips(("d", "y", 0, 4.5)), partitions_only=True)
    assert ids(table) == ["a", "d"]


def test_an_overwrite_without_rows_empties_the_table(table: HoodieTable) -> None:
    table.overwrite(ROWS.slice(0, 0))
    assert ids(table) == []
    table.upsert(ROWS)
    assert ids(table) == ["a", "b", "c"]


def test_an_overwrite_without_rows_by_partition_changes_nothing(table: HoodieTable) -> None:
    table.overwrite(ROWS.slice(0, 0), partitions_only=True)
    assert ids(table) == ["a", "b", "c"]
    assert len(table.timeline.commits) == 1


@pytest.mark.parametrize(
    ("patterns", "left"), [(["x"], ["b", "c"]), (["*"], []), (["?", "z"], ["a", "b", "c"])]
)
def test_partitions_go_by_name_or_pattern(
    table: HoodieTable, patterns: list[str], left: list[str]
) -> None:
    table.delete_partitions(patterns)
    assert ids(table) == left
    table.upsert(trips(("a", "x", 0, 1.0)))
    assert ids(table) == sorted({"a", *left})
    table.delete_partitions(patterns)
    assert ids(table) == (left if patterns != ["?", "z"] else ["a", "b", "c"])


def test_partitions_go_by_the_rows_that_name_them(table: HoodieTable, tmp_path: Path) -> None:
    writer = coordinator(tmp_path / "t", hoodie__datasource__write__operation="delete_partition")
    rows = pa.table({"city": ["y", "z"]})
    batch = writer.begin(rows.schema)
    writer.commit([write_task(batch, TaskId(), None, rows.to_batches())])
    assert ids(table) == ["a"]


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("ended", ["writing", "committing"])
@pytest.mark.parametrize("by_rows", [False, True], ids=["by name", "by rows"])
def test_a_delete_of_partitions_after_a_first_batch_that_died(
    kind: str, ended: str, by_rows: bool
) -> None:
    # A batch that died while it was written goes, and one with a manifest is completed first.
    place = Place({**TRIPS, TYPE: kind, "hoodie.allow.empty.commit": "true"})
    last = "*/manifest_*.json" if ended == "committing" else "[xy]/*"
    killed = FaultyStorage(place.storage, [Fault(Effect.CRASH_AFTER, path=last)])
    with pytest.raises(SimulatedCrash):
        HoodieTable("/t", place.opts, storage=killed, clock=place.clock).upsert(ROWS)
    place.clock.advance(1000)
    if by_rows:
        rows = pa.table({"city": ["y", "z"]})
        begun = place.begin(rows, **{"hoodie.datasource.write.operation": "delete_partition"})
        begun.writer.commit([begun.write()])
    else:
        place.table.delete_partitions(["y", "z"])
    left = place.table.read()
    assert left["_hoodie_record_key"].to_pylist() == (["a"] if ended == "committing" else [])
    place.table.upsert(trips(("b", "y", 0, 1.0)))
    assert [row[0] for row in place.rows()][-1] == "b"


def test_an_insert_adds_rows_or_leaves_them_out_or_is_refused(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), TRIPS)
    table.insert(ROWS)
    more = trips(("a", "x", 0, 9.0), ("d", "x", 0, 9.0))
    with pytest.raises(RecordKeyError, match="'a' is stored"):
        table.insert(more, {POLICY: "fail"})
    assert ids(table) == ["a", "b", "c"]
    table.insert(more, {POLICY: "drop"})
    assert ids(table) == ["a", "b", "c", "d"]
    assert found(table)[0] == ("a", "x", 1, 1.5)
    table.insert(more, {"hoodie.datasource.write.insert.drop.duplicates": "true"})
    assert ids(table) == ["a", "b", "c", "d"]
    table.insert(more)
    assert ids(table) == ["a", "a", "b", "c", "d", "d"]


def test_an_insert_knows_keys_in_log_files(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), {**TRIPS, TYPE: "MERGE_ON_READ"})
    table.upsert(ROWS)
    table.upsert(trips(("d", "x", 1, 4.5)))
    table.delete(trips(("a", "x", 9, 0.0)).select(["id", "city"]))
    table.insert(trips(("d", "x", 9, 9.0), ("a", "x", 2, 9.0)), {POLICY: "drop"})
    assert [row for row in found(table) if row[0] in "ad"] == [
        ("a", "x", 2, 9.0),
        ("d", "x", 1, 4.5),
    ]


def test_rows_of_one_key_are_folded_before_an_insert_if_asked_for(tmp_path: Path) -> None:
    rows = trips(("a", "x", 2, 2.0), ("a", "x", 1, 1.0))
    plain = HoodieTable(str(tmp_path / "plain"), TRIPS)
    plain.insert(rows)
    assert ids(plain) == ["a", "a"]
    folded = HoodieTable(str(tmp_path / "folded"), TRIPS)
    folded.insert(rows, {"hoodie.combine.before.insert": "true"})
    assert found(folded) == [("a", "x", 2, 2.0)]


def test_a_table_without_keys_is_overwritten_too(tmp_path: Path) -> None:
    options = {k: v for k, v in TRIPS.items() if k in ("hoodie.table.name", PARTITION)}
    table = HoodieTable(str(tmp_path), options)
    table.insert(ROWS)
    table.insert(ROWS)
    table.overwrite(trips(("d", "y", 0, 1.0)), partitions_only=True)
    assert ids(table) == ["a", "a", "d"]
    table.delete_partitions(["y"])
    assert ids(table) == ["a", "a"]


def test_a_commit_in_a_replaced_partition_is_a_conflict(table: HoodieTable, tmp_path: Path) -> None:
    """The overwrite has not seen the other's rows, which would outlive it."""
    operation = {"hoodie__datasource__write__operation": "insert_overwrite_table"}
    writer = coordinator(tmp_path / "t", **operation)
    batch = writer.begin(ROWS.schema)
    message = write_task(batch, TaskId(), None, ROWS.to_batches(), sole_writer=True)
    # Not through `begin`, which would take the batch for one that failed.
    plan = replace(batch.plan, operation=Operation.UPSERT)
    other = replace(batch, plan=plan, owner="another writer")
    late = trips(*((f"k{i}", "y", 1, 1.0) for i in range(9)))
    writer.commit([write_task(other, TaskId(1), None, late.to_batches(), sole_writer=True)])
    with pytest.raises(WriteConflictError):
        writer.commit([message])


@pytest.mark.parametrize("allowed", [False, True])
def test_a_batch_without_rows_is_a_commit_if_allowed(tmp_path: Path, allowed: bool) -> None:
    options = {**TRIPS, "hoodie.allow.empty.commit": str(allowed).lower()}
    table = HoodieTable(str(tmp_path), options)
    for _ in range(2):
        table.upsert(ROWS.slice(0, 0))
    assert len(table.timeline.commits) == 2 * allowed
    table.upsert(ROWS)
    assert ids(table) == ["a", "b", "c"]
