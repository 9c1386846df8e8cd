"""What batches know of commits that have left the active timeline."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.environment import RandomIds
from hoodie_ds.errors import TimelineError, WriteConflictError
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.messages import TaskCommitMessage, TaskId
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.testing import MemoryStorage, SimClock
from tests.tables import BUCKETS, TRIPS, TYPE, TYPES, VERSION, found, trips

_KEEP: Final = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.commits.retained": "1",
}
_SHARED: Final = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
_WRITER: Final = "hoodie.datasource.write.streaming.checkpoint.identifier"
_NUMBER: Final = "hoodie.datasource.write.batch.identifier"


@dataclass
class Writer:
    """One batch of a writer, step by step."""

    coordinator: Coordinator
    city: str
    fare: float

    def __post_init__(self) -> None:
        rows = trips(("a", self.city, 100, self.fare))
        self._rows = rows
        self._batch = self.coordinator.begin(rows.schema)
        self._message: TaskCommitMessage | None = None

    def write(self) -> None:
        self._message = write_task(
            self._batch, TaskId(), None, self._rows.to_batches(), sole_writer=True
        )

    def commit(self) -> None:
        assert self._message is not None
        self.coordinator.commit([self._message])


def _table(kind: str, **more: str) -> tuple[MemoryStorage, dict[str, str], HoodieTable]:
    storage = MemoryStorage(clock=SimClock())
    options = {**TRIPS, **_KEEP, BUCKETS: "1", TYPE: kind, **more}
    table = HoodieTable("/t", options, storage=storage, clock=SimClock())
    for number in range(3):
        table.upsert(trips(("a", "x", number, 1.0)))
    return storage, options, table


def _coordinator(storage: MemoryStorage, options: dict[str, str]) -> Coordinator:
    parsed = WriteOptions.parse({**options, "path": "/t"})
    return Coordinator(parsed, storage, SimClock(), RandomIds())


@pytest.mark.parametrize("kind", TYPES)
def test_a_write_that_was_pending_and_is_archived_conflicts(kind: str) -> None:
    """The slow writer has seen it pending, and finds nothing of it on the timeline."""
    storage, options, table = _table(kind, **_SHARED)
    first = Writer(_coordinator(storage, options), "x", 7.0)
    first.write()
    second = Writer(_coordinator(storage, options), "y", 8.0)
    second.write()
    slow = Writer(_coordinator(storage, options), "x", 9.0)
    slow.write()
    first.commit()
    second.commit()
    for number in range(5):
        table.upsert(trips(("b", "z", number, 1.0)))
    before = table.timeline.num_completed
    assert len(table.archive()) == 4 == before - table.timeline.num_completed
    with pytest.raises(WriteConflictError, match="or what followed it was archived"):
        slow.commit()
    assert ("a", "x", 100, 7.0) in found(table)


@pytest.mark.parametrize("kind", TYPES)
def test_a_batch_that_saw_nothing_of_what_is_left_conflicts(kind: str) -> None:
    """It began, and opens its instant after all that it has seen was archived."""
    storage, options, table = _table(kind, **_SHARED)
    slow = Writer(_coordinator(storage, options), "x", 9.0)
    for number in range(8):
        table.upsert(trips(("a", "x", 200 + number, 1.0)))
    table.archive()
    slow.write()
    with pytest.raises(WriteConflictError):
        slow.commit()
    assert found(table) == [("a", "x", 207, 1.0)]


@pytest.mark.parametrize("kind", TYPES)
def test_a_batch_beside_archiving_that_took_nothing_from_it_commits(kind: str) -> None:
    storage, options, table = _table(kind, **_SHARED)
    table.upsert(trips(("b", "y", 1, 1.0)))
    batch = Writer(_coordinator(storage, options), "x", 9.0)
    batch.write()
    assert table.archive()
    batch.commit()
    assert ("a", "x", 100, 9.0) in found(table)


@pytest.mark.parametrize("kind", TYPES)
def test_batches_of_archived_commits_are_recognised(kind: str) -> None:
    """Each writer's last commit is in the archive, of some along with what the others wrote."""
    storage, options, table = _table(kind)
    batches = [(f"writer {n}", trips((f"k{n}", "x", 1, float(n)))) for n in range(25)]
    for writer, rows in batches:
        table.upsert(rows, {_WRITER: writer, _NUMBER: "5"})
    for _ in range(2):
        table.upsert(trips(("a", "x", 9, 1.0)))
    rows_before = found(table)
    table.archive()
    assert table.timeline.num_completed == 2
    fresh = HoodieTable("/t", options, storage=storage.copy(), clock=SimClock())
    for writer, rows in batches:
        assert fresh.upsert(rows, {_WRITER: writer, _NUMBER: "5"}).already_committed
    assert found(fresh) == rows_before


def _kept(path: Path, version: str, kind: str, savepoint: int | None = None) -> HoodieTable:
    """A table of eight commits of which the archive has all but three and one with a savepoint."""
    table = HoodieTable(str(path), {**TRIPS, TYPE: kind, VERSION: version, BUCKETS: "1"})
    for number in range(8):
        table.upsert(trips(("a", "x", number, float(number)), (f"b{number}", "x", 0, 0.0)))
        if number == savepoint:
            table.savepoint()
    return table


_ARCHIVED: Final = {
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "4",
    "hoodie.clean.commits.retained": "2",
    "hoodie.archive.beyond.savepoint": "true",
}


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("savepoint", [None, 1])
def test_the_first_commit_that_is_not_archived_cannot_be_rolled_back(
    version: str, savepoint: int | None, tmp_path: Path
) -> None:
    """It tells readers that what is older has been archived; without it they would pass it over."""
    table = _kept(tmp_path, version, "MERGE_ON_READ", savepoint)
    table.archive(_ARCHIVED)
    for _ in range(1 if savepoint else 2):
        table.rollback()
    rows = found(table)
    assert len(rows) == (8 if savepoint else 7)
    with pytest.raises(TimelineError, match="is the first commit that is not archived"):
        table.rollback()
    assert found(table) == rows


def test_the_first_commit_can_be_rolled_back_where_nothing_is_archived(tmp_path: Path) -> None:
    table = _kept(tmp_path, "9", "COPY_ON_WRITE", 0)
    for _ in range(7):
        table.rollback()
    assert [row[0] for row in found(table)] == ["a", "b0"]


def _images(changes: list[dict[str, Any]]) -> list[tuple[str, object, object]]:
    told = (
        (c["op"], *(json.loads(c[side] or "null") for side in ("before", "after"))) for c in changes
    )
    return sorted((op, old and old["fare"], new and new["fare"]) for op, old, new in told)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("savepoint", [None, 1])
def test_changes_of_the_first_commit_after_the_archive(
    version: str, kind: str, savepoint: int | None, tmp_path: Path
) -> None:
    """What the archived commits wrote is what the rows were before."""
    table = _kept(tmp_path, version, kind, savepoint)
    before = table.timeline.commits
    table.archive(_ARCHIVED)
    number = 6 if savepoint else 5
    assert [i.time for i in table.timeline.commits if i.time > before[1].time] == [
        i.time for i in before[number:]
    ]
    begin, end = (i.time if version == "6" else i.ended for i in before[number - 1 : number + 1])
    changes = table.read_changes(begin, end).to_pylist()
    assert _images(changes) == [("i", None, 0.0), ("u", number - 1.0, float(number))]


@pytest.mark.parametrize("version", ["6", "9"])
def test_time_travel_beside_a_savepoint_that_the_archive_passed_over(
    version: str, tmp_path: Path
) -> None:
    table = _kept(tmp_path, version, "COPY_ON_WRITE", 1)
    _, kept, after, *others = (instant.time for instant in table.timeline.commits)
    table.archive(_ARCHIVED)
    rows = {row["id"]: row["fare"] for row in table.read(as_of=kept).to_pylist()}
    assert rows == {"a": 1.0, "b0": 0.0, "b1": 0.0}
    assert {row["fare"] for row in table.read(as_of=others[-2]).to_pylist()} == {6.0, 0.0}
    for gone in (after, others[0]):
        with pytest.raises(TimelineError, match="its commits have been archived"):
            table.read(as_of=gone)


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("kind", TYPES)
def test_changes_of_a_slice_that_was_cleaned_beside_one_that_a_savepoint_keeps(
    version: str, kind: str, tmp_path: Path
) -> None:
    """The older slice is not what the newer one was."""
    table = HoodieTable(str(tmp_path), {**TRIPS, TYPE: kind, VERSION: version, BUCKETS: "1"})
    table.upsert(trips(("a", "x", 1, 1.0)))
    table.savepoint()
    for number in (2, 3, 4):
        table.upsert(trips(("a", "x", number, float(number))))
        if kind == "MERGE_ON_READ":
            table.compact()
    bounds = [i.time if version == "6" else i.ended for i in table.timeline.commits]
    table.overwrite(trips(("b", "x", 5, 5.0)))
    last = table.timeline.commits[-1]
    for number in (6, 7, 8):
        table.upsert(trips(("b", "x", number, 8.0)))
    table.clean({"hoodie.clean.commits.retained": "1"})
    ranges = [(bounds[-1], last.time if version == "6" else last.ended)]
    ranges.append((bounds[1], bounds[2]) if kind == "COPY_ON_WRITE" else (bounds[2], bounds[3]))
    for begin, end in ranges:
        with pytest.raises(TimelineError, match="not known any more"):
            table.read_changes(begin, end)
