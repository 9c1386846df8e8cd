"""Savepoints, rollbacks and restores by hand: killed at every operation, beside readers, writers.

A reader sees the table as it was after one commit or another. What was begun is finished by the
next write, and the stream's batches make of it what they always make.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import HoodieError
from hoodie_ds.services.context import ServiceContext
from hoodie_ds.services.restore import restore_by_hand
from hoodie_ds.services.rollback import roll_back_by_hand
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.messages import TaskId
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.testing import (
    CRASHES,
    ERRORS,
    Actor,
    FaultyStorage,
    Kind,
    MemoryStorage,
    Phase,
    SimClock,
    SimIds,
    explore,
    one_thread,
    schedules,
    sweep,
)
from hoodie_ds.timeline.timeline import load_timeline
from tests.faults.pairs import DEAD_MS, MODE, READER, TURN, WRITER, Impatient
from tests.faults.stream import assert_well
from tests.integration.test_numbered_writes import numbered
from tests.tables import TRIPS, TYPE, TYPES, found, trips
from tests.tally import tally

BATCHES = (
    trips(("a", "x", 1, 1.0), ("b", "y", 1, 1.0)),
    trips(("a", "x", 2, 2.0), ("c", "x", 2, 2.0)),
    trips(("a", "x", 3, 3.0), ("d", "z", 3, 3.0)),
    trips(("b", "y", 4, 4.0), ("a", "x", 4, 4.0)),
)
Row = tuple[str, str, int, float]
Act = Callable[[HoodieTable, Sequence[str]], object]
ACTS: dict[str, Act] = {
    "savepoint": lambda table, times: table.savepoint(times[1]),
    "deletion of a savepoint": lambda table, times: table.delete_savepoint(times[0]),
    "rollback": lambda table, times: table.rollback(),
    "restore": lambda table, times: table.restore(times[1]),
}
STAYING = {"savepoint": 3, "deletion of a savepoint": 3, "rollback": 2, "restore": 1}
"""The last batch that is left."""


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    with one_thread():
        yield


@dataclass
class Place:
    """A table with four batches, and what it reads as after each of them."""

    kind: str
    act: str
    states: list[list[Row]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.opts = {**TRIPS, TYPE: self.kind}
        self.clock = SimClock()
        self.start = MemoryStorage(clock=self.clock)
        for number, rows in enumerate(BATCHES):
            self.table(self.start).upsert(rows, numbered(number))
            self.states.append(found(self.table(self.start)))
        self.times = [i.time for i in load_timeline(self.start).commits]
        self.table(self.start).savepoint(self.times[0])

    def table(self, storage: object, seed: str = "") -> HoodieTable:
        given = cast(Storage, storage)
        return HoodieTable("/t", self.opts, storage=given, clock=SimClock(), ids=SimIds(seed))

    def play(self, storage: FaultyStorage) -> None:
        ACTS[self.act](self.table(storage, "act"), self.times)

    def check(self, left: MemoryStorage, raised: BaseException | None) -> None:
        last = STAYING[self.act]
        assert found(self.table(left)) in self.states[last:], "a reader sees a part"
        if raised is None:
            assert found(self.table(left)) == self.states[last]
        assert_well(left, self.opts)
        self.table(left, "next").upsert(BATCHES[0], numbered(0))
        assert found(self.table(left)) in (self.states[last], self.states[-1])
        assert load_timeline(left).pending == ()
        for number, rows in enumerate(BATCHES):
            self.table(left, f"again {number}").upsert(rows, numbered(number))
        assert found(self.table(left)) == self.states[-1]
        # In log files of slices that stay what was undone is hidden, as Hudi does.
        assert_well(left, self.opts, settled=self.kind == "COPY_ON_WRITE")


@pytest.mark.slow
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("act", ACTS)
def test_the_process_may_end_at_every_operation(act: str, kind: str) -> None:
    place = Place(kind, act)
    tally("crash points", sweep(place.start, place.play, place.check, CRASHES))


@pytest.mark.slow
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("act", ACTS)
def test_every_operation_may_fail(act: str, kind: str) -> None:
    place = Place(kind, act)
    tally("failed operations", sweep(place.start, place.play, place.check, ERRORS))


RESTORING = (
    Phase("begin"),
    TURN,
    Phase("inflight", Kind.PUT, ("*.restore.inflight",)),
    Phase("hide", Kind.DELETE, (".hoodie/*commit",)),
    Phase("leave", Kind.DELETE, (".hoodie/*.requested",)),
    Phase("complete", Kind.PUT, ("*.restore",)),
)
ROLLING_BACK = (
    Phase("begin"),
    TURN,
    Phase("request", Kind.PUT, ("*.rollback.requested",)),
    Phase("hide", Kind.DELETE, (".hoodie/*commit",)),
    Phase("complete", Kind.PUT, ("*.rollback",)),
    Phase("leave", Kind.DELETE, ("*.inflight",)),
)
ACTORS = {"restore": RESTORING, "rollback": ROLLING_BACK}


MINE = trips(("e", "x", 9, 9.0))


def _several(place: Place, clock: SimClock, act: str) -> list[Actor]:
    """What undoes and what writes, each of which knows of others."""
    options = {**place.opts, MODE: "OPTIMISTIC_CONCURRENCY_CONTROL", "path": "/t"}
    parsed = WriteOptions.parse(options)

    def undo(storage: FaultyStorage, wait: Callable[[], None]) -> None:
        context = ServiceContext(parsed, storage, clock, SimIds("a"), Impatient(clock, wait))
        if act == "restore":
            restore_by_hand(context, place.times[1])
        else:
            roll_back_by_hand(context, None)

    def write(storage: FaultyStorage, wait: Callable[[], None]) -> None:
        pauses = Impatient(clock, wait)
        writer = Coordinator(parsed, storage, clock, SimIds("b"), pauses)
        batch = writer.begin(MINE.schema)
        message = write_task(batch, TaskId(), None, MINE.to_batches(), sole_writer=True)
        writer.commit([message])

    return [Actor("a", undo, ACTORS[act]), Actor("b", write, WRITER)]


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("act", ACTORS)
def test_every_schedule_beside_a_writer(act: str, kind: str) -> None:
    place = Place(kind, act)
    clock = place.clock
    new = [("e", "x", 9, 9.0)]

    def check(left: MemoryStorage, raised: Sequence[BaseException | None]) -> None:
        undone, written = (error is None for error in raised)
        before, after = place.states[3], place.states[STAYING[act]]
        if not undone:
            allowed = [before + new * written]
        elif not written:
            allowed = [after]
        else:  # what the writer had committed by then is undone too, or alone
            allowed = [after + new, after if act == "restore" else before]
        assert found(place.table(left)) in map(sorted, allowed)
        assert_well(left, place.opts)
        clock.advance(DEAD_MS)
        place.table(left, "next").upsert(BATCHES[0], numbered(0))
        assert found(place.table(left)) in map(sorted, allowed)
        assert load_timeline(left).pending == ()

    actors = _several(place, clock, act)
    tally("schedules, nightly", explore(place.start.copy, actors, check, schedules(*actors)))


def _undoer(place: Place) -> Actor:
    return Actor("a", lambda storage, wait: place.play(storage), ACTORS[place.act])


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("act", ACTORS)
def test_every_schedule_beside_a_reader(act: str, kind: str) -> None:
    """A reader that planned before may need what is gone: it fails then, and never lies."""
    place = Place(kind, act)
    seen: list[list[Row]] = []

    def read(storage: FaultyStorage, wait: Callable[[], None]) -> None:
        seen.clear()
        seen.append(found(place.table(storage)))

    def check(left: MemoryStorage, raised: Sequence[BaseException | None]) -> None:
        assert raised[0] is None
        if raised[1] is None:
            assert seen[0] in place.states[STAYING[act] :]
        else:
            assert isinstance(raised[1], HoodieError)
        assert found(place.table(left)) == place.states[STAYING[act]]

    actors = [_undoer(place), Actor("b", read, READER)]
    tally("schedules, nightly", explore(place.start.copy, actors, check, schedules(*actors)))
