"""Savepoints: what they keep, when they are refused, and that they come in order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import CorruptFileError, TimelineError
from hoodie_ds.formats.avro.container import read_record, write_record
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.testing import MemoryStorage
from hoodie_ds.timeline.bodies.savepoint_metadata import savepointed_files
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.loading import load_timeline
from hoodie_ds.timeline.paths import DECISIONS, instant_path
from hoodie_ds.transaction.decision_log import (
    Outcome,
    append_decision,
    newest_decision,
    next_decision,
)
from tests.golden.golden_tables import golden_file, unzip_table
from tests.tables import TRIPS, TYPE, TYPES, trips

_LATER = "29990101000000000"
_STRING = {"type": "string", "avro.java.string": "String"}
_STRINGS = {"type": "array", "items": _STRING}


def _record(name: str, **fields: object) -> dict[str, object]:
    listed = [{"name": key, "type": kind} for key, kind in fields.items()]
    return {"type": "record", "name": name, "fields": listed}


_CLEANED = _record("Cleaned", partitionPath=_STRING, deletePathPatterns=_STRINGS)
_CLEAN = _record(
    "HoodieCleanMetadata",
    earliestCommitToRetain=_STRING,
    partitionMetadata={"type": "map", "values": _CLEANED},
)
_PLANNED = _record("HoodieCleanFileInfo", filePath=_STRING, isBootstrapBaseFile="boolean")
_CLEAN_PLAN = _record(
    "HoodieCleanerPlan",
    earliestInstantToRetain=[
        "null",
        _record("HoodieActionInstant", timestamp=_STRING, action=_STRING),
    ],
    policy=_STRING,
    filesToBeDeletedPerPartition={"type": "map", "values": _STRINGS},
    filePathsToBeDeletedPerPartition={
        "type": "map",
        "values": {"type": "array", "items": _PLANNED},
    },
)


def _table(storage: MemoryStorage, kind: str = "MERGE_ON_READ") -> HoodieTable:
    return HoodieTable("memory://table", {**TRIPS, TYPE: kind}, storage=storage)


def _three_commits(table: HoodieTable) -> list[str]:
    for ts in (1, 2, 3):
        table.upsert(trips(("a", "x", ts, 1.0), ("b", "y", ts, 1.0)))
    return [instant.time for instant in table.timeline.commits]


def _put_clean(storage: MemoryStorage, earliest: str, *files: str, pending: bool = False) -> None:
    """A clean as Hudi writes it, in the fields that tell what goes."""
    step = State.REQUESTED if pending else State.COMPLETED
    by_partition: dict[str, list[str]] = {}
    for path in files:
        partition, _, name = path.rpartition("/")
        by_partition.setdefault(partition, []).append(name)
    if pending:
        plan = {
            "earliestInstantToRetain": {"timestamp": earliest, "action": "commit"}
            if earliest
            else None,
            "policy": "KEEP_LATEST_COMMITS",
            "filesToBeDeletedPerPartition": {},
            "filePathsToBeDeletedPerPartition": {
                path: [
                    {"filePath": f"file:/t/{path}/{name}", "isBootstrapBaseFile": False}
                    for name in names
                ]
                for path, names in by_partition.items()
            },
        }
        body = write_record(_CLEAN_PLAN, plan)
    else:
        done = {
            path: {"partitionPath": path, "deletePathPatterns": names}
            for path, names in by_partition.items()
        }
        record = {"earliestCommitToRetain": earliest, "partitionMetadata": done}
        body = write_record(_CLEAN, record)
        for path in files:
            storage.delete(path)
    storage.put_if_absent(instant_path(Instant(_LATER, Action.CLEAN, step)), body)


@pytest.mark.parametrize("kind", TYPES)
def test_a_savepoint_names_the_files_of_the_slices_at_its_commit(kind: str) -> None:
    storage = MemoryStorage()
    table = _table(storage, kind)
    first, second, third = _three_commits(table)
    kept = table.savepoint(second, user="me", comments="why")
    assert kept.time == second
    (savepoint,) = load_timeline(storage, 1).savepoints
    assert savepoint == Instant(second, Action.SAVEPOINT, State.COMPLETED)
    body = storage.read(instant_path(savepoint))
    assert savepointed_files(body, "x") == frozenset(kept.files)
    record = read_record(body, "x")
    assert (record["savepointedBy"], record["comments"]) == ("me", "why")
    assert storage.read(instant_path(savepoint.at(State.INFLIGHT))) == b""
    names = [path.rpartition("/")[2] for path in storage.files if not path.startswith(".hoodie")]
    if kind == "COPY_ON_WRITE":
        expected = [name for name in names if name.endswith(f"_{second}.parquet")]
    else:  # the logs of later commits lie in the same slices, as Hudi names them too
        expected = [name for name in names if f"_{first}" in name]
        assert any(".log." in name for name in expected)
    assert sorted(path.rpartition("/")[2] for path in kept.files) == sorted(expected)
    assert third not in {savepoint.time for savepoint in load_timeline(storage, 1).savepoints}


def test_a_savepoint_keeps_what_hudis_does(tmp_path: Path) -> None:
    folder = unzip_table("v6_mor_restored", tmp_path)
    theirs = savepointed_files(golden_file("v6_mor_restored", r"\.savepoint$"), "golden")
    table = HoodieTable(folder)
    (savepoint,) = table.timeline.savepoints
    table.delete_savepoint(savepoint.time)
    kept = table.savepoint(savepoint.time)
    # Theirs was made before a delta commit that was rolled back: its log file and the command.
    later = sorted(path[path.index(".log.") :][:7] for path in set(kept.files) - theirs)
    assert theirs < set(kept.files)
    assert later == [".log.2_", ".log.3_"]


def test_the_newest_commit_is_kept_by_default_and_once() -> None:
    storage = MemoryStorage()
    table = _table(storage)
    newest = _three_commits(table)[-1]
    assert table.savepoint(user="first").time == newest
    before = storage.files
    assert table.savepoint(user="second").time == newest
    assert storage.files == before


def test_a_dry_savepoint_changes_nothing() -> None:
    storage = MemoryStorage()
    table = _table(storage)
    _three_commits(table)
    before = storage.files
    planned = table.savepoint(dry=True)
    assert storage.files == before
    assert table.savepoint() == planned


def test_a_savepoint_is_deleted_and_stays_so() -> None:
    storage = MemoryStorage()
    table = _table(storage)
    first = _three_commits(table)[0]
    kept = table.savepoint(first)
    before = dict(storage.files)
    assert kept.files
    assert table.delete_savepoint(first, dry=True) == kept
    assert dict(storage.files) == before
    assert table.delete_savepoint(first) == kept
    assert load_timeline(storage, 1).savepoints == ()
    with pytest.raises(TimelineError, match=f"no savepoint at {first}"):
        table.delete_savepoint(first, dry=True)
    table.upsert(trips(("c", "x", 1, 1.0)))
    assert load_timeline(storage, 1).savepoints == ()
    assert table.read().num_rows == 3
    with pytest.raises(TimelineError, match=f"no savepoint at {first}; its savepoints are none"):
        table.delete_savepoint(first)


def test_a_savepoint_that_was_only_begun_is_deleted_too() -> None:
    storage = MemoryStorage()
    table = _table(storage)
    time = _three_commits(table)[1]
    begun = instant_path(Instant(time, Action.SAVEPOINT, State.INFLIGHT))
    storage.put_if_absent(begun, b"")
    assert table.delete_savepoint(time).files == ()
    assert begun not in storage.files


@pytest.mark.parametrize("step", [State.COMPLETED, State.INFLIGHT])
def test_a_decided_savepoint_is_put_by_whoever_comes_next(step: State) -> None:
    storage = MemoryStorage()
    table = _table(storage)
    first = _three_commits(table)[0]
    table.savepoint(first)
    savepoint = Instant(first, Action.SAVEPOINT, State.COMPLETED)
    body = storage.read(instant_path(savepoint))
    storage.delete(instant_path(savepoint))
    if step is State.INFLIGHT:
        storage.delete(instant_path(savepoint.at(step)))
    table.upsert(trips(("c", "x", 1, 1.0)))
    assert storage.read(instant_path(savepoint)) == body
    assert load_timeline(storage, 1).savepoints == (savepoint,)


def test_a_decided_deletion_is_done_by_whoever_comes_next() -> None:
    storage = MemoryStorage()
    table = _table(storage)
    first = _three_commits(table)[0]
    table.savepoint(first)
    files = {path: body for path, body in storage.files.items() if ".savepoint" in path}
    table.delete_savepoint(first)
    for path, body in files.items():
        storage.put_if_absent(path, body)  # as if the process had ended after its decision
    table.upsert(trips(("c", "x", 1, 1.0)))
    assert load_timeline(storage, 1).savepoints == ()


def test_a_time_that_is_no_commit_is_refused() -> None:
    storage = MemoryStorage()
    table = _table(storage)
    first, _, third = _three_commits(table)
    with pytest.raises(TimelineError, match=f"goes from {first} to {third}"):
        table.savepoint("20200101000000000")
    assert newest_decision(storage) is not None


def test_a_table_without_commits_has_nothing_to_keep(tmp_path: Path) -> None:
    table = HoodieTable(f"memory://{tmp_path}", TRIPS)
    table.upsert(trips().slice(0, 0))
    assert open_storage(f"memory://{tmp_path}").list(".hoodie")
    with pytest.raises(TimelineError, match="no completed commit"):
        table.savepoint()


@pytest.mark.parametrize("pending", [False, True])
def test_a_commit_before_what_a_clean_retains_is_refused(pending: bool) -> None:
    storage = MemoryStorage()
    table = _table(storage)
    first, second, _ = _three_commits(table)
    _put_clean(storage, second, pending=pending)
    with pytest.raises(TimelineError, match=f"keeps those since {second} alone"):
        table.savepoint(first)
    assert table.savepoint(second).time == second


@pytest.mark.parametrize("pending", [False, True])
def test_a_commit_whose_file_a_clean_takes_is_refused(pending: bool) -> None:
    storage = MemoryStorage()
    table = _table(storage, "COPY_ON_WRITE")
    first, second, third = _three_commits(table)
    gone = [path for path in storage.files if path.endswith(f"_{first}.parquet")]
    _put_clean(storage, "", *gone, pending=pending)
    with pytest.raises(TimelineError, match=f"savepoint at {first} needs .*_{first}.parquet"):
        table.savepoint(first)
    assert {table.savepoint(time).time for time in (second, third)} == {second, third}


def test_a_cleaned_file_of_an_archived_commit_is_missed_too() -> None:
    storage = MemoryStorage()
    table = _table(storage, "COPY_ON_WRITE")
    table.upsert(trips(("a", "x", 1, 1.0), ("b", "y", 1, 1.0)))
    table.upsert(trips(("a", "x", 2, 1.0)))
    table.upsert(trips(("b", "y", 3, 1.0)))
    first, second, _ = (instant.time for instant in table.timeline.commits)
    base_files = [path for path in storage.files if path.endswith(f"_{first}.parquet")]
    (gone,) = [path for path in base_files if path.startswith("y/")]
    _put_clean(storage, "", gone)
    for path in [path for path in storage.files if path.startswith(f".hoodie/{first}.")]:
        storage.delete(path)  # as archiving does
    with pytest.raises(TimelineError, match=f"needs {gone}, which {_LATER} clean"):
        table.savepoint(second)


def test_a_clean_whose_plan_was_archived_meanwhile_is_no_obstacle() -> None:
    storage = MemoryStorage()
    table = _table(storage)
    first, _, _ = _three_commits(table)
    clean = Instant(_LATER, Action.CLEAN, State.INFLIGHT)
    storage.put_if_absent(instant_path(clean), b"")
    assert table.savepoint(first).time == first


def test_the_plan_of_an_old_engine_names_files_by_partition() -> None:
    storage = MemoryStorage()
    table = _table(storage, "COPY_ON_WRITE")
    first, _, _ = _three_commits(table)
    gone = min(path for path in storage.files if path.endswith(f"_{first}.parquet"))
    partition, _, name = gone.rpartition("/")
    plan = {
        "earliestInstantToRetain": None,
        "policy": "KEEP_LATEST_FILE_VERSIONS",
        "filesToBeDeletedPerPartition": {partition: [name]},
        "filePathsToBeDeletedPerPartition": {},
    }
    clean = Instant(_LATER, Action.CLEAN, State.REQUESTED)
    storage.put_if_absent(instant_path(clean), write_record(_CLEAN_PLAN, plan))
    with pytest.raises(TimelineError, match=f"needs {gone}"):
        table.savepoint(first)


def test_a_clean_that_cannot_be_read_is_reported() -> None:
    storage = MemoryStorage()
    table = _table(storage)
    first, _, _ = _three_commits(table)
    schema = _record("X", earliestCommitToRetain=_STRING, partitionMetadata=_STRINGS)
    body = write_record(schema, {"earliestCommitToRetain": "", "partitionMetadata": ["x"]})
    clean = Instant(_LATER, Action.CLEAN, State.COMPLETED)
    storage.put_if_absent(instant_path(clean), body)
    with pytest.raises(CorruptFileError, match=f"{_LATER}.clean says nothing of a clean"):
        table.savepoint(first)


def test_a_savepoint_is_planned_anew_where_others_decided_meanwhile() -> None:
    storage = MemoryStorage()
    table = _table(storage)
    first, _, _ = _three_commits(table)
    other = Instant("20250102000000000", Action.COMMIT, State.INFLIGHT)

    class Racing(MemoryStorage):
        def put_if_absent(self, path: str, data: bytes) -> None:
            if path.startswith(DECISIONS) and b"savepoint" in data and not taken:
                taken.append(path)
                newest = newest_decision(storage)
                assert append_decision(
                    storage, next_decision(newest, Outcome.KEEP_OPEN, other, "x")
                )
            storage.put_if_absent(path, data)

        def __getattribute__(self, name: str) -> Any:
            own = name in ("put_if_absent", "__class__")
            return object.__getattribute__(self if own else storage, name)

    taken: list[str] = []
    assert HoodieTable("memory://table", TRIPS, storage=Racing()).savepoint(first).time == first
    assert len(taken) == 1
    assert [i.time for i in load_timeline(storage, 1).savepoints] == [first]
