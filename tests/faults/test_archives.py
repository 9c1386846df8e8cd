"""Archiving that is killed at every operation, and beside writers and readers in every order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import pytest

from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.environment import Clock, Pauses
from hoodie_ds.services.archiving import archive
from hoodie_ds.services.context import ServiceContext
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
from hoodie_ds.timeline.archive.archived_timeline import archived_instants
from hoodie_ds.timeline.instant import Instant
from hoodie_ds.timeline.timeline import load_timeline
from tests.faults.pairs import SEVERAL, SINGLE, Impatient, Pair, Play
from tests.faults.scenarios import BLOOM, COW, ELSEWHERE, MOR, TWO
from tests.faults.stream import Model, Step, assert_well, found, run
from tests.tables import TRIPS, trips
from tests.tally import tally

ONE = trips(("a", "x", 1, 1.0), ("b", "x", 1, 1.0), ("c", "y", 1, 1.0))
_KEEP: Final = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.commits.retained": "1",
}
_STEPS = (Step(ONE), Step(TWO), Step(ELSEWHERE), Step(TWO), Step(ELSEWHERE))


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    with one_thread():
        yield


def archived(
    storage: Storage, options: Mapping[str, str], attempt: str, clock: Clock, pauses: Pauses
) -> None:
    """Archive the timeline of a table, in a process of its own."""
    parsed = WriteOptions.parse({**options, "path": storage.root})
    archive(ServiceContext(parsed, storage, clock, SimIds(attempt), pauses))


def _known(storage: MemoryStorage) -> set[Instant]:
    """The completed instants of which the timeline or the archive tells."""
    done = load_timeline(storage).completed
    return {*done, *archived_instants(storage, ".hoodie/archived")}


@dataclass
class Killed:
    """A table whose timeline is archived by processes that fail, and checks of what they leave."""

    options: Mapping[str, str]
    start: MemoryStorage = field(init=False)
    model: Model = field(default_factory=Model)

    def __post_init__(self) -> None:
        self.clock = SimClock()
        self.pauses = Impatient(self.clock, lambda: None)  # until a dead process' lease is over
        self.start = MemoryStorage("memory://archived", clock=self.clock)
        for number, step in enumerate(_STEPS):
            run(self.start, self.opts, number, step, number, clock=self.clock)
            self.model = self.model.after(step)
        self.known = _known(self.start)

    @property
    def opts(self) -> dict[str, str]:
        return {k: v for k, v in {**TRIPS, **_KEEP, **self.options}.items() if v}

    def play(self, storage: Storage) -> None:
        archived(storage, self.opts, "first", self.clock, self.pauses)

    def check(self, left: MemoryStorage, raised: BaseException | None) -> None:
        """No instant is lost, none looks unfinished, and the next writes and archives go on."""
        self._check_all_is_known(left)
        archived(left, self.opts, "second", self.clock, self.pauses)
        self._check_all_is_known(left)
        model = self.model
        for number, step in enumerate((Step(TWO), Step(ELSEWHERE)), len(_STEPS)):
            run(left, self.opts, number, step, 90, clock=self.clock, pauses=self.pauses)
            model = model.after(step)
        archived(left, self.opts, "third", self.clock, self.pauses)
        assert load_timeline(left).num_completed <= 3
        assert _known(left) > self.known
        assert found(left) == model.plain()
        assert_well(left, self.opts, settled=True)

    def _check_all_is_known(self, left: MemoryStorage) -> None:
        assert _known(left) == self.known
        assert not load_timeline(left).pending
        assert found(left) == self.model.plain()
        assert_well(left, self.opts)


KILLED: dict[str, Mapping[str, str]] = {
    "cow": COW,
    "mor": MOR,
    "bloom": {**COW, **BLOOM},
    "cow, several": {**COW, **SEVERAL},
    "mor, several": {**MOR, **SEVERAL},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", KILLED)
def test_archiving_may_end_at_every_operation(name: str) -> None:
    killed = Killed(KILLED[name])
    tally("crash points", sweep(killed.start, killed.play, killed.check, CRASHES))


@pytest.mark.slow
@pytest.mark.parametrize("name", KILLED)
def test_every_operation_of_archiving_may_fail(name: str) -> None:
    killed = Killed(KILLED[name])
    tally("failed operations", sweep(killed.start, killed.play, killed.check, ERRORS))


ARCHIVER = (
    Phase("begin"),
    Phase("commit", Kind.PUT, (".hoodie/*commit",)),
    Phase("look", Kind.LIST, (".hoodie/.temp",)),
    Phase("archive", Kind.PUT, (".hoodie/archived/*",)),
    Phase("requests", Kind.DELETE, (".hoodie/*.requested",)),
    Phase("completed", Kind.DELETE, (".hoodie/*commit",)),
)
MINE = trips(("a", "x", 7, 7.0), ("d", "x", 7, 7.0))
YOURS = trips(("a", "x", 8, 8.0), ("e", "x", 8, 8.0))


class BesideAnArchive(Play):
    """A writer or a reader, and a process that writes and then archives."""

    def __init__(self, name: str, pair: Pair, mode: Mapping[str, str]) -> None:
        super().__init__(name, pair, mode)
        self.opts |= _KEEP

    @property
    def actors(self) -> tuple[Actor, Actor]:
        first, _ = super().actors
        return first, Actor("b", self._write_and_archive, ARCHIVER)

    def _write_and_archive(self, storage: FaultyStorage, wait: Callable[[], None]) -> None:
        pauses = Impatient(self.clock, wait)
        step = self.pair.second
        assert step is not None
        run(storage, self.opts, 0, step, 11, "r", clock=self.clock, pauses=pauses)
        archived(storage, self.opts, "archiver", self.clock, pauses)


_FOUR = (Step(ONE), Step(TWO), Step(TWO), Step(TWO))
BESIDE = {
    "writer, archive": (Pair(Step(MINE), Step(YOURS), before=_FOUR), SEVERAL),
    "writer, archive, mor": (Pair(Step(MINE), Step(YOURS), MOR, before=_FOUR), SEVERAL),
    "writer of other groups, archive": (
        Pair(Step(ELSEWHERE), Step(YOURS), before=_FOUR),
        SEVERAL,
    ),
    "reader, archive": (Pair(None, Step(YOURS), before=_FOUR, reader=True), SINGLE),
    "reader, archive, mor": (Pair(None, Step(YOURS), MOR, before=_FOUR, reader=True), SINGLE),
}


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("name", BESIDE)
def test_every_schedule_beside_archiving(name: str) -> None:
    pair, mode = BESIDE[name]
    play = BesideAnArchive(name, pair, mode)
    tally(
        "schedules, nightly", explore(play.fresh, play.actors, play.check, schedules(*play.actors))
    )


@pytest.mark.parametrize("name", BESIDE)
def test_some_schedules_beside_archiving(name: str) -> None:
    pair, mode = BESIDE[name]
    play = BesideAnArchive(name, pair, mode)
    some = [order for number, order in enumerate(schedules(*play.actors)) if number % 90 == 0]
    assert explore(play.fresh, play.actors, play.check, iter(some)) == len(some) > 10
