"""What a read, a begin and a commit cost does not grow with the commits on the timeline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any, cast
from unittest.mock import patch

import pyarrow as pa
import pytest

from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import CorruptFileError
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.reader.scanner import Scanner
from hoodie_ds.reader.snapshot import SnapshotQuery
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.messages import TaskId
from hoodie_ds.sink.pinned_timeline import forget_pinned, pin_timeline
from hoodie_ds.sink.replay_guard import BatchId, ReplayGuard
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.testing.memory import MemoryStorage
from hoodie_ds.testing.simulated import SimClock, SimIds
from hoodie_ds.timeline.bodies.commit_metadata import CommitMetadata
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.instant_time import following
from hoodie_ds.timeline.loading import load_timeline, read_commit
from hoodie_ds.timeline.paths import SUMMARIES, instant_path
from hoodie_ds.timeline.summaries import newest_summary
from hoodie_ds.timeline.timeline import Timeline
from tests.tables import TYPES
from tests.tiers import by_day

OPTIONS = {
    "path": "/table",
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.bucket.index.num.buckets": "2",
}
TYPE, VERSION = "hoodie.datasource.write.table.type", "hoodie.write.table.version"
VERSIONS = [6, 9]
FILES = {1: "files", 2: "files2"}
"""What summaries of the files are called, by the layout of the timeline."""


class Table:
    """A table in memory that is written to again and again."""

    def __init__(self, table_type: str, version: int = 6, **more: str) -> None:
        self.storage = MemoryStorage()
        self.clock = SimClock()
        self.layout = 1 if version == 6 else 2
        chosen = {TYPE: table_type, VERSION: str(version)}
        self.options = {**OPTIONS, **chosen, **more}
        self.written = 0

    def write(self) -> None:
        options = WriteOptions.parse(self.options)
        rows = pa.record_batch({"id": ["a", "b", "c"], "ts": [self.written] * 3})
        coordinator = Coordinator(options, self.storage, self.clock, SimIds(self.written))
        batch = coordinator.begin(rows.schema)
        coordinator.commit([write_task(batch, TaskId(), None, [rows], sole_writer=True)])
        self.clock.advance(1000)
        self.written += 1

    def grow(self, count: int) -> None:
        """Put commits without files on the timeline, as another engine could."""
        newest = load_timeline(self.storage, self.layout).commits[-1]
        body = replace(read_commit(self.storage, newest), stats=()).to_bytes(self.layout)
        time = newest.ended
        for number in range(count):
            time = f"{int(time) + 1000}" if number % 50 == 49 else following(time)
            instant = replace(newest, time=time)
            if self.layout != 1:
                time = following(time)
                instant = instant.completed(time)
            self.storage.put_if_absent(instant_path(instant), body)
            self.storage.put_if_absent(instant_path(instant.at(State.INFLIGHT)), b"")
            self.storage.put_if_absent(instant_path(instant.at(State.REQUESTED)), b"")

    def is_behind_in_summaries(self) -> bool:
        """Whether there are commits that the newest summary of the files lacks."""
        newest = load_timeline(self.storage, self.layout).commits[-1].time
        return newest_summary(self.storage, FILES[self.layout]).up_to < newest

    def reread(self) -> list[int]:
        """Read what a process would that knows nothing of the table."""
        self.storage = self.storage.copy()
        return self.read()

    def read(self) -> list[int]:
        rows = Scanner(SnapshotQuery(PinnedTable.latest(self.storage)), ["ts"]).to_table()
        return [int(ts) for ts in rows.column("ts").to_pylist()]


def commits_parsed(work: Callable[[], object]) -> Counter[str]:
    """How often the metadata of each commit is parsed while something is done."""
    seen: Counter[str] = Counter()
    parse = CommitMetadata.from_bytes.__func__  # type: ignore[attr-defined]

    def counted(cls: type[CommitMetadata], data: bytes, path: str) -> CommitMetadata:
        seen[path] += 1
        found = parse(cls, data, path)
        assert isinstance(found, CommitMetadata)
        return found

    with patch.object(CommitMetadata, "from_bytes", classmethod(counted)):
        work()
    return seen


@pytest.mark.parametrize("version", VERSIONS)
def test_a_log_file_was_searched_in_all_commits_since_its_slice_began(version: int) -> None:
    """Past 512 commits, which were remembered, every log file had each of them parsed again."""
    table = Table("MERGE_ON_READ", version)
    for _ in range(2):
        table.write()
    table.grow(520)
    table.clock.advance(60_000)
    for _ in range(12):  # each takes a few of those that are not summed up
        table.write()
    rows: list[int] = []
    parsed = commits_parsed(lambda: rows.extend(table.reread()))
    assert rows == [13] * 3
    assert sum(parsed.values()) <= 30, parsed
    rows.clear()
    table.storage.delete(SUMMARIES)
    parsed = commits_parsed(lambda: rows.extend(table.reread()))
    assert rows == [13] * 3
    assert len(parsed) >= 520
    assert max(parsed.values()) <= 2, parsed.most_common(3)
    parsed = commits_parsed(table.read)
    assert sum(parsed.values()) <= 2, parsed


def test_a_damaged_log_file_is_searched_in_all_commits() -> None:
    """Its blocks do not say which one wrote it."""
    table = Table("MERGE_ON_READ")
    for _ in range(3):
        table.write()
    log = next(path for path in table.storage.files if ".log.2" in path)
    table.storage.replace(log, b"x" + table.storage.read(log)[1:])
    with pytest.raises(CorruptFileError, match=r"log\.2_.* was damaged"):
        table.read()


def test_views_of_abandoned_queries_were_never_removed() -> None:
    clock = SimClock()
    storage = MemoryStorage(clock=clock)
    completed = Instant("20260101000000000", Action.COMMIT, State.COMPLETED)
    timeline = Timeline((completed,))
    for query in range(150):
        pin_timeline(storage, BatchId(f"gone{query}", 0), lambda: timeline)
    clock.advance(8 * 24 * 3600 * 1000)
    pin_timeline(storage, BatchId("mine", 4), lambda: timeline)
    pin_timeline(storage, BatchId("another", 7), lambda: timeline)
    forget_pinned(storage, ReplayGuard({"mine": "4"}))
    assert len(storage.files) == 51  # a batch is not held up by what others left
    forget_pinned(storage, ReplayGuard({"mine": "4"}))
    assert list(storage.files) == [".hoodie/.temp/hoodie_ds/views/another_7"]
    clock.advance(8 * 24 * 3600 * 1000)
    forget_pinned(storage, ReplayGuard({"mine": "4"}))
    assert list(storage.files) == [
        ".hoodie/.temp/hoodie_ds/views/another_7"
    ]  # there is no later one


class Counting:
    """Counts the operations of a storage, by name and by how a path begins."""

    def __init__(self, inner: MemoryStorage) -> None:
        self.inner = inner
        self.calls: Counter[str] = Counter()

    def __getattr__(self, name: str) -> object:
        found = getattr(self.inner, name)
        if callable(found):
            self.calls[name] += 1
        return found


@pytest.mark.parametrize(
    ("table_type", "version"),
    by_day(product(TYPES, VERSIONS), {("MERGE_ON_READ", 9)}),
)
def test_a_batch_costs_as_many_operations_after_600_commits_as_after_60(
    table_type: str, version: int
) -> None:
    costs: list[tuple[int, dict[str, int], int, dict[str, int]]] = []
    for length in (60, 600):
        table = Table(table_type, version)
        table.write()
        table.write()
        table.grow(length)
        table.clock.advance(60_000)
        while table.written < 30 or (table.is_behind_in_summaries() and table.written < 90):
            table.write()
        inner = table.storage.copy()  # of which this process knows nothing
        counting = Counting(inner)
        table.storage = cast(MemoryStorage, counting)
        parsed = commits_parsed(table.write)
        written = dict(counting.calls)
        table.read()
        counting.calls.clear()
        again = commits_parsed(table.read)
        counting.calls["read"] -= sum(".log." in path for path in inner.files)  # by own writes
        costs.append((sum(parsed.values()), written, sum(again.values()), dict(counting.calls)))
    costs[0][1]["read"] += 1  # the summary of the timeline
    assert costs[0] == costs[1]


@pytest.mark.parametrize("version", VERSIONS)
def test_an_idle_stream_had_all_its_empty_commits_read(version: int) -> None:
    """To see how file groups are named, every commit back to one with files was read."""
    table = Table("COPY_ON_WRITE", version)
    table.write()
    table.grow(200)
    table.clock.advance(60_000)
    options = WriteOptions.parse(table.options)
    rows = pa.record_batch({"id": ["a"], "ts": [1]})
    new = Coordinator(options, table.storage.copy(), table.clock, SimIds(9))
    assert sum(commits_parsed(lambda: new.begin(rows.schema)).values()) < 30
    table.write()
    assert table.reread() == [1] * 3


def test_all_small_commits_were_read_for_the_size_of_a_row() -> None:
    more: dict[str, Any] = {
        "hoodie.index.type": "BLOOM",
        "hoodie.datasource.write.operation": "insert",
    }
    table = Table("COPY_ON_WRITE", **more)
    for _ in range(60):
        table.write()
    table.storage = table.storage.copy()
    assert sum(commits_parsed(table.write).values()) < 50
    assert len(table.read()) == 61 * 3
