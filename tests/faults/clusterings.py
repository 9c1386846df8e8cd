"""Clusterings that are killed, or that run beside writers and one another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.environment import Clock, Pauses
from hoodie_ds.errors import ClusteringConflictError
from hoodie_ds.services.clustering.clusterer import Clusterer
from hoodie_ds.services.context import ServiceContext
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.testing import Actor, FaultyStorage, Kind, MemoryStorage, Phase, SimClock, SimIds
from tests.faults.pairs import DEAD_MS, WRITER, Impatient
from tests.faults.scenarios import BLOOM, COW, MOR
from tests.faults.stream import Model, NoPauses, Step, assert_well, begin, found, run
from tests.tables import TRIPS, trips

ONE: Final = trips(("a", "x", 1, 4.0), ("b", "x", 1, 1.0), ("c", "y", 1, 1.0), ("d", "y", 1, 1.0))
TWO: Final = trips(("a", "x", 2, 2.0), ("e", "x", 2, 3.0), ("f", "y", 2, 2.0))
MINE: Final = trips(("a", "x", 4, 4.0), ("g", "x", 4, 4.0))
ALLOW: Final = {
    "hoodie.clustering.updates.strategy": (
        "org.apache.hudi.client.clustering.update.strategy.SparkAllowUpdateStrategy"
    ),
    "hoodie.clustering.rollback.pending.replacecommit.on.conflict": "true",
}
_OPTIONS: Final = {
    **TRIPS,
    **BLOOM,
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.clustering.plan.strategy.sort.columns": "fare",
    "hoodie.clustering.plan.strategy.single.group.clustering.enabled": "false",
}
TABLES: Final = {
    kind: {key: text for key, text in {**_OPTIONS, **options}.items() if text}
    for kind, options in (("copy-on-write", COW), ("merge-on-read", MOR))
}
"""File groups of two commits in two partitions; in merge-on-read one with a log file."""

CLUSTERING: Final = (
    Phase("begin"),
    Phase("plan", Kind.PUT, (".hoodie/.locks/turns/*",)),
    Phase("rewrite", Kind.PUT, ("*.marker.*",)),
    Phase("result", Kind.PUT, ("*/clustered/*",)),
    Phase("decide", Kind.PUT, (".hoodie/.locks/turns/*",)),
    Phase("complete", Kind.PUT, (".hoodie/*.replacecommit",)),
)


def clusterer(
    storage: Any,
    options: Mapping[str, str],
    name: str,
    clock: Clock | None = None,
    pauses: Pauses | None = None,
) -> Clusterer:
    """What clusters a table, in a process of its own."""
    parsed = WriteOptions.parse({**options, "path": storage.root})
    ids, pauses = SimIds(name), pauses or NoPauses()
    return Clusterer(
        ServiceContext(parsed, cast(Storage, storage), clock or SimClock(), ids, pauses)
    )


def table(name: str, options: Mapping[str, str]) -> tuple[MemoryStorage, Model]:
    """A table with something to cluster, and its rows."""
    start, model = MemoryStorage(f"memory://{name}"), Model()
    for number, rows in enumerate((ONE, TWO)):
        run(start, options, number, Step(rows), number, "before")
        model = model.after(Step(rows))
    return start, model


class KilledClustering:
    """A clustering that fails, and the checks of what it leaves."""

    def __init__(self, kind: str = "copy-on-write", *, planned: bool = False) -> None:
        self.opts = TABLES[kind]
        self.start, self.model = table(f"killed clustering, {kind}", self.opts)
        if planned:
            assert clusterer(self.start, self.opts, "plan").schedule()

    def play(self, storage: FaultyStorage) -> None:
        """The process that fails."""
        clusterer(storage, self.opts, "first").cluster()

    def again(self, storage: FaultyStorage) -> None:
        """The next one."""
        clusterer(storage, self.opts, "second").cluster()

    def check(self, left: MemoryStorage, raised: BaseException | None) -> None:
        """The rows are there at any time; the next process goes on, whichever it is."""
        self.check_rows(left)
        after = self.model.after(Step(MINE)).plain()
        for writer in ("first, refused", "first, and wins", "last"):
            copy = left.copy()
            if writer == "first, and wins":
                self._write(copy, 40, **ALLOW)
            elif writer == "first, refused":
                self._try_to_write(copy)
            clusterer(copy, self.opts, "second").cluster()
            if writer == "last":
                self._check_clustered(copy)
            self._write(copy, 60)
            assert found(copy) == after
            clusterer(copy, self.opts, "third").cluster()
            begin(copy, self.opts, ONE.schema, "last")
            assert found(copy) == after
            assert_well(copy, self.opts, settled=True)

    def check_after_two(self, left: MemoryStorage, raised: BaseException | None) -> None:
        """What two processes left that ended."""
        assert raised is not None
        self.check_rows(left)
        clusterer(left, self.opts, "third").cluster()
        self._check_clustered(left)

    def check_rows(self, left: MemoryStorage) -> None:
        """No reader sees anything of it."""
        assert_well(left, self.opts)
        assert found(left) == self.model.plain(), "a clustering changed the rows"

    def _try_to_write(self, left: MemoryStorage) -> None:
        """A batch is committed, or refused for the sake of the clustering; then the rows stay."""
        try:
            self._write(left, 50)
        except ClusteringConflictError:
            assert found(left) == self.model.plain(), "a refused batch is there"

    def _write(self, left: MemoryStorage, stage: int, **options: str) -> None:
        run(left, {**self.opts, **options}, 0, Step(MINE), stage, "after")

    def _check_clustered(self, left: MemoryStorage) -> None:
        self.check_rows(left)
        before = left.files
        clusterer(left, self.opts, "more").cluster()
        assert left.files == before, "something was left to be clustered"
        begin(left, self.opts, ONE.schema, "recovery")
        assert_well(left, self.opts, settled=True)


@dataclass
class ClusteringPlay:
    """A clustering beside a writer or another clustering, ready to be explored."""

    mode: Mapping[str, str]
    beside_writer: bool = True
    kind: str = "copy-on-write"

    def __post_init__(self) -> None:
        self.opts = {**TABLES[self.kind], **self.mode}
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
        """The clustering is `a`."""
        other = Actor("b", self._write, WRITER) if self.beside_writer else self._clustering("b")
        return self._clustering("a"), other

    def _clustering(self, name: str) -> Actor:
        def work(storage: FaultyStorage, wait: Callable[[], None]) -> None:
            pauses = Impatient(self.clock, wait)
            clusterer(storage, self.opts, name, self.clock, pauses).cluster()

        return Actor(name, work, CLUSTERING)

    def _write(self, storage: FaultyStorage, wait: Callable[[], None]) -> None:
        pauses = Impatient(self.clock, wait)
        run(storage, self.opts, 0, Step(MINE), 50, "w", clock=self.clock, pauses=pauses)

    def check(self, left: MemoryStorage, raised: Sequence[BaseException | None]) -> None:
        """The writer's rows are there, or not; then all is clustered, and it runs again."""
        assert_well(left, self.opts)
        after = self.model.after(Step(MINE)) if self.beside_writer else self.model
        allowed = [after.plain()] if raised[1] is None else [self.model.plain(), after.plain()]
        assert found(left) in allowed, "what was committed is not what is there"
        self.clock.advance(DEAD_MS)
        begin(left, self.opts, ONE.schema, "last", clock=self.clock)
        clusterer(left, self.opts, "last", self.clock).cluster()
        assert found(left) in allowed, "a clustering changed the rows"
        if self.beside_writer and raised[1] is not None:
            run(left, self.opts, 0, Step(MINE), 90, "w", clock=self.clock)
        assert found(left) == after.plain(), "the replay is not the model"
        begin(left, self.opts, ONE.schema, "last", clock=self.clock)
        assert_well(left, self.opts, settled=True)
