"""Pairs of processes on one table, for the schedule explorer: what they do and what may come of it.

The phases are those of the code: begin (with recovery), open, write, check, decide, complete for a
writer; begin, decide, request, undo, complete, finish for a recovery.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations

from hoodie_ds.testing import FaultyStorage, Kind, MemoryStorage, SimClock, forget_process
from tests.faults.questions import QUESTIONS, Past
from tests.faults.scenarios import BLOOM, COW, MOR
from tests.faults.schedules import Actor, Phase, play
from tests.faults.stream import Model, Step, assert_well, begin, found, run
from tests.tables import BUCKETS, KEY, ORDERING, TRIPS, trips

MODE = "hoodie.write.concurrency.mode"
SINGLE: Mapping[str, str] = {}
"""A writer that takes whatever is pending for dead."""
SEVERAL: Mapping[str, str] = {MODE: "OPTIMISTIC_CONCURRENCY_CONTROL"}
"""Writers that leave one another alive and take turns."""

TIMELINE = (".hoodie", ".hoodie/timeline")
"""Its folder, in both layouts."""
TURN = Phase("decide", Kind.PUT, (".hoodie/.locks/decisions/*",))


WRITER = (
    Phase("begin"),
    Phase("open", Kind.PUT, ("*/claim",)),
    Phase("write", Kind.PUT, ("*.marker.*",)),
    Phase("check", Kind.LIST, TIMELINE),
    TURN,
    Phase("complete", Kind.PUT, (".hoodie/*commit",)),
)

ALTERATION = tuple(phase for phase in WRITER if phase.name != "write")

RECOVERY = (
    Phase("begin"),
    TURN,
    Phase("request", Kind.PUT, ("*.rollback.requested",)),
    Phase("undo", Kind.PUT, ("*.rollback.inflight",)),
    Phase("complete", Kind.PUT, ("*.rollback",)),
    Phase("finish", Kind.DELETE, ("*.inflight",)),
)
READER = (
    Phase("begin"),
    Phase("timeline", Kind.LIST, TIMELINE),
    Phase("commits", Kind.READ, (".hoodie/*commit",)),
    Phase("partition", Kind.LIST, ("x", "x/*")),
    Phase("base file", Kind.READ, ("*.parquet",)),
    Phase("log file", Kind.READ, ("*.log.*",)),
)

ONE = trips(("a", "x", 1, 1.0), ("b", "x", 1, 1.0), ("c", "x", 1, 1.0))
MINE = trips(("a", "x", 2, 2.0), ("d", "x", 2, 2.0))
YOURS = trips(("a", "x", 2, 3.0), ("e", "x", 2, 3.0))
TIPS = trips(("a", "y", 2, 3.0), ("e", "y", 2, 3.0)).append_column("tip", [[5.0, None]])
MISSING = {"hoodie.write.set.null.for.missing.columns": "true"}
ELSEWHERE = trips(("a", "y", 2, 3.0), ("e", "y", 2, 3.0))
NONE = ONE.slice(0, 0)
KEYS = ["id", "city", "ts"]
# A merge deletes rows of fare 1, which the update makes; it inserts a row that the update doubles.
HALF, NEW = trips(("g", "y", 1, 0.5)), trips(("n", "x", 2, 2.0))


DEAD_MS = 600_001
"""After this time without a heartbeat a writer counts as dead."""
LEASE_MS = 300_001
"""After this time a lock is free for others."""


@dataclass(frozen=True)
class Impatient:
    """Waits for a lock until its lease is over, so that a lock protects nobody.

    The holder, who stands still at a border of its phases, goes on later as if it had it.
    """

    clock: SimClock
    wait: Callable[[], None]

    def pause(self, longest_ms: int) -> int:
        self.clock.advance(LEASE_MS)
        self.wait()
        return longest_ms


@dataclass(frozen=True)
class Pair:
    """Two processes, each with the step it writes; the second may do without one.

    It then recovers or, if it is a `reader`, asks one of `QUESTIONS`, in each schedule the next.
    """

    first: Step | None
    second: Step | None
    options: Mapping[str, str] = field(default_factory=dict)
    before: tuple[Step, ...] = (Step(ONE),)
    dead: Step | None = None
    """A batch whose driver died before the commit."""
    reader: bool = False
    same_query: bool = False
    """Whether both write the same batch of the same query, the first from a driver left behind."""

    @property
    def opts(self) -> dict[str, str]:
        return {k: v for k, v in {**TRIPS, **COW, **self.options}.items() if v}

    @property
    def model(self) -> Model:
        model = Model(keyed=KEY in self.opts)
        for step in self.before:
            model = model.after(step)
        return model


class Play:
    """A pair, ready to be explored."""

    def __init__(self, name: str, pair: Pair, mode: Mapping[str, str]) -> None:
        self.pair = pair
        self.opts = {**pair.opts, **mode}
        self.steps = (pair.first, pair.second)
        self.queries = ("q", "q" if pair.same_query else "r")
        self.clock = SimClock()
        self.start = MemoryStorage(f"memory://{name}", clock=self.clock)
        for number, step in enumerate(pair.before):
            run(self.start, self.opts, number, step, number, "s", clock=self.clock)
        if pair.dead is not None:
            run(self.start, self.opts, 0, pair.dead, 70, "dead", commit=False, clock=self.clock)
        self.past = Past.of(self.start, pair.before) if pair.reader else None
        self.turn = 0

    def fresh(self) -> MemoryStorage:
        """The table before, when the writers that were at work on it count as dead."""
        self.clock = SimClock()
        left = MemoryStorage(self.start.root, self.start.files, self.clock)
        self.clock.advance(DEAD_MS)
        self.turn += 1
        return left

    @property
    def actors(self) -> tuple[Actor, Actor]:
        without = READER if self.pair.reader else RECOVERY
        phases = [
            ALTERATION if step and step.renamed else WRITER if step else without
            for step in self.steps
        ]
        first, second = (Actor("ab"[at], self._work(at), phases[at]) for at in range(2))
        return first, second

    def _work(self, at: int) -> Callable[[FaultyStorage, Callable[[], None]], None]:
        def work(storage: FaultyStorage, wait: Callable[[], None]) -> None:
            step = self.steps[at]
            pauses = Impatient(self.clock, wait)
            if step is None and self.past is not None:
                self._ask(storage, self.past)
            elif step is None:
                self.clock.advance(DEAD_MS)  # it takes the other, who is alive, for dead
                begin(storage, self.opts, ONE.schema, "b", clock=self.clock, pauses=pauses)
            else:
                query = self.queries[at]
                run(storage, self.opts, 0, step, 10 + at, query, clock=self.clock, pauses=pauses)

        return work

    def _ask(self, storage: FaultyStorage, past: Past) -> None:
        question = QUESTIONS[self.turn % len(QUESTIONS)]
        seen = question.found(storage, past)
        some = [step for step in self.steps if step is not None]
        allowed = [
            question.answer(past, order) for s in _subsets(some) for order in permutations(s)
        ]
        assert seen in allowed, f"question {self.turn % len(QUESTIONS)} is answered by {seen}"

    def trace(self, order: str) -> list[str]:
        left = self.fresh()
        forget_process()
        return play(left, self.actors, order)[1]

    def check(
        self,
        left: MemoryStorage,
        raised: Sequence[BaseException | None],
        but_for: str | None = None,
    ) -> None:
        assert_well(left, self.opts, but_for=but_for)
        done = [s for s, error in zip(self.steps, raised, strict=True) if s and error is None]
        open_ = [s for s, error in zip(self.steps, raised, strict=True) if s and error is not None]
        allowed = [rows for some in _subsets(open_) for rows in self._rows([*done, *some])]
        assert found(left) in allowed, "what was committed is not what is there"
        # Spark runs the batches again that failed; then all of them are there, each once.
        for at, step in enumerate(self.steps):
            self.clock.advance(DEAD_MS)
            if step is not None and raised[at] is not None:
                run(left, self.opts, 0, step, 90 + at, self.queries[at], clock=self.clock)
        begin(left, self.opts, ONE.schema, "last", clock=self.clock)
        assert found(left) in list(self._rows([*done, *open_])), "the replay is not the model"
        assert_well(left, self.opts, settled=True)

    def _rows(self, steps: Sequence[Step]) -> Iterator[object]:
        """What a table may read as after steps that came in any order."""
        once = steps[:1] if self.pair.same_query else steps
        for order in permutations(once):
            model = self.pair.model
            for step in order:
                model = model.after(step)
            yield model.plain()


def _subsets(steps: Sequence[Step]) -> Iterator[Sequence[Step]]:
    for number in range(2 ** len(steps)):
        yield [step for at, step in enumerate(steps) if number >> at & 1]


NO_KEYS = {KEY: "", BUCKETS: ""}
PAIRS = {
    "writer, writer": Pair(Step(MINE), Step(YOURS)),
    "recovery, recovery": Pair(None, None, dead=Step(MINE)),
    "writer, rollback": Pair(Step(MINE), None),
    "merge by two tasks, writer": Pair(Step(YOURS, tasks=2, merged=True), Step(MINE)),
    "update by a filter, merge": Pair(
        Step(NONE, least_fare=0.5), Step(NEW, merged=True), before=(Step(HALF),)
    ),
    "alteration, writer": Pair(
        Step(NONE, renamed={"fare": "cost"}), Step(MINE.select(KEYS), "delete"), MISSING
    ),
}
NIGHTLY = {
    "merge, writer": Pair(Step(YOURS, merged=True), Step(MINE)),
    "delete by a filter, writer": Pair(Step(NONE, "delete", least_fare=1.0), Step(MINE)),
    "update by a filter, merge, mor": Pair(
        Step(NONE, least_fare=0.5), Step(NEW, merged=True), {**MOR, **BLOOM}, (Step(HALF),)
    ),
    "alteration, writer, mor": Pair(
        Step(NONE, renamed={"fare": "cost"}), Step(MINE.select(KEYS), "delete"), {**MOR, **MISSING}
    ),
    "alteration, update by a filter": Pair(
        Step(NONE, renamed={"ts": "at"}), Step(NONE, least_fare=1.0), {ORDERING: "", **MISSING}
    ),
    "writer, writer, mor": Pair(Step(MINE), Step(YOURS), MOR),
    "writer, writer of other groups": Pair(Step(MINE), Step(ELSEWHERE)),
    "writer, writer, bloom": Pair(Step(MINE), Step(YOURS), BLOOM),
    "writer, writer that adds a column": Pair(Step(MINE), Step(TIPS), MISSING),
    "first batch, first batch": Pair(Step(MINE), Step(YOURS), before=()),
    "recovery, recovery, mor": Pair(None, None, MOR, dead=Step(MINE)),
    "writer, rollback, mor": Pair(Step(MINE), None, MOR),
    "driver, driver left behind": Pair(
        Step(MINE, "insert"), Step(MINE, "insert"), NO_KEYS, (Step(ONE, "insert"),), same_query=True
    ),
    "writer, reader": Pair(Step(MINE), None, reader=True),
    "writer, reader, mor": Pair(Step(MINE), None, MOR, reader=True),
    "overwrite, writer": Pair(Step(MINE, "insert_overwrite"), Step(YOURS)),
}
