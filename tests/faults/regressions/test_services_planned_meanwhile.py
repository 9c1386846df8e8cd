"""Another engine plans a compaction or a clustering, or restores, while a batch is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial

import pyarrow as pa
import pytest

from hoodie_ds.errors import TimelineError, WriteConflictError
from hoodie_ds.formats.avro.container import write_record
from hoodie_ds.sink.messages import TaskCommitMessage
from hoodie_ds.sink.replay_guard import BatchId
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.planned_services import planned_groups
from hoodie_ds.table.table import Table, open_table
from hoodie_ds.testing import Effect, Fault, FaultyStorage, Kind, SimClock, SimulatedCrash
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.instant_time import following
from hoodie_ds.timeline.paths import FILE_LOCK
from hoodie_ds.transaction.decision_log import Decision, append_decision
from hoodie_ds.transaction.recovery import recover, recover_lazily
from hoodie_ds.transaction.resolution import apply_pending
from tests.faults import foreign
from tests.faults.writers import BESIDE_OTHERS, Begun, Place
from tests.tables import BUCKETS, TRIPS, TYPE, TYPES, VERSION, timeline_of, trips

FIRST = trips(("0", "x", 0, 0.0), ("0", "y", 0, 0.0))
MINE = trips(("0", "x", 1, 1.0))
OVERWRITE = {"hoodie.datasource.write.operation": "insert_overwrite"}
DROP = {
    "hoodie.datasource.write.operation": "delete_partition",
    "hoodie.datasource.write.partitions.to.delete": "x",
}
PLANS: dict[str, Callable[..., None]] = {
    "compaction": foreign.plan_compaction,
    "clustering": foreign.plan_clustering,
    "log compaction": partial(foreign.plan_compaction, action="logcompaction"),
}
MODES = {"single": {}, "several": BESIDE_OTHERS}
VERSIONS: dict[str, str] = {}
"""The version of new tables."""


@pytest.fixture(params=["6", "9"], autouse=True)
def version(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(VERSIONS, VERSION, request.param)


def _place(kind: str, mode: str = "single", **options: str) -> Place:
    place = Place({**TRIPS, BUCKETS: "1", TYPE: kind, **VERSIONS, **MODES[mode], **options})
    place.table.upsert(FIRST)
    return place


def _recover_lazily(table: Table, clock: SimClock) -> object:
    return recover_lazily(table, clock, 600_000, nullcontext)


def _later(place: Place) -> str:
    return following(max(_times(place)))


def _times(place: Place) -> list[str]:
    names = (path.rpartition("/")[2].partition(".")[0] for path in place.storage.files)
    return [time for name in names for time in name.split("_") if name.replace("_", "").isdigit()]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("what", PLANS)
@pytest.mark.parametrize("rows", [MINE, None], ids=["upsert", "overwrite"])
def test_a_plan_made_meanwhile_left_the_rows_of_a_batch_out(
    what: str, mode: str, rows: pa.Table | None
) -> None:
    place = _place("MERGE_ON_READ", mode)
    batch = place.begin(MINE, **({} if rows is not None else OVERWRITE))
    message = batch.write()
    PLANS[what](place.storage, _later(place), foreign.slices(place.storage, "x"))
    with pytest.raises(WriteConflictError, match=r"planned for file group x/.* can be run again"):
        batch.writer.commit([message])
    assert place.rows() == [("0", "x", 0, 0.0), ("0", "y", 0, 0.0)]


@pytest.mark.parametrize("mode", MODES)
def test_a_clustering_planned_while_a_batch_began_is_a_conflict_too(mode: str) -> None:
    """It is on the timeline that the batch goes by, and came after clusterings were looked for."""
    place = _place("COPY_ON_WRITE", mode)
    batch = place.begin(MINE)
    time = following(batch.batch.proposed_time)
    foreign.plan_clustering(place.storage, time, foreign.slices(place.storage, "x"))
    begun = batch.batch
    plan = replace(begun.plan, timeline=timeline_of(place.storage))
    batch.batch = replace(begun, plan=plan)
    message = batch.write()
    with pytest.raises(WriteConflictError, match="planned for file group x/"):
        batch.writer.commit([message])


@pytest.mark.parametrize("what", PLANS)
def test_a_plan_for_other_file_groups_is_no_conflict(what: str) -> None:
    place = _place("MERGE_ON_READ")
    batch = place.begin(MINE)
    message = batch.write()
    PLANS[what](place.storage, _later(place), foreign.slices(place.storage, "y"))
    batch.writer.commit([message])
    assert place.rows() == [("0", "x", 1, 1.0), ("0", "y", 0, 0.0)]


def test_partitions_that_are_deleted_or_replaced_are_not_to_be_rewritten_either() -> None:
    place = _place("COPY_ON_WRITE")
    for options in (OVERWRITE, DROP):
        batch = place.begin(MINE, **options)
        message = batch.write()
        time = _later(place)
        foreign.plan_clustering(place.storage, time, foreign.slices(place.storage, "x"))
        with pytest.raises(WriteConflictError, match=f"clustering {time} was planned"):
            batch.writer.commit([message])
        plan = foreign.step_path(place.storage, time, Action.CLUSTERING, State.REQUESTED)
        place.storage.delete(plan)


@pytest.mark.parametrize("body", [b"no plan", b"", None, "other record"])
@pytest.mark.parametrize("action", ["compaction", "replacecommit"])
def test_a_plan_that_cannot_be_read_may_be_for_any_file_group(
    action: str, body: bytes | str | None
) -> None:
    place = _place("MERGE_ON_READ")
    batch = place.begin(MINE)
    message = batch.write()
    time = _later(place)
    kind = Action.CLUSTERING if action == "replacecommit" and body else Action(action)
    state = State.INFLIGHT if body is None else State.REQUESTED
    data = _other_record(action) if isinstance(body, str) else body
    path = foreign.step_path(place.storage, time, kind, state)
    place.storage.put_if_absent(path, data or b"")
    if action == "replacecommit" and not body:  # an overwrite that was begun, or is gone
        batch.writer.commit([message])
        return
    with pytest.raises(WriteConflictError, match="an unreadable plan"):
        batch.writer.commit([message])


def _other_record(action: str) -> bytes:
    """A plan whose slices have no file ids."""
    empty = {"type": "record", "name": "s", "fields": [{"name": "n", "type": "int"}]}
    several = {"type": "array", "items": empty}
    if action == "compaction":
        fields = [{"name": "operations", "type": several}]
        return write_record(
            {"type": "record", "name": "p", "fields": fields}, {"operations": [{"n": 1}]}
        )
    group = {"type": "record", "name": "g", "fields": [{"name": "slices", "type": several}]}
    groups = {"name": "inputGroups", "type": {"type": "array", "items": group}}
    plan = {"type": "record", "name": "c", "fields": [groups]}
    schema = {"type": "record", "name": "p", "fields": [{"name": "clusteringPlan", "type": plan}]}
    return write_record(schema, {"clusteringPlan": {"inputGroups": [{"slices": [{"n": 1}]}]}})


def test_plans_without_anything_to_do_name_no_file_group() -> None:
    place = _place("MERGE_ON_READ")
    foreign.plan_compaction(place.storage, "20270101000000000", [])
    (compaction,) = timeline_of(place.storage).pending_compactions
    assert planned_groups(place.storage, compaction) == frozenset()
    clean = Instant("20270101000000001", Action.CLEAN, State.REQUESTED)
    assert planned_groups(place.storage, clean) == frozenset()


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("mode", MODES)
def test_a_service_planned_and_completed_meanwhile_is_a_conflict(kind: str, mode: str) -> None:
    place = _place(kind, mode)
    batch = place.begin(MINE)
    message = batch.write()
    time, slices = _later(place), foreign.slices(place.storage, "x")
    if kind == "COPY_ON_WRITE":
        foreign.plan_clustering(place.storage, time, slices)
        foreign.complete_clustering(place.storage, time, slices)
    else:
        foreign.plan_compaction(place.storage, time, slices)
        foreign.complete_compaction(place.storage, time, slices)
    with pytest.raises(WriteConflictError, match="changed file group x/"):
        batch.writer.commit([message])


def test_a_manifest_is_not_completed_over_a_clustering_that_came_since() -> None:
    """Its writer died before it decided; another engine logs no decision."""
    place = _place("COPY_ON_WRITE")
    crash = Fault(
        Effect.CRASH_BEFORE, kinds=frozenset({Kind.PUT}), path=".hoodie/.locks/decisions/*"
    )
    batch = place.begin(MINE, FaultyStorage(place.storage, [crash]))
    message = batch.write()
    with pytest.raises(SimulatedCrash):
        batch.writer.commit([message])
    time, slices = _later(place), foreign.slices(place.storage, "x")
    foreign.plan_clustering(place.storage, time, slices)
    foreign.complete_clustering(place.storage, time, slices)
    recover(open_table(place.storage), place.clock)
    timeline = timeline_of(place.storage)
    assert not timeline.pending
    # Else it would count as committed, and its rows be in a file group that was replaced.
    assert timeline.commit_at(str(message.instant_time)) is None
    assert place.rows() == [("0", "x", 0, 0.0), ("0", "y", 0, 0.0)]


@pytest.mark.parametrize("came", ["before", "between", "after"])
def test_a_write_that_was_decided_is_completed_unless_another_engine_has_overtaken_it(
    came: str,
) -> None:
    """The other engine took the lock of the dead writer, and could not know of its write."""
    place = _place("COPY_ON_WRITE", "several")
    in_x, in_y = (foreign.slices(place.storage, path) for path in "xy")
    time = _later(place)
    if came == "before":
        foreign.begin_write(place.storage, time)
    batch, message = _decided_later(place)
    if came != "before":
        time = _later(place)
        foreign.begin_write(place.storage, time)
    if came == "between":
        foreign.complete_write(place.storage, time, in_y)
    _end_after_decision(place, batch, message)
    if came != "between":
        foreign.complete_write(place.storage, time, in_x)
    _, timeline = apply_pending(open_table(place.storage), place.clock)
    assert not timeline.pending
    is_there = timeline.commit_at(str(message.instant_time)) is not None
    assert is_there is (came == "between")
    mine = ("0", "x", 1, 1.0) if is_there else ("0", "x", 0, 0.0)
    assert place.rows() == [mine, ("0", "y", 0, 0.0)]
    place.table.upsert(MINE)
    assert place.rows() == [("0", "x", 1, 1.0), ("0", "y", 0, 0.0)]


def test_the_batch_of_a_write_that_was_overtaken_is_written_again() -> None:
    """The other engine archived all commits of this library: the decision log has its batches."""
    place = _place("COPY_ON_WRITE", "several")
    (first,) = timeline_of(place.storage).commits
    groups = [foreign.slices(place.storage, path) for path in "yx"]
    batch, message = _decided_later(place)
    for number, slices in enumerate(groups):
        foreign.begin_write(place.storage, time := _later(place))
        foreign.complete_write(place.storage, time, slices)
        if number == 0:
            _end_after_decision(place, batch, message)
    foreign.archive(place.storage, [first.time])
    again = place.begin(MINE)
    assert again.writer.commit([again.write(message.batch_id)]) is not None
    assert place.rows() == [("0", "x", 1, 1.0), ("0", "y", 0, 0.0)]


def test_a_write_that_was_overtaken_is_rolled_back_by_one_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = _place("COPY_ON_WRITE", "several")
    batch, message = _decided_later(place)
    foreign.begin_write(place.storage, time := _later(place))
    _end_after_decision(place, batch, message)
    foreign.complete_write(place.storage, time, foreign.slices(place.storage, "x"))

    def late(storage: Storage, decision: Decision) -> bool:
        assert append_decision(storage, decision), "another process is faster"
        return False

    with monkeypatch.context() as patched:
        patched.setattr("hoodie_ds.transaction.resolution.append_decision", late)
        _, timeline = apply_pending(open_table(place.storage), place.clock)
    assert timeline.commit_at(str(message.instant_time)) is None
    assert not timeline.pending


def _decided_later(place: Place) -> tuple[Begun, TaskCommitMessage]:
    """Write a batch whose process is going to end between its decision and its completed file."""
    crash = Fault(Effect.CRASH_BEFORE, kinds=frozenset({Kind.PUT}), path=".hoodie/*[0-9].commit")
    batch = place.begin(MINE, FaultyStorage(place.storage, [crash]))
    return batch, batch.write(BatchId("q", 0))


def _end_after_decision(place: Place, batch: Begun, message: TaskCommitMessage) -> None:
    with pytest.raises(SimulatedCrash):
        batch.writer.commit([message])
    place.storage.delete(FILE_LOCK)


@pytest.mark.parametrize("mode", MODES)
def test_writes_continued_during_a_pending_restore(mode: str) -> None:
    place = _place("COPY_ON_WRITE", mode)
    batch = place.begin(MINE)
    message = batch.write()
    time = _later(place)
    foreign.begin_restore(place.storage, time)
    for write in (
        lambda: place.table.upsert(MINE),
        lambda: batch.writer.preview(MINE.schema),
        lambda: batch.writer.commit([message]),
    ):
        before = dict(place.storage.files)
        with pytest.raises(
            TimelineError, match=f"restore {time} is pending.*complete it .HoodieTable.restore"
        ):
            write()
        assert _but_locks(place.storage.files) == _but_locks(before)
    assert place.rows() == [("0", "x", 0, 0.0), ("0", "y", 0, 0.0)]


def _but_locks(files: Mapping[str, bytes]) -> dict[str, bytes]:
    passing = (".hoodie/.locks/", ".hoodie/.heartbeat/")
    return {path: data for path, data in files.items() if not path.startswith(passing)}


@pytest.mark.parametrize("recovery", [recover, _recover_lazily])
def test_nothing_is_rolled_back_during_a_pending_restore(
    recovery: Callable[[Table, SimClock], object],
) -> None:
    place = _place("COPY_ON_WRITE")
    place.begin(MINE).write()
    foreign.begin_restore(place.storage, _later(place))
    with pytest.raises(TimelineError, match="restore"):
        recovery(open_table(place.storage), place.clock)
    assert timeline_of(place.storage).pending[0].action is Action.COMMIT


def test_a_decision_is_not_applied_during_a_pending_restore() -> None:
    place = _place("COPY_ON_WRITE")
    crash = Fault(
        Effect.CRASH_AFTER, kinds=frozenset({Kind.PUT}), path=".hoodie/.locks/decisions/*"
    )
    batch = place.begin(MINE, FaultyStorage(place.storage, [crash]))
    with pytest.raises(SimulatedCrash):
        batch.writer.commit([batch.write()])
    foreign.begin_restore(place.storage, _later(place))
    with pytest.raises(TimelineError, match="restore"):
        apply_pending(open_table(place.storage), place.clock)
    assert place.rows()[0] == ("0", "x", 0, 0.0)


@pytest.mark.parametrize("restored", [True, False], ids=["restored", "rolled back"])
def test_a_batch_is_not_committed_after_a_rollback_of_what_it_read(restored: bool) -> None:
    place = _place("COPY_ON_WRITE")
    place.table.upsert(trips(("1", "x", 1, 1.0)))
    last = place.table.timeline.commits[-1].time
    batch = place.begin(MINE)
    message = batch.write()
    time = _later(place)
    foreign.archive(place.storage, [last])
    if restored:
        foreign.begin_restore(place.storage, time)
        path = foreign.step_path(place.storage, time, Action.RESTORE, State.COMPLETED)
        place.storage.put_if_absent(path, b"")
    match = f"restore {time} restored" if restored else f"commit {last} was rolled back"
    with pytest.raises(WriteConflictError, match=match):
        batch.writer.commit([message])
