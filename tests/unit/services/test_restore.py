"""Restore by hand: to a savepoint or another write, killed or not, beside writers."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import TimelineError, WriteConflictError
from hoodie_ds.formats.avro.container import read_record
from hoodie_ds.services.undoing import Loss
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.testing import Effect, Fault, FaultyStorage, Kind, MemoryStorage, SimulatedCrash
from hoodie_ds.timeline.archive.archive import archive_of
from hoodie_ds.timeline.bodies.restore_metadata import RestoreRequest
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.instant_time import following
from hoodie_ds.timeline.loading import load_timeline
from hoodie_ds.timeline.paths import TEMP, instant_path
from hoodie_ds.timeline.rollbacks import is_undone, remember_undone
from tests.faults.writers import MODE, SEVERAL, Place
from tests.golden.golden_tables import unzip_table
from tests.integration.test_numbered_writes import numbered
from tests.tables import TRIPS, TYPE, TYPES, trips
from tests.unit.services.test_rollback import compaction_of

Row = tuple[str, str, int, float]
BATCHES = (
    trips(("a", "x", 1, 1.0), ("b", "y", 1, 1.0)),
    trips(("a", "x", 2, 2.0), ("c", "x", 2, 2.0)),
    trips(("a", "x", 3, 3.0), ("d", "z", 3, 3.0)),
    trips(("b", "y", 4, 4.0), ("e", "z", 4, 4.0)),
)


def _written(kind: str = "MERGE_ON_READ", **options: str) -> tuple[Place, list[list[Row]]]:
    """A table, and its rows after each of its batches."""
    place = Place({**TRIPS, TYPE: kind, **options})
    states: list[list[Row]] = []
    for number, rows in enumerate(BATCHES):
        place.table.upsert(rows, numbered(number))
        states.append(place.rows())
        place.clock.advance(10)
    return place, states


def _times(place: Place) -> list[str]:
    return [instant.time for instant in load_timeline(place.storage, 1).commits]


def _data(storage: MemoryStorage) -> set[str]:
    return {path for path in storage.files if ".hoodie" not in path}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("back_to", [0, 1, 2])
def test_the_rows_are_as_of_the_target_and_the_batches_come_again(kind: str, back_to: int) -> None:
    place, states = _written(kind)
    times = _times(place)
    place.table.savepoint(times[back_to])
    lost = place.table.restore(times[back_to])
    assert lost.target == times[back_to]
    assert [loss.time for loss in lost.losses] == times[:back_to:-1]
    assert lost.rows == sum(rows.num_rows for rows in BATCHES[back_to + 1 :])
    assert place.rows() == states[back_to]
    assert _times(place) == times[: back_to + 1]
    timeline = load_timeline(place.storage, 1)
    assert (timeline.pending, timeline.rollbacks) == ((), ())
    assert not place.storage.list(TEMP, recursive=True)
    for number, rows in enumerate(BATCHES):
        again = place.table.upsert(rows, numbered(number)).already_committed
        assert again == (number <= back_to)
    assert place.rows() == states[-1]
    assert [i.time for i in load_timeline(place.storage, 1).savepoints] == [times[back_to]]


def test_the_restore_metadata_is_that_of_hudi() -> None:
    place, _ = _written()
    times = _times(place)
    place.table.restore(times[1])
    (restore,) = load_timeline(place.storage, 1).restores
    plan = read_record(place.storage.read(instant_path(restore.at(State.REQUESTED))), "plan")
    expected = [{"commitTime": time, "action": "deltacommit"} for time in times[:1:-1]]
    assert plan["instantsToRollback"] == expected
    assert plan["savepointToRestoreTimestamp"] == times[1]
    assert place.storage.read(instant_path(restore.at(State.INFLIGHT))) == b""
    done = read_record(place.storage.read(instant_path(restore)), "done")
    assert done["startRestoreTime"] == restore.time
    assert done["instantsToRollback"] == times[:1:-1]
    assert done["restoreInstantInfo"] == expected
    third = done["hoodieRestoreMetadata"][times[2]][0]
    assert third["commitsRollback"] == [times[2]]
    deleted = [name for part in third["partitionMetadata"].values() for name in _gone(part)]
    assert [times[2] in name for name in deleted] == [True]  # the group that it began
    hidden = [part["logFilesFromFailedCommit"] for part in third["partitionMetadata"].values()]
    assert sum(map(len, hidden)) == 1  # its block in a slice that stays


def _gone(part: dict[str, list[str]]) -> list[str]:
    return part["successDeleteFiles"]


def test_the_files_of_a_copy_on_write_table_are_those_of_the_target() -> None:
    place, _ = _written("COPY_ON_WRITE")
    times = _times(place)
    kept = {path for path in _data(place.storage) if not re.search("|".join(times[2:]), path)}
    place.table.restore(times[1])
    assert _data(place.storage) == kept


def test_a_dry_restore_changes_nothing() -> None:
    place, _ = _written()
    times, before = _times(place), place.storage.files
    planned = place.table.restore(times[0], dry=True)
    assert place.storage.files == before
    assert replace(planned.losses[0], bytes=0) == Loss(times[3], "deltacommit", True, 2, 2)
    assert place.table.restore(times[0]) == planned


def test_a_restore_to_the_newest_write_does_nothing() -> None:
    place, _ = _written()
    before = place.storage.files
    assert place.table.restore(_times(place)[-1]).losses == ()
    assert place.storage.files == before


@pytest.mark.parametrize(
    ("to", "before", "after"),
    [
        ("20200101000000000", None, 0),
        ("between", 1, 2),
        ("20261199171005279", 3, None),
        ("29991231000000000", 3, None),
    ],
)
@pytest.mark.parametrize("dry", [False, True])
def test_a_time_that_no_write_has_is_refused_with_its_neighbours(
    to: str, before: int | None, after: int | None, dry: bool
) -> None:
    place, states = _written()
    times = _times(place)
    place.table.savepoint(times[1])
    if to == "between":
        to = following(times[1])
        assert times[1] < to < times[2]
    names = ["(none)" if number is None else times[number] for number in (before, after)]
    message = f"before it is {names[0]}, the one after it {names[1]};"
    with pytest.raises(TimelineError, match=re.escape(message)):
        place.table.restore(to, dry=dry)
    assert place.rows() == states[-1]


@pytest.mark.parametrize("to", ["yesterday", "", "2020"])
def test_a_string_that_is_no_instant_time_is_refused(to: str) -> None:
    place, states = _written()
    with pytest.raises(TimelineError, match="is not an instant time"):
        place.table.restore(to)
    assert place.rows() == states[-1]


def test_a_table_without_writes_has_no_way_back(tmp_path: Path) -> None:
    table = HoodieTable(f"memory://{tmp_path}", TRIPS)
    table.upsert(trips().slice(0, 0))
    assert open_storage(f"memory://{tmp_path}").list(".hoodie")
    with pytest.raises(TimelineError, match=re.escape("is (none), the one after it (none)")):
        table.restore("20200101000000000")


def test_a_wrong_time_resumes_an_interrupted_restore_first() -> None:
    place, states = _written()
    times = _times(place)
    _kill(place, times, "inflight")
    with pytest.raises(TimelineError, match="is the time of no completed write"):
        place.table.restore("29991231000000000")
    assert place.rows() == states[1]
    assert load_timeline(place.storage, 1).pending == ()


def test_a_later_savepoint_is_in_the_way() -> None:
    place, _ = _written()
    times = _times(place)
    place.table.savepoint(times[2])
    with pytest.raises(TimelineError, match=f"{times[2]} has a savepoint; delete that first"):
        place.table.restore(times[1])


def test_files_that_a_clean_took_are_in_the_way() -> None:
    place, states = _written("COPY_ON_WRITE")
    times = _times(place)
    (gone,) = [p for p in _data(place.storage) if p.startswith("x/") and times[0] in p]
    place.storage.delete(gone)
    with pytest.raises(TimelineError, match=f"restore to {times[0]} needs {gone}"):
        place.table.restore(times[0])
    assert place.rows() == states[-1]


def test_pending_writes_and_plans_go_too() -> None:
    place, states = _written()
    times = _times(place)
    context = place.table._services()
    pending = context.action(context.open_table(), Action.COMPACTION, "COMPACT")
    assert context.schedule(pending, lambda timeline, time: compaction_of("x")) is not None
    begun = place.begin(BATCHES[0])
    message = begun.write()
    lost = place.table.restore(times[1])
    assert [loss.completed for loss in lost.losses] == [False, False, True, True]
    assert load_timeline(place.storage, 1).pending == ()
    with pytest.raises(TimelineError, match="rolled back by another writer"):
        begun.writer.commit([message])
    assert place.rows() == states[1]


@pytest.mark.parametrize("mode", [{}, {MODE: SEVERAL}])
def test_a_writer_that_began_before_the_restore_does_not_commit(mode: dict[str, str]) -> None:
    place, states = _written(**mode)
    begun = place.begin(trips(("a", "x", 9, 9.0)))
    place.table.restore(_times(place)[1])
    message = begun.write()
    with pytest.raises((WriteConflictError, TimelineError)):
        begun.writer.commit([message])
    begun.writer.abort([message])
    assert place.rows() == states[1]
    place.clock.advance(10_000_000)
    place.table.upsert(BATCHES[0])
    assert load_timeline(place.storage, 1).pending == ()


def test_a_file_that_a_task_brings_late_is_swept() -> None:
    place, states = _written("COPY_ON_WRITE")
    times = _times(place)
    place.table.restore(times[0])
    late = f"x/00000000-late_0-1-2_{times[2]}.parquet"
    place.storage.put_if_absent(late, b"")
    place.storage.put_if_absent(f"{TEMP}/{times[2]}/{late}.marker.CREATE", b"")
    place.storage.put_if_absent(f"{TEMP}/{_restore(place).time}/{times[2]}.plan", b"")
    assert place.rows() == states[0]
    place.table.upsert(BATCHES[1])
    assert late not in place.storage.files
    assert not place.storage.list(TEMP, recursive=True)


def _restore(place: Place) -> Instant:
    (restore,) = load_timeline(place.storage, 1).restores
    return restore


ENDS: dict[str, Callable[[list[str]], str]] = {
    "requested": lambda times: "*.restore.requested",
    "inflight": lambda times: "*.restore.inflight",
    "the first write is off the timeline": lambda times: f".hoodie/{times[3]}.*commit.requested",
    "the second is no more visible": lambda times: f".hoodie/{times[2]}.*commit",
    "completed": lambda times: "*.restore",
}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("by", ["restore", "write", "one of several"])
def test_an_interrupted_restore_is_resumed(kind: str, end: str, by: str) -> None:
    place, states = _written(kind)
    times = _times(place)
    _kill(place, times, end)
    if end not in ("requested", "completed"):
        assert place.table.restore(times[1], dry=True).target == times[1]
    match by:
        case "restore":
            place.table.restore(times[1])
            assert place.rows() == states[1]
        case "write":
            place.table.upsert(BATCHES[0], numbered(0))
            assert place.rows() == states[1]
        case _:
            place.opts[MODE] = SEVERAL
            place.table.upsert(BATCHES[0], numbered(0))
            assert place.rows() == states[1]
    timeline = load_timeline(place.storage, 1)
    assert timeline.pending == ()
    assert len(timeline.restores) == 1
    place.clock.advance(10_000_000)  # one of several leaves to others what is young
    for number, rows in enumerate(BATCHES):
        place.table.upsert(rows, numbered(number))
    assert place.rows() == states[-1]
    assert not place.storage.list(TEMP, recursive=True)


def _kill(place: Place, times: list[str], end: str) -> None:
    fault = Fault(
        Effect.CRASH_AFTER, kinds=frozenset({Kind.PUT, Kind.DELETE}), path=ENDS[end](times)
    )
    table = place.table
    table._storage = FaultyStorage(place.storage, [fault])
    with pytest.raises(SimulatedCrash):
        table.restore(times[1])


def test_a_rollback_before_stays_as_it_is() -> None:
    place, states = _written()
    place.table.rollback()
    place.table.restore(_times(place)[0])
    assert place.rows() == states[0]
    assert len(load_timeline(place.storage, 1).rollbacks) == 1


def test_a_file_that_came_late_goes_with_its_write() -> None:
    place, states = _written()
    times = _times(place)
    late = f"q/00000000-late_0-1-2_{times[2]}.parquet"
    place.storage.put_if_absent(late, b"")
    place.table.restore(times[1])
    assert late not in place.storage.files
    assert place.rows() == states[1]


def test_a_rollback_that_was_killed_is_finished_first() -> None:
    place, states = _written()
    times = _times(place)
    begun = place.begin(BATCHES[0])
    begun.write()
    (pending,) = load_timeline(place.storage, 1).pending
    puts = frozenset({Kind.PUT})
    fault = Fault(Effect.CRASH_AFTER, kinds=puts, path="*.rollback.inflight")
    table = place.table
    table._storage = FaultyStorage(place.storage, [fault])
    with pytest.raises(SimulatedCrash):
        table.rollback(pending.time)
    assert [loss.time for loss in place.table.restore(times[2]).losses] == [times[3]]
    timeline = load_timeline(place.storage, 1)
    assert (timeline.pending, len(timeline.rollbacks)) == ((), 1)
    assert place.rows() == states[2]


def test_a_restore_that_another_engine_left_is_completed_by_hand_alone() -> None:
    place, states = _written()
    times = _times(place)
    instants = tuple((time, "deltacommit") for time in times[:1:-1])
    restore = Instant("20300101000000000", Action.RESTORE, State.REQUESTED)
    body = RestoreRequest(instants, times[1]).to_bytes()
    place.storage.put_if_absent(instant_path(restore), body)
    with pytest.raises(TimelineError, match=f"restore {restore.time} is pending"):
        place.table.upsert(BATCHES[0])
    assert place.table.restore(times[0], dry=True).target == times[1]
    assert [loss.time for loss in place.table.restore(times[0]).losses] == [times[1]]
    assert place.rows() == states[0]
    assert len(load_timeline(place.storage, 1).restores) == 2


@pytest.mark.parametrize("plan", ["gone", "empty", "whole"])
def test_the_plan_of_a_restore_says_which_instants_it_removed(plan: str) -> None:
    place, _ = _written()
    times = _times(place)
    place.table.restore(times[1])
    path = instant_path(_restore(place).at(State.REQUESTED))
    if plan != "whole":
        place.storage.delete(path)
    if plan == "empty":
        place.storage.put_if_absent(path, b"")
    storage = place.storage.copy()
    undone = [time for time in times if is_undone(storage, load_timeline(storage, 1), time)]
    assert undone == (times[2:] if plan == "whole" else [])


def test_a_restore_without_a_plan_is_reported() -> None:
    place, _ = _written()
    restore = Instant("20300101000000000", Action.RESTORE, State.INFLIGHT)
    place.storage.put_if_absent(instant_path(restore), b"")
    with pytest.raises(TimelineError, match="without a plan"):
        place.table.restore(_times(place)[0])


def test_after_a_restore_beyond_all_batches_of_a_stream_they_come_again() -> None:
    place = Place(dict(TRIPS))
    place.table.upsert(BATCHES[0])
    for number, rows in enumerate(BATCHES):
        place.table.upsert(rows, numbered(number))
    place.table.restore(_times(place)[0])
    assert not place.table.upsert(BATCHES[0], numbered(0)).already_committed


def test_a_write_that_was_archived_is_in_the_way(tmp_path: Path) -> None:
    """A savepoint that archiving passed over, as Apache Hudi has left it."""
    folder = unzip_table("v6_cow_archived_beyond_savepoint", tmp_path)
    table = HoodieTable(folder)
    (savepoint,) = table.timeline.savepoints
    assert archive_of(open_storage(str(folder)), 1, "history").newest_write() > savepoint.time
    with pytest.raises(TimelineError, match=f"writes after {savepoint.time} have been archived"):
        table.restore(savepoint.time)


def test_writes_archived_before_the_target_do_not_prevent_a_restore(tmp_path: Path) -> None:
    folder = unzip_table("v6_cow_archived_beyond_savepoint", tmp_path)
    table = HoodieTable(folder)
    first, second, third = (instant.time for instant in table.timeline.commits)
    assert archive_of(open_storage(str(folder)), 1, "history").newest_write() < second
    table.delete_savepoint(first)
    assert table.restore(second, dry=True).losses[0].time == third
    table.savepoint(second)
    assert [loss.time for loss in table.restore(second).losses] == [third]
    assert table.read().num_rows


def test_nothing_is_archived_in_a_young_table(tmp_path: Path) -> None:
    storage = MemoryStorage()
    storage.put_if_absent(".hoodie/archived/other", b"")
    assert archive_of(storage, 1, "archived").newest_write() == ""
    assert archive_of(storage, 2, "").newest_write() == ""
    assert not list(tmp_path.iterdir())


def test_what_an_archived_restore_took_back_stays_undone() -> None:
    place, _ = _written()
    times = _times(place)
    place.table.restore(times[1])
    (restore,) = load_timeline(place.storage, 1).restores
    remember_undone(place.storage, [restore])
    marks = {path.rpartition("/")[2] for path in place.storage.files if "/undone/" in path}
    assert marks == set(times[2:])


def test_files_of_groups_whose_replacement_is_archived_are_not_missed() -> None:
    """A clean that took them stays on the timeline longer than the overwrite that replaced them."""
    place = Place({**TRIPS, TYPE: "COPY_ON_WRITE"})
    table = place.table
    table.upsert(BATCHES[0])
    table.overwrite(BATCHES[1])
    assert load_timeline(place.storage, 1).replace_commits
    table.upsert(BATCHES[2])
    savepoint = table.savepoint()
    rows = place.rows()
    table.upsert(BATCHES[3])
    retained = {"hoodie.clean.commits.retained": "1"}
    assert table.clean(retained).work.files_deleted
    table.archive({**retained, "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"})
    assert not load_timeline(place.storage, 1).replace_commits
    lost = table.rollback()
    assert place.rows() == rows
    table.upsert(BATCHES[3])
    assert table.restore(savepoint.time).rows == lost.rows
    assert place.rows() == rows
    assert table.savepoint().files == savepoint.files
