"""The stream of `test_stateful` on a table that others look after: services that fail, and the way
back.

The oracle knows rows, and what each query has written. A service changes none of it, wherever it
ends. A rollback or a restore brings back what there was when the write that is to stay was the
newest: batches that were in the table then are known when they come again, and those since then are
written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from hoodie_ds import HoodieTable
from hoodie_ds.errors import HoodieError, MissedBatchesError, TimelineError
from hoodie_ds.testing import Fault, FaultyStorage, SimulatedCrash, forget_process, one_thread
from hoodie_ds.timeline.loading import load_timeline
from tests.faults.keepers import GIVING_WAY, keeper, services_of
from tests.faults.scenarios import COW, MOR
from tests.faults.stream import Model, Step, begin
from tests.property.test_stateful import FAULTS, INDEXES, KEYS, Stream, explored, run
from tests.tables import KEY, trips

EXAMPLES, STEPS = 40, 40
HOLES = {"hoodie.archive.beyond.savepoint": "true"}
"""Commits after those of savepoints are archived, and so the active timeline has holes."""


class Moment(NamedTuple):
    """What a table held, and what its queries had written."""

    model: Model
    number: int
    last: Step | None
    others: int
    once: tuple[tuple[str, Step], ...]


class Kept(Stream):
    """A stream, and whoever runs services by hand."""

    events: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self.history: dict[str, Moment] = {}
        """What there was when a write was the newest, by the write's time."""
        self.gone: list[tuple[str, Step]] = []
        """Queries whose only batch was taken back."""

    @initialize(keys=KEYS)
    def first(self, keys: list[int]) -> None:
        self.batch("upsert", keys, 1)

    @rule(data=st.data(), fault=st.none() | FAULTS)
    def service(self, data: Any, fault: Fault | None) -> None:
        """A batch whose driver has decided may be completed by it."""
        name = data.draw(st.sampled_from(services_of(self.options)))
        self.states = self.decided()
        self.by_hand(name, fault, lambda table: getattr(table, name)())
        self.look()

    @rule(data=st.data(), fault=st.none() | FAULTS)
    def savepoint(self, data: Any, fault: Fault | None) -> None:
        """Made, or taken away again."""
        self.states = self.decided()
        kept = [savepoint.time for savepoint in load_timeline(self.table, 1).savepoints]
        if kept and data.draw(st.booleans()):
            time = data.draw(st.sampled_from(kept))
            self.by_hand("delete_savepoint", fault, lambda table: self.let_go(table, time))
        else:
            self.by_hand("savepoint", fault, lambda table: table.savepoint())
        self.look()

    def let_go(self, table: HoodieTable, time: str) -> None:
        """Delete a savepoint, unless an older one keeps what its commit has replaced.

        A deletion that was decided before its process ended is completed by this one, which then
        finds no savepoint.
        """
        try:
            table.delete_savepoint(time)
        except TimelineError as error:
            gone = time not in {kept.time for kept in load_timeline(self.table, 1).savepoints}
            if "cannot be deleted yet" not in str(error) and not (
                gone and "there is no savepoint at" in str(error)
            ):
                raise
            self.events["delete_savepoint: refused"] += 1

    @precondition(lambda self: self.open is None)
    @rule(fault=st.none() | FAULTS)
    def rollback(self, fault: Fault | None) -> None:
        self.undo("rollback", fault, lambda table, dry: table.rollback(dry=dry))

    @precondition(lambda self: self.open is None and self.history)
    @rule(data=st.data(), fault=st.none() | FAULTS)
    def restore(self, data: Any, fault: Fault | None) -> None:
        to = data.draw(st.sampled_from(sorted(self.history)))
        self.undo("restore", fault, lambda table, dry: table.restore(to, dry=dry))

    def undo(
        self, name: str, fault: Fault | None, work: Callable[[HoodieTable, bool], Any]
    ) -> None:
        """Take writes back; then each query goes on after its last batch that is left."""
        try:
            target = work(keeper(self.table, self.options, "dry"), True).target
        except TimelineError:
            self.events[f"{name}: refused"] += 1
            return  # archived, cleaned, kept by a savepoint, or not to be had any more
        if target not in self.history:
            return
        ended = self.by_hand(name, fault, lambda table: work(table, False))
        self.settled = False  # log files of what is undone stay, behind a command
        back = [(self.history[target].model, False)]
        self.states = back if ended else self.states + back
        if not ended:  # a restore stands still in between until somebody comes
            begin(self.table, self.options, trips().schema, "recovery")
        newest = next(load_timeline(self.table, 1).commits_backwards())
        if newest.time == target:
            self.history = {time: found for time, found in self.history.items() if time <= target}
            self.as_then(self.history[target])
        self.look()

    def as_then(self, then: Moment) -> None:
        """Let each query stand where it stood; refused is one that goes on without what is gone."""
        if self.number > then.number:
            step = self.step("upsert", [0], 1)
            with pytest.raises(MissedBatchesError):
                run(self.table, self.options, self.number, step, next(self.stages), self.query)
        self.number, self.last, self.others = then.number, then.last, then.others
        self.gone += [found for found in self.once if found not in then.once]
        self.once = list(then.once)

    @precondition(lambda self: self.gone)
    @rule(data=st.data())
    def brought_again(self, data: Any) -> None:
        """A batch comes again that was taken back: it is written."""
        at = data.draw(st.integers(0, len(self.gone) - 1))
        query, step = self.gone.pop(at)
        run(self.table, self.options, 0, step, next(self.stages), query)
        self.states = [(model.after(step), done) for model, done in self.decided()]
        self.once.append((query, step))
        self.look()

    def by_hand(
        self, name: str, fault: Fault | None, work: Callable[[HoodieTable], object]
    ) -> bool:
        """Run something in a process of its own; return whether it came to its end."""
        faults = [] if fault is None else [Fault(fault.effect, fault.at, fault.kinds,
                                                 skip=fault.skip, keep=fault.keep)]  # fmt: skip
        storage = FaultyStorage(self.table, faults)
        try:
            work(keeper(storage, self.options, f"{name} {next(self.stages)}"))
        except (SimulatedCrash, HoodieError):
            assert fault is not None
            forget_process()
            self.events[f"{name}: ended"] += 1
            self.settled = False  # its plan waits for the next one
            return False
        self.events[name] += 1
        return True

    def look(self) -> None:
        super().look()
        newest = next(load_timeline(self.table, 1).commits_backwards(), None)
        if newest is not None and self.open is None and len(self.states) == 1:
            model, _ = self.states[0]
            now = Moment(model, self.number, self.last, self.others, tuple(self.once))
            self.history[newest.time] = now

    def deleted(self, keys: list[int]) -> None:
        """Is tried without services."""


class KeptAppends(Kept):
    """The same on a table without record keys."""

    def __init__(self) -> None:
        super().__init__()
        self.states = [(Model(keyed=False), False)]

    def step(self, operation: str, keys: list[int], tasks: int) -> Step:
        step = super().step("upsert", keys, tasks)
        kind = operation if operation == "insert_overwrite" and any(self.table.files) else "insert"
        return Step(step.rows, kind, tasks)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    with one_thread():
        yield


def explore(
    machine: type[Kept],
    kind: dict[str, str],
    index: str,
    examples: int,
    steps: int,
) -> Counter[str]:
    """Return what was done by hand how often."""
    keyless = {KEY: "", "hoodie.datasource.write.precombine.field": ""}
    options = {**kind, **GIVING_WAY, **HOLES, **(keyless if machine is KeptAppends else {})}
    events: Counter[str] = Counter()
    counting = type(machine.__name__, (machine,), {"events": events})
    explored(options, index, examples, steps, machine=counting)
    return events


@pytest.mark.parametrize(
    ("machine", "kind", "index"),
    [(Kept, COW, "BLOOM"), (Kept, MOR, "BUCKET"), (KeptAppends, COW, "BLOOM")],
    ids=["cow", "mor", "appends"],
)
def test_a_table_that_is_looked_after_in_a_few_states(
    machine: type[Kept], kind: dict[str, str], index: str
) -> None:
    explore(machine, kind, index, 4, 15)


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("index", ["BUCKET", "BLOOM"])
@pytest.mark.parametrize("kind", [COW, MOR], ids=["cow", "mor"])
def test_a_table_that_is_looked_after_in_its_states(kind: dict[str, str], index: str) -> None:
    events = explore(Kept, kind, index, EXAMPLES, STEPS)
    done = {*services_of({KEY: "id", **kind, **INDEXES[index]}), "rollback", "restore", "savepoint"}
    assert not [name for name in done if not events[name]]


@pytest.mark.slow
@pytest.mark.nightly
def test_appends_that_are_looked_after_in_their_states() -> None:
    explore(KeptAppends, COW, "BLOOM", EXAMPLES, STEPS)
