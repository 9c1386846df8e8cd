"""A compaction that is shared, killed, overtaken or hindered."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hoodie_ds.errors import CorruptFileError, OptionError, TimelineError, WriteConflictError
from hoodie_ds.services.compaction.compactor import Compactor
from hoodie_ds.services.compaction.executor import CompactionExecutor
from hoodie_ds.services.compaction.result import CompactionResult, read_result, result_path
from hoodie_ds.testing import Effect, Fault, FaultyStorage, Kind, SimulatedCrash
from hoodie_ds.testing.checker import check_table
from hoodie_ds.timeline.bodies.commit_metadata import CommitMetadata
from hoodie_ds.timeline.bodies.compaction_plan import CompactionOperation, CompactionPlan
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.instant_time import following
from hoodie_ds.timeline.paths import TEMP, instant_path, manifest_path, work_folder
from hoodie_ds.transaction.decision_log import Outcome, append_decision, newest_decision
from hoodie_ds.transaction.decision_log import next_decision as next_one
from tests.faults import foreign
from tests.faults.writers import MODE, SEVERAL, Place
from tests.unit.services.compaction.compacted_tables import (
    compactor,
    rows,
    scheduled,
    table,
    timeline,
    upsert,
)


def _executor(worker: Compactor, place: Place, instant: Instant) -> CompactionExecutor:
    return CompactionExecutor(worker.context, worker.table, instant.time, timeline(place))


def _base_files(place: Place, instant: Instant) -> list[str]:
    return [path for path in place.storage.files if path.endswith(f"_{instant.time}.parquet")]


def _is_well(place: Place, rows_before: object) -> bool:
    """Nothing is left behind, and the rows are the same."""
    assert place.rows() == rows_before
    assert not place.storage.list(TEMP, recursive=True)
    return not check_table(place.storage.files, buckets=True)


def _killed_at_the_decision(
    place: Place, instant: Instant, plan: CompactionPlan, effect: Effect
) -> None:
    """Merge all, and end where the decision to complete is put."""
    compactor(place).execute(instant, plan)
    crash = Fault(effect, kinds=frozenset({Kind.PUT}), path=".hoodie/.locks/decisions/*")
    with pytest.raises(SimulatedCrash):
        compactor(place, FaultyStorage(place.storage, [crash])).complete(instant, plan)


@pytest.mark.parametrize("mode", [{}, {MODE: SEVERAL}], ids=["single", "several"])
def test_several_processes_share_a_plan(mode: dict[str, str]) -> None:
    place = table("x", "y", **mode)
    before = place.rows()
    instant, plan = scheduled(place)
    first, second = (replace(plan, operations=(one,)) for one in plan.operations)
    one, other = compactor(place), compactor(place)
    one.execute(instant, first)
    assert not one.complete(instant, plan)
    other.execute(instant, second)
    assert one.complete(instant, plan)
    assert other.complete(instant, plan), "it is complete, whoever did it"
    assert len(_base_files(place, instant)) == 2
    assert _is_well(place, before)


def test_what_is_done_is_not_done_again() -> None:
    place = table("x", "y")
    instant, plan = scheduled(place)
    compactor(place).execute(instant, plan)
    done = _base_files(place, instant)
    compactor(place).run(instant)
    assert _base_files(place, instant) == done


def test_the_first_of_two_results_of_a_file_group_counts() -> None:
    place = table("x")
    before = place.rows()
    instant, plan = scheduled(place)
    (operation,) = plan.operations
    slow = compactor(place)
    executor = _executor(slow, place, instant)
    late = executor._result(operation)
    first = _executor(compactor(place), place, instant).execute(operation)
    assert len(_base_files(place, instant)) == 2
    assert first.status is not None
    assert late.status is not None
    assert late.status.stat.path != first.status.stat.path
    path = result_path(instant.time, operation)
    won = place.storage.read(path)
    place.storage.delete(path)

    def faster(one: CompactionOperation) -> CompactionResult:
        place.storage.put_if_absent(path, won)
        return late

    executor.__dict__["_result"] = faster
    assert executor.execute(operation) == CompactionResult.from_bytes(won, path)
    assert _base_files(place, instant) == [first.status.stat.path]
    assert slow.complete(instant, plan)
    assert _is_well(place, before)


def test_a_put_that_lost_against_its_own_first_try_has_won() -> None:
    place = table("x")
    before = place.rows()
    instant, plan = scheduled(place)
    repeated = Fault(Effect.REPEATED, kinds=frozenset({Kind.PUT}), path=f"{TEMP}/*/compacted/*")
    compactor(place, FaultyStorage(place.storage, [repeated])).execute(instant, plan)
    assert compactor(place).complete(instant, plan)
    assert _is_well(place, before)


@pytest.mark.parametrize("ended", ["completed", "cancelled"])
def test_a_result_that_comes_late_is_taken_back(ended: str) -> None:
    place = table("x")
    before = place.rows()
    instant, plan = scheduled(place)
    (operation,) = plan.operations
    executor = _executor(compactor(place), place, instant)
    if ended == "completed":
        compactor(place).run(instant)
        kept = _base_files(place, instant)
    else:
        kept = []
        place.storage.delete(instant_path(instant))
    executor.execute(operation)
    assert _base_files(place, instant) == kept
    assert _is_well(place, before)


def test_a_result_with_which_others_complete_at_once_stays() -> None:
    place = table("x")
    before = place.rows()
    instant, plan = scheduled(place)
    (operation,) = plan.operations

    class Overtaken(FaultyStorage):
        def put_if_absent(self, path: str, data: bytes) -> None:
            super().put_if_absent(path, data)
            if path == result_path(instant.time, operation):
                assert compactor(place).complete(instant, plan)

    worker = compactor(place, Overtaken(place.storage))
    result = _executor(worker, place, instant).execute(operation)
    assert result.status is not None
    assert _base_files(place, instant) == [result.status.stat.path]
    assert _is_well(place, before)


@pytest.mark.parametrize("cleaned", [0, 1, None])
def test_two_processes_may_find_that_a_file_group_was_replaced(cleaned: int | None) -> None:
    """And that a clean has taken some of its files, or all."""
    place = table("x", "y")
    instant, plan = scheduled(place)
    place.table.overwrite(rows(5, "x"), partitions_only=True)
    before = place.rows()
    (replaced,) = (one for one in plan.operations if one.partition_path == "x")
    names = [path for path in place.storage.files if replaced.file_id in path]
    place.storage.delete_many(sorted(name for name in names if name.startswith("x/"))[:cleaned])
    late = _executor(compactor(place), place, instant)
    compactor(place).run(instant)
    kept = _base_files(place, instant)
    assert len(kept) == (2 if cleaned == 0 else 1)
    assert (late.execute(replaced) == CompactionResult()) is (cleaned != 0)
    assert _base_files(place, instant) == kept
    assert place.rows() == before


def test_a_late_result_of_an_archived_compaction_is_left_alone() -> None:
    """Nothing tells by now whether the commit named the file."""
    place = table("x")
    instant, plan = scheduled(place)
    executor = _executor(compactor(place), place, instant)
    compactor(place).run(instant)
    upsert(place, 3, "x")
    foreign.archive(place.storage, [*(i.time for i in timeline(place).commits[:-1])])
    executor.execute(plan.operations[0])
    assert len(_base_files(place, instant)) == 2


def test_a_completed_compaction_is_left_as_it_is() -> None:
    place = table("x")
    instant, plan = scheduled(place)
    compactor(place).run(instant)
    before = dict(place.storage.files)
    compactor(place).execute(instant, plan)
    compactor(place).run(instant)
    assert dict(place.storage.files) == before


@pytest.mark.parametrize("is_begun_late", [False, True])
def test_a_cancelled_compaction_says_so(is_begun_late: bool) -> None:
    place = table("x")
    before = place.rows()
    instant, plan = scheduled(place)
    worker = compactor(place)
    worker.execute(instant, plan)
    newest = newest_decision(place.storage)  # else the plan would be put again
    other = Instant(following(instant.time), Action.DELTA_COMMIT, State.INFLIGHT)
    assert append_decision(place.storage, next_one(newest, Outcome.KEEP_OPEN, other, "another"))
    place.storage.delete(instant_path(instant))
    if is_begun_late:
        place.storage.put_if_absent(instant_path(instant.at(State.INFLIGHT)), b"")
    ended = f"compaction {instant.time} was rolled back or cancelled"
    with pytest.raises(TimelineError, match=ended):
        worker.complete(instant, plan)
    with pytest.raises(CorruptFileError, match=r"compaction\.requested is missing"):
        worker.run(instant)
    assert place.rows() == before


def test_what_others_committed_to_the_slice_meanwhile_is_merged_too() -> None:
    """As an engine that does not know of the plan may do."""
    place = table("x")
    writer = place.begin(rows(3, "x"))
    instant, plan = scheduled(place)
    (operation,) = plan.operations
    worker = compactor(place)
    worker.execute(instant, plan)
    message = writer.write()
    stats = tuple(status.stat for status in message.statuses)
    body = CommitMetadata(stats, "UPSERT", {"schema": writer.batch.plan.avro_schema}).to_bytes(1)
    place.storage.put_if_absent(f".hoodie/{message.instant_time}.deltacommit", body)
    before = place.rows()
    assert ("0", "x", 3, 3.0) in before
    assert not worker.complete(instant, plan)
    assert read_result(place.storage, instant.time, operation) is None
    worker.run(instant)
    assert place.rows() == before


def test_a_base_file_that_another_engine_took_away_is_made_again() -> None:
    place = table("x")
    before = place.rows()
    instant, plan = scheduled(place)
    worker = compactor(place)
    worker.execute(instant, plan)
    for path in _base_files(place, instant):
        place.storage.delete(path)
    assert not worker.complete(instant, plan)
    worker.run(instant)
    assert _is_well(place, before)


def test_file_groups_that_change_again_and_again_are_given_up() -> None:
    place = table("x")
    instant, _ = scheduled(place)
    worker = compactor(place)
    worker.__dict__["complete"] = lambda instant, plan: False
    with pytest.raises(WriteConflictError, match="others change the file groups of compaction"):
        worker.run(instant)


def test_a_replaced_file_group_is_merged_as_planned() -> None:
    place = table("x", "y")
    instant, plan = scheduled(place)
    place.table.overwrite(rows(5, "x"), partitions_only=True)
    before = place.rows()
    compactor(place).run(instant)
    assert len(plan.operations) == 2
    assert sorted(path.partition("/")[0] for path in _base_files(place, instant)) == ["x", "y"]
    assert _is_well(place, before)


def test_a_file_group_that_is_replaced_after_it_was_merged_stays_hidden() -> None:
    place = table("x", "y")
    instant, plan = scheduled(place)
    compactor(place).execute(instant, plan)
    place.clock.advance(1000)
    place.table.overwrite(rows(5, "x"), partitions_only=True)
    before = place.rows()
    assert compactor(place).complete(instant, plan)
    assert _is_well(place, before)


@pytest.mark.parametrize("what", ["base", "log", "all"])
def test_a_slice_with_a_missing_file_is_not_compacted(what: str) -> None:
    place = table("x")
    instant, _ = scheduled(place)
    (slice_,) = foreign.slices(place.storage, "x")
    assert slice_.base is not None
    base, log = slice_.base.path, slice_.logs[0].path
    for path in {"base": [base], "log": [log], "all": [base, log]}[what]:
        place.storage.delete(path)
    with pytest.raises(CorruptFileError, match=r"is missing|has no committed file"):
        compactor(place).run(instant)
    assert not _base_files(place, instant)


def test_a_lost_base_file_of_an_archived_commit_is_missed_by_the_plan() -> None:
    place = table("x")
    instant, _ = scheduled(place)
    (slice_,) = foreign.slices(place.storage, "x")
    assert slice_.base is not None
    foreign.archive(place.storage, [timeline(place).commits[0].time])
    place.storage.delete(slice_.base.path)
    with pytest.raises(CorruptFileError, match=f"{slice_.base.name} is missing"):
        compactor(place).run(instant)


def test_a_lost_log_file_that_the_plan_does_not_name_is_missed_too() -> None:
    place = table("x")
    upsert(place, 3, "x")
    time = following(str(timeline(place).latest_time))
    (slice_,) = foreign.slices(place.storage, "x")
    foreign.plan_compaction(place.storage, time, [replace(slice_, logs=slice_.logs[:1])])
    place.storage.delete(slice_.logs[1].path)
    with pytest.raises(CorruptFileError, match="is missing, which compaction"):
        place.table.compact()


def test_a_planned_log_file_that_was_never_committed_may_be_gone() -> None:
    """Other engines plan what they list, also files of writes that were rolled back since."""
    place = table("x")
    before = place.rows()
    time = following(str(timeline(place).latest_time))
    (slice_,) = foreign.slices(place.storage, "x")
    stem = slice_.logs[0].file_name.rpartition("_")[0]
    failed = replace(slice_.logs[0], file_name=f"{stem}_0-9-999")
    foreign.plan_compaction(place.storage, time, [replace(slice_, logs=(*slice_.logs, failed))])
    place.table.compact()
    assert _is_well(place, before)


def test_a_group_that_was_rewritten_after_the_plan_is_refused() -> None:
    place = table("x")
    instant, _ = scheduled(place)
    (slice_,) = foreign.slices(place.storage, "x")
    later = following(instant.time)
    foreign.complete_compaction(place.storage, later, [slice_])
    with pytest.raises(TimelineError, match=f"was rewritten at {later}, after compaction"):
        compactor(place).run(instant)


def test_a_file_that_cannot_be_read_leaves_no_base_file() -> None:
    place = table("x")
    instant, _ = scheduled(place)
    (slice_,) = foreign.slices(place.storage, "x")
    path = slice_.logs[0].path
    place.storage.replace(path, place.storage.read(path)[:-5])
    with pytest.raises(CorruptFileError, match="log"):
        compactor(place).run(instant)
    assert not _base_files(place, instant)


def test_others_may_decide_meanwhile() -> None:
    place = table("x")
    before = place.rows()
    instant, plan = scheduled(place)
    worker = compactor(place)
    worker.execute(instant, plan)
    other = Instant(following(instant.time), Action.DELTA_COMMIT, State.INFLIGHT)
    decided: list[bool] = []

    class Slow(FaultyStorage):
        def put_if_absent(self, path: str, data: bytes) -> None:
            if path == manifest_path(instant.time) and not decided:
                newest = newest_decision(place.storage)
                decision = next_one(newest, Outcome.KEEP_OPEN, other, "another")
                decided.append(append_decision(place.storage, decision))
            super().put_if_absent(path, data)

    assert compactor(place, Slow(place.storage)).complete(instant, plan)
    assert decided == [True]
    assert _is_well(place, before)


@pytest.mark.parametrize("left", ["same", "other", "damaged"])
def test_a_manifest_that_is_there_counts_if_it_says_the_same(left: str) -> None:
    place = table("x")
    before = place.rows()
    instant, plan = scheduled(place)
    _killed_at_the_decision(place, instant, plan, Effect.CRASH_BEFORE)
    path = manifest_path(instant.time)
    first = place.storage.read(path)
    stats = CommitMetadata.from_bytes(first, path).stats
    bodies = {
        "same": CommitMetadata(stats, "COMPACT", {"left": "here"}, compacted=True).to_bytes(1),
        "other": CommitMetadata((), "COMPACT", {"left": "here"}, compacted=True).to_bytes(1),
        "damaged": b"no commit",
    }
    place.storage.replace(path, bodies[left])
    assert compactor(place).complete(instant, plan)
    commit = place.storage.read(f".hoodie/{instant.time}.commit")
    assert commit == (bodies["same"] if left == "same" else first)
    assert _is_well(place, before)


def test_a_decided_compaction_is_completed_by_the_next_process() -> None:
    place = table("x")
    before = place.rows()
    instant, plan = scheduled(place)
    _killed_at_the_decision(place, instant, plan, Effect.CRASH_AFTER)
    assert timeline(place).pending_compactions
    assert place.rows() == before
    upsert(place, 3, "x")
    assert not timeline(place).pending_compactions
    assert ("2", "x", 2, 2.0) in place.rows()
    assert ("0", "x", 3, 3.0) in place.rows()


def test_no_recovery_of_a_write_touches_a_pending_compaction() -> None:
    place = table("x", "y")
    instant, plan = scheduled(place)
    compactor(place).execute(instant, replace(plan, operations=plan.operations[:1]))
    ours = {p: d for p, d in place.storage.files.items() if instant.time in p}
    place.begin(rows(3, "x", "y")).write()  # and its process dies
    upsert(place, 4, "x", "y")
    assert {p: place.storage.read(p) for p in ours} == ours
    before = place.rows()
    compactor(place).run(instant)
    assert _is_well(place, before)


def test_a_damaged_result_is_reported() -> None:
    place = table("x")
    instant, plan = scheduled(place)
    path = result_path(instant.time, plan.operations[0])
    for body in (b"{", b'{"merged": {}, "written": [1]}', b"[]"):
        place.storage.replace(path, body)
        with pytest.raises(CorruptFileError, match=r"not the result of a compaction.*delete it"):
            compactor(place).run(instant)


def test_results_read_as_they_were_written() -> None:
    place = table("x")
    instant, plan = scheduled(place)
    result = _executor(compactor(place), place, instant).execute(plan.operations[0])
    path = result_path(instant.time, plan.operations[0])
    assert CompactionResult.from_bytes(place.storage.read(path), path) == result
    nothing = CompactionResult(None, {"x": 1})
    assert CompactionResult.from_bytes(nothing.to_bytes(), path) == nothing
    assert work_folder(instant.time) in path


def test_a_plan_without_operations_completes() -> None:
    place = table("x")
    time = following(str(timeline(place).latest_time))
    place.storage.put_if_absent(f".hoodie/{time}.compaction.requested", CompactionPlan().to_bytes())
    place.table.compact()
    assert timeline(place).commit_at(time) is not None


def test_a_table_with_a_metadata_table_is_left_alone() -> None:
    place = table("x")
    path = ".hoodie/hoodie.properties"
    text = place.storage.read(path) + b"\nhoodie.table.metadata.partitions=files,expr_index_a\n"
    place.storage.replace(path, text)
    with pytest.raises(OptionError, match="cannot keep expr_index_a"):
        place.table.compact()
