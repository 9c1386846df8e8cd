"""Archiving a table: nothing is lost, whoever is killed where, and nothing is seen that was not."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Final

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.environment import RandomIds
from hoodie_ds.errors import CorruptFileError, TimelineError
from hoodie_ds.reader.snapshot import Snapshot
from hoodie_ds.services.archiving import archive, archive_if_due
from hoodie_ds.services.context import ServiceContext
from hoodie_ds.storage.protocol import FileStatus, Storage
from hoodie_ds.testing import MemoryStorage, SimClock, SimIds, check_table
from hoodie_ds.timeline.archive.archived_timeline import archived_instants
from hoodie_ds.timeline.commit_metadata import CommitMetadata
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.layout.v1 import V1
from hoodie_ds.timeline.paths import instant_path, marker_path, temp_folder
from hoodie_ds.timeline.timeline import load_timeline
from tests.faults.stream import Step, run
from tests.tables import BUCKETS, TRIPS, TYPE, TYPES, found, trips
from tests.unit.transaction.failed_tables import DyingStorage, KilledError, Result

_ARCHIVE: Final = ".hoodie/archived"
_KEEP: Final = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "4",
    "hoodie.clean.commits.retained": "1",
}


@cache
def _written(kind: str, commits: int) -> MemoryStorage:
    storage = MemoryStorage(clock=SimClock())
    options = {**TRIPS, **_KEEP, BUCKETS: "1", TYPE: kind}
    table = HoodieTable("/t", options, storage=storage, clock=SimClock(), ids=SimIds())
    for number in range(commits):
        table.upsert(trips(("a", "x", number, 1.0), (f"k{number}", "y", 1, 2.0)))
    return storage


def _table(kind: str = "COPY_ON_WRITE", commits: int = 6) -> tuple[MemoryStorage, HoodieTable]:
    storage = _written(kind, commits).copy()
    options = {**TRIPS, **_KEEP, BUCKETS: "1", TYPE: kind}
    return storage, HoodieTable("/t", options, storage=storage, clock=SimClock(), ids=RandomIds())


def _context(storage: Storage, **more: str) -> ServiceContext:
    options = WriteOptions.parse({"path": "/t", **_KEEP, **more})
    return ServiceContext(options, storage, SimClock(), RandomIds())


class _Interrupted(DyingStorage):
    """Passes operations on, and lets something happen before the n-th, or a listing of a folder."""

    def __init__(self, inner: Storage, before: int | str, happens: Callable[[], object]) -> None:
        super().__init__(inner, 0, after=False)
        self._before = before
        self._happens = happens

    def _do(self, operation: Callable[[], Result]) -> Result:
        if isinstance(self._before, int):
            self._before -= 1
            if self._before == 0:
                self._happens()
        return operation()

    def list(
        self, path: str, recursive: bool = False, *, folders: bool = False
    ) -> builtins.list[FileStatus]:
        if path == self._before:
            self._happens()
        return super().list(path, recursive, folders=folders)


def _steps(storage: MemoryStorage) -> set[Instant]:
    names = (path.rpartition("/")[2] for path in storage.files if path.count("/") == 1)
    return {step for step in map(V1.parse, names) if step is not None}


@pytest.mark.parametrize("kind", TYPES)
def test_the_oldest_instants_are_in_the_archive_then_and_the_rows_are_the_same(kind: str) -> None:
    storage, table = _table(kind)
    rows, times = found(table), [instant.time for instant in table.timeline.commits]
    done = table.archive()
    assert [i.time for i in done] == times[:4]
    assert [i.time for i in table.timeline.commits] == times[4:]
    assert archived_instants(storage, _ARCHIVE) == done.done
    assert not [step for step in _steps(storage) if step.time in times[:4]]
    assert found(table) == rows
    table.upsert(trips(("b", "x", 9, 1.0)))
    assert found(table) == sorted([*rows, ("b", "x", 9, 1.0)])
    assert check_table(storage.files, settled=True, buckets=True, archived=times[:4]) == []


def test_dry_changes_nothing_and_says_what_would_be_archived() -> None:
    storage, table = _table()
    before = dict(storage.files)
    would = table.archive(dry=True)
    assert dict(storage.files) == before
    assert would.work.files_deleted > 0
    assert table.archive() == replace(would, dry=False)
    assert len(would) == 4
    gone = before.keys() - storage.files.keys()
    assert would.work.files_deleted == len(gone)
    assert would.work.bytes_deleted == sum(len(before[path]) for path in gone)


def test_where_nothing_is_due_nothing_is_written() -> None:
    storage, table = _table(commits=4)
    before = dict(storage.files)
    assert not table.archive()
    archive_if_due(_context(storage), load_timeline(storage, 1))
    assert dict(storage.files) == before


def test_after_a_commit_it_is_archived_if_it_is_due() -> None:
    storage, _ = _table()
    archive_if_due(_context(storage), load_timeline(storage, 1))
    assert load_timeline(storage, 1).num_completed == 2


def test_a_table_without_the_property_has_its_archive_where_hudi_looks() -> None:
    storage, table = _table()
    text = storage.read(".hoodie/hoodie.properties").decode()
    assert "hoodie.archivelog.folder=archived" in text
    other = text.replace("hoodie.archivelog.folder=archived", "hoodie.archivelog.folder=history")
    storage.replace(".hoodie/hoodie.properties", other.encode())
    table.archive()
    assert len(archived_instants(storage, ".hoodie/history")) == 4
    without = "".join(x for x in text.splitlines(True) if "archivelog" not in x)
    storage.replace(".hoodie/hoodie.properties", without.encode())
    for number in range(4):
        table.upsert(trips(("a", "x", 10 + number, 1.0)))
    table.archive()
    assert len(archived_instants(storage, _ARCHIVE)) == 4


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("kind", TYPES)
def test_killed_anywhere_it_goes_on(kind: str, after: bool) -> None:
    """Each instant is on the timeline or in the archive, and none looks unfinished."""
    number = 0
    while True:
        number += 1
        storage, table = _table(kind)
        rows, steps = found(table), _steps(storage)
        done = {step for step in steps if step.state is State.COMPLETED}
        try:
            archive(_context(DyingStorage(storage, number, after=after)))
        except KilledError:
            pass
        else:
            break
        archived = set(archived_instants(storage, _ARCHIVE))
        left = _steps(storage)
        assert {step for step in left if step.state is State.COMPLETED} | archived == done
        assert load_timeline(storage, 1).pending == ()
        assert found(table) == rows
        table.archive()
        for fare in range(3 if number % 4 == 0 else 1):
            table.upsert(trips(("z", "x", fare, 1.0)))
        table.archive()
        assert found(table) == sorted([*rows, ("z", "x", fare, 1.0)])
        assert set(archived_instants(storage, _ARCHIVE)) >= {i for i in done if i in archived}
        assert load_timeline(storage, 1).num_completed <= 4
        assert load_timeline(storage, 1).pending == ()
    assert number > 20


def test_a_second_archiver_at_the_same_time_does_no_harm() -> None:
    """It begins at each step of the first one."""
    for number in range(1, 60):
        storage, table = _table()
        rows = found(table)
        steps = {i for i in _steps(storage) if i.state is State.COMPLETED}

        other = _Interrupted(storage, number, partial(archive, _context(storage)))
        archive(_context(other))
        archived = set(archived_instants(storage, _ARCHIVE))
        assert archived | _steps(storage) >= steps
        assert load_timeline(storage, 1).pending == ()
        assert load_timeline(storage, 1).num_completed == 2
        assert found(table) == rows


def _look(table: HoodieTable, seen: list[object]) -> None:
    seen.append((found(table), table.timeline.pending))


def test_no_moment_of_it_shows_other_rows() -> None:
    for number in range(1, 60):
        storage, table = _table("MERGE_ON_READ")
        rows = found(table)
        seen: list[object] = []
        look = partial(_look, table, seen)
        archive(_context(_Interrupted(storage, number, look)))
        assert seen in ([], [(rows, ())])


def test_beside_other_writers_it_holds_the_lock() -> None:
    storage, _ = _table()
    shared = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
    locked: list[FileStatus] = []
    other = _Interrupted(storage, 25, lambda: locked.extend(storage.list(".hoodie/.locks/leases")))
    archive(_context(other, **shared))
    assert locked
    assert load_timeline(storage, 1).num_completed == 2


def test_what_a_late_task_left_is_deleted_before_its_commit_is_archived() -> None:
    storage, table = _table()
    rows, time = found(table), table.timeline.commits[0].time
    late = f"y/{'7' * 8}-0000-0000-0000-000000000000-0_5-5-5_{time}.parquet"
    data = next(data for path, data in storage.files.items() if path.endswith(f"_{time}.parquet"))
    storage.put_if_absent(marker_path(time, late, "CREATE"), b"late")
    storage.put_if_absent(late, data)
    assert found(table) == rows
    assert len(table.archive()) == 4
    assert late not in storage.files
    assert found(table) == rows


def test_an_instant_with_a_task_at_work_is_not_archived() -> None:
    storage, table = _table()
    times = [instant.time for instant in table.timeline.commits]
    path = marker_path(times[2], f"y/late_{times[2]}.parquet", "CREATE")

    storage.put_if_absent(path, b"late")
    again = _Interrupted(
        storage, temp_folder(times[2]), lambda: storage.replace(f"{path}.2", b"late")
    )
    done = archive(_context(again))
    assert [i.time for i in done] == times[:2]


def test_a_late_file_of_an_instant_whose_rollback_is_archived_does_not_count() -> None:
    storage, table = _table(commits=1)
    failed = []
    for number in range(6):
        failed.append(str(int(table.timeline.latest_time or "") + 1))
        instant = Instant(failed[-1], Action.COMMIT, State.REQUESTED)
        storage.put_if_absent(instant_path(instant), b"")
        inflight = CommitMetadata(operation_type="UPSERT").to_bytes(1)
        storage.put_if_absent(instant_path(instant.at(State.INFLIGHT)), inflight)
        table.upsert(trips(("a", "x", 10 + number, 1.0)))  # which rolls it back
    rows, rollbacks = found(table), table.timeline.rollbacks
    done = table.archive()
    assert [i for i in done if i.action is Action.ROLLBACK] == list(rollbacks[:4])
    for number in range(4):
        table.upsert(trips(("a", "x", 20 + number, 1.0)))
    table.archive()
    assert table.timeline.starts_after(failed[0])
    rows = found(table)
    data = next(data for path, data in storage.files.items() if path.endswith(".parquet"))
    for time in failed[:4]:
        late = f"x/{'7' * 8}-0000-0000-0000-000000000000-0_5-5-5_{time}.parquet"
        storage.put_if_absent(late, data)
    assert found(table) == rows
    table.upsert(trips(("b", "x", 1, 1.0)))
    assert found(table) == sorted([*rows, ("b", "x", 1, 1.0)])


@pytest.mark.parametrize("kind", TYPES)
def test_a_file_that_came_after_a_rollback_is_gone_before_it_could_count(kind: str) -> None:
    """To readers that list folders, as soon as its instant lies before the first commit."""
    storage, table = _table(kind, commits=3)
    before = set(storage.files)
    step = Step(trips(("late", "x", 1, 1.0)))
    run(storage, {**TRIPS, BUCKETS: "1", TYPE: kind}, 0, step, 0, commit=False)
    data = {path for path in storage.files.keys() - before if path[:7] != ".hoodie"}
    written = {path: storage.read(path) for path in data}
    assert written
    table.upsert(trips(("a", "x", 10, 1.0)))  # which rolls it back
    failed = table.timeline.rollbacks[0].time
    assert not written.keys() & set(storage.files)
    for path, body in written.items():
        storage.put_if_absent(path, body)
    table.upsert(trips(("a", "x", 11, 1.0), ("b", "y", 1, 1.0)))
    rows = found(table)
    table.archive()
    assert table.timeline.commits[0].time > failed
    assert not written.keys() & set(storage.files)
    assert found(table) == rows


def test_a_rollback_without_a_plan_leaves_no_mark() -> None:
    storage, table = _table(commits=2)
    for number in range(5):
        rollback = Instant(f"2025010100000000{number}", Action.ROLLBACK, State.COMPLETED)
        storage.put_if_absent(instant_path(rollback), b"")
    assert len(table.archive()) == 3
    assert not storage.list(".hoodie/.locks/undone")


def test_a_savepoint_and_its_commit_stay_together() -> None:
    storage, table = _table()
    times = [instant.time for instant in table.timeline.commits]
    table.savepoint(times[1])
    beyond = {"hoodie.archive.beyond.savepoint": "true"}
    rows = found(table)
    archive(_context(storage, **beyond))
    assert [i.time for i in table.timeline.commits] == [times[1], times[5]]
    assert [i.time for i in table.timeline.savepoints] == [times[1]]
    assert found(table) == rows


def test_a_compaction_goes_with_its_plan() -> None:
    storage, table = _table("MERGE_ON_READ")
    compaction = Instant("20250101000000000", Action.COMPACTION, State.REQUESTED)
    body = storage.read(instant_path(table.timeline.commits[0]))
    storage.put_if_absent(instant_path(compaction), b"")
    storage.put_if_absent(instant_path(compaction.at(State.INFLIGHT)), b"")
    storage.put_if_absent(instant_path(compaction.at(State.COMPLETED)), body)
    table.archive()
    assert not [step for step in _steps(storage) if step.time == compaction.time]


def test_a_damaged_file_of_the_timeline_is_not_archived() -> None:
    storage, table = _table()
    path = instant_path(table.timeline.commits[1])
    storage.replace(path, storage.read(path).replace(b"UPSERT", b"INSERT"))
    before = {path: data for path, data in storage.files.items() if ".locks" not in path}
    with pytest.raises(CorruptFileError, match=path):
        table.archive()
    assert {p: data for p, data in storage.files.items() if ".locks" not in p} == before


def test_while_a_restore_is_pending_nothing_is_archived() -> None:
    storage, table = _table()
    restore = Instant("20270101000000000", Action.RESTORE, State.REQUESTED)
    storage.put_if_absent(instant_path(restore), b"")
    for dry in (False, True):
        with pytest.raises(TimelineError, match=f"restore {restore.time} is pending"):
            table.archive(dry=dry)


@pytest.mark.parametrize("kind", TYPES)
def test_who_has_begun_to_read_goes_on(kind: str) -> None:
    """Another process than the writer's, which has the timeline and no commit of it yet."""
    storage, table = _table(kind)
    rows = found(table)
    fresh = storage.copy()
    snapshot = Snapshot.latest(fresh)
    HoodieTable("/t", _KEEP, storage=fresh).archive()
    assert load_timeline(fresh, 1).num_completed == 2
    read = snapshot.read(["id", "city", "ts", "fare"]).to_pylist()
    assert sorted(tuple(row.values()) for row in read) == rows


@pytest.mark.parametrize("kind", TYPES)
def test_a_savepoint_is_deleted_whose_neighbours_were_archived(kind: str) -> None:
    """Its commit would begin the timeline then, and what was archived after it would not count."""
    storage, table = _table(kind)
    times = [instant.time for instant in table.timeline.commits]
    table.savepoint(times[1])
    archive(_context(storage, **{"hoodie.archive.beyond.savepoint": "true"}))
    rows = found(table)
    table.delete_savepoint(times[1])
    assert found(table) == rows
    assert [i.time for i in table.timeline.commits] == times[5:]
    assert times[1] in [i.time for i in archived_instants(storage, _ARCHIVE)]
    table.upsert(trips(("a", "x", 50, 1.0)))
    table.clean()
    assert found(table) == [("a", "x", 50, 1.0), *rows[1:]]


def test_a_savepoint_without_archived_neighbours_leaves_its_commit() -> None:
    _, table = _table()
    times = [instant.time for instant in table.timeline.commits]
    for archived in (False, True):
        if archived:
            assert len(table.archive()) == 4
            times = times[4:]
        table.savepoint(times[1])
        table.delete_savepoint(times[1])
        assert [i.time for i in table.timeline.commits] == times
