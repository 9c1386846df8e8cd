"""Savepoints, rollbacks and restores by hand: killed, and beside readers and writers.

A reader sees the table as it was after one commit or another. What was begun is finished by the
next write, and the stream's batches make of it what they always make.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, cast

from hoodie_ds import HoodieTable
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import HoodieError
from hoodie_ds.services.restore import restore_by_hand
from hoodie_ds.services.rollback import roll_back_by_hand
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.messages import TaskId
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.testing import FaultyStorage, Kind, MemoryStorage, SimClock, SimIds
from tests.faults.pairs import DEAD_MS, READER, SEVERAL, TURN, WRITER, Impatient
from tests.faults.schedules import Actor, Phase
from tests.faults.services import Beside, Make, context
from tests.faults.stream import assert_well
from tests.integration.test_numbered_writes import numbered
from tests.tables import TRIPS, TYPE, TYPES, VERSION, found, timeline_of, trips

BATCHES = (
    trips(("a", "x", 1, 1.0), ("b", "y", 1, 1.0)),
    trips(("a", "x", 2, 2.0), ("c", "x", 2, 2.0)),
    trips(("a", "x", 3, 3.0), ("d", "z", 3, 3.0)),
    trips(("b", "y", 4, 4.0), ("a", "x", 4, 4.0)),
)
MINE = trips(("e", "x", 9, 9.0))
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


@dataclass
class KilledUndoing:
    """A table with four batches, what it reads as after each, and what undoes some of them."""

    act: str
    kind: str
    version: str
    states: list[list[Row]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.opts = {**TRIPS, TYPE: self.kind, VERSION: self.version}
        self.clock = SimClock()
        self.start = MemoryStorage(clock=self.clock)
        for number, rows in enumerate(BATCHES):
            self.table(self.start).upsert(rows, numbered(number))
            self.states.append(found(self.table(self.start)))
        self.times = [i.time for i in timeline_of(self.start).commits]
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
        beside = left.copy()
        self.table(beside, "mine").upsert(MINE)  # and meets no conflict with what it itself ended
        mine = [("e", "x", 9, 9.0)]
        assert found(self.table(beside)) in (self.states[last] + mine, self.states[-1] + mine)
        self.table(left, "next").upsert(BATCHES[0], numbered(0))
        assert found(self.table(left)) in (self.states[last], self.states[-1])
        assert timeline_of(left).pending == ()
        for number, rows in enumerate(BATCHES):
            self.table(left, f"again {number}").upsert(rows, numbered(number))
        assert found(self.table(left)) == self.states[-1]
        # In log files of slices that stay what was undone is hidden, as Hudi does.
        assert_well(left, self.opts, settled=self.kind == "COPY_ON_WRITE")


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


class _BesideUndoing:
    """What undoes, and another process."""

    def __init__(self, act: str, kind: str, *, version: str) -> None:
        self.act, self.place = act, KilledUndoing(act, kind, version)
        self.before, self.after = self.place.states[3], self.place.states[STAYING[act]]
        self.clock = SimClock()

    def fresh(self) -> MemoryStorage:
        """The table before."""
        self.clock = SimClock()
        return MemoryStorage(self.place.start.root, self.place.start.files, self.clock)


class BesideWriter(_BesideUndoing):
    """Beside a writer, each of which knows of others."""

    @property
    def actors(self) -> tuple[Actor, Actor]:
        """What undoes is `a`."""
        return Actor("a", self._undo, ACTORS[self.act]), Actor("b", self._write, WRITER)

    def _undo(self, storage: FaultyStorage, wait: Callable[[], None]) -> None:
        options = {**self.place.opts, **SEVERAL}
        where = context(storage, options, "a", self.clock, Impatient(self.clock, wait))
        if self.act == "restore":
            restore_by_hand(where, self.place.times[1])
        else:
            roll_back_by_hand(where, None)

    def _write(self, storage: FaultyStorage, wait: Callable[[], None]) -> None:
        parsed = WriteOptions.parse({**self.place.opts, **SEVERAL, "path": "/t"})
        pauses = Impatient(self.clock, wait)
        writer = Coordinator(parsed, cast(Storage, storage), self.clock, SimIds("b"), pauses)
        batch = writer.begin(MINE.schema)
        message = write_task(batch, TaskId(), None, MINE.to_batches(), sole_writer=True)
        writer.commit([message])

    def check(self, left: MemoryStorage, raised: Sequence[BaseException | None]) -> None:
        """What the writer had committed by then is undone too, or alone."""
        undone, written = (error is None for error in raised)
        new = [("e", "x", 9, 9.0)]
        if not undone:
            allowed = [self.before + new * written]
        elif not written:
            allowed = [self.after]
        else:
            allowed = [self.after + new, self.after if self.act == "restore" else self.before]
        assert found(self.place.table(left)) in map(sorted, allowed)
        assert_well(left, self.place.opts)
        self.clock.advance(DEAD_MS)
        self.place.table(left, "next").upsert(BATCHES[0], numbered(0))
        assert found(self.place.table(left)) in map(sorted, allowed)
        assert timeline_of(left).pending == ()


class BesideReader(_BesideUndoing):
    """Beside a reader, who may need what is gone: it fails then, and never lies."""

    def __init__(self, act: str, kind: str, *, version: str) -> None:
        super().__init__(act, kind, version=version)
        self.seen: list[Row] = []

    @property
    def actors(self) -> tuple[Actor, Actor]:
        """What undoes is `a`."""
        undoer = Actor("a", lambda storage, wait: self.place.play(storage), ACTORS[self.act])
        return undoer, Actor("b", self._read, READER)

    def _read(self, storage: FaultyStorage, wait: Callable[[], None]) -> None:
        self.seen = found(self.place.table(storage))

    def check(self, left: MemoryStorage, raised: Sequence[BaseException | None]) -> None:
        """The reader has seen the table as it was after a commit, or failed."""
        assert raised[0] is None
        if raised[1] is None:
            assert self.seen in self.place.states[STAYING[self.act] :]
        else:
            assert isinstance(raised[1], HoodieError)
        assert found(self.place.table(left)) == self.after


_SHORT: Final = dict(zip(("cow", "mor"), TYPES, strict=True))
KILLED: Final = {
    f"{act}, {short}": partial(KilledUndoing, act, kind)
    for act in ACTS
    for short, kind in _SHORT.items()
}
_OTHERS: Final[dict[str, type[BesideWriter | BesideReader]]] = {
    "writer": BesideWriter,
    "reader": BesideReader,
}
BESIDE: Final[dict[str, Make[Beside]]] = {
    f"{act}, {other}, {short}": partial(beside, act, kind)
    for act in ACTORS
    for other, beside in _OTHERS.items()
    for short, kind in _SHORT.items()
}
