"""How the plan of a service comes on the timeline: once, in order, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.environment import RandomIds
from hoodie_ds.errors import CorruptFileError, OptionError, TimelineError
from hoodie_ds.services.context import ServiceContext, retry_on_concurrent_change
from hoodie_ds.storage.connect import storage_to_write
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.testing import MemoryStorage
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.loading import load_timeline
from hoodie_ds.timeline.paths import TEMP, instant_path
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction.decision_log import Outcome, append_decision, newest_decision
from hoodie_ds.transaction.decision_log import next_decision as next_one
from hoodie_ds.transaction.ownership import claim
from hoodie_ds.transaction.resolution import apply_pending
from tests.golden.golden_tables import unzip_table
from tests.unit.transaction.failed_tables import DONE, OLD_BASE, FixedClock, commit, new_table

_CLOCK = FixedClock()
_PLAN = b"a plan"
_OTHER = Instant("20250102000000000", Action.COMMIT, State.INFLIGHT)


def _context(storage: Storage) -> ServiceContext:
    return ServiceContext(WriteOptions.parse({"path": "/t"}), storage, _CLOCK, RandomIds())


def _new_table(storage: Storage) -> None:
    commit(new_table(storage), DONE, OLD_BASE)


def _schedule(storage: Storage, plan: bytes | None = _PLAN) -> Instant | None:
    context = _context(storage)
    pending = context.action(context.open_table(), Action.COMPACTION, "COMPACT")
    return context.schedule(pending, lambda timeline, time: plan)


def _others_decide(storage: Storage) -> None:
    newest = newest_decision(storage)
    assert append_decision(storage, next_one(newest, Outcome.KEEP_OPEN, _OTHER, "another"))


def test_a_plan_has_the_latest_time_and_leaves_no_temporary_files() -> None:
    storage = MemoryStorage()
    _new_table(storage)
    instant = _schedule(storage)
    assert instant is not None
    assert instant.time > DONE
    assert load_timeline(storage, 1).pending == (instant,)
    assert storage.read(instant_path(instant)) == _PLAN
    assert not storage.list(TEMP, recursive=True)


def test_where_nothing_is_due_nothing_is_written() -> None:
    storage = MemoryStorage()
    _new_table(storage)
    before = dict(storage.files)
    assert _schedule(storage, plan=None) is None
    assert dict(storage.files) == before


def test_a_time_that_is_claimed_is_passed_over() -> None:
    storage = MemoryStorage()
    _new_table(storage)
    first = _schedule(storage)
    assert first is not None
    storage.delete(instant_path(first))
    assert claim(storage, first.time, "another")
    again = _schedule(storage)
    assert again is not None
    assert again.time > first.time


def test_a_plan_is_made_anew_where_others_decided_meanwhile() -> None:
    storage = MemoryStorage()
    _new_table(storage)
    context = _context(storage)
    plans = [b"first", b"second"]

    def plan(timeline: Timeline, time: str) -> bytes:
        if len(plans) == 2:
            _others_decide(storage)
        return plans.pop(0)

    pending = context.action(context.open_table(), Action.CLEAN, "CLEAN")
    instant = context.schedule(pending, plan)
    assert instant is not None
    assert storage.read(instant_path(instant)) == b"second"
    assert load_timeline(storage, 1).pending == (instant,)


def test_a_time_that_a_writer_takes_meanwhile_is_not_taken_twice() -> None:
    """A single writer takes the scheduler for dead, and sweeps its claim."""
    storage = MemoryStorage()
    _new_table(storage)
    times: list[str] = []

    def plan(timeline: Timeline, time: str) -> bytes:
        if not times:
            taken = Instant(time, Action.DELTA_COMMIT, State.REQUESTED)
            storage.put_if_absent(instant_path(taken), b"")
        times.append(time)
        return _PLAN

    context = _context(storage)
    pending = context.action(context.open_table(), Action.COMPACTION, "COMPACT")
    instant = context.schedule(pending, plan)
    assert instant is not None
    assert times == [times[0], instant.time]
    assert instant.time > times[0]
    assert [i.action for i in load_timeline(storage, 1).at(times[0])] == [Action.DELTA_COMMIT]


@pytest.mark.parametrize("outcome", ["requested", "nothing"])
def test_the_next_decision_puts_a_logged_plan_on_the_timeline(outcome: str) -> None:
    storage = MemoryStorage()
    _new_table(storage)
    context = _context(storage)
    table = context.open_table()
    instant = _schedule(storage)
    assert instant is not None
    path = instant_path(instant)
    storage.delete(path)  # as if the scheduler had ended before it put the file
    if outcome == "nothing":
        _others_decide(storage)  # who applied the plan first, and it was executed
    newest, timeline = apply_pending(table, _CLOCK)
    assert newest is not None
    if outcome == "requested":
        assert (newest.outcome, newest.plan) == (Outcome.SCHEDULE, _PLAN)
        assert timeline.pending == (instant,)
        assert storage.read(path) == _PLAN
        assert apply_pending(table, _CLOCK, timeline) == (newest, timeline)
    else:
        assert timeline.pending == ()


def test_a_pending_restore_lets_no_service_begin() -> None:
    storage = MemoryStorage()
    _new_table(storage)
    restore = Instant("20250103000000000", Action.RESTORE, State.REQUESTED)
    storage.put_if_absent(instant_path(restore), b"")
    with pytest.raises(TimelineError, match=f"restore {restore.time} is pending"):
        _schedule(storage)


def test_a_metadata_table_is_not_left_behind(tmp_path: Path) -> None:
    path = unzip_table("v6_cow_metadata", tmp_path)
    properties = path / ".hoodie/hoodie.properties"
    listed = "hoodie.table.metadata.partitions="
    properties.write_text(properties.read_text().replace(listed, f"{listed}expr_index_a,"))
    context = _context(storage_to_write(WriteOptions.parse({"path": str(path)})))
    with pytest.raises(OptionError, match=r"hoodie\.metadata\.enable.*metadata table \(.*files\)"):
        context.open_table()


def test_a_service_by_hand_drops_the_metadata_table_where_the_option_agrees(tmp_path: Path) -> None:
    path = unzip_table("v6_cow_metadata", tmp_path)
    table = HoodieTable(path, {"hoodie.metadata.enable": "false"})
    before = table.read()
    table.savepoint(dry=True)
    assert table.properties.metadata_partitions
    assert (path / ".hoodie/metadata").is_dir()
    table.savepoint()
    assert not table.properties.metadata_partitions
    assert not (path / ".hoodie/metadata").exists()
    assert HoodieTable(path).read() == before


@pytest.mark.parametrize("changes", [0, 1, 99])
def test_an_error_counts_only_if_the_timeline_stays_the_same(changes: int) -> None:
    storage = MemoryStorage()
    table = new_table(storage)
    tries: list[int] = []

    def work() -> int:
        if len(tries) == changes == 1:
            return changes
        tries.append(changes)
        if len(tries) <= changes:
            commit(table, f"2025{len(tries):013}", OLD_BASE)
        raise CorruptFileError("missing")

    if changes == 1:
        assert retry_on_concurrent_change(table, work) == 1
    else:
        with pytest.raises(CorruptFileError):
            retry_on_concurrent_change(table, work)
        assert len(tries) == (1 if changes == 0 else 5)
