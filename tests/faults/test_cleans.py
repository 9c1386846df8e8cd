"""A clean that is killed at every operation, and one beside writers and readers in every order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import pytest

from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.environment import Clock, Pauses
from hoodie_ds.services.cleaning import clean
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
    sweep_pairs,
)
from hoodie_ds.timeline.instant import Action
from hoodie_ds.timeline.timeline import load_timeline
from tests.faults.pairs import SEVERAL, SINGLE, Impatient, Pair, Play
from tests.faults.scenarios import BLOOM, COW, ELSEWHERE, MOR, TWO
from tests.faults.stream import Model, Step, assert_well, found, run
from tests.tables import TRIPS, trips
from tests.tally import tally

ONE = trips(("a", "x", 1, 1.0), ("b", "x", 1, 1.0), ("c", "y", 1, 1.0))
_BY_COMMITS = {"hoodie.clean.commits.retained": "1"}
_BY_VERSIONS = {
    "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
    "hoodie.clean.fileversions.retained": "1",
}
_STEPS = (Step(ONE), Step(TWO), Step(ELSEWHERE), Step(TWO), Step(ELSEWHERE))
_REPLACED = (Step(ONE), Step(TWO, "insert_overwrite"), Step(ONE), Step(TWO))
_FILES_AT_LEAST = 2


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    with one_thread():
        yield


def cleaned(
    storage: Storage,
    options: Mapping[str, str],
    attempt: str,
    clock: Clock,
    pauses: Pauses,
) -> None:
    """Clean a table, in a process of its own."""
    parsed = WriteOptions.parse({**options, "path": storage.root})
    clean(ServiceContext(parsed, storage, clock, SimIds(attempt), pauses))


@dataclass
class Killed:
    """A table that is to be cleaned, the cleans that fail, and the checks of what they leave."""

    options: Mapping[str, str]
    steps: tuple[Step, ...] = _STEPS
    start: MemoryStorage = field(init=False)
    model: Model = field(default_factory=Model)

    def __post_init__(self) -> None:
        self.clock = SimClock()
        self.pauses = Impatient(self.clock, lambda: None)  # until a dead process' lease is over
        self.start = MemoryStorage("memory://cleaned", clock=self.clock)
        for number, step in enumerate(self.steps):
            run(self.start, self.opts, number, step, number, clock=self.clock)
            self.model = self.model.after(step)
        whole = self.start.copy()
        self.play(whole)
        self.kept = _data(whole)
        assert len(_data(self.start) - self.kept) >= _FILES_AT_LEAST

    @property
    def opts(self) -> dict[str, str]:
        return {k: v for k, v in {**TRIPS, **self.options}.items() if v}

    def play(self, storage: Storage) -> None:
        cleaned(storage, self.opts, "first", self.clock, self.pauses)

    def recover(self, storage: Storage) -> None:
        cleaned(storage, self.opts, "second", self.clock, self.pauses)

    def check(self, left: MemoryStorage, raised: BaseException | None) -> None:
        """Readers see the same rows; the next clean does the rest, and none does more."""
        self.check_rows(left, raised)
        for attempt in ("third", "fourth"):
            cleaned(left, self.opts, attempt, self.clock, self.pauses)
            assert _data(left) == self.kept
            instants = load_timeline(left).instants
            assert [i.counts for i in instants if i.action is Action.CLEAN] == [True]
        self.check_rows(left, raised)
        last = len(self.steps)
        run(left, self.opts, last, Step(TWO), 99, clock=self.clock, pauses=self.pauses)
        assert found(left) == self.model.after(Step(TWO)).plain()
        assert_well(left, self.opts, settled=True)

    def check_rows(self, left: MemoryStorage, _: BaseException | None) -> None:
        assert found(left) == self.model.plain()
        assert_well(left, self.opts)
        planned = any(path.endswith(".clean.requested") for path in left.files)
        assert _data(left) >= (self.kept if planned else _data(self.start))


def _data(storage: MemoryStorage) -> set[str]:
    return {path for path in storage.files if not path.startswith(".hoodie/")}


KILLED: dict[str, Mapping[str, str]] = {
    "commits, cow": {**COW, **_BY_COMMITS},
    "versions, cow": {**COW, **_BY_VERSIONS},
    "commits, bloom": {**COW, **BLOOM, **_BY_COMMITS},
    "commits, several": {**COW, **SEVERAL, **_BY_COMMITS},
    "versions, several": {**COW, **SEVERAL, **_BY_VERSIONS},
}
REPLACED: dict[str, Mapping[str, str]] = {
    "replaced, cow": {**COW, **_BY_COMMITS},
    "replaced, mor": {**MOR, **_BY_COMMITS},
    "replaced, mor, several": {**MOR, **SEVERAL, **_BY_COMMITS},
}


def _killed(name: str) -> Killed:
    return Killed(KILLED[name]) if name in KILLED else Killed(REPLACED[name], _REPLACED)


_QUICK = ("commits, cow",)
_NAMES = [
    name if name in _QUICK else pytest.param(name, marks=pytest.mark.slow)
    for name in (*KILLED, *REPLACED)
]


@pytest.mark.parametrize("name", _NAMES)
def test_a_clean_may_end_at_every_operation(name: str) -> None:
    killed = _killed(name)
    tally("crash points", sweep(killed.start, killed.play, killed.check, CRASHES))


@pytest.mark.slow
@pytest.mark.parametrize("name", [*KILLED, *REPLACED])
def test_every_operation_of_a_clean_may_fail(name: str) -> None:
    killed = _killed(name)
    tally("failed operations", sweep(killed.start, killed.play, killed.check, ERRORS))


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("name", ["commits, cow", "replaced, mor"])
def test_the_clean_that_goes_on_may_end_too(name: str) -> None:
    killed = _killed(name)
    tried = sweep_pairs(killed.start, killed.play, killed.recover, killed.check)
    tally("pairs of crashes, nightly", tried)


CLEANER = (
    Phase("begin"),
    Phase("commit", Kind.PUT, (".hoodie/*commit",)),
    Phase("plan", Kind.PUT, ("*.clean.requested",)),
    Phase("start", Kind.PUT, ("*.clean.inflight",)),
    Phase("delete", Kind.DELETE, ("*.parquet",)),
    Phase("finish", Kind.PUT, ("*.clean",)),
)
MINE = trips(("a", "x", 7, 7.0), ("d", "x", 7, 7.0))
YOURS = trips(("a", "x", 8, 8.0), ("e", "x", 8, 8.0))


class BesideAClean(Play):
    """A writer or a reader, and a process that writes twice and then cleans."""

    def __init__(self, name: str, pair: Pair, mode: Mapping[str, str], retained: str) -> None:
        super().__init__(name, pair, mode)
        self.opts |= {"hoodie.clean.commits.retained": retained}

    @property
    def actors(self) -> tuple[Actor, Actor]:
        first, _ = super().actors
        return first, Actor("b", self._write_and_clean, CLEANER)

    def _write_and_clean(self, storage: FaultyStorage, wait: Callable[[], None]) -> None:
        pauses = Impatient(self.clock, wait)
        step = self.pair.second
        assert step is not None
        run(storage, self.opts, 0, step, 11, "r", clock=self.clock, pauses=pauses)
        cleaned(storage, self.opts, "cleaner", self.clock, pauses)


_THREE = (Step(ONE), Step(TWO), Step(TWO))
BESIDE = {
    "writer, clean": (Pair(Step(MINE), Step(YOURS), before=_THREE), SEVERAL),
    "writer, clean, bloom": (Pair(Step(MINE), Step(YOURS), BLOOM, before=_THREE), SEVERAL),
    "writer of other groups, clean": (
        Pair(Step(ELSEWHERE), Step(YOURS), before=_THREE),
        SEVERAL,
    ),
    "reader, clean": (Pair(None, Step(YOURS), before=_THREE, reader=True), SINGLE),
}


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("name", BESIDE)
def test_every_schedule_beside_a_clean(name: str) -> None:
    pair, mode = BESIDE[name]
    play = BesideAClean(name, pair, mode, "1")
    tally(
        "schedules, nightly", explore(play.fresh, play.actors, play.check, schedules(*play.actors))
    )


@pytest.mark.parametrize("name", BESIDE)
def test_some_schedules_beside_a_clean(name: str) -> None:
    pair, mode = BESIDE[name]
    play = BesideAClean(name, pair, mode, "1")
    some = [order for number, order in enumerate(schedules(*play.actors)) if number % 60 == 0]
    assert explore(play.fresh, play.actors, play.check, iter(some)) == len(some) > 10
