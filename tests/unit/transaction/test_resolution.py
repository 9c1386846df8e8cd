from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import pytest

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.table import Table
from hoodie_ds.testing import MUTATING, FaultyStorage, Kind, Operation
from hoodie_ds.timeline.bodies.rollback_metadata import plan_to_bytes
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.loading import load_timeline
from hoodie_ds.timeline.paths import DECISIONS, instant_path
from hoodie_ds.transaction.decision_log import Decision, Outcome, append_decision, newest_decision
from hoodie_ds.transaction.recovery import recover_lazily
from hoodie_ds.transaction.resolution import apply_pending, resolve_instant
from hoodie_ds.transaction.rollback import finish_rollback
from tests.unit.transaction.failed_tables import (
    DONE,
    FAILED,
    NEW_BASE,
    OLD_BASE,
    FixedClock,
    begin,
    commit,
    data_files,
    files,
    new_table,
    put_file,
)

_CLOCK = FixedClock()
_LATER = "20250103000000000"


def _with_one_that_died(storage: Storage) -> tuple[Table, Instant]:
    table = new_table(storage)
    put_file(table, OLD_BASE)
    commit(table, DONE, OLD_BASE)
    instant = begin(table, FAILED)
    put_file(table, NEW_BASE, marker=FAILED)
    return table, instant


def _rollbacks(storage: Storage) -> list[Instant]:
    return list(load_timeline(storage, 1).rollbacks)


def test_a_decided_commit_without_its_manifest_is_not_rolled_back(storage: Storage) -> None:
    table, instant = _with_one_that_died(storage)
    assert append_decision(storage, Decision(1, Outcome.COMPLETE, instant, "me"))
    before = files(storage)
    with pytest.raises(CorruptFileError, match=f"although commit {FAILED} was completed"):
        resolve_instant(table, instant, _CLOCK)
    assert files(storage) == before


def test_two_processes_roll_an_instant_back_once(storage: Storage) -> None:
    table, instant = _with_one_that_died(storage)

    def other_comes_first(operation: Operation) -> None:
        if operation.kind is Kind.PUT and operation.path.startswith(DECISIONS):
            append_decision(storage, Decision(1, Outcome.ROLL_BACK, instant, "another"))

    resolve_instant(
        Table(FaultyStorage(storage, before_each=other_comes_first), table.properties),
        instant,
        _CLOCK,
    )
    decision = newest_decision(storage)
    assert decision is not None
    assert (decision.number, decision.decided_by) == (1, "another")
    assert [found.state for found in _rollbacks(storage)] == [State.COMPLETED]
    assert data_files(storage) == [OLD_BASE]


def test_an_interrupted_rollback_is_resumed_as_the_same_instant(storage: Storage) -> None:
    table, instant = _with_one_that_died(storage)
    rollback = Instant(_LATER, Action.ROLLBACK, State.REQUESTED)
    storage.put_if_absent(instant_path(rollback), plan_to_bytes(storage.root, instant, {}))
    append_decision(storage, Decision(1, Outcome.ROLL_BACK, instant, "me"))
    _, timeline = apply_pending(table, _CLOCK)
    assert _rollbacks(storage) == [rollback.at(State.COMPLETED)]
    assert timeline.pending == ()
    assert data_files(storage) == [OLD_BASE]


def test_a_rollback_whose_writer_died_is_finished_by_one_of_several(storage: Storage) -> None:
    table, instant = _with_one_that_died(storage)
    rollback = Instant(_LATER, Action.ROLLBACK, State.REQUESTED)
    storage.put_if_absent(instant_path(rollback), plan_to_bytes(storage.root, instant, {}))
    timeline = recover_lazily(table, _CLOCK, 1000, nullcontext)
    assert _rollbacks(storage) == [rollback.at(State.COMPLETED)]
    assert timeline.pending == ()
    assert data_files(storage) == [OLD_BASE]


def test_a_rollback_finished_by_others_during_the_wait_for_the_lock_is_left(
    storage: Storage,
) -> None:
    table, instant = _with_one_that_died(storage)
    rollback = Instant(_LATER, Action.ROLLBACK, State.REQUESTED)
    storage.put_if_absent(instant_path(rollback), plan_to_bytes(storage.root, instant, {}))

    @contextmanager
    def late_lock() -> Iterator[None]:
        finish_rollback(table, rollback, _CLOCK)
        yield

    watched = FaultyStorage(storage)
    recover_lazily(Table(watched, table.properties), _CLOCK, 1000, late_lock)
    changed = {o.path for o in watched.recorder.operations if o.kind in MUTATING}
    assert instant_path(rollback.at(State.COMPLETED)) not in changed
    assert _rollbacks(storage) == [rollback.at(State.COMPLETED)]
    assert data_files(storage) == [OLD_BASE]
