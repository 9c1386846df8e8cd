"""The commit of a savepoint is kept, and those after it are archived: a hole.

Other engines do so, and this library with ``hoodie.archive.beyond.savepoint``.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Final

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import TimelineError
from hoodie_ds.inspection.findings import Severity
from hoodie_ds.sink.pinned_timeline import pin_timeline
from hoodie_ds.sink.replay_guard import BatchId
from hoodie_ds.testing import MemoryStorage, SimClock, SimIds, check_table
from hoodie_ds.timeline.instant import Action
from hoodie_ds.timeline.instant_time import following
from hoodie_ds.timeline.loading import load_timeline
from tests.faults.foreign import archive, savepoint
from tests.tables import BUCKETS, TRIPS, TYPE, TYPES, VERSION, found, trips
from tests.tiers import by_day

_WRITER: Final = "hoodie.datasource.write.streaming.checkpoint.identifier"
_NUMBER: Final = "hoodie.datasource.write.batch.identifier"
_BEYOND: Final = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.commits.retained": "1",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.archive.beyond.savepoint": "true",
    "hoodie.parquet.small.file.limit": "0",
}


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


@pytest.mark.parametrize("kind", TYPES)
def test_a_range_that_ends_in_a_hole_ended_before_it(kind: str) -> None:
    """Its last commit is archived, and not the last that is on the active timeline."""
    storage, table, times = _table(kind)
    savepoint(storage, times[0])
    archive(storage, times[1:4])
    for last in (2, 3):
        with pytest.raises(TimelineError, match=f"{times[1]} has been archived"):
            table.read_incremental("000", times[last])
    assert table.read_incremental("000", times[0])["ts"].to_pylist() == [0]


def test_instants_between_savepoints_count_as_committed() -> None:
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


_REPLACING: Final[dict[str, Callable[[HoodieTable], object]]] = {
    "clustering": lambda table: table.cluster(),
    "overwrite": lambda table: table.overwrite(trips(("c", "x", 9, 9.0))),
    "deleted partition": lambda table: table.delete_partitions(["x"]),
}


def _replacing(
    version: str, kind: str, replace: str, *, kept_before: bool = False
) -> tuple[MemoryStorage, HoodieTable, list[str]]:
    """A table with a savepoint of a replacing commit, and one before it; what follows is archived.

    Returns
    -------
    tuple
        Its storage, the table, and the times of its savepoints.
    """
    storage = MemoryStorage(clock=SimClock())
    options = {**TRIPS, **_BEYOND, TYPE: kind, VERSION: version, "hoodie.index.type": "SIMPLE"}
    table = HoodieTable("/t", options, storage=storage, clock=SimClock(), ids=SimIds())
    for name in ("a", "b"):
        table.upsert(trips((name, "x", 1, 1.0)))
    if kept_before:
        table.savepoint()
    _REPLACING[replace](table)
    assert table.timeline.replace_commits[-1].time == table.savepoint().time
    for number in range(6):
        table.upsert(trips((f"y{number}", "y", 1, 1.0)))
    assert len(table.archive()) >= 4
    times = [kept.time for kept in table.timeline.savepoints]
    assert [i.time for i in table.timeline.commits][: len(times)] == times
    return storage, table, times


@pytest.mark.parametrize(
    ("version", "kind", "replace"),
    by_day(
        product(["6", "8", "9"], TYPES, _REPLACING),
        [
            ("6", "MERGE_ON_READ", "clustering"),
            ("8", "COPY_ON_WRITE", "deleted partition"),
            ("9", "COPY_ON_WRITE", "overwrite"),
        ],
    ),
)
def test_a_deleted_savepoint_brought_replaced_rows_back(
    version: str, kind: str, replace: str
) -> None:
    storage, table, (time,) = _replacing(version, kind, replace)
    rows = found(table)
    assert len({row[0] for row in rows}) == len(rows)
    assert table.delete_savepoint(time).time == time
    assert found(table) == rows
    assert not table.timeline.savepoints
    assert table.timeline.commit_at(time) is None
    assert found(HoodieTable("/t", storage=storage.copy())) == rows


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_savepoint_stays_while_an_older_one_keeps_what_its_commit_replaced(version: str) -> None:
    _, table, (older, time) = _replacing(version, "COPY_ON_WRITE", "clustering", kept_before=True)
    rows = found(table)
    with pytest.raises(TimelineError, match=f"savepoint at {older} keeps it: delete that one"):
        table.delete_savepoint(time)
    assert [kept.time for kept in table.timeline.savepoints] == [older, time]
    assert found(table) == rows
    for each in (older, time):
        table.delete_savepoint(each)
        assert found(table) == rows
    assert not table.timeline.savepoints


def test_a_savepoint_stays_while_no_clean_takes_what_its_commit_replaced() -> None:
    storage, table, (time,) = _replacing("9", "COPY_ON_WRITE", "overwrite")
    rows = found(table)
    many = HoodieTable("/t", storage=storage, clock=SimClock())  # ten commits are retained
    with pytest.raises(TimelineError, match="clean the table first, by options that retain less"):
        many.delete_savepoint(time)
    assert found(table) == rows
    table.clean()
    many.delete_savepoint(time)
    assert found(table) == rows


def _hole(version: str, kind: str = "MERGE_ON_READ") -> tuple[MemoryStorage, HoodieTable, str]:
    """A table whose first commit has a savepoint; a compaction after it is archived.

    Returns
    -------
    tuple
        Its storage, the table, and the time of the savepoint.
    """
    storage = MemoryStorage(clock=SimClock())
    options = {**TRIPS, **_BEYOND, BUCKETS: "1", TYPE: kind, VERSION: version}
    table = HoodieTable("/t", options, storage=storage, clock=SimClock(), ids=SimIds())
    writer = {_WRITER: "w", _NUMBER: "1"}
    table.upsert(trips(("a", "x", 0, 0.0)), writer)
    time = table.savepoint().time
    table.upsert(trips(("a", "x", 1, 1.0), ("h", "x", 1, 1.0)), {**writer, _NUMBER: "2"})
    if kind == "MERGE_ON_READ":
        assert table.compact()
    for number in range(2, 8):
        table.upsert(trips(("a", "x", number, float(number))))
    assert len(table.archive()) >= 5
    assert table.timeline.commits[0].time == time
    return storage, table, time


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_compaction_missed_the_base_file_of_a_savepoint(version: str) -> None:
    """A compaction that is archived had made a newer one, which no commit of the timeline names."""
    storage, _, _ = _hole(version)
    table = HoodieTable("/t", _BEYOND, storage=storage.copy(), clock=SimClock())
    rows = found(table)
    assert rows == [("a", "x", 7, 7.0), ("h", "x", 1, 1.0)]
    assert table.compact()
    assert next(table.timeline.commits_backwards()).action is Action.COMMIT
    assert found(table) == rows


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_batch_in_a_hole_was_called_damage(version: str) -> None:
    """The older batch of its writer is kept by a savepoint, and the guard knows of the newer."""
    _, table, _ = _hole(version)
    assert table.inspect.verify().findings == ()


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("version", ["6", "9"])
def test_rows_in_a_hole_vanished_once_another_engine_had_deleted_the_savepoint(
    version: str, kind: str
) -> None:
    """The savepoint's commit begins the timeline then, and the archive alone knows of the hole."""
    storage, _, time = _hole(version, kind)
    for path in [path for path in storage.files if ".savepoint" in path]:
        storage.delete(path)
    table = HoodieTable("/t", _BEYOND, storage=storage, clock=SimClock())
    assert table.timeline.start == time
    rows = [("a", "x", 7, 7.0), ("h", "x", 1, 1.0)]
    assert found(table) == rows
    logs = sum(group.log_files for group in table.inspect.files().groups)
    assert logs == (6 if kind == "MERGE_ON_READ" else 0)  # since the compaction, which took in one
    table.upsert(trips(("b", "x", 8, 8.0)))
    table.clean()
    assert found(table) == sorted([*rows, ("b", "x", 8, 8.0)])
    assert not [f for f in table.inspect.verify().findings if f.severity is Severity.DAMAGE]
