"""Tables whose decision log is in the folder that releases before this one kept it in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import CorruptFileError, HoodieError
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.testing import (
    CRASHES,
    Effect,
    Fault,
    FaultyStorage,
    Kind,
    MemoryStorage,
    Operation,
    SimClock,
    SimIds,
    SimulatedCrash,
    one_thread,
    sweep,
)
from hoodie_ds.timeline.paths import DECISIONS, FORMER_DECISIONS, number_in
from tests.faults.writers import MODE, SEVERAL
from tests.tables import TRIPS, TYPE, TYPES, VERSION, found, timeline_of, trips

ONE = trips(("a", "x", 1, 1.0), ("b", "y", 1, 1.0))
TWO = trips(("a", "x", 2, 2.0))
THREE = trips(("b", "y", 3, 3.0))
DEAD_MS = 400_000
"""Longer than heartbeats and leases last."""
KINDS = pytest.mark.parametrize(("version", "kind"), [("6", TYPES[0]), ("9", TYPES[1])])


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    with one_thread():
        yield


def _table(storage: object, clock: SimClock | None = None, /, **more: str) -> HoodieTable:
    """The table as a process of its own sees it."""
    given = cast(Storage, storage)
    ids = SimIds(len(given.list("", recursive=True)))
    return HoodieTable("/t", {**TRIPS, **more}, storage=given, clock=clock or SimClock(), ids=ids)


def _numbers(storage: MemoryStorage, folder: str) -> list[int]:
    listed = (number_in(path) for path in storage.files if path.startswith(f"{folder}/"))
    return sorted(number for number in listed if number is not None)


def _move_log(storage: MemoryStorage) -> None:
    """Make the table one of a release before."""
    for path in [path for path in storage.files if path.startswith(f"{DECISIONS}/")]:
        storage.put_if_absent(path.replace(DECISIONS, FORMER_DECISIONS), storage.read(path))
        storage.delete(path)


def _decided_before(version: str, kind: str) -> MemoryStorage:
    """A table of which a writer of before died after it had logged its second decision."""
    storage = MemoryStorage(clock=SimClock())
    _table(storage, **{VERSION: version, TYPE: kind}).upsert(ONE)
    crash = Fault(Effect.CRASH_AFTER, kinds=frozenset({Kind.PUT}), path=f"{DECISIONS}/*")
    with pytest.raises(SimulatedCrash):
        _table(FaultyStorage(storage, [crash])).upsert(TWO)
    _move_log(storage)
    return storage


@KINDS
def test_a_commit_that_the_former_log_decided_is_completed(version: str, kind: str) -> None:
    storage = _decided_before(version, kind)
    assert found(_table(storage)) == [("a", "x", 1, 1.0), ("b", "y", 1, 1.0)]
    _table(storage).upsert(THREE)
    assert found(_table(storage)) == [("a", "x", 2, 2.0), ("b", "y", 3, 3.0)]
    assert _numbers(storage, FORMER_DECISIONS) == [1, 2]
    assert _numbers(storage, DECISIONS) == [3]


@KINDS
def test_the_writer_that_continues_a_former_log_ends_at_any_operation(
    version: str, kind: str
) -> None:
    def check(storage: MemoryStorage, raised: BaseException | None) -> None:
        rows = found(_table(storage))
        assert rows in (
            [("a", "x", 1, 1.0), ("b", "y", 1, 1.0)],
            [("a", "x", 2, 2.0), ("b", "y", 1, 1.0)],
            [("a", "x", 2, 2.0), ("b", "y", 3, 3.0)],
        )
        assert raised is not None or rows[1] == ("b", "y", 3, 3.0)
        _table(storage).upsert(trips(("c", "x", 4, 4.0)))
        assert ("a", "x", 2, 2.0) in found(_table(storage))
        logged = _numbers(storage, FORMER_DECISIONS) + _numbers(storage, DECISIONS)
        assert logged == list(range(1, len(logged) + 1))

    def continued(storage: FaultyStorage) -> None:
        _table(storage).upsert(THREE)

    tried = sweep(_decided_before(version, kind), continued, check, CRASHES, every=5)
    assert tried > 10


def test_two_writers_continue_a_former_log_together() -> None:
    """At each operation of the first, another writer finds the first one dead and commits."""
    several = {MODE: SEVERAL}

    def written(at: int | None) -> tuple[MemoryStorage, int, bool]:
        clock = SimClock()
        storage = MemoryStorage(clock=clock)
        _table(storage, clock, **{TYPE: TYPES[1], **several}).upsert(ONE)
        _move_log(storage)
        clock.advance(1)

        def other(operation: Operation) -> None:
            if operation.number == at:
                clock.advance(DEAD_MS)
                _table(storage, clock, **several).upsert(THREE)

        faulty = FaultyStorage(storage, before_each=other)
        try:
            _table(faulty, clock, **several).upsert(TWO)
        except HoodieError:
            return storage, len(faulty.recorder.operations), False
        return storage, len(faulty.recorder.operations), True

    _, count, _ = written(None)
    outcomes = set()
    for number in range(1, count + 1):
        storage, _, committed = written(number)
        a = ("a", "x", 2, 2.0) if committed else ("a", "x", 1, 1.0)
        assert found(_table(storage)) == [a, ("b", "y", 3, 3.0)], number
        assert _numbers(storage, FORMER_DECISIONS) == [1]
        logged = _numbers(storage, DECISIONS)
        assert logged == list(range(2, 2 + len(logged)))
        assert len(timeline_of(storage).commits) == 2 + committed
        outcomes.add(committed)
    assert outcomes == {True, False}


@KINDS
def test_a_completed_file_that_is_lost_is_known_from_the_former_log(
    version: str, kind: str
) -> None:
    storage = _decided_before(version, kind)
    _table(storage).upsert(THREE)
    lost = timeline_of(storage).commits[1]
    for path in [
        path for path in storage.files if path.startswith(".hoodie") and lost.time in path
    ]:
        if path.endswith(("commit", "deltacommit")):
            storage.delete(path)
    with pytest.raises(CorruptFileError, match=f"{lost.time} was completed"):
        _table(storage.copy()).upsert(TWO)


def test_a_former_log_is_deleted_and_no_longer_listed_after_many_decisions() -> None:
    storage = _decided_before("9", TYPES[0])
    for number in range(21):
        _table(storage).upsert(trips(("b", "y", 3 + number, 3.0)))
    assert _numbers(storage, FORMER_DECISIONS) == []
    assert _numbers(storage, DECISIONS) == list(range(4, 24))
    faulty = FaultyStorage(storage)
    _table(faulty).upsert(TWO)
    assert all(not one.path.startswith(FORMER_DECISIONS) for one in faulty.recorder.operations)
