"""The stream of `test_stateful` on a table that others look after: services that fail, and the way
back.

The oracle knows rows alone. A service changes none of them, wherever it ends. A rollback or a
restore brings back those that the table had when the write that is to stay was its newest.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from hoodie_ds import HoodieTable
from hoodie_ds.errors import HoodieError, TimelineError
from hoodie_ds.testing import Fault, FaultyStorage, SimulatedCrash, forget_process, one_thread
from hoodie_ds.timeline.timeline import load_timeline
from tests.faults.keepers import GIVING_WAY, keeper, services_of
from tests.faults.scenarios import COW, MOR
from tests.faults.stream import Model, Step, begin
from tests.property.test_stateful import FAULTS, INDEXES, KEYS, Stream, explored
from tests.tables import KEY, trips

EXAMPLES, STEPS = 40, 40


class Kept(Stream):
    """A stream, and whoever runs services by hand."""

    events: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self.history: dict[str, Model] = {}
        """What the table held when a write was its newest, by the write's time."""

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
            self.by_hand("delete_savepoint", fault, lambda table: table.delete_savepoint(time))
        else:
            self.by_hand("savepoint", fault, lambda table: table.savepoint())
        self.look()

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
        """Take writes back; then each query begins anew, as the table knows their last no more."""
        try:
            target = work(keeper(self.table, self.options, "dry"), True).target
        except TimelineError:
            self.events[f"{name}: refused"] += 1
            return  # archived, cleaned, kept by a savepoint, or not to be had any more
        if target not in self.history:
            return
        ended = self.by_hand(name, fault, lambda table: work(table, False))
        self.settled = False  # log files of what is undone stay, behind a command
        back = [(self.history[target], False)]
        self.states = back if ended else self.states + back
        if not ended:  # a restore stands still in between until somebody comes
            begin(self.table, self.options, trips().schema, "recovery")
        self.history = {time: model for time, model in self.history.items() if time <= target}
        self.query, self.number = f"q {next(self.queries)}", 0
        self.other, self.others = f"other {next(self.queries)}", count()
        self.last, self.once = None, []
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
            self.history[newest.time] = self.states[0][0]

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
    *,
    derandomize: bool = False,
) -> Counter[str]:
    """Return what was done by hand how often."""
    keyless = {KEY: "", "hoodie.datasource.write.precombine.field": ""}
    options = {**kind, **GIVING_WAY, **(keyless if machine is KeptAppends else {})}
    events: Counter[str] = Counter()
    counting = type(machine.__name__, (machine,), {"events": events})
    explored(options, index, examples, steps, derandomize=derandomize, machine=counting)
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
    events = explore(Kept, kind, index, EXAMPLES, STEPS, derandomize="CI" in os.environ)
    done = {*services_of({KEY: "id", **kind, **INDEXES[index]}), "rollback", "restore", "savepoint"}
    assert not [name for name in done if not events[name]]


@pytest.mark.slow
@pytest.mark.nightly
def test_appends_that_are_looked_after_in_their_states() -> None:
    explore(KeptAppends, COW, "BLOOM", EXAMPLES, STEPS, derandomize="CI" in os.environ)
