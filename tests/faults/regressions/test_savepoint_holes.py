"""Another engine keeps the commit of a savepoint and archives those after it: a hole."""

from __future__ import annotations

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.sink.pinned_timeline import pin_timeline
from hoodie_ds.sink.replay_guard import BatchId
from hoodie_ds.testing import MemoryStorage, SimClock, SimIds, check_table
from hoodie_ds.timeline.instant_time import following
from hoodie_ds.timeline.timeline import load_timeline
from tests.faults.foreign import archive, savepoint
from tests.tables import BUCKETS, TRIPS, TYPE, TYPES, found, trips


def _table(kind: str, commits: int = 4) -> tuple[MemoryStorage, HoodieTable, list[str]]:
    storage = MemoryStorage(clock=SimClock())
    opts = {**TRIPS, BUCKETS: "1", TYPE: kind}
    table = HoodieTable("/t", opts, storage=storage, clock=SimClock(), ids=SimIds())
    for number in range(commits):
        table.upsert(trips(("a", "x", number, float(number))))
    table.upsert(trips(("z", "y", 1, 1.0)))
    return storage, table, [instant.time for instant in table.timeline.commits]


@pytest.mark.parametrize("kind", TYPES)
def test_rows_of_commits_archived_after_a_savepoint_vanished(kind: str) -> None:
    storage, table, times = _table(kind)
    savepoint(storage, times[0])
    archive(storage, times[1:4])
    assert found(table) == [("a", "x", 3, 3.0), ("z", "y", 1, 1.0)]


@pytest.mark.parametrize("kind", TYPES)
def test_a_write_made_older_rows_the_newest(kind: str) -> None:
    storage, table, times = _table(kind)
    savepoint(storage, times[0])
    archive(storage, times[1:4])
    table.upsert(trips(("n", "x", 9, 9.0)))
    assert found(table) == [("a", "x", 3, 3.0), ("n", "x", 9, 9.0), ("z", "y", 1, 1.0)]
    assert check_table(storage.files, settled=True, buckets=True, archived=times[1:4]) == []


def test_what_lies_between_savepoints_is_committed_where_all_commits_have_one() -> None:
    storage, table, times = _table("COPY_ON_WRITE")
    savepoint(storage, times[0])
    savepoint(storage, times[4])
    archive(storage, times[1:4])
    assert found(table) == [("a", "x", 3, 3.0), ("z", "y", 1, 1.0)]


def test_a_savepoint_that_is_being_made_hides_no_commit() -> None:
    storage, table, times = _table("COPY_ON_WRITE")
    storage.put_if_absent(f".hoodie/{times[-1]}.savepoint.inflight", b"")
    timeline = load_timeline(storage, 1)
    assert timeline.commit_at(times[-1]) is not None
    assert not timeline.is_pending(times[-1])
    table.upsert(trips(("b", "x", 1, 1.0)))
    assert len(found(table)) == 3


def test_files_of_a_pinned_view_with_savepoints_are_those_of_its_timeline() -> None:
    storage, _, times = _table("COPY_ON_WRITE")
    savepoint(storage, times[0])
    seen = [
        pin_timeline(storage, BatchId("q", 0), lambda: load_timeline(storage, 1)) for _ in range(2)
    ]
    assert seen[0] == seen[1]
    assert seen[1].is_committed(following(times[0]))
