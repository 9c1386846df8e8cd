"""What is summed up of the commits: it spares reading them, and never changes an answer."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from threading import Event
from typing import cast

import pytest

from hoodie_ds.errors import CorruptFileError, HoodieError, StorageError
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.reader.scanner import Scanner
from hoodie_ds.reader.snapshot import SnapshotQuery
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.gathered_files import LiveFiles
from hoodie_ds.table.live_files import forget_completed, replaced_ids
from hoodie_ds.testing import (
    CRASHES,
    ERRORS,
    FaultyStorage,
    Kind,
    MemoryStorage,
    Recorder,
    SimClock,
    SimulatedCrash,
)
from hoodie_ds.testing.sweep import fault_points
from hoodie_ds.timeline.instant import State
from hoodie_ds.timeline.loading import load_timeline
from hoodie_ds.timeline.paths import SUMMARIES, instant_path
from hoodie_ds.timeline.summaries import read_summaries
from hoodie_ds.timeline.timeline import Timeline
from tests.faults.regressions.test_growth import FILES, VERSIONS, Table, commits_parsed

KINDS = ["COPY_ON_WRITE", "MERGE_ON_READ"]


def summed_up(kind: str, writes: int = 22, version: int = 6) -> Table:
    table = Table(kind, version)
    for _ in range(writes):
        table.write()
    assert summaries(table)
    return table


def summaries(table: Table) -> list[LiveFiles]:
    kind, make = FILES[table.layout], partial(LiveFiles.from_json, table.layout)
    return list(read_summaries(table.storage, kind, make))


def newest_files(storage: MemoryStorage) -> Iterator[str]:
    for found in PinnedTable.latest(storage).slices():
        yield from (file.path for file in (found.base, *found.logs) if file is not None)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_new_process_misses_any_file_of_a_summed_up_table(kind: str, version: int) -> None:
    table = summed_up(kind, version=version)
    paths = list(newest_files(table.storage))
    assert len(paths) >= 2
    for path in paths:
        damaged = table.storage.copy()
        damaged.delete(path)
        with pytest.raises(CorruptFileError, match="is missing"):
            Scanner(SnapshotQuery(PinnedTable.latest(damaged))).to_table()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_commit_that_was_taken_back_does_not_count(version: int) -> None:
    """As another engine does: the newest commits go, with their files."""
    table = summed_up("COPY_ON_WRITE", 20, version=version)
    for number in range(19, 15, -1):
        assert table.reread() == [number] * 3
        newest = load_timeline(table.storage, table.layout).commits[-1]
        for path in table.storage.files:
            if newest.time in path and not path.startswith(".hoodie"):
                table.storage.delete(path)
        for step in (newest, newest.at(State.INFLIGHT), newest.at(State.REQUESTED)):
            table.storage.delete(instant_path(step))
    assert table.reread() == [15] * 3


@pytest.mark.parametrize("version", VERSIONS)
def test_an_older_summary_is_taken_where_the_newest_is_not_true_any_more(version: int) -> None:
    table = summed_up("COPY_ON_WRITE", 40, version=version)
    newest = load_timeline(table.storage, table.layout).commits[-1]
    for path in table.storage.files:
        if newest.time in path and not path.startswith(f"{SUMMARIES}/"):
            table.storage.delete(path)
    parsed = commits_parsed(lambda: table.reread())
    assert len(parsed) < 25
    assert table.reread() == [38] * 3


def test_a_summary_with_a_pending_instant_as_completed_is_deleted() -> None:
    """In layout 1, where nothing else tells the files that the instant gets from those it had."""
    table = summed_up("MERGE_ON_READ")
    (newest, *_) = summaries(table)
    commits = list(load_timeline(table.storage, 1).commits)
    (known,) = (i for i in commits if i == newest.seen.first_commit)
    later = next(i for i in commits if newest.seen.commit_at(i.time) is None)
    forget_completed(table.storage, later.at(State.INFLIGHT))
    assert summaries(table)
    forget_completed(table.storage, known.at(State.INFLIGHT))
    assert not summaries(table)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_new_process_knows_what_was_replaced(version: int) -> None:
    table = Table("COPY_ON_WRITE", version)
    table.write()
    table.options["hoodie.datasource.write.operation"] = "insert_overwrite_table"
    for _ in range(25):
        table.write()
    timeline = load_timeline(table.storage, table.layout)
    expected = replaced_ids(table.storage.copy(), timeline)
    assert sum(map(len, expected.values())) == 25 * 2
    bare = table.storage.copy()
    bare.delete(SUMMARIES)
    assert replaced_ids(bare, timeline) == expected
    parsed = commits_parsed(lambda: replaced_ids(table.storage.copy(), timeline))
    assert len(parsed) < 10
    older = Timeline.of(timeline.instants[:10], layout=table.layout)
    assert sum(map(len, replaced_ids(table.storage.copy(), older).values())) == 9 * 2
    assert table.reread() == [25] * 3


@pytest.mark.parametrize("version", VERSIONS)
def test_another_table_at_the_same_place_is_not_taken_for_the_one_before(version: int) -> None:
    table = summed_up("COPY_ON_WRITE", version=version)
    assert table.read() == [21] * 3
    for path in table.storage.files:
        table.storage.delete(path)
    table.clock.advance(60_000)
    for _ in range(3):
        table.write()
    assert table.read() == [24] * 3
    path = next(newest_files(table.storage))
    table.storage.delete(path)
    with pytest.raises(CorruptFileError, match="is missing"):
        table.read()


def test_a_commit_succeeds_where_nothing_can_be_summed_up() -> None:
    class Full(MemoryStorage):
        def replace(self, path: str, data: bytes) -> None:
            if path.startswith(SUMMARIES):
                raise StorageError("no room")
            super().replace(path, data)

    table = Table("COPY_ON_WRITE")
    table.storage = Full()
    for _ in range(22):
        table.write()
    assert table.read() == [21] * 3
    assert not [path for path in table.storage.files if path.startswith(SUMMARIES)]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_damaged_summary_is_read_past(version: int) -> None:
    table = summed_up("MERGE_ON_READ", version=version)
    storage: Storage = table.storage
    (path,) = (path for path in table.storage.files if path.startswith(f"{SUMMARIES}/files"))
    storage.replace(path, b"x" + storage.read(path)[1:])
    assert table.reread() == [21] * 3
    for _ in range(20):
        table.write()
    assert summaries(table)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("is_new", [False, True])
def test_log_files_of_archived_commits_are_read(is_new: bool, version: int) -> None:
    table = summed_up("MERGE_ON_READ", 30, version=version)
    assert table.read() == [29] * 3
    for instant in load_timeline(table.storage, table.layout).commits[:20]:
        for state in State:
            table.storage.delete(instant_path(instant.at(state)))
    assert (table.reread() if is_new else table.read()) == [29] * 3
    table.write()
    assert (table.reread() if is_new else table.read()) == [30] * 3


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_process_may_end_or_fail_while_it_sums_up(kind: str, version: int) -> None:
    table = Table(kind, version)
    for _ in range(19):
        table.write()
    start, tried = table.storage, 0

    def twentieth(storage: FaultyStorage) -> None:
        again = Table(kind, version)
        again.clock, again.written = SimClock(table.clock.now_ms()), 19
        again.storage = cast(MemoryStorage, storage)
        again.write()

    recorder = Recorder()
    twentieth(FaultyStorage(start.copy(), recorder=recorder))
    put = (o for o in recorder.operations if o.kind is Kind.PUT)
    committed = next(o.number for o in put if o.path.endswith("commit"))
    wanted = [o for o in recorder.operations if SUMMARIES in o.path and o.number > committed]
    assert {Kind.REPLACE, Kind.LIST} <= {one.kind for one in wanted}
    for _, fault in fault_points(wanted, CRASHES | ERRORS):
        left = start.copy()
        with suppress(SimulatedCrash, HoodieError):
            twentieth(FaultyStorage(left, [fault]))
        table.storage, table.written = left, 20
        assert table.reread() == [19] * 3
        table.clock.advance(60_000)
        table.write()
        assert table.reread() == [20] * 3
        tried += 1
    assert tried >= 8


def test_a_child_of_a_fork_does_not_wait_for_a_thread_of_its_parent() -> None:
    """Which held a lock while it read commits."""
    table = summed_up("MERGE_ON_READ")
    sixth = instant_path(load_timeline(table.storage, table.layout).commits[5])
    reading, forked = Event(), Event()
    begun = table.storage.copy()
    begun.delete(SUMMARIES)  # so that there are commits to read

    def slow_read(path: str) -> bytes:
        if path == sixth:
            reading.set()
            assert forked.wait(60)
        return MemoryStorage.read(begun, path)

    begun.read = slow_read  # type: ignore[method-assign]
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(
            lambda: Scanner(SnapshotQuery(PinnedTable.latest(begun))).to_table().num_rows
        )
        assert reading.wait(60)
        child = os.fork()
        if child == 0:
            begun.read = partial(MemoryStorage.read, begun)  # type: ignore[method-assign]
            signal.alarm(20)
            os._exit(Scanner(SnapshotQuery(PinnedTable.latest(begun))).to_table().num_rows)
        forked.set()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
        assert read.result() == 3
