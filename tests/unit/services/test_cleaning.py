"""A clean is finished by whoever comes next, wherever it was killed, and deletes no file twice."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from hoodie_ds.config.cleaning_options import CleaningOptions
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.environment import RandomIds
from hoodie_ds.errors import TimelineError
from hoodie_ds.services.cleaning import clean, clean_if_due, finish_cleans, is_clean_due
from hoodie_ds.services.context import ServiceContext
from hoodie_ds.services.results import Work
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.testing import FaultyStorage
from hoodie_ds.timeline.bodies.clean_metadata import CleanMetadata
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.loading import load_timeline
from hoodie_ds.timeline.paths import TEMP, instant_path
from tests.unit.services.cleaned_tables import Cleaned, base, day
from tests.unit.transaction.failed_tables import DyingStorage, FixedClock, KilledError

_CLOCK = FixedClock()
_GOING = {base(1), base(2), base(3)}
_OPTIONS = replace(WriteOptions.parse({"path": "/t"}), cleaning=CleaningOptions(commits=1))


def _table(groups: str = "a") -> Cleaned:
    cleaned = Cleaned().commit(1, *(base(1, group) for group in groups), first=True)
    for number in range(2, 6):
        cleaned.commit(number, *(base(number, group) for group in groups))
    return cleaned


def _context(storage: Storage) -> ServiceContext:
    return ServiceContext(_OPTIONS, storage, _CLOCK, RandomIds())


def _cleans(storage: Storage, state: State = State.COMPLETED) -> list[Instant]:
    known = load_timeline(storage, 1).instants
    return [i for i in known if i.action is Action.CLEAN and i.state is state]


def test_a_clean_is_planned_executed_and_recorded() -> None:
    cleaned = _table()
    sizes = {path: len(data) for path, data in cleaned.storage.files.items()}
    result = clean(_context(cleaned.storage))
    ((plan,), (time,)) = (one.plan for one in result), result.times
    assert set(plan.paths) == _GOING
    assert result.work == Work(
        files_deleted=len(_GOING), bytes_deleted=sum(sizes[path] for path in _GOING)
    )
    assert cleaned.left == {base(4), base(5)}
    (done,) = _cleans(cleaned.storage)
    assert done.time == time
    files = cleaned.storage.files
    assert files[instant_path(done.at(State.REQUESTED))] == plan.to_bytes(cleaned.storage.root)
    assert files[instant_path(done.at(State.INFLIGHT))] == b""
    said = CleanMetadata.from_bytes(files[instant_path(done)], "path")
    assert (said.earliest, said.last_completed) == (day(5), day(5))
    assert not cleaned.storage.list(TEMP, recursive=True)


def test_a_dry_run_and_a_clean_of_nothing_change_nothing() -> None:
    cleaned = _table()
    before = cleaned.storage.files
    (would,) = result = clean(_context(cleaned.storage), dry=True)
    assert set(would.plan.paths) == _GOING
    assert (would.instant_time, result.times) == (None, ())
    assert cleaned.storage.files == before
    assert clean(_context(cleaned.storage)).work == result.work
    before = cleaned.storage.files
    assert not clean(_context(cleaned.storage))
    assert cleaned.storage.files == before


def test_many_files_go_at_once() -> None:
    groups = "abcdef"
    cleaned = _table(groups)
    clean(_context(cleaned.storage))
    assert cleaned.left == {base(number, group) for number in (4, 5) for group in groups}


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_killed_at_any_operation_a_clean_is_finished_by_the_next(after: bool) -> None:
    whole = FaultyStorage(_table().storage)
    clean(_context(whole))
    for number in range(1, len(whole.recorder.operations) + 1):
        cleaned = _table()
        storage = cleaned.storage
        with pytest.raises(KilledError):
            clean(_context(DyingStorage(storage, number, after=after)))
        planned = any(path.endswith(".clean.requested") for path in storage.files)
        assert cleaned.left >= {base(4), base(5)} | (set() if planned else _GOING)
        clean(_context(storage))
        assert cleaned.left == {base(4), base(5)}
        assert len(_cleans(storage)) == 1
        assert not load_timeline(storage, 1).pending


def test_a_pending_clean_is_finished_before_the_next_is_planned() -> None:
    cleaned = _table()
    plan = cleaned.plan()
    assert plan is not None
    cleaned.put(6, Action.CLEAN, body=plan.to_bytes("file:/where/hudi/saw/it"))
    cleaned.storage.delete(base(1))  # by a process that ended then
    would = clean(_context(cleaned.storage), dry=True)
    assert [(one.instant_time, one.plan.files) for one in would] == [(day(6), plan.files)]
    assert would.work.files_deleted == 2
    cleaned.commit(7, base(7))
    first, second = result = clean(_context(cleaned.storage))
    assert (first.instant_time, first.plan.files) == (day(6), plan.files)
    assert second.plan.paths == (base(4),)
    assert result.work.files_deleted == 3
    assert cleaned.left == {base(5), base(7)}
    done = [instant.time for instant in _cleans(cleaned.storage)]
    assert done == [day(6), second.instant_time] == sorted(done)


def test_two_processes_may_finish_the_same_clean() -> None:
    cleaned = _table()
    finish = partial(finish_cleans, cleaned.table, _CLOCK)
    plan = cleaned.plan()
    assert plan is not None
    cleaned.put(6, Action.CLEAN, body=plan.to_bytes("/t"))
    inner = cleaned.storage
    ran: list[object] = []

    def meanwhile(operation: object) -> None:
        if len(ran) < 1 and "delete" in str(operation):
            ran.append(operation)
            finish()

    storage = FaultyStorage(inner, before_each=meanwhile)
    finish_cleans(replace(cleaned.table, storage=storage), _CLOCK)
    assert ran
    assert cleaned.left == {base(4), base(5)}
    assert len(_cleans(inner)) == 1


def test_a_plan_of_another_process_is_finished_in_place_of_ours() -> None:
    cleaned = _table()
    inner = cleaned.storage
    ran: list[object] = []

    def meanwhile(operation: object) -> None:
        if not ran and "decisions" in str(operation):
            ran.append(operation)
            plan = cleaned.plan()
            assert plan is not None
            cleaned.put(6, Action.CLEAN, body=plan.to_bytes("/t"))

    (done,) = clean(_context(FaultyStorage(inner, before_each=meanwhile)))
    assert done.instant_time == day(6)
    assert cleaned.left == {base(4), base(5)}
    assert [instant.time for instant in _cleans(inner)] == [day(6)]


@pytest.mark.parametrize(("what", "left"), [("savepoint", {2, 4, 5}), ("write", {1, 2, 3, 4, 5})])
def test_files_of_changes_during_planning_are_kept(what: str, left: set[int]) -> None:
    cleaned = _table()
    ran: list[object] = []

    def meanwhile(operation: object) -> None:
        if not ran and "turns" in str(operation):
            ran.append(operation)
            if what == "savepoint":
                cleaned.save(2, base(2))
            else:  # by a writer that sees the table as it was on the second day
                opened = Instant(f"{day(2)[:8]}120000000", Action.COMMIT, State.INFLIGHT)
                cleaned.storage.put_if_absent(instant_path(opened), b"")

    storage = FaultyStorage(cleaned.storage, before_each=meanwhile)
    table, timeline = replace(cleaned.table, storage=storage), load_timeline(storage, 1)
    clean_if_due(_context(storage), table, timeline)
    assert ran
    assert cleaned.left == {base(number) for number in left}


def test_remains_of_an_archived_clean_are_deleted() -> None:
    cleaned = _table().put(6, Action.CLEAN, State.INFLIGHT)
    assert [one.instant_time for one in clean(_context(cleaned.storage), dry=True)] == [None]
    finish_cleans(cleaned.table, _CLOCK)
    assert not load_timeline(cleaned.storage, 1).pending
    assert _cleans(cleaned.storage) == []


def test_a_plan_from_before_a_restore_is_not_executed() -> None:
    cleaned = _table()
    plan = cleaned.plan()
    assert plan is not None
    cleaned.put(6, Action.CLEAN, body=plan.to_bytes("/t"))
    before = cleaned.left
    cleaned.put(7, Action.RESTORE)
    with pytest.raises(TimelineError, match=f"restore {day(7)} is pending"):
        finish_cleans(cleaned.table, _CLOCK)
    cleaned.put(7, Action.RESTORE, State.COMPLETED)
    finish_cleans(cleaned.table, _CLOCK)
    assert cleaned.left == before
    assert not load_timeline(cleaned.storage, 1).pending


def test_a_clean_is_due_after_so_many_commits() -> None:
    cleaned = _table()
    options = replace(_OPTIONS, cleaning=CleaningOptions(commits=1, max_commits=2))
    context = replace(_context(cleaned.storage), options=options)
    assert is_clean_due(context, load_timeline(cleaned.storage, 1))
    cleaned.clean(6).commit(7)
    assert not is_clean_due(context, load_timeline(cleaned.storage, 1))
    cleaned.commit(8)
    assert is_clean_due(context, load_timeline(cleaned.storage, 1))
