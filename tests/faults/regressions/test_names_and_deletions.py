"""Files that a writer deletes by name, and the name may be that of a committed file by then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import CorruptFileError, HoodieError, NotFoundError
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.sink.batch import Batch
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.messages import TaskCommitMessage, TaskId
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.storage.local import LocalStorage
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.file_slice import FileSlice
from hoodie_ds.testing import (
    FaultyStorage,
    Kind,
    MemoryStorage,
    Operation,
    SimClock,
    SimIds,
    one_thread,
)
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.loading import load_timeline
from hoodie_ds.timeline.paths import instant_path, marker_path
from hoodie_ds.transaction.recovery import sweep
from hoodie_ds.transaction.rollback import roll_back
from hoodie_ds.transaction.temporary_files import left_over
from tests.faults.pairs import Play
from tests.faults.schedules import Phase, explore
from tests.faults.stopped import FURTHER
from tests.tables import BUCKETS, TRIPS, TYPE, trips
from tests.unit.transaction.failed_tables import (
    DONE,
    FAILED,
    MIXED_LOG,
    OLD_BASE,
    PURE_LOG,
    FixedClock,
    begin,
    commit,
    data_block,
    data_files,
    new_table,
    put_file,
)

MOR = {**TRIPS, TYPE: "MERGE_ON_READ", BUCKETS: "1"}
OLD = trips(("a", "x", 1, 1.0), ("b", "x", 1, 1.0))
MINE = trips(("a", "x", 2, 2.0))
YOURS = trips(("b", "x", 2, 3.0))
WITH_YOURS = [("a", 1.0), ("b", 3.0)]


@pytest.fixture
def storage() -> Storage:
    return MemoryStorage()


def fares(storage: object) -> list[tuple[str, float]]:
    rows = HoodieTable("/t", storage=cast(Storage, storage)).read(["id", "fare"]).to_pylist()
    return sorted((row["id"], row["fare"]) for row in rows)


def written(
    storage: object, rows: pa.Table, clock: SimClock, **more: str
) -> tuple[Coordinator, TaskCommitMessage]:
    """A batch whose driver has come to its commit."""
    coordinator = coordinator_of(storage, clock, **more)
    batch = coordinator.begin(rows.schema)
    return coordinator, task(batch, rows)


def coordinator_of(storage: object, clock: SimClock, **more: str) -> Coordinator:
    options = WriteOptions.parse({**MOR, **more, "path": "/t"})
    return Coordinator(options, cast(Storage, storage), clock, SimIds(str(id(clock))))


def task(batch: Batch, rows: pa.Table) -> TaskCommitMessage:
    return write_task(batch, TaskId(), None, rows.to_batches(), sole_writer=True)


class Stopped(LocalStorage):
    """A disk of a process that is stopped while its log file is open."""

    __slots__ = ("meanwhile", "then")
    meanwhile: Callable[[], object]
    then: Exception | None

    def __init__(
        self, root: str, meanwhile: Callable[[], object], then: Exception | None = None
    ) -> None:
        super().__init__(root)
        object.__setattr__(self, "meanwhile", meanwhile)
        object.__setattr__(self, "then", then)

    @contextmanager
    def open_output(self, path: str) -> Iterator[BinaryIO]:
        with LocalStorage.open_output(self, path) as file:
            yield file
            if ".log." in path:
                self.meanwhile()
                if self.then is not None:
                    raise self.then


@pytest.mark.parametrize("then", [None, OSError(5, "disk error")])
def test_a_writer_that_goes_on_deletes_the_log_file_of_the_one_that_took_over(
    tmp_path: Path, then: Exception | None
) -> None:
    """01: after the rollback the next writer's log file had the same name."""
    root = str(tmp_path)
    HoodieTable(root, MOR).upsert(OLD)
    stopped = Stopped(root, lambda: HoodieTable(root, MOR).upsert(YOURS), then)
    with pytest.raises(HoodieError):
        HoodieTable(root, MOR, storage=stopped).upsert(MINE)
    assert fares(LocalStorage(root)) == WITH_YOURS
    HoodieTable(root, MOR).upsert(MINE)
    assert fares(LocalStorage(root)) == [("a", 2.0), ("b", 3.0)]


def test_a_rollback_that_goes_on_deletes_the_log_file_of_the_next_writer() -> None:
    """01b: recovery was stopped before it deleted a file that others had deleted since."""
    table, clock = MemoryStorage(), SimClock()
    HoodieTable("/t", MOR, storage=table).upsert(OLD)
    written(table, MINE, clock)  # and its driver dies
    done: list[str] = []

    def before(operation: Operation) -> None:
        if operation.kind is Kind.DELETE and ".log." in operation.path and not done:
            done.append(operation.path)
            HoodieTable("/t", MOR, storage=table).upsert(YOURS)

    storage = FaultyStorage(table, before_each=before)
    HoodieTable("/t", MOR, storage=cast(Storage, storage)).upsert(MINE)
    assert done
    assert fares(table) == [("a", 2.0), ("b", 3.0)]


def test_the_clean_up_of_a_failed_write_takes_the_file_that_has_its_name_by_now(
    tmp_path: Path,
) -> None:
    storage = LocalStorage(str(tmp_path))

    def fail() -> None:
        with storage.open_output("file"):
            storage.delete("file")
            storage.put_if_absent("file", b"another's")
            raise OSError(5, "disk error")

    with pytest.raises(HoodieError, match="disk error"):
        fail()
    assert storage.read("file") == b"another's"


DRIVER = (
    Phase("begin"),
    Phase("manifest", Kind.PUT, ("*/manifest_2.json",)),
    Phase("look for lost files", Kind.READ, ("*.marker.*",)),
)
EAGER = (*DRIVER[:2], Phase("delete lost files", Kind.DELETE, ("x/*",)))


@pytest.mark.parametrize("phases", [DRIVER, EAGER])
def test_a_driver_left_behind_deletes_what_its_successor_commits_in_the_same_instant(
    phases: tuple[Phase, ...],
) -> None:
    """Both write the last micro-batch of an instant; each took the other's files for lost ones."""
    play = Play("same-instant", *FURTHER["a driver left behind in an instant of several batches"])
    first, second = play.actors
    actors = replace(first, phases=phases), replace(second, phases=DRIVER[:2])
    with one_thread():
        assert explore(play.fresh, actors, play.check, ["baaba"]) == 1


def test_a_file_of_a_lost_attempt_is_seen_by_readers_that_list_folders() -> None:
    """It has to go before the commit shows: its name is that of a committed instant then."""
    table, clock = MemoryStorage(), SimClock()
    HoodieTable("/t", MOR, storage=table).upsert(OLD)
    seen: list[bool] = []

    def before(operation: Operation) -> None:
        if operation.kind is Kind.PUT and "/decisions/" in operation.path:
            seen.append(lost.statuses[0].stat.path in table.files)

    storage = FaultyStorage(table, before_each=before)
    coordinator = coordinator_of(storage, clock)
    batch = coordinator.begin(MINE.schema)
    rows = MINE.to_batches()
    lost, kept = (write_task(batch, TaskId(attempt=n), None, rows) for n in (1, 2))
    coordinator.commit([kept])
    assert seen == [False]


def test_a_log_file_whose_name_another_engine_may_take_stays(storage: Storage) -> None:
    """In table version 6 Hudi follows the newest log file: next version, same token."""
    table = new_table(storage, hoodie__datasource__write__table__type="MERGE_ON_READ")
    own = PURE_LOG.replace(DONE, FAILED)
    put_file(table, OLD_BASE)
    commit(table, DONE, OLD_BASE, action=Action.DELTA_COMMIT)
    instant = begin(table, FAILED, Action.DELTA_COMMIT, ours=False)
    put_file(table, PURE_LOG, data_block(FAILED), marker=FAILED)
    put_file(table, own, data_block(FAILED))  # of a slice that begins with the failed write
    roll_back(table, instant, FixedClock())
    command = PURE_LOG.replace("2_0-2-2", "3_1-0-1")
    assert data_files(storage) == sorted([OLD_BASE, PURE_LOG, command])


def test_a_log_file_of_an_earlier_release_stays(storage: Storage) -> None:
    """Its names were not its own: the marker is empty."""
    table = new_table(storage, hoodie__datasource__write__table__type="MERGE_ON_READ")
    put_file(table, OLD_BASE)
    commit(table, DONE, OLD_BASE, action=Action.DELTA_COMMIT)
    instant = begin(table, FAILED, Action.DELTA_COMMIT)
    put_file(table, PURE_LOG, data_block(FAILED), marker=FAILED)
    roll_back(table, instant, FixedClock())
    assert PURE_LOG in data_files(storage)
    assert PURE_LOG.replace("2_0-2-2", "3_1-0-1") in data_files(storage)


@pytest.mark.parametrize("completed", [False, True])
def test_a_sweep_leaves_log_files_whose_name_another_engine_may_take(
    storage: Storage, completed: bool
) -> None:
    table = new_table(storage, hoodie__datasource__write__table__type="MERGE_ON_READ")
    mine = MIXED_LOG.replace("1_0-2-2", "3_0-77-88")
    commit(table, DONE, OLD_BASE, action=Action.DELTA_COMMIT)
    if completed:
        commit(table, FAILED, action=Action.DELTA_COMMIT)
    put_file(table, PURE_LOG, data_block(FAILED), marker=FAILED)
    storage.put_if_absent(mine, data_block(FAILED))
    storage.put_if_absent(marker_path(FAILED, mine, "APPEND"), b"an attempt")
    found = left_over(storage)
    sweep(table, load_timeline(storage, 1), found)
    assert data_files(storage) == [PURE_LOG]


def dead_log(storage: MemoryStorage) -> tuple[PinnedTable, list[FileSlice]]:
    """A read that was planned while a dead writer's log file was there."""
    HoodieTable("/t", MOR, storage=storage).upsert(OLD)
    written(storage, MINE, SimClock())
    snapshot = PinnedTable.latest(storage)
    return snapshot, list(snapshot.slices())


def read(snapshot: PinnedTable, slices: list[FileSlice]) -> list[tuple[str, float]]:
    tables = [t for s in slices for t in snapshot.reader().read(s, ["id", "fare"])]
    return sorted((row["id"], row["fare"]) for t in tables for row in t.to_pylist())


def test_a_read_that_was_planned_before_a_rollback_needs_what_was_never_committed() -> None:
    """17: the executor found the log file gone."""
    storage = MemoryStorage()
    snapshot, slices = dead_log(storage)
    HoodieTable("/t", MOR, storage=storage).upsert(trips(("c", "y", 1, 1.0)))
    assert read(snapshot, slices) == [("a", 1.0), ("b", 1.0)]


def test_a_read_still_needs_what_is_committed() -> None:
    storage = MemoryStorage()
    HoodieTable("/t", MOR, storage=storage).upsert(OLD)
    HoodieTable("/t", MOR, storage=storage).upsert(YOURS)
    snapshot = PinnedTable.latest(storage)
    slices: list[FileSlice] = list(snapshot.slices())
    storage.delete(next(path for path in storage.files if ".log." in path))
    with pytest.raises(NotFoundError, match=r"\.log\.1_"):
        read(snapshot, slices)


@pytest.mark.parametrize("cleaned", [False, True])
def test_a_read_of_a_slice_that_began_before_the_timeline(cleaned: bool) -> None:
    """Another engine has archived its commits; only a cleaning takes their files away."""
    storage = MemoryStorage()
    HoodieTable("/t", MOR, storage=storage).upsert(OLD)
    HoodieTable("/t", MOR, storage=storage).upsert(trips(("c", "y", 1, 1.0)))
    first = load_timeline(storage, 1).commits[0]
    for state in State:
        storage.delete(instant_path(first.at(state)))
    written(storage, MINE, SimClock())
    snapshot = PinnedTable.latest(storage)
    slices: list[FileSlice] = list(snapshot.slices())
    if cleaned:
        clean = Instant("29990101000000000", Action.CLEAN, State.COMPLETED)
        storage.put_if_absent(instant_path(clean), b"")
    storage.delete(next(path for path in storage.files if ".log." in path and "/.temp" not in path))
    if cleaned:
        with pytest.raises(NotFoundError, match=r"\.log\.1_"):
            read(snapshot, slices)
    else:
        assert read(snapshot, slices) == [("a", 1.0), ("b", 1.0), ("c", 1.0)]


@pytest.mark.parametrize("named", [False, True])
def test_a_torn_log_file_that_was_rolled_back_by_a_command_stays_readable(named: bool) -> None:
    """It has no marker any more; without a commit that names it nobody misses what is torn."""
    storage = MemoryStorage()
    snapshot, slices = dead_log(storage)
    if named:
        HoodieTable("/t", MOR, storage=storage).upsert(YOURS)
        snapshot = PinnedTable.latest(storage)
        slices = list(snapshot.slices())
    log = next(path for path in storage.files if ".log." in path and not path.startswith(".hoodie"))
    torn = storage.read(log)
    storage.replace(log, torn[:40] + bytes(len(torn) - 40))
    storage.delete(".hoodie/.temp")
    if named:
        with pytest.raises(CorruptFileError):
            read(snapshot, slices)
    else:
        assert read(snapshot, slices) == [("a", 1.0), ("b", 1.0)]


def test_a_log_file_that_is_rolled_back_while_it_is_read_is_passed_over() -> None:
    """It was torn when it was read, and gone when the reader looked again."""
    table = MemoryStorage()
    snapshot, slices = dead_log(table)
    log = next(path for path in table.files if ".log." in path and not path.startswith(".hoodie"))
    table.replace(log, table.read(log)[:40])

    def before(operation: Operation) -> None:
        if operation.kind is Kind.LIST:  # of the markers
            table.delete(".hoodie/.temp")
            table.delete(log)

    storage = cast(Storage, FaultyStorage(table, before_each=before))
    seen = replace(snapshot, table=replace(snapshot.table, storage=storage))
    assert read(seen, slices) == [("a", 1.0), ("b", 1.0)]


@pytest.mark.parametrize("ends", ["in a rollback", "whole", "torn"])
def test_a_log_file_of_an_old_slice_is_read_again_if_it_was_torn(ends: str) -> None:
    """What names it may be archived: the file itself tells, when it is looked at once more."""
    table = MemoryStorage()
    HoodieTable("/t", MOR, storage=table).upsert(OLD)
    HoodieTable("/t", MOR, storage=table).upsert(trips(("c", "y", 1, 1.0)))
    first = load_timeline(table, 1).commits[0]
    for state in State:
        table.delete(instant_path(first.at(state)))
    written(table, MINE, SimClock())
    snapshot = PinnedTable.latest(table)
    slices = list(snapshot.slices())
    (log,) = (log.path for slice_ in slices for log in slice_.logs)
    whole = table.read(log)
    table.replace(log, whole[:40])
    table.delete(".hoodie/.temp")

    def before(operation: Operation) -> None:
        if operation.kind is Kind.LIST and ends == "in a rollback":  # the markers are listed
            table.delete(log)
        elif operation.kind is Kind.LIST and ends == "whole":
            table.replace(log, whole)

    storage = cast(Storage, FaultyStorage(table, before_each=before))
    seen = replace(snapshot, table=replace(snapshot.table, storage=storage))
    if ends == "torn":
        with pytest.raises(CorruptFileError):
            read(seen, slices)
    else:
        assert read(seen, slices) == [("a", 1.0), ("b", 1.0), ("c", 1.0)]
