"""Compactions that are killed, or that run beside writers and one another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.environment import Clock, Pauses
from hoodie_ds.services.compaction.compactor import Compactor
from hoodie_ds.services.context import ServiceContext
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.testing import Actor, FaultyStorage, Kind, MemoryStorage, Phase, SimClock, SimIds
from tests.faults.pairs import DEAD_MS, WRITER, Impatient
from tests.faults.scenarios import MOR
from tests.faults.stream import Model, NoPauses, Step, assert_well, begin, found, run
from tests.tables import BUCKETS, TRIPS, trips

ONE: Final = trips(("a", "x", 1, 1.0), ("b", "x", 1, 1.0), ("c", "y", 1, 1.0), ("d", "y", 1, 1.0))
TWO: Final = trips(("a", "x", 2, 2.0), ("e", "x", 2, 2.0), ("c", "y", 2, 2.0))
GONE: Final = trips(("b", "x", 3, 3.0))
MINE: Final = trips(("a", "x", 4, 4.0), ("f", "x", 4, 4.0))
BEFORE: Final = (Step(ONE), Step(TWO), Step(GONE, "delete"))
"""File groups with log files in two partitions."""
OPTIONS: Final = {**TRIPS, **MOR, BUCKETS: "1"}

COMPACTION: Final = (
    Phase("begin"),
    Phase("plan", Kind.PUT, (".hoodie/.locks/turns/*",)),
    Phase("merge", Kind.PUT, ("*.marker.*",)),
    Phase("result", Kind.PUT, ("*/compacted/*",)),
    Phase("decide", Kind.PUT, (".hoodie/.locks/turns/*",)),
    Phase("complete", Kind.PUT, (".hoodie/*.commit",)),
)


def compact(
    storage: Any,
    options: Mapping[str, str],
    name: str,
    clock: Clock | None = None,
    pauses: Pauses | None = None,
) -> None:
    """Compact all that there is to compact, in a process of its own."""
    parsed = WriteOptions.parse({**options, "path": storage.root})
    context = ServiceContext(
        parsed, cast(Storage, storage), clock or SimClock(), SimIds(name), pauses or NoPauses()
    )
    Compactor(context).compact()


def table(name: str, options: Mapping[str, str] = OPTIONS) -> tuple[MemoryStorage, Model]:
    """A table with something to compact, and its rows."""
    start, model = MemoryStorage(f"memory://{name}"), Model()
    for number, step in enumerate(BEFORE):
        run(start, options, number, step, number, "before")
        model = model.after(step)
    return start, model


class KilledCompaction:
    """A compaction that fails, and the checks of what it leaves."""

    def __init__(self, *, planned: bool = False) -> None:
        self.start, self.model = table("killed compaction")
        if planned:
            parsed = WriteOptions.parse({**OPTIONS, "path": self.start.root})
            context = ServiceContext(parsed, self.start, SimClock(), SimIds("plan"), NoPauses())
            assert Compactor(context).schedule()

    def play(self, storage: FaultyStorage) -> None:
        """The process that fails."""
        compact(storage, OPTIONS, "first")

    def again(self, storage: FaultyStorage) -> None:
        """The next one."""
        compact(storage, OPTIONS, "second")

    def check(self, left: MemoryStorage, raised: BaseException | None) -> None:
        """The rows are there at any time; the next process goes on, whichever it is."""
        self.check_rows(left)
        for writes_first in (True, False):
            copy = left.copy()
            if writes_first:
                self._write(copy)
            compact(copy, OPTIONS, "second")
            if not writes_first:
                self._check_compacted(copy)
                self._write(copy)
            assert found(copy) == self.model.after(Step(MINE)).plain()
            compact(copy, OPTIONS, "third")
            assert found(copy) == self.model.after(Step(MINE)).plain()
            begin(copy, OPTIONS, ONE.schema, "last")
            assert_well(copy, OPTIONS, settled=True)

    def check_after_two(self, left: MemoryStorage, raised: BaseException | None) -> None:
        """What two processes left that ended."""
        assert raised is not None
        self.check_rows(left)
        compact(left, OPTIONS, "third")
        self._check_compacted(left)

    def check_rows(self, left: MemoryStorage) -> None:
        """No reader sees anything of it."""
        assert_well(left, OPTIONS)
        assert found(left) == self.model.plain(), "a compaction changed the rows"

    def _write(self, left: MemoryStorage) -> None:
        run(left, OPTIONS, 0, Step(MINE), 50, "after")

    def _check_compacted(self, left: MemoryStorage) -> None:
        self.check_rows(left)
        before = left.files
        compact(left, OPTIONS, "more")
        assert left.files == before, "something was left to be compacted"
        begin(left, OPTIONS, ONE.schema, "recovery")
        assert_well(left, OPTIONS, settled=True)


@dataclass
class CompactionPlay:
    """A compaction beside a writer or another compaction, ready to be explored."""

    mode: Mapping[str, str]
    beside_writer: bool = True

    def __post_init__(self) -> None:
        self.opts = {**OPTIONS, **self.mode}
        self.start, self.model = table("beside", self.opts)
        self.clock = SimClock()

    def fresh(self) -> MemoryStorage:
        """The table before."""
        self.clock = SimClock()
        left = MemoryStorage(self.start.root, self.start.files, self.clock)
        self.clock.advance(DEAD_MS)
        return left

    @property
    def actors(self) -> tuple[Actor, Actor]:
        """The compaction is `a`."""
        other = Actor("b", self._write, WRITER) if self.beside_writer else self._compaction("b")
        return self._compaction("a"), other

    def _compaction(self, name: str) -> Actor:
        def work(storage: FaultyStorage, wait: Callable[[], None]) -> None:
            compact(storage, self.opts, name, self.clock, Impatient(self.clock, wait))

        return Actor(name, work, COMPACTION)

    def _write(self, storage: FaultyStorage, wait: Callable[[], None]) -> None:
        pauses = Impatient(self.clock, wait)
        run(storage, self.opts, 0, Step(MINE), 50, "w", clock=self.clock, pauses=pauses)

    def check(self, left: MemoryStorage, raised: Sequence[BaseException | None]) -> None:
        """The writer's rows are there, or not; then it runs again, and all is compacted."""
        assert_well(left, self.opts)
        after = self.model.after(Step(MINE)) if self.beside_writer else self.model
        allowed = [after.plain()] if raised[1] is None else [self.model.plain(), after.plain()]
        assert found(left) in allowed, "what was committed is not what is there"
        self.clock.advance(DEAD_MS)
        if self.beside_writer and raised[1] is not None:
            run(left, self.opts, 0, Step(MINE), 90, "w", clock=self.clock)
            assert found(left) == after.plain(), "the replay is not the model"
        begin(left, self.opts, ONE.schema, "last", clock=self.clock)
        compact(left, self.opts, "last", self.clock)
        assert found(left) == after.plain(), "a compaction changed the rows"
        begin(left, self.opts, ONE.schema, "last", clock=self.clock)
        assert_well(left, self.opts, settled=True)
