"""A downgraded table as it was before that, and a restore that was killed as it began."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import CorruptFileError
from hoodie_ds.testing import (
    Effect,
    Fault,
    FaultyStorage,
    Kind,
    MemoryStorage,
    SimClock,
    SimIds,
    SimulatedCrash,
    forget_process,
)
from hoodie_ds.timeline.instant import State
from hoodie_ds.timeline.instant_time import format_time
from hoodie_ds.timeline.paths import instant_path
from tests.tables import BUCKETS, TRIPS, TYPE, found, trips

VERSION = "hoodie.write.table.version"
CHANGES = "hoodie.table.cdc.enabled"


def _table(**more: str) -> tuple[MemoryStorage, HoodieTable]:
    storage = MemoryStorage(clock=SimClock())
    opts = {**TRIPS, BUCKETS: "1", TYPE: "MERGE_ON_READ", **more}
    return storage, HoodieTable("/t", opts, storage=storage, clock=SimClock(), ids=SimIds())


def _history(table: HoodieTable) -> list[str]:
    times = []
    for number in range(6):
        if number == 3:
            table.compact()
        rows = trips(("a", "x", number, 1.0), (f"k{number}", "x", number, 2.0))
        times.append(table.upsert(rows).instant_time)
        assert times[-1]
        if number in {2, 5}:
            table.delete(trips((f"k{number - 1}", "x", 9, 2.0)))
    return [str(time) for time in times]


@pytest.mark.parametrize("version", ["8", "9"])
def test_a_downgraded_table_is_what_it_was_at_earlier_moments(version: str) -> None:
    storage, table = _table(**{VERSION: version, CHANGES: "true"})
    times = _history(table)
    ends = {i.time: i.completion_time for i in table.timeline.completed}
    ranges = [(a, b) for n, a in enumerate(times) for b in times[n + 1 :]]
    then = [table.read(as_of=time) for time in times]
    rows = [table.read_incremental(ends[a], ends[b]) for a, b in ranges]
    changes = [table.read_changes(ends[a], ends[b]) for a, b in ranges]

    table.downgrade(6)

    older = HoodieTable("/t", storage=storage)
    assert [older.read(as_of=time) for time in times] == then
    assert [older.read_incremental(a, b) for a, b in ranges] == rows
    assert [older.read_changes(a, b) for a, b in ranges] == changes


def test_log_files_of_archived_commits_count_in_a_downgraded_table() -> None:
    few = {"hoodie.keep.min.commits": "4", "hoodie.keep.max.commits": "5"}
    storage, table = _table(**{VERSION: "9", "hoodie.clean.commits.retained": "3"})
    times = [str(table.upsert(trips((f"k{n}", "x", n, 1.0))).instant_time) for n in range(8)]
    table.archive(few)
    kept = times[-4:]
    then = [table.read(as_of=time) for time in kept]
    assert [len(rows) for rows in then] == [5, 6, 7, 8]

    table.downgrade(6)

    older = HoodieTable("/t", storage=storage)
    assert [older.read(as_of=time) for time in kept] == then


def test_a_base_file_that_is_missing_under_its_log_files_is_still_an_error() -> None:
    storage, table = _table()
    table.upsert(trips(("a", "x", 1, 1.0)))
    table.compact()
    table.upsert(trips(("b", "x", 1, 1.0)))
    table.compact()
    table.upsert(trips(("c", "x", 1, 1.0)))
    bases = [path for path in storage.files if path.endswith(".parquet")]
    storage.delete(max(bases, key=lambda path: path.rpartition("_")[2]))
    with pytest.raises(CorruptFileError, match="missing"):
        HoodieTable("/t", storage=storage).read()


def _restore_killed_once_decided() -> tuple[MemoryStorage, str]:
    """A table of two commits whose restore to the first is in the decision log alone."""
    storage, table = _table()
    first = table.upsert(trips(("a", "x", 1, 1.0)))
    table.upsert(trips(("b", "x", 1, 1.0)))
    assert first.instant_time
    plan = Fault(Effect.CRASH_BEFORE, kinds=frozenset({Kind.PUT}), path="*.restore.requested")
    with pytest.raises(SimulatedCrash):
        HoodieTable("/t", storage=FaultyStorage(storage, [plan])).restore(first.instant_time)
    forget_process()
    return storage, first.instant_time


def test_a_restore_that_was_killed_once_decided_refused_to_be_called_again() -> None:
    storage, first = _restore_killed_once_decided()
    assert HoodieTable("/t", storage=storage).restore(first).target == first
    assert found(HoodieTable("/t", storage=storage)) == [("a", "x", 1, 1.0)]


def test_a_write_goes_on_with_a_restore_that_was_killed_once_decided() -> None:
    storage, _ = _restore_killed_once_decided()
    opts = {**TRIPS, BUCKETS: "1", TYPE: "MERGE_ON_READ"}
    HoodieTable("/t", opts, storage=storage).upsert(trips(("c", "x", 1, 1.0)))
    rows = [("a", "x", 1, 1.0), ("c", "x", 1, 1.0)]
    assert found(HoodieTable("/t", storage=storage)) == rows


def test_a_restore_ends_a_rollback_that_another_engine_has_begun() -> None:
    """Its decision is in no log of ours."""
    storage, table = _table()
    first = table.upsert(trips(("a", "x", 1, 1.0)))
    table.upsert(trips(("b", "x", 1, 1.0)))
    assert first.instant_time
    end = Fault(Effect.CRASH_BEFORE, kinds=frozenset({Kind.PUT}), path="*.rollback")
    with pytest.raises(SimulatedCrash):
        HoodieTable("/t", storage=FaultyStorage(storage, [end])).rollback()
    forget_process()
    for path in [path for path in storage.files if "/decisions/" in path]:
        storage.delete(path)
    again = HoodieTable("/t", storage=storage)
    (rollback,) = again.timeline.rollbacks
    assert rollback.state is not State.COMPLETED
    again.restore(first.instant_time)
    assert [r.state for r in again.timeline.rollbacks] == [State.COMPLETED]
    assert found(HoodieTable("/t", storage=storage)) == [("a", "x", 1, 1.0)]


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_savepoint_named_log_files_of_a_dead_write_which_its_rollback_takes(version: str) -> None:
    storage, table = _table(**{VERSION: version})
    for number in range(2):
        table.upsert(trips(("a", "x", number, 1.0)))
    commit = Fault(Effect.CRASH_BEFORE, kinds=frozenset({Kind.PUT}), path="*/decisions/*")
    opts = {**TRIPS, BUCKETS: "1", TYPE: "MERGE_ON_READ"}
    with pytest.raises(SimulatedCrash):
        HoodieTable("/t", opts, storage=FaultyStorage(storage, [commit])).upsert(
            trips(("a", "x", 5, 5.0))
        )
    forget_process()
    kept = HoodieTable("/t", opts, storage=storage).savepoint()

    HoodieTable("/t", opts, storage=storage).upsert(trips(("b", "x", 1, 1.0)))

    assert set(kept.files) <= set(storage.files)
    assert HoodieTable("/t", storage=storage).inspect.verify().damage == ()


def test_files_of_a_downgraded_timeline_have_the_times_of_completion(tmp_path: Path) -> None:
    """Hudi on the JVM tells by them which log files a compaction has merged."""
    opts = {**TRIPS, BUCKETS: "1", TYPE: "MERGE_ON_READ", VERSION: "9"}
    opts["hoodie.table.timeline.timezone"] = "UTC"
    table = HoodieTable(str(tmp_path), opts)
    _history(table)
    ends = {i.time: i.completion_time for i in table.timeline.completed}

    table.downgrade(6)

    older = HoodieTable(str(tmp_path))
    assert older.properties.timeline_in_utc
    written = {
        i.time: format_time(os.stat(tmp_path / instant_path(i)).st_mtime_ns // 10**6, True)
        for i in older.timeline.completed
    }
    assert written.items() >= ends.items()
