"""A clean beside writers and readers: nobody loses rows, and who is too far behind is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.environment import RandomIds, SystemClock
from hoodie_ds.errors import (
    CorruptFileError,
    NotFoundError,
    TimelineError,
    WriteConflictError,
)
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.reader.scanner import Scanner
from hoodie_ds.reader.snapshot import SnapshotQuery
from hoodie_ds.sink.batch import Batch
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.messages import TaskCommitMessage, TaskId
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.testing import FaultyStorage, MemoryStorage
from tests.tables import BUCKETS, TRIPS, TYPE, TYPES, found, trips

_SHARED = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
_POLICIES = {
    "commits": {"hoodie.clean.commits.retained": "1"},
    "versions": {
        "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
        "hoodie.clean.fileversions.retained": "1",
    },
}
_BLOOM = {BUCKETS: "", "hoodie.index.type": "BLOOM", "hoodie.index.bloom.num_entries": "100"}
_ROWS = [trips(("a", "x", ts, float(ts)), ("b", "x", ts, float(ts))) for ts in range(10)]


@dataclass
class _Table:
    """A table in memory, and a writer of it that takes its time."""

    options: Mapping[str, str]
    storage: MemoryStorage = field(default_factory=MemoryStorage)

    @property
    def given(self) -> dict[str, str]:
        return {k: v for k, v in {**TRIPS, **self.options, "path": "/t"}.items() if v}

    @property
    def by_hand(self) -> HoodieTable:
        return HoodieTable("/t", self.given, storage=self.storage)

    def upsert(self, *numbers: int) -> None:
        for number in numbers:
            self.by_hand.upsert(_ROWS[number])

    def begin(self) -> tuple[Coordinator, Batch]:
        parsed = WriteOptions.parse(self.given)
        late = Coordinator(parsed, self.storage, SystemClock(), RandomIds())
        return late, late.begin(_ROWS[9].schema)


def _write(batch: Batch) -> TaskCommitMessage:
    return write_task(batch, TaskId(), None, _ROWS[9].to_batches(), sole_writer=True)


@pytest.mark.parametrize("policy", _POLICIES)
@pytest.mark.parametrize("index", [{}, _BLOOM], ids=["bucket", "bloom"])
@pytest.mark.parametrize("is_archived", [False, True])
def test_a_batch_that_began_before_the_retention_is_refused(
    policy: str, index: dict[str, str], is_archived: bool
) -> None:
    table = _Table({**_SHARED, **_POLICIES[policy], **index})
    table.upsert(1)
    first = table.by_hand.timeline.latest_time
    assert first is not None
    table.by_hand.upsert(trips(("c", "y", 1, 1.0)))
    for path in [p for p in table.storage.files if p.startswith(".hoodie/") and first in p]:
        if is_archived:
            table.storage.delete(path)
    late, batch = table.begin()
    table.upsert(2, 3)
    table.by_hand.clean()
    # What it saw of the file groups is gone, so to it they look as if there were none.
    took = r"clean \d{17} took "
    if is_archived:  # then no commit says that there were any
        message = _write(batch)
        with pytest.raises(WriteConflictError, match=took + "files of file group x/"):
            late.commit([message])
        late.abort([message])
    else:
        with pytest.raises(WriteConflictError, match=took + "x/.*can be run again"):
            _write(batch)
    assert found(table.by_hand)[:2] == [("a", "x", 3, 3.0), ("b", "x", 3, 3.0)]
    table.upsert(4)
    assert found(table.by_hand)[:2] == [("a", "x", 4, 4.0), ("b", "x", 4, 4.0)]


def test_a_clean_whose_plan_is_gone_may_have_taken_anything() -> None:
    table = _Table({**_SHARED, **_POLICIES["commits"]})
    table.upsert(1, 2, 3)
    late, batch = table.begin()
    table.by_hand.clean()
    message = _write(batch)
    for path in table.storage.files:
        if path.endswith(".clean.requested"):
            table.storage.delete(path)
    with pytest.raises(WriteConflictError, match="has an unreadable plan"):
        late.commit([message])


@pytest.mark.parametrize("mode", [{}, _SHARED], ids=["single", "several"])
@pytest.mark.parametrize("policy", _POLICIES)
@pytest.mark.parametrize("kind", TYPES)
def test_a_batch_goes_on_beside_a_clean_that_left_it_what_it_needs(
    kind: str, policy: str, mode: dict[str, str]
) -> None:
    table = _Table({**mode, **_POLICIES[policy], TYPE: kind})
    table.upsert(1, 2, 3)
    late, batch = table.begin()
    cleaned = table.by_hand.clean()
    assert bool(cleaned) is (kind != "MERGE_ON_READ")
    message = _write(batch)
    assert not table.by_hand.clean()  # beside the open instant
    late.commit([message])
    assert found(table.by_hand) == [("a", "x", 9, 9.0), ("b", "x", 9, 9.0)]


def test_a_batch_goes_on_beside_a_clean_of_what_it_saw_superseded() -> None:
    """Others began file groups meanwhile, of which the clean took nothing."""
    table = _Table({**_SHARED, **_POLICIES["versions"], TYPE: "COPY_ON_WRITE"})
    table.upsert(1, 2)
    late, batch = table.begin()
    table.by_hand.upsert(trips(("c", "y", 1, 1.0)))
    assert table.by_hand.clean()
    rows = trips(("d", "z", 1, 1.0))
    late.commit([write_task(batch, TaskId(), None, rows.to_batches(), sole_writer=True)])
    of_x = [("a", "x", 2, 2.0), ("b", "x", 2, 2.0)]
    assert found(table.by_hand) == [*of_x, ("c", "y", 1, 1.0), ("d", "z", 1, 1.0)]


@pytest.mark.parametrize("policy", _POLICIES)
def test_an_open_instant_keeps_what_its_writer_may_look_at(policy: str) -> None:
    table = _Table({**_SHARED, **_POLICIES[policy], **_BLOOM})
    table.upsert(1, 2)
    late, batch = table.begin()
    message = _write(batch)
    table.upsert(3, 4, 5)
    cleaned = table.by_hand.clean()
    assert bool(cleaned) is (policy != "commits")
    second = {s.stat.prev_commit for s in message.statuses if s.stat.prev_commit != "null"}
    listed = [path for path in table.storage.files if path.endswith(".parquet")]
    assert second
    assert all(any(f"_{time}.parquet" in path for path in listed) for time in second)
    with pytest.raises(WriteConflictError, match="while this batch was written"):
        late.commit([message])


def _read(table: _Table, between: Callable[[], object]) -> int:
    """Read a snapshot, something else being done once its timeline is loaded."""
    snapshot = PinnedTable.latest(table.storage)
    between()
    return Scanner(SnapshotQuery(snapshot)).to_table().num_rows


def test_a_reader_that_is_behind_the_retention_is_told_to_read_again() -> None:
    table = _Table(_POLICIES["commits"])
    table.upsert(1, 2)

    def between() -> None:
        table.upsert(3, 4)
        table.by_hand.clean()

    with pytest.raises(TimelineError, match=r"clean \d{17} took x/.*; read again"):
        _read(table, between)


def test_a_file_that_no_clean_took_is_missed_beside_one() -> None:
    table = _Table(_POLICIES["commits"])
    table.upsert(1, 2, 3)

    def between() -> None:
        assert table.by_hand.clean()
        bases = [path for path in table.storage.files if path.endswith(".parquet")]
        table.storage.delete(max(bases, key=lambda path: path.rpartition("_")[2]))

    with pytest.raises(CorruptFileError, match="is missing"):
        _read(table, between)


def test_a_reader_within_the_retention_goes_on() -> None:
    table = _Table({"hoodie.clean.commits.retained": "2"})
    table.upsert(1, 2, 3, 4)

    def between() -> None:
        table.upsert(5)
        assert table.by_hand.clean()

    assert _read(table, between) == 2
    assert table.by_hand.read().num_rows == 2


@pytest.mark.parametrize("kind", TYPES)
def test_the_table_is_read_and_replaced_file_groups_go(kind: str) -> None:
    table = _Table({**_POLICIES["commits"], TYPE: kind})
    table.upsert(1)
    table.by_hand.overwrite(_ROWS[2])
    table.upsert(3)
    (plan,) = (one.plan for one in table.by_hand.clean())
    assert not set(plan.paths) & set(table.storage.files)
    assert found(table.by_hand) == [("a", "x", 3, 3.0), ("b", "x", 3, 3.0)]
    table.upsert(4)
    assert found(table.by_hand) == [("a", "x", 4, 4.0), ("b", "x", 4, 4.0)]
    with pytest.raises(NotFoundError):
        table.storage.read(plan.paths[0])


def _requests_of_a_clean(partitions: int, commits: int) -> tuple[int, int]:
    """Requests of a clean of one partition, and how many files it deletes."""
    table = _Table({**_POLICIES["commits"], BUCKETS: "1"})
    for ts in range(5 + commits):
        everywhere = trips(*(("a", f"p{n:02}", ts, 0.0) for n in range(partitions)))
        table.by_hand.upsert(everywhere if ts < 3 else everywhere.slice(0, 1))
    table.by_hand.clean()
    table.by_hand.upsert(trips(("a", "p00", 98, 0.0)))
    table.by_hand.upsert(trips(("a", "p00", 99, 0.0)))
    asked = FaultyStorage(table.storage)
    (plan,) = (one.plan for one in HoodieTable("/t", table.given, storage=asked).clean())
    return len(asked.recorder.operations), len(plan.paths)


def test_a_clean_costs_what_was_superseded_whatever_the_table_holds() -> None:
    small = _requests_of_a_clean(partitions=2, commits=0)
    # The memory of commits is the process' own, so a storage that it has not seen reads them.
    assert _requests_of_a_clean(partitions=12, commits=0) == small
    assert _requests_of_a_clean(partitions=2, commits=9) == small
    assert small[1] == 2
