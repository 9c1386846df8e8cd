"""Completion times in layout 2: one for each instant, later than all that was there before."""

from __future__ import annotations

from typing import cast

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import AlreadyExistsError
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.table import open_table
from hoodie_ds.testing import FaultyStorage, MemoryStorage, Operation, SimClock, SimIds
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.paths import completion_path, instant_path
from hoodie_ds.transaction.completion import complete, put_completed
from tests.tables import TRIPS, VERSION, timeline_of, trips

HOUR_MS = 3_600_000
OPTIONS = {**TRIPS, VERSION: "9"}


@pytest.fixture
def storage() -> MemoryStorage:
    made = MemoryStorage("/t")
    HoodieTable("/t", OPTIONS, storage=made).upsert(trips(("a", "x", 1, 1.0)))
    return made


def begun(storage: MemoryStorage) -> Instant:
    """A clean that was begun."""
    time = str(int(str(timeline_of(storage).latest_time)) + 1)
    instant = Instant(time, Action.CLEAN, State.REQUESTED, layout=2)
    for state in (State.REQUESTED, State.INFLIGHT):
        storage.put_if_absent(instant_path(instant.at(state)), b"plan")
    return instant.at(State.INFLIGHT)


def ends(storage: MemoryStorage, instant: Instant) -> list[str]:
    """The names of its completed files."""
    names = [path.rpartition("/")[2] for path in storage.files]
    return [name for name in names if name.startswith(f"{instant.time}_")]


def test_completion_times_are_later_than_every_time_whatever_the_clocks() -> None:
    storage, clock = MemoryStorage("/t"), SimClock()
    known: list[str] = []
    for number, jump in enumerate((0, -HOUR_MS, 1, 3 * HOUR_MS, -5 * HOUR_MS, 0)):
        clock.advance(jump)
        ids = SimIds(number)
        table = HoodieTable("/t", OPTIONS, storage=storage, clock=clock, ids=ids)
        table.upsert(trips(("a", "x", number, 1.0)))
        newest = table.timeline.commits[-1]
        assert max([newest.time, *known]) < newest.completion_time
        known += [newest.time, newest.completion_time]
    assert known == sorted(known)


@pytest.mark.parametrize("at", range(1, 12))
def test_two_processes_that_complete_an_instant_use_one_completion_time(
    storage: MemoryStorage, at: int
) -> None:
    """The other one, by another clock, does all of it before any operation of the first."""
    instant, done = begun(storage), []

    def other(operation: Operation) -> None:
        if operation.number == at:
            done.append(at)
            complete(open_table(storage), instant, b"same", SimClock(2 * HOUR_MS))

    slow = cast(Storage, FaultyStorage(storage, before_each=other))
    complete(open_table(slow), instant, b"same", SimClock())
    if not done:  # the first one has fewer operations
        complete(open_table(storage), instant, b"same", SimClock(2 * HOUR_MS))
    assert len(ends(storage, instant)) == 1
    assert completion_path(instant.time) not in storage.files


def test_a_completion_time_chosen_by_a_dead_process_is_kept(storage: MemoryStorage) -> None:
    instant = begun(storage)
    chosen = "29990101000000000"
    storage.put_if_absent(completion_path(instant.time), chosen.encode())
    complete(open_table(storage), instant, b"same", SimClock())
    assert ends(storage, instant) == [f"{instant.time}_{chosen}.clean"]


def test_an_instant_that_others_ended_and_rolled_back_is_not_visible() -> None:
    class Gone(MemoryStorage):
        def put_if_absent(self, path: str, data: bytes) -> None:
            if path.endswith(".clean"):
                raise AlreadyExistsError(path)
            super().put_if_absent(path, data)

    storage = Gone("/t")
    HoodieTable("/t", OPTIONS, storage=storage).upsert(trips(("a", "x", 1, 1.0)))
    clean = begun(storage).completed("30000101000000000")
    assert not put_completed(open_table(storage), clean, b"")
    assert ends(storage, clean) == []
