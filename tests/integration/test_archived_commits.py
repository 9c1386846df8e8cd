"""What batches know of commits that have left the active timeline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.environment import RandomIds
from hoodie_ds.errors import WriteConflictError
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.messages import TaskCommitMessage, TaskId
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.testing import MemoryStorage, SimClock
from tests.tables import BUCKETS, TRIPS, TYPE, TYPES, found, trips

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
