"""Archiving a table: nothing is lost, whoever is killed where, and nothing is seen that was not."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from itertools import count, product
from typing import Final

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.environment import RandomIds
from hoodie_ds.errors import CorruptFileError, TimelineError
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.reader.scanner import Scanner
from hoodie_ds.reader.snapshot import SnapshotQuery
from hoodie_ds.services.archiving import archive, archive_if_due
from hoodie_ds.services.context import ServiceContext
from hoodie_ds.storage.protocol import FileStatus, Storage
from hoodie_ds.testing import MemoryStorage, SimClock, SimIds, check_table
from hoodie_ds.timeline.archive.archived_timeline import archived_instants
from hoodie_ds.timeline.archive.lsm_snapshot import newest_snapshot
from hoodie_ds.timeline.bodies.commit_metadata import CommitMetadata
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.loading import load_timeline
from hoodie_ds.timeline.paths import LAYOUTS, UNDONE, instant_path, marker_folder, marker_path
from hoodie_ds.timeline.rollback_marks import MOST_FILES, mark_undone, marked_times
from hoodie_ds.timeline.timeline import Timeline
from tests.archived import archived, rows_of
from tests.faults.stream import Step, run
from tests.tables import BUCKETS, TRIPS, TYPE, TYPES, found, trips
from tests.tiers import by_day
from tests.unit.transaction.failed_tables import DyingStorage, KilledError, Result

VERSION: Final = "hoodie.write.table.version"
_KEEP: Final = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "4",
    "hoodie.clean.commits.retained": "1",
}


def _options(version: str, kind: str) -> dict[str, str]:
    return {**TRIPS, **_KEEP, BUCKETS: "1", TYPE: kind, VERSION: version}


@cache
def _written(version: str, kind: str, commits: int) -> MemoryStorage:
    storage, options = MemoryStorage(clock=SimClock()), _options(version, kind)
    table = HoodieTable("/t", options, storage=storage, clock=SimClock(), ids=SimIds())
    for number in range(commits):
        table.upsert(trips(("a", "x", number, 1.0), (f"k{number}", "y", 1, 2.0)))
    return storage


class _Place:
    """A table of a version, of which six commits are too many."""

    def __init__(self, version: str, kind: str = "COPY_ON_WRITE", commits: int = 6) -> None:
        self.layout = 1 if version == "6" else 2
        self.options = _options(version, kind)
        self.storage = _written(version, kind, commits).copy()
        self.table = self.opened(self.storage)

    def opened(self, storage: Storage) -> HoodieTable:
        return HoodieTable("/t", self.options, storage=storage, clock=SimClock(), ids=RandomIds())

    @property
    def timeline(self) -> Timeline:
        return load_timeline(self.storage, self.layout)

    @property
    def steps(self) -> set[Instant]:
        """What lies in the folder of the active timeline."""
        layout = LAYOUTS[self.layout]
        names = [path[len(layout.folder) + 1 :] for path in self.storage.files]
        return {step for step in map(layout.parse, names) if step is not None}

    @property
    def done(self) -> set[Instant]:
        return {step for step in self.steps if step.state is State.COMPLETED}

    @property
    def archived(self) -> list[Instant]:
        return archived(self.storage)

    def instant(self, time: str, action: Action, state: State) -> Instant:
        instant = Instant(time, action, state, layout=self.layout)
        end = time if self.layout == 2 and state is State.COMPLETED else ""
        return replace(instant, completion_time=end)

    def put(self, instant: Instant, body: bytes = b"") -> None:
        self.storage.put_if_absent(instant_path(instant), body)


@pytest.fixture(params=["6", "9"])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


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


@pytest.mark.parametrize("kind", TYPES)
def test_the_oldest_instants_are_in_the_archive_then_and_the_rows_are_the_same(
    version: str, kind: str
) -> None:
    place = _Place(version, kind)
    table = place.table
    rows, times = found(table), [instant.time for instant in table.timeline.commits]
    done = table.archive()
    assert [i.time for i in done] == times[:4]
    assert [i.time for i in table.timeline.commits] == times[4:]
    assert place.archived == list(done.done)
    assert not [step for step in place.steps if step.time in times[:4]]
    assert found(table) == rows
    table.upsert(trips(("b", "x", 9, 1.0)))
    assert found(table) == sorted([*rows, ("b", "x", 9, 1.0)])
    files = place.storage.files
    assert check_table(files, settled=True, buckets=True, archived=times[:4]) == []


def test_dry_changes_nothing_and_says_what_would_be_archived(version: str) -> None:
    place = _Place(version)
    before = dict(place.storage.files)
    would = place.table.archive(dry=True)
    assert dict(place.storage.files) == before
    assert would.work.files_deleted > 0
    assert place.table.archive() == replace(would, dry=False)
    assert len(would) == 4
    gone = before.keys() - place.storage.files.keys()
    assert would.work.files_deleted == len(gone)
    assert would.work.bytes_deleted == sum(len(before[path]) for path in gone)


def test_where_nothing_is_due_nothing_is_written(version: str) -> None:
    place = _Place(version, commits=4)
    before = dict(place.storage.files)
    assert not place.table.archive()
    archive_if_due(_context(place.storage), place.timeline)
    assert dict(place.storage.files) == before


def test_after_a_commit_it_is_archived_if_it_is_due(version: str) -> None:
    place = _Place(version)
    archive_if_due(_context(place.storage), place.timeline)
    assert place.timeline.num_completed == 2


def test_a_table_without_the_property_has_its_archive_where_hudi_looks() -> None:
    place = _Place("6")
    storage, table = place.storage, place.table
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
    assert len(place.archived) == 4


def test_the_archive_of_a_long_table_has_few_files() -> None:
    place = _Place("9", commits=5)
    few = {"hoodie.timeline.compaction.batch.size": "2"}
    for number in range(8):
        archive(_context(place.storage, **few))
        for fare in range(3):
            place.table.upsert(trips(("a", "x", 100 * number + fare, 1.0)))
    times = [instant.time for instant in place.archived]
    assert times == sorted(set(times))
    assert len(times) == 3 * 8
    assert [file.level for file in newest_snapshot(place.storage).files] == [3]


SOME_ENDS = [("6", TYPES[0], False, 3), ("9", TYPES[1], True, 3)]


@pytest.mark.parametrize(
    ("version", "kind", "after", "every"),
    by_day([*SOME_ENDS, *product("69", TYPES, (False, True), [1])], SOME_ENDS),
)
def test_interrupted_archiving_is_resumed(version: str, kind: str, after: bool, every: int) -> None:
    """Each instant is on the timeline or in the archive, and none looks unfinished."""
    for number in count(1, every):
        place = _Place(version, kind)
        storage, table = place.storage, place.table
        rows, done = found(table), place.done
        try:
            archive(_context(DyingStorage(storage, number, after=after)))
        except KilledError:
            pass
        else:
            break
        before = set(place.archived)
        assert place.done | before == done
        assert place.timeline.pending == ()
        assert found(table) == rows
        table.archive()
        for fare in range(3 if number % 4 == 0 else 1):
            table.upsert(trips(("z", "x", fare, 1.0)))
        table.archive()
        assert found(table) == sorted([*rows, ("z", "x", fare, 1.0)])
        assert set(place.archived) >= before
        assert place.timeline.num_completed <= 4
        assert place.timeline.pending == ()
        if place.layout == 2:
            assert len(place.archived) == len(set(place.archived))
    assert number > 20


def test_a_second_archiver_at_the_same_time_does_no_harm(version: str) -> None:
    """It begins at each step of the first one."""
    for number in range(1, 60):
        place = _Place(version)
        storage, rows, done = place.storage, found(place.table), place.done
        other = _Interrupted(storage, number, partial(archive, _context(storage)))
        archive(_context(other))
        assert {*place.archived, *place.done} >= done
        assert place.timeline.pending == ()
        assert place.timeline.num_completed == 2
        assert found(place.table) == rows
        if place.layout == 2:
            assert len(place.archived) == 4


_Seen = list[tuple[list[tuple[str, str, int, float]], Timeline]]


def _look(table: HoodieTable, seen: _Seen) -> None:
    seen.append((found(table), table.timeline))


def test_readers_see_the_same_rows_throughout_archiving(version: str) -> None:
    """Nor a hole, behind which other engines would not find them."""
    for number in range(1, 60):
        place = _Place(version, "MERGE_ON_READ")
        rows, commits = found(place.table), place.timeline.commits
        seen: _Seen = []
        look = partial(_look, place.table, seen)
        archive(_context(_Interrupted(place.storage, number, look)))
        for there, timeline in seen:
            assert (there, timeline.pending) == (rows, ())
            assert timeline.commits == commits[-len(timeline.commits) :]


def test_archiving_holds_the_lock_if_there_are_other_writers(version: str) -> None:
    place = _Place(version)
    storage = place.storage
    shared = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
    locked: list[FileStatus] = []
    other = _Interrupted(storage, 25, lambda: locked.extend(storage.list(".hoodie/.locks/leases")))
    archive(_context(other, **shared))
    assert locked
    assert place.timeline.num_completed == 2


def test_what_a_late_task_left_is_deleted_before_its_commit_is_archived(version: str) -> None:
    place = _Place(version)
    storage, table = place.storage, place.table
    rows, time = found(table), table.timeline.commits[0].time
    late = f"y/{'7' * 8}-0000-0000-0000-000000000000-0_5-5-5_{time}.parquet"
    data = next(data for path, data in storage.files.items() if path.endswith(f"_{time}.parquet"))
    storage.put_if_absent(marker_path(time, late, "CREATE"), b"late")
    storage.put_if_absent(late, data)
    assert found(table) == rows
    assert len(table.archive()) == 4
    assert late not in storage.files
    assert found(table) == rows


def test_an_instant_with_a_task_at_work_is_not_archived(version: str) -> None:
    place = _Place(version)
    storage = place.storage
    times = [instant.time for instant in place.timeline.commits]
    path = marker_path(times[2], f"y/late_{times[2]}.parquet", "CREATE")

    storage.put_if_absent(path, b"late")
    again = _Interrupted(
        storage, marker_folder(times[2]), lambda: storage.replace(f"{path}.2", b"late")
    )
    done = archive(_context(again))
    assert [i.time for i in done] == times[:2]


def test_a_late_file_of_an_instant_whose_rollback_is_archived_does_not_count(version: str) -> None:
    place = _Place(version, commits=1)
    storage, table = place.storage, place.table
    failed = []
    for number in range(6):
        failed.append(str(int(table.timeline.latest_time or "") + 1))
        instant = place.instant(failed[-1], Action.COMMIT, State.REQUESTED)
        place.put(instant)
        inflight = CommitMetadata(operation_type="UPSERT").to_bytes(place.layout, inflight=True)
        place.put(instant.at(State.INFLIGHT), inflight)
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
def test_a_file_that_came_after_a_rollback_is_gone_before_it_could_count(
    version: str, kind: str
) -> None:
    """To readers that list folders, as soon as its instant lies before the first commit."""
    place = _Place(version, kind, commits=3)
    storage, table = place.storage, place.table
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


def test_a_rollback_without_a_plan_leaves_no_mark(version: str) -> None:
    place = _Place(version, commits=2)
    for number in range(5):
        place.put(place.instant(f"2025010100000000{number}", Action.ROLLBACK, State.COMPLETED))
    assert len(place.table.archive()) == 3
    assert not place.storage.list(".hoodie/.locks/undone")


def test_marks_of_undone_instants_stay_few(version: str) -> None:
    place = _Place(version, commits=2)
    before = [f"2024010100{n:07d}" for n in range(MOST_FILES + 1)]
    for time in before:
        mark_undone(place.storage, time)
    for number in range(6):
        place.table.upsert(trips(("a", "x", 10 + number, 1.0)))
    place.table.archive()
    assert len(place.storage.list(UNDONE)) == 1
    assert marked_times(place.storage) == set(before)


def test_a_savepoint_and_its_commit_stay_together(version: str) -> None:
    place = _Place(version)
    table = place.table
    times = [instant.time for instant in table.timeline.commits]
    table.savepoint(times[1])
    beyond = {"hoodie.archive.beyond.savepoint": "true"}
    rows = found(table)
    archive(_context(place.storage, **beyond))
    assert [i.time for i in table.timeline.commits] == [times[1], times[5]]
    assert [i.time for i in table.timeline.savepoints] == [times[1]]
    assert found(table) == rows


def test_a_compaction_goes_with_its_plan(version: str) -> None:
    place = _Place(version, "MERGE_ON_READ")
    plan, inflight, done = (
        place.instant("20250101000000000", Action.COMPACTION, state) for state in State
    )
    body = place.storage.read(instant_path(place.timeline.commits[0]))
    place.put(plan, b"what it was to do" if place.layout == 2 else b"")
    place.put(inflight)
    place.put(done, body)
    place.table.archive()
    assert not [step for step in place.steps if step.time == done.time]
    assert place.archived[0].action is Action.COMMIT
    if place.layout == 2:
        row = next(row for row in rows_of(place.storage) if row["instantTime"] == done.time)
        assert (row["plan"], row["metadata"]) == (b"what it was to do", body)


def test_a_damaged_file_of_the_timeline_is_not_archived(version: str) -> None:
    place = _Place(version)
    storage = place.storage
    path = instant_path(place.timeline.commits[1])
    storage.replace(path, storage.read(path).replace(b"UPSERT", b"INSERT"))
    before = {path: data for path, data in storage.files.items() if ".locks" not in path}
    with pytest.raises(CorruptFileError, match=path):
        place.table.archive()
    assert {p: data for p, data in storage.files.items() if ".locks" not in p} == before


def test_while_a_restore_is_pending_nothing_is_archived(version: str) -> None:
    place = _Place(version)
    restore = place.instant("20270101000000000", Action.RESTORE, State.REQUESTED)
    place.put(restore)
    for dry in (False, True):
        with pytest.raises(TimelineError, match=f"restore {restore.time} is pending"):
            place.table.archive(dry=dry)


@pytest.mark.parametrize("kind", TYPES)
def test_a_reader_that_has_begun_continues_during_archiving(version: str, kind: str) -> None:
    """Another process than the writer's, which has the timeline and no commit of it yet."""
    place = _Place(version, kind)
    rows = found(place.table)
    fresh = place.storage.copy()
    snapshot = PinnedTable.latest(fresh)
    HoodieTable("/t", _KEEP, storage=fresh).archive()
    assert load_timeline(fresh, place.layout).num_completed == 2
    read = Scanner(SnapshotQuery(snapshot), ["id", "city", "ts", "fare"]).to_table().to_pylist()
    assert sorted(tuple(row.values()) for row in read) == rows


@pytest.mark.parametrize("kind", TYPES)
def test_a_savepoint_is_deleted_whose_neighbours_were_archived(version: str, kind: str) -> None:
    """Its commit would begin the timeline then, and what was archived after it would not count."""
    place = _Place(version, kind)
    table = place.table
    times = [instant.time for instant in table.timeline.commits]
    table.savepoint(times[1])
    archive(_context(place.storage, **{"hoodie.archive.beyond.savepoint": "true"}))
    rows = found(table)
    table.delete_savepoint(times[1])
    assert found(table) == rows
    assert [i.time for i in table.timeline.commits] == times[5:]
    assert [i.time for i in place.archived] == times[:5]
    table.upsert(trips(("a", "x", 50, 1.0)))
    table.clean()
    assert found(table) == [("a", "x", 50, 1.0), *rows[1:]]


def test_a_task_at_work_under_the_commit_of_a_savepoint_keeps_it(version: str) -> None:
    place = _Place(version)
    storage, table = place.storage, place.table
    time = table.savepoint(table.timeline.commits[1].time).time
    archive(_context(storage, **{"hoodie.archive.beyond.savepoint": "true"}))
    late = f"y/{'7' * 8}-0000-0000-0000-000000000000-0_5-5-5_{time}.parquet"
    path = marker_path(time, late, "CREATE")
    storage.put_if_absent(path, b"late")
    again = _Interrupted(storage, marker_folder(time), lambda: storage.replace(f"{path}.2", b"x"))
    with pytest.raises(TimelineError, match="a task that writes under it is still at work"):
        place.opened(again).delete_savepoint(time)
    assert [i.time for i in table.timeline.savepoints] == [time]
    rows = found(table)
    storage.put_if_absent(late, storage.read(next(p for p in storage.files if time in p[-30:])))
    table.delete_savepoint(time)
    assert late not in storage.files
    assert found(table) == rows


def test_a_savepoint_without_archived_neighbours_leaves_its_commit(version: str) -> None:
    table = _Place(version).table
    times = [instant.time for instant in table.timeline.commits]
    for is_archived in (False, True):
        if is_archived:
            assert len(table.archive()) == 4
            times = times[4:]
        table.savepoint(times[1])
        table.delete_savepoint(times[1])
        assert [i.time for i in table.timeline.commits] == times
