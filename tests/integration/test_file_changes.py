"""What instants say of files, all together, is what lies on storage."""

from __future__ import annotations

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.testing import MemoryStorage, SimClock, SimIds
from hoodie_ds.timeline.file_changes import FileChanges, file_changes
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.paths import instant_path
from hoodie_ds.timeline.timeline import Timeline
from tests.tables import TRIPS, TYPE, TYPES, VERSION, timeline_of, trips

_OPTIONS = {
    "hoodie.clean.automatic": "false",
    "hoodie.index.type": "SIMPLE",
    "hoodie.table.cdc.enabled": "true",
    "hoodie.table.cdc.supplemental.logging.mode": "DATA_BEFORE_AFTER",
}


def _listed(storage: Storage, timeline: Timeline) -> set[str]:
    return {status.path for status in FileSystemView(storage, timeline).data_files()} | {
        status.path
        for status in storage.list("", recursive=True)
        if "-cdc" in status.path and not status.path.startswith(".hoodie")
    }


def _by_instants(storage: Storage, timeline: Timeline) -> set[str]:
    """The files that are there by what completed instants say, in the order of their times."""
    found: set[str] = set()
    completed = {*timeline.completed, *timeline.rollbacks, *timeline.restores}
    for instant in sorted(i for i in completed if i.state is State.COMPLETED):
        changes = file_changes(storage, instant)
        written = {path for stat in changes.added.values() for path in stat.paths}
        found = (found | written | set(changes.marked)) - changes.deleted - changes.removed
    return found


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("kind", TYPES)
def test_instants_of_every_action_tell_which_files_are_there(kind: str, version: str) -> None:
    storage = MemoryStorage()
    options = {**TRIPS, **_OPTIONS, TYPE: kind, VERSION: version}
    table = HoodieTable("memory://t", options, storage=storage, clock=SimClock(), ids=SimIds())

    def check() -> Timeline:
        timeline = timeline_of(storage)
        assert _by_instants(storage, timeline) == _listed(storage, timeline)
        return timeline

    for ts in (1, 2, 3):
        table.upsert(trips(("a", "x", ts, 1.0), ("b", "y", ts, 1.0)))
        check()
    kept = table.savepoint()
    (saved,) = check().savepoints
    assert file_changes(storage, saved).kept == set(kept.files)
    if kind == "MERGE_ON_READ":
        assert table.compact()
        check()
    table.upsert(trips(("c", "z", 1, 1.0)))
    table.overwrite(trips(("d", "y", 1, 1.0)), partitions_only=True)
    newest = check().commits[-1]
    (replaced,) = file_changes(storage, newest).replaced_groups
    assert replaced[0] == "y"
    assert file_changes(storage, newest).partitions == {"y"}
    before = _listed(storage, table.timeline)
    table.rollback()
    (rollback,) = (i for i in check().rollbacks if i.action is Action.ROLLBACK)
    gone = before - _listed(storage, table.timeline)
    assert gone
    assert file_changes(storage, rollback).removed == gone
    before -= gone
    table.restore(kept)
    (restore,) = check().restores
    gone = before - _listed(storage, table.timeline)
    assert gone
    assert file_changes(storage, restore).removed == gone
    table.insert(trips(("e", "x", 1, 1.0)), {"hoodie.parquet.small.file.limit": "0"})
    assert table.cluster()
    check()
    table.delete_savepoint(kept)
    retain = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS"}
    retain["hoodie.clean.fileversions.retained"] = "1"
    assert table.clean(retain)
    assert any(file_changes(storage, i).deleted for i in check().deletions)


def test_a_plan_tells_what_a_clean_is_to_delete() -> None:
    storage = MemoryStorage()
    table = HoodieTable("memory://t", TRIPS, storage=storage)
    for ts in (1, 2):
        table.upsert(trips(("a", "x", ts, 1.0)))
    done = table.clean({"hoodie.clean.commits.retained": "1", "hoodie.clean.automatic": "false"})
    table.upsert(trips(("a", "x", 3, 1.0)))
    done = done or table.clean({"hoodie.clean.commits.retained": "1"})
    (clean,) = (i for i in table.timeline.deletions if i.action is Action.CLEAN)
    deleted = file_changes(storage, clean).deleted
    assert deleted == set(done[0].plan.paths)
    assert file_changes(storage, clean.at(State.REQUESTED)).deleted == deleted


def test_a_rollback_tells_in_which_log_files_it_hid_blocks() -> None:
    storage = MemoryStorage()
    options = {**TRIPS, TYPE: "MERGE_ON_READ", VERSION: "6"}
    table = HoodieTable("memory://t", options, storage=storage)
    for ts in (1, 2):
        table.upsert(trips(("a", "x", ts, 1.0)))
    table.rollback()
    (rollback,) = table.timeline.rollbacks
    changes = file_changes(storage, rollback)
    logs = {path for path in storage.files if ".log." in path}
    assert set(changes.marked) | changes.removed >= logs
    assert len(logs) > 1
    assert _by_instants(storage, table.timeline) == _listed(storage, table.timeline)


@pytest.mark.parametrize("action", [Action.CLEAN, Action.ROLLBACK, Action.RESTORE])
@pytest.mark.parametrize("state", State)
def test_what_other_engines_leave_empty_tells_nothing(action: Action, state: State) -> None:
    instant = Instant("20250101000000000", action, state)
    assert FileChanges.of(instant, b"", instant_path(instant)) == FileChanges()
