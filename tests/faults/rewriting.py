"""Compactions and clusterings that are killed, or that run beside writers and one another.

Both make a plan, rewrite the file groups of the plan with a result for each, and complete.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from hoodie_ds.environment import Clock, Pauses
from hoodie_ds.errors import ClusteringConflictError, HoodieError, OptionError
from hoodie_ds.services.clustering.clusterer import Clusterer
from hoodie_ds.services.compaction.compactor import Compactor
from hoodie_ds.testing import FaultyStorage, Kind, MemoryStorage, SimClock
from tests.faults.pairs import DEAD_MS, SEVERAL, SINGLE, TURN, WRITER, Impatient, Pair
from tests.faults.scenarios import BLOOM, CHANGE_DATA, COW, MOR
from tests.faults.schedules import Actor, Phase
from tests.faults.services import Beside, KilledService, Make, Work, WriterThatServes, context
from tests.faults.stream import Model, Step, assert_well, begin, found, run
from tests.tables import BUCKETS, TRIPS, VERSION, trips

_FIRST: Final = trips(
    ("a", "x", 1, 4.0), ("b", "x", 1, 1.0), ("c", "y", 1, 1.0), ("d", "y", 1, 1.0)
)
_ONTO_BOTH: Final = trips(("a", "x", 2, 2.0), ("e", "x", 2, 2.0), ("c", "y", 2, 2.0))
_BESIDE_ONE: Final = trips(("a", "x", 2, 2.0), ("e", "x", 2, 3.0), ("f", "y", 2, 2.0))
_TO_CLUSTER: Final = (Step(_FIRST), Step(_BESIDE_ONE))
_GONE: Final = trips(("b", "x", 3, 3.0))
_MINE: Final = trips(("a", "x", 4, 4.0), ("g", "x", 4, 4.0))
ALLOW: Final = {
    "hoodie.clustering.updates.strategy": (
        "org.apache.hudi.client.clustering.update.strategy.SparkAllowUpdateStrategy"
    ),
    "hoodie.clustering.rollback.pending.replacecommit.on.conflict": "true",
}
_SORTED: Final = {
    **TRIPS,
    **BLOOM,
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.clustering.plan.strategy.sort.columns": "fare",
    "hoodie.clustering.plan.strategy.single.group.clustering.enabled": "false",
}
CLUSTERED: Final = {
    kind: {key: text for key, text in {**_SORTED, **options}.items() if text}
    for kind, options in (("copy-on-write", COW), ("merge-on-read", MOR))
}
"""File groups of two commits in two partitions; in merge-on-read one with a log file."""


@dataclass(frozen=True)
class Rewrite:
    """What differs between services that rewrite file groups.

    Parameters
    ----------
    work : Work
        Plans and rewrites all that there is to rewrite.
    options : mapping of str to str
        Of a table that has something to rewrite.
    before : tuple of Step
        What made it so.
    result, completed : str
        Patterns of the paths of its results and of its completed file.
    early_writers : mapping of str to mapping of str to str
        Options of writers that come before the service is gone on with.
    refusal : type of HoodieError, optional
        Raised by a write that would go against the plan: the service goes first then.
    """

    work: Work
    options: Mapping[str, str]
    before: tuple[Step, ...]
    result: str
    completed: str
    early_writers: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: {"early": {}})
    refusal: type[HoodieError] | None = None

    @property
    def phases(self) -> tuple[Phase, ...]:
        """Those of a process that does all of it."""
        return (
            Phase("begin"),
            Phase("plan", TURN.kind, TURN.paths),
            Phase("rewrite", Kind.PUT, ("*.marker.*",)),
            Phase("result", Kind.PUT, (self.result,)),
            TURN,
            Phase("complete", Kind.PUT, (self.completed,)),
        )


def clusterer(
    storage: Any,
    options: Mapping[str, str],
    name: str,
    clock: Clock | None = None,
    pauses: Pauses | None = None,
) -> Clusterer:
    """What clusters a table, in a process of its own."""
    return Clusterer(context(storage, options, name, clock, pauses))


def _clustering(kind: str) -> Rewrite:
    return Rewrite(
        lambda where: Clusterer(where).cluster(),
        CLUSTERED[kind],
        _TO_CLUSTER,
        "*/clustered/*",
        ".hoodie/*.replacecommit",
        {"refused": {}, "wins": ALLOW},
        ClusteringConflictError,
    )


def _compaction(options: Mapping[str, str]) -> Rewrite:
    return Rewrite(
        lambda where: Compactor(where).compact(),
        {**TRIPS, **MOR, BUCKETS: "1", **options},
        (Step(_FIRST), Step(_ONTO_BOTH), Step(_GONE, "delete")),
        "*/compacted/*",
        ".hoodie/*.commit",
    )


REWRITES: Final = {
    "compaction": _compaction({}),
    "compaction, change data": _compaction(CHANGE_DATA),
    **{f"clustering, {kind}": _clustering(kind) for kind in CLUSTERED},
}


def table(
    name: str, options: Mapping[str, str], before: Sequence[Step] = _TO_CLUSTER
) -> tuple[MemoryStorage, Model]:
    """A table with something to rewrite, and its rows."""
    start, model = MemoryStorage(f"memory://{name}"), Model()
    for number, step in enumerate(before):
        run(start, options, number, step, number, "before")
        model = model.after(step)
    return start, model


class KilledRewrite(KilledService):
    """A service that rewrites, and fails, and the checks of what it leaves."""

    def __init__(self, rewrite: Rewrite, *, version: str) -> None:
        super().__init__(rewrite.work, rewrite.options, rewrite.before, version)
        self.rewrite = rewrite

    def check(self, left: MemoryStorage, raised: BaseException | None) -> None:
        """The rows are there at any time; the next process goes on, whichever it is."""
        self._check_rows(left)
        after = self.model.after(Step(_MINE)).plain()
        for early in (*self.rewrite.early_writers.values(), None):
            copy = left.copy()
            if early is not None:
                self._try_to_write(copy, early)
            self.serve(copy, "second")
            if early is None:
                self._check_done(copy)
            self._write(copy, 60)
            assert found(copy) == after
            self.serve(copy, "third")
            begin(copy, self.opts, _FIRST.schema, "last")
            assert found(copy) == after
            assert_well(copy, self.opts, settled=True)

    def check_after_two(self, left: MemoryStorage, raised: BaseException | None) -> None:
        """What two processes left that ended."""
        assert raised is not None
        self._check_rows(left)
        self.serve(left, "third")
        self._check_done(left)

    def _check_rows(self, left: MemoryStorage) -> None:
        """No reader sees anything of it."""
        assert_well(left, self.opts)
        assert self.is_unchanged(left), "a service changed the rows"

    def _try_to_write(self, left: MemoryStorage, options: Mapping[str, str]) -> None:
        """A batch is committed, or refused for the sake of the plan; then the rows stay."""
        refusal = None if options else self.rewrite.refusal
        try:
            self._write(left, 50, **options)
        except HoodieError as error:
            if refusal is None or not isinstance(error, refusal):
                raise
            assert self.is_unchanged(left), "a refused batch is there"
        else:
            assert found(left) == self.model.after(Step(_MINE)).plain()

    def _write(self, left: MemoryStorage, stage: int, **options: str) -> None:
        self.write(left, len(self.rewrite.before), Step(_MINE), stage, **options)

    def _check_done(self, left: MemoryStorage) -> None:
        self._check_rows(left)
        before = left.files
        self.serve(left, "more")
        assert left.files == before, "something was left to be rewritten"
        begin(left, self.opts, _FIRST.schema, "recovery")
        assert_well(left, self.opts, settled=True)


class BesideRewrite:
    """A service that rewrites, beside a writer or another of its kind, ready to be explored."""

    def __init__(
        self, rewrite: Rewrite, mode: Mapping[str, str], *, beside_writer: bool, version: str
    ) -> None:
        self.rewrite, self.beside_writer = rewrite, beside_writer
        self.opts = {**rewrite.options, **mode, VERSION: version}
        self.start, self.model = table("beside", self.opts, rewrite.before)
        self.clock = SimClock()

    def fresh(self) -> MemoryStorage:
        """The table before, when the writers that were at work on it count as dead."""
        self.clock = SimClock()
        left = MemoryStorage(self.start.root, self.start.files, self.clock)
        self.clock.advance(DEAD_MS)
        return left

    @property
    def actors(self) -> tuple[Actor, Actor]:
        """The service is `a`."""
        other = Actor("b", self._write, WRITER) if self.beside_writer else self._service("b")
        return self._service("a"), other

    def _service(self, name: str) -> Actor:
        def work(storage: FaultyStorage, wait: Callable[[], None]) -> None:
            self._serve(storage, name, Impatient(self.clock, wait))

        return Actor(name, work, self.rewrite.phases)

    def _serve(self, storage: Any, name: str, pauses: Pauses | None = None) -> None:
        self.rewrite.work(context(storage, self.opts, name, self.clock, pauses))

    def _write(self, storage: FaultyStorage, wait: Callable[[], None]) -> None:
        pauses = Impatient(self.clock, wait)
        run(storage, self.opts, 0, Step(_MINE), 50, "w", clock=self.clock, pauses=pauses)

    def check(self, left: MemoryStorage, raised: Sequence[BaseException | None]) -> None:
        """The writer's rows are there, or not; then it runs again, and all is rewritten."""
        assert_well(left, self.opts)
        assert not any(isinstance(e, OptionError) for e in raised), "one takes the other for Hudi"
        after = self.model.after(Step(_MINE)) if self.beside_writer else self.model
        allowed = [after.plain()] if raised[1] is None else [self.model.plain(), after.plain()]
        assert found(left) in allowed, "what was committed is not what is there"
        self.clock.advance(DEAD_MS)
        rest = [self._end_the_service]
        if self.beside_writer and raised[1] is not None:
            rest.insert(1 if self.rewrite.refusal else 0, self._replay)
        for step in rest:
            step(left)
            assert found(left) in allowed, "a service changed the rows"
        assert found(left) == after.plain(), "the replay is not the model"
        begin(left, self.opts, _FIRST.schema, "last", clock=self.clock)
        assert_well(left, self.opts, settled=True)

    def _replay(self, left: MemoryStorage) -> None:
        run(left, self.opts, 0, Step(_MINE), 90, "w", clock=self.clock)

    def _end_the_service(self, left: MemoryStorage) -> None:
        begin(left, self.opts, _FIRST.schema, "last", clock=self.clock)
        self._serve(left, "last")


KILLED: Final = {name: partial(KilledRewrite, rewrite) for name, rewrite in REWRITES.items()}
_GIVES_WAY: Final = {**SEVERAL, **ALLOW}
_MODES: Final = {
    "compaction": {"single": SINGLE, "several": SEVERAL},
    "clustering": {"single": SINGLE, "several": SEVERAL, "gives way": _GIVES_WAY},
}
_ASKED: Final[tuple[tuple[str, Rewrite, Mapping[str, str]], ...]] = (
    ("compaction", REWRITES["compaction"], {}),
    ("clustering", REWRITES["clustering, copy-on-write"], {BUCKETS: ""}),
)
_PAIRED: Final = {
    f"{service}, {'writer' if beside_writer else service}, {mode}": partial(
        BesideRewrite,
        REWRITES[name],
        options,
        beside_writer=beside_writer,
    )
    for service, name in (("compaction", "compaction"), ("clustering", "clustering, copy-on-write"))
    for mode, options in _MODES[service].items()
    for beside_writer in (True, False)
}
BESIDE: Final[dict[str, Make[Beside]]] = _PAIRED | {
    f"{service}, reader": partial(
        WriterThatServes,
        "beside",
        Pair(None, Step(_MINE), {**rewrite.options, **more}, rewrite.before, reader=True),
        SINGLE,
        rewrite.work,
        rewrite.phases,
    )
    for service, rewrite, more in _ASKED
}
