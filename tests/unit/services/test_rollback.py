"""Rollback by hand: rows are as before, and nobody commits on what is gone."""

from __future__ import annotations

import pytest

from hoodie_ds.errors import CorruptFileError, TimelineError, WriteConflictError
from hoodie_ds.formats.avro.container import read_record, write_record
from hoodie_ds.formats.log.log_block import BlockType, HeaderKey, read_blocks
from hoodie_ds.services.undoing import Loss, Undoing
from hoodie_ds.table.table import open_table
from hoodie_ds.testing import Effect, Fault, FaultyStorage, Kind, MemoryStorage, SimulatedCrash
from hoodie_ds.timeline.bodies.commit_metadata import CommitMetadata
from hoodie_ds.timeline.bodies.rollback_metadata import METADATA_SCHEMA, PLAN_SCHEMA, planned_files
from hoodie_ds.timeline.instant import COMPLETES_AS, Action, Instant
from hoodie_ds.timeline.loading import load_timeline, read_commit
from hoodie_ds.timeline.paths import HEARTBEATS, PINNED_TIMELINES, TEMP, instant_path
from hoodie_ds.transaction.decision_log import newest_decision
from hoodie_ds.transaction.exclusive_commit import finish
from hoodie_ds.transaction.failed_write import files_of_completed
from hoodie_ds.transaction.rollback import delete_written, drop_resurrected, undo_by_hand
from tests.faults.writers import MODE, SEVERAL, Place
from tests.integration.test_numbered_writes import numbered
from tests.tables import BUCKETS, TRIPS, TYPE, TYPES, VERSION, trips

ONE = trips(("a", "x", 1, 1.0), ("b", "y", 1, 1.0))
TWO = trips(("a", "x", 2, 2.0), ("c", "x", 2, 2.0), ("d", "z", 2, 2.0))
THREE = trips(("a", "x", 3, 3.0))


def _place(kind: str = "MERGE_ON_READ", **options: str) -> Place:
    return Place({**TRIPS, TYPE: kind, **options})


def _data(storage: MemoryStorage) -> set[str]:
    return {path for path in storage.files if ".hoodie" not in path}


def _times(place: Place) -> list[str]:
    return [instant.time for instant in load_timeline(place.storage, 1).commits]


@pytest.mark.parametrize("kind", TYPES)
def test_the_rows_are_as_before_the_write(kind: str) -> None:
    place = _place(kind)
    place.table.upsert(ONE)
    before, files = place.rows(), _data(place.storage)
    place.table.upsert(TWO)
    first, second = _times(place)
    commit = read_commit(place.storage, load_timeline(place.storage, 1).commits[-1])
    undone = place.table.rollback()
    size = sum(stat.file_size_bytes for stat in commit.stats)
    assert undone == Undoing(first, (Loss(second, _action(kind), True, 2, 3, 0, size),))
    assert (undone.files, undone.rows, undone.bytes) == (2, 3, size)
    assert place.rows() == before
    assert _times(place) == [first]
    timeline = load_timeline(place.storage, 1)
    assert timeline.pending == ()
    assert not [path for path in place.storage.files if path.startswith(f".hoodie/{second}")]
    # What is left beyond the files of the first write hides the blocks of the second.
    left = _data(place.storage) - files
    assert not place.storage.list(TEMP, recursive=True)
    assert all(path.startswith("x/.") for path in left)
    assert len(left) == (2 if kind == "MERGE_ON_READ" else 0)
    place.table.upsert(THREE)
    assert place.rows() == [("a", "x", 3, 3.0), ("b", "y", 1, 1.0)]


def _action(kind: str) -> str:
    return "deltacommit" if kind == "MERGE_ON_READ" else "commit"


def test_the_blocks_of_the_write_are_hidden_by_a_command_as_hudi_does() -> None:
    place = _place()
    place.table.upsert(ONE)
    place.table.upsert(THREE)
    first, second = _times(place)
    (log,) = [path for path in _data(place.storage) if ".log." in path]
    place.table.rollback(second)
    (rollback,) = load_timeline(place.storage, 1).rollbacks
    path = instant_path(rollback)
    done = read_record(place.storage.read(path), path)
    (part,) = done["partitionMetadata"].values()
    root = place.storage.root
    size = len(place.storage.read(log))
    assert part["logFilesFromFailedCommit"] == {f"{root}/{log}": size}
    ((command, length),) = part["rollbackLogFiles"].items()
    data = place.storage.read(command.removeprefix(f"{root}/"))
    (block,) = read_blocks(data, command)
    assert (block.block_type, length) == (BlockType.COMMAND, len(data))
    assert block.header[HeaderKey.TARGET_INSTANT_TIME] == second
    assert done["totalFilesDeleted"] == 0
    assert log in _data(place.storage)
    assert first in log


def test_a_dry_rollback_changes_nothing_and_says_what_would_go() -> None:
    place = _place()
    place.table.upsert(ONE)
    place.table.upsert(TWO)
    before = place.storage.files
    planned = place.table.rollback(dry=True)
    assert place.storage.files == before
    assert planned.rows == TWO.num_rows
    assert place.table.rollback() == planned


@pytest.mark.parametrize("kind", TYPES)
def test_the_first_write_can_be_undone_and_its_files_never_come_back(kind: str) -> None:
    place = _place(kind)
    place.table.upsert(ONE, numbered(0))
    assert place.table.rollback().target == ""
    assert _data(place.storage) == set()
    assert not place.table.upsert(ONE, numbered(0)).already_committed
    assert [row[0] for row in place.rows()] == ["a", "b"]


@pytest.mark.parametrize("kind", TYPES)
def test_a_batch_that_was_undone_can_come_again(kind: str) -> None:
    place = _place(kind)
    place.table.upsert(ONE, numbered(0))
    place.table.upsert(TWO, numbered(1))
    place.storage.put_if_absent(f"{PINNED_TIMELINES}/query_1", b"a timeline with the write")
    place.table.rollback()
    assert not place.storage.list(PINNED_TIMELINES)
    assert place.table.upsert(ONE, numbered(0)).already_committed
    assert not place.table.upsert(TWO, numbered(1)).already_committed
    assert len(place.rows()) == 4
    assert place.table.upsert(TWO, numbered(1)).already_committed


def test_an_overwrite_gives_back_what_it_replaced() -> None:
    place = _place("COPY_ON_WRITE")
    place.table.upsert(ONE)
    before = place.rows()
    place.table.overwrite(TWO)
    groups = {path.partition("_")[0] for path in _data(place.storage)}
    told = place.table.rollback(dry=True)
    assert place.table.rollback() == told
    assert place.rows() == before
    back = {path.partition("_")[0] for path in _data(place.storage)}
    assert told.returning == len(back) > 0
    assert told.files == len(groups - back)


def test_only_the_newest_write_can_be_undone() -> None:
    place = _place()
    place.table.upsert(ONE)
    place.table.upsert(TWO)
    first, second = _times(place)
    with pytest.raises(TimelineError, match=f"deltacommit {second} comes after it; roll that"):
        place.table.rollback(first)
    place.table.rollback(second)
    place.table.rollback(first)
    assert _times(place) == []


@pytest.mark.parametrize("time", ["20200101000000000", "a rollback", None])
def test_an_instant_that_is_no_write_is_refused(time: str | None) -> None:
    place = _place()
    place.table.upsert(ONE)
    if time is None:
        place.table.rollback()
        with pytest.raises(TimelineError, match="no completed write"):
            place.table.rollback()
        return
    if time == "a rollback":
        place.table.upsert(TWO)
        place.table.rollback()
        time = load_timeline(place.storage, 1).rollbacks[0].time
    (first,) = _times(place)
    with pytest.raises(TimelineError, match=f"newest completed one, {first}, .* pending: .none."):
        place.table.rollback(time)


def test_a_commit_with_a_savepoint_stays() -> None:
    place = _place()
    place.table.upsert(ONE)
    place.table.savepoint()
    with pytest.raises(TimelineError, match="has a savepoint; delete that first"):
        place.table.rollback()
    place.table.delete_savepoint(_times(place)[0])
    place.table.rollback()
    assert place.table.read().num_rows == 0


def test_a_write_whose_predecessor_was_cleaned_stays() -> None:
    place = _place("COPY_ON_WRITE")
    place.table.upsert(ONE)
    (old,) = [path for path in _data(place.storage) if path.startswith("x/")]
    place.table.upsert(THREE)
    place.storage.delete(old)
    with pytest.raises(
        TimelineError, match=f"needs {old}, .* it is missing, lost or taken by a clean"
    ):
        place.table.rollback()
    assert place.rows() == [("a", "x", 3, 3.0), ("b", "y", 1, 1.0)]


def test_a_write_stays_while_a_later_one_is_pending() -> None:
    place = _place()
    place.table.upsert(ONE)
    begun = place.begin(TWO)
    begun.write()
    (pending,) = load_timeline(place.storage, 1).pending
    (good,) = load_timeline(place.storage, 1).commits
    with pytest.raises(TimelineError, match=f"name the instant .* {pending.time} .* is pending"):
        place.table.rollback()
    with pytest.raises(TimelineError, match=f"{pending.time} is pending after it; let its"):
        place.table.rollback(good.time)
    undone = place.table.rollback(pending.time)
    assert undone.losses == (Loss(pending.time, "deltacommit", False),)
    assert str(undone.losses[0]) == f"{pending.time} deltacommit, pending"
    assert load_timeline(place.storage, 1).pending == ()
    place.table.rollback()
    assert place.table.read().num_rows == 0


def test_a_writer_that_began_before_does_not_commit_on_what_is_gone() -> None:
    place = _place("COPY_ON_WRITE")
    place.table.upsert(ONE)
    begun = place.begin(THREE)  # it sees the first write, and has opened nothing yet
    place.table.rollback()
    with pytest.raises(WriteConflictError, match="was rolled back"):  # it looks where keys are
        begun.write()
    place.table.upsert(TWO)
    assert [row[0] for row in place.rows()] == ["a", "c", "d"]


def test_a_write_is_not_undone_while_its_writer_lives() -> None:
    place = _place(**{MODE: SEVERAL})
    place.table.upsert(ONE)
    begun = place.begin(TWO)
    message = begun.write()
    (pending,) = load_timeline(place.storage, 1).pending
    assert place.storage.list(HEARTBEATS)
    with pytest.raises(TimelineError, match=f"a writer is at work on instant {pending.time}"):
        place.table.rollback(pending.time)
    begun.writer.commit([message])
    assert len(place.rows()) == 4


def test_a_completed_file_put_after_the_rollback_is_deleted_again() -> None:
    """Its writer was stopped when it had decided; others completed the instant, and undid it."""
    place = _place("COPY_ON_WRITE")
    place.table.upsert(ONE, numbered(0))
    place.table.upsert(TWO, numbered(1))
    newest = load_timeline(place.storage, 1).commits[-1]
    body = place.storage.read(instant_path(newest))
    place.table.rollback()
    place.storage.put_if_absent(instant_path(newest), body)
    assert not place.table.upsert(TWO, numbered(1)).already_committed
    assert load_timeline(place.storage, 1).commit_at(newest.time) is None
    assert len(place.rows()) == 4


def test_a_completed_file_put_late_is_deleted_by_one_of_several_writers_too() -> None:
    place = _place("COPY_ON_WRITE", **{MODE: SEVERAL})
    place.table.upsert(ONE)
    newest = load_timeline(place.storage, 1).commits[-1]
    body = place.storage.read(instant_path(newest))
    place.table.rollback()
    place.table.upsert(TWO)  # and its decision follows that to undo
    place.storage.put_if_absent(instant_path(newest), body)
    place.table.upsert(THREE)
    assert load_timeline(place.storage, 1).commit_at(newest.time) is None
    assert place.rows() == [("a", "x", 3, 3.0), ("c", "x", 2, 2.0), ("d", "z", 2, 2.0)]


def test_a_writer_that_puts_its_completed_file_late_deletes_it_itself() -> None:
    place = _place("COPY_ON_WRITE")
    place.table.upsert(ONE)
    place.table.upsert(TWO)
    newest = load_timeline(place.storage, 1).commits[-1]
    body = place.storage.read(instant_path(newest))
    decision = newest_decision(place.storage)
    assert decision is not None
    place.table.rollback()
    finish(open_table(place.storage), decision, body)
    assert load_timeline(place.storage, 1).commit_at(newest.time) is None


@pytest.mark.parametrize(
    ("service", "version"),
    [(None, "6"), (None, "9"), ("compact", "6"), ("compact", "9"), ("cluster", "9")],
)
def test_who_completes_an_instant_late_leaves_what_others_completed(
    service: str | None, version: str
) -> None:
    """Compactions and clusterings too, whose completed files have another action in their names."""
    kind = "MERGE_ON_READ" if service == "compact" else "COPY_ON_WRITE"
    place = _place(kind, **{VERSION: version})
    if service == "cluster":
        place.opts.pop(BUCKETS)
        place.opts |= {"hoodie.index.type": "BLOOM", "hoodie.parquet.small.file.limit": "0"}
    place.table.upsert(ONE)
    place.table.upsert(TWO)
    if service is not None:
        getattr(place.table, service)()
    table, decision = open_table(place.storage), newest_decision(place.storage)
    assert decision is not None
    assert (decision.instant.action in COMPLETES_AS) is (service is not None)
    finish(table, decision, place.storage.read(instant_path(decision.completed)))
    assert table.load_timeline().commits[-1] == decision.completed


def test_a_commit_of_another_engine_under_the_same_time_stays() -> None:
    place = _place("COPY_ON_WRITE")
    place.table.upsert(ONE)
    newest = load_timeline(place.storage, 1).commits[-1]
    place.table.rollback()
    place.storage = place.storage.copy()
    place.storage.put_if_absent(instant_path(newest), CommitMetadata().to_bytes(1))
    table = open_table(place.storage)
    assert not drop_resurrected(table, load_timeline(place.storage, 1))
    assert load_timeline(place.storage, 1).commit_at(newest.time) is not None


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("ends_at", ["*.rollback.inflight", "*commit", "*.rollback"])
@pytest.mark.parametrize("mode", [{}, {MODE: SEVERAL}], ids=["alone", "several"])
def test_a_rollback_that_was_killed_is_finished_by_the_next_write(
    kind: str, ends_at: str, mode: dict[str, str]
) -> None:
    place = _place(kind, **mode)
    place.table.upsert(ONE)
    before = place.rows()
    place.table.upsert(TWO)
    newest = load_timeline(place.storage, 1).commits[-1]
    ends_at = instant_path(newest) if ends_at == "*commit" else ends_at
    kinds = frozenset({Kind.PUT, Kind.DELETE})
    dying = FaultyStorage(place.storage, [Fault(Effect.CRASH_AFTER, kinds=kinds, path=ends_at)])
    table = place.table
    table._storage = dying
    with pytest.raises(SimulatedCrash):
        table.rollback()
    place.clock.advance(10_000_000)  # until its lock is free
    place.table.upsert(ONE)
    assert place.rows() == before
    timeline = load_timeline(place.storage, 1)
    assert timeline.pending == ()
    assert timeline.commit_at(newest.time) is None
    place.clock.advance(10_000_000)  # one of several leaves to others what is young
    place.table.upsert(ONE)
    assert not place.storage.list(TEMP, recursive=True)


def test_applying_a_decision_that_is_carried_out_does_nothing() -> None:
    place = _place()
    place.table.upsert(ONE)
    place.table.upsert(TWO)
    newest = load_timeline(place.storage, 1).commits[-1]
    place.table.rollback()
    before = place.storage.files
    undo_by_hand(open_table(place.storage), newest, b"", place.clock)
    assert place.storage.files == before


def test_applying_a_decision_late_does_nothing() -> None:
    place = _place()
    place.table.upsert(ONE)
    place.table.upsert(TWO)
    place.table.rollback()
    before, newest = place.storage.files, newest_decision(place.storage)
    services = place.table._services()
    services.current_timeline(services.open_table())
    assert place.storage.files == before
    assert newest_decision(place.storage) == newest


def _planned_compaction(place: Place) -> Instant:
    context = place.table._services()
    pending = context.action(context.open_table(), Action.COMPACTION, "COMPACT")
    body = compaction_of("x")
    instant = context.schedule(pending, lambda timeline, time: body)
    assert instant is not None
    return instant


def compaction_of(partition: str) -> bytes:
    """The plan of a compaction of a file group that is not there."""
    operation = {
        "type": "record",
        "name": "HoodieCompactionOperation",
        "fields": [
            {"name": "fileId", "type": "string"},
            {"name": "partitionPath", "type": "string"},
        ],
    }
    schema = {
        "type": "record",
        "name": "HoodieCompactionPlan",
        "fields": [{"name": "operations", "type": {"type": "array", "items": operation}}],
    }
    named = [{"fileId": "00000000-other", "partitionPath": partition}]
    return write_record(schema, {"operations": named})


def test_the_plan_of_a_compaction_is_cancelled() -> None:
    place = _place()
    place.table.upsert(ONE)
    instant = _planned_compaction(place)
    merged = f"x/00000000-other_0-1-2_{instant.time}.parquet"
    place.storage.put_if_absent(merged, b"")
    place.table.rollback(instant.time)
    assert load_timeline(place.storage, 1).pending == ()
    assert merged not in place.storage.files
    place.table.upsert(THREE)
    assert load_timeline(place.storage, 1).pending_compactions == ()
    assert place.rows() == [("a", "x", 3, 3.0), ("b", "y", 1, 1.0)]


def test_the_newest_commit_is_the_default_beside_a_plan() -> None:
    place = _place()
    place.table.upsert(ONE)
    planned = _planned_compaction(place)
    place.table.upsert(TWO)
    *_, newest = _times(place)
    assert [loss.time for loss in place.table.rollback().losses] == [newest]
    assert load_timeline(place.storage, 1).pending == (planned,)


def test_a_compaction_that_rows_were_written_on_top_of_stays() -> None:
    place = _place()
    place.table.upsert(ONE)
    instant = _planned_compaction(place)
    log = f"x/.00000000-other_{instant.time}.log.1_0-1-2"
    place.storage.put_if_absent(log, b"")
    with pytest.raises(TimelineError, match=f"written on top of it .{log}.; let it be executed"):
        place.table.rollback(instant.time)
    assert load_timeline(place.storage, 1).pending == (instant,)


def test_a_writer_does_not_commit_beside_a_compaction_that_was_cancelled() -> None:
    place = _place()
    place.table.upsert(ONE)
    instant = _planned_compaction(place)
    begun = place.begin(THREE)
    message = begun.write()
    place.table.rollback(instant.time)
    with pytest.raises(WriteConflictError, match=f"compaction {instant.time} was cancelled"):
        begun.writer.commit([message])


def test_a_command_is_left_out_where_its_slice_is_gone() -> None:
    """A rollback that was stopped goes on when the slice has been compacted and cleaned."""
    place = _place()
    place.table.upsert(ONE)
    place.table.upsert(THREE)
    newest = load_timeline(place.storage, 1).commits[-1]
    found = files_of_completed(open_table(place.storage), newest)
    for path in _data(place.storage):
        place.storage.delete(path)
    done = delete_written(open_table(place.storage), "20300101000000000", newest, found)
    assert [part.command_logs for part in done.values()] == [{}]
    assert _data(place.storage) == set()


def test_a_plan_that_cannot_be_read_is_reported() -> None:
    body = write_record(METADATA_SCHEMA, _nothing_done())
    with pytest.raises(CorruptFileError, match="x is not the plan of a rollback"):
        planned_files(body, "x")
    assert planned_files(write_record(PLAN_SCHEMA, {}), "x") == {}


def _nothing_done() -> dict[str, object]:
    return {
        "startRollbackTime": "",
        "timeTakenInMillis": 0,
        "totalFilesDeleted": 0,
        "commitsRollback": [],
        "partitionMetadata": {},
    }
