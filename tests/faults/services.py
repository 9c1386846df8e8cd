"""Table services that are killed, or that run beside others: what all of them are tried with.

What differs from one to another, the table, the work and what may come of it, stands in modules
of its own: `archives`, `cleans`, `rewriting` and `undoing`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from random import Random
from typing import Any, Protocol, TypeVar, cast

from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.environment import Clock, Pauses
from hoodie_ds.services.context import ServiceContext
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.testing import FaultyStorage, MemoryStorage, SimClock, SimIds
from tests.faults.pairs import MODE, Impatient, Pair, Play
from tests.faults.schedules import Actor, Phase, schedules
from tests.faults.stream import Model, NoPauses, Step, found, run
from tests.tables import TRIPS, VERSION

Work = Callable[[ServiceContext], object]
"""What a service does, in a process of its own."""
Check = Callable[[MemoryStorage, BaseException | None], None]


Made = TypeVar("Made", covariant=True)


class Make(Protocol[Made]):
    """Makes a table of a version, and what is at work on it."""

    def __call__(self, *, version: str) -> Made: ...


class Killed(Protocol):
    """A service that fails, and the checks of what it leaves."""

    start: MemoryStorage
    """The table before."""

    def play(self, storage: FaultyStorage) -> None:
        """Do the work of the process that fails."""

    def check(self, left: MemoryStorage, raised: BaseException | None) -> None:
        """Fail if something is wrong with what was left, or cannot be gone on with."""


class GoneOnWith(Killed, Protocol):
    """One that another process goes on with, which fails too."""

    def again(self, storage: FaultyStorage) -> None:
        """Do the work of the next process."""

    def check_after_two(self, left: MemoryStorage, raised: BaseException | None) -> None:
        """Fail if something is wrong with what both have left."""


class Beside(Protocol):
    """A service and another process at work on one table, ready to be explored."""

    @property
    def actors(self) -> Sequence[Actor]:
        """Both of them."""

    def fresh(self) -> MemoryStorage:
        """Make the table before."""

    def check(self, left: MemoryStorage, raised: Sequence[BaseException | None]) -> None:
        """Fail if something is wrong with what they have left."""


def context(
    storage: Any,
    options: Mapping[str, str],
    attempt: str,
    clock: Clock | None = None,
    pauses: Pauses | None = None,
) -> ServiceContext:
    """Where a service of a table runs, in a process of its own."""
    parsed = WriteOptions.parse({**options, "path": storage.root})
    ids, pauses = SimIds(attempt), pauses or NoPauses()
    return ServiceContext(parsed, cast(Storage, storage), clock or SimClock(), ids, pauses)


class KilledService:
    """A table of several steps, and a service at work on it, in processes that fail."""

    def __init__(
        self, work: Work, options: Mapping[str, str], before: Sequence[Step], version: str
    ) -> None:
        self.work = work
        given = {**TRIPS, **options, VERSION: version}
        self.opts = {key: text for key, text in given.items() if text}
        self.clock = SimClock()
        # Beside others one waits until a dead process' lease is over.
        self.pauses = Impatient(self.clock, lambda: None) if MODE in self.opts else NoPauses()
        self.start = MemoryStorage("memory://served", clock=self.clock)
        self.model = Model()
        for number, step in enumerate(before):
            self.write(self.start, number, step, number)
            self.model = self.model.after(step)

    def write(
        self, storage: MemoryStorage, number: int, step: Step, stage: int, **options: str
    ) -> None:
        """Write a batch."""
        given = {**self.opts, **options}
        run(storage, given, number, step, stage, clock=self.clock, pauses=self.pauses)

    def serve(self, storage: MemoryStorage | FaultyStorage, attempt: str) -> None:
        """Let the service do all that there is to do."""
        self.work(context(storage, self.opts, attempt, self.clock, self.pauses))

    def play(self, storage: FaultyStorage) -> None:
        """The process that fails."""
        self.serve(storage, "first")

    def again(self, storage: FaultyStorage) -> None:
        """The next one."""
        self.serve(storage, "second")

    def is_unchanged(self, left: MemoryStorage) -> bool:
        """Whether a table has the rows that it had before the service."""
        return found(left) == self.model.plain()


class WriterThatServes(Play):
    """A writer or a reader, and a process that writes and then does a service."""

    def __init__(
        self,
        name: str,
        pair: Pair,
        mode: Mapping[str, str],
        work: Work,
        phases: Sequence[Phase],
        *,
        version: str,
    ) -> None:
        super().__init__(name, pair, {**mode, VERSION: version})
        self.work, self.phases = work, phases

    @property
    def actors(self) -> tuple[Actor, Actor]:
        first, _ = super().actors
        return first, Actor("b", self._write_and_serve, self.phases)

    def _write_and_serve(self, storage: FaultyStorage, wait: Callable[[], None]) -> None:
        pauses = Impatient(self.clock, wait)
        step = self.pair.second
        assert step is not None
        run(storage, self.opts, 0, step, 11, "r", clock=self.clock, pauses=pauses)
        self.work(context(storage, self.opts, "server", self.clock, pauses))


def one_in(number: int, check: Check) -> Check:
    """Check one in so many of the tables that a sweep leaves."""
    passed = count()

    def some(left: MemoryStorage, raised: BaseException | None) -> None:
        if next(passed) % number == 0:
            check(left, raised)

    return some


def part_of_schedules(name: str, actors: Sequence[Actor], one_in: int) -> list[str]:
    """Take one in so many of all schedules, others for each name and the same in each run."""
    every = list(schedules(*actors))
    return Random(name).sample(every, len(every) // one_in)
