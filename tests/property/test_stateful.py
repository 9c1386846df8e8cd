"""A stream in all its states against a dictionary: crashes, retries, replays, other writers.

New checkpoints, queries that commits have forgotten, numbers that come again with other rows, and
tables that are deleted, too: what was never written may not be passed over.

What a table may hold is known after every step but one: when a process ends in a commit, the
batch is in the table or it is not, until somebody looks.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from itertools import count
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from hoodie_ds.config.limits import Limits
from hoodie_ds.errors import HoodieError, MissedBatchesError, ReplayMismatchError
from hoodie_ds.testing import (
    Effect,
    Fault,
    FaultyStorage,
    Kind,
    MemoryStorage,
    SimulatedCrash,
    forget_process,
)
from tests.faults import stream
from tests.faults.scenarios import BLOOM, COW, MOR, STATE, VERSIONS
from tests.faults.stream import Model, Step, assert_well, begin, found
from tests.tables import TRIPS, VERSION, trips
from tests.tally import tally

pytestmark = pytest.mark.usefixtures("one_thread")

EXAMPLES, NIGHTLY, STEPS = 8, 500, 40
INDEXES: dict[str, dict[str, str]] = {
    "BUCKET": {},
    "BLOOM": BLOOM,
    "FLINK_STATE": {**BLOOM, **STATE},
}

_tables = count()
run = partial(stream.run, limits=Limits(writers_carried=2))
"""A micro-batch whose commit forgets writers."""

KEYS = st.lists(st.integers(0, 7), min_size=1, max_size=4, unique=True)
OPERATIONS = st.sampled_from(["upsert"] * 4 + ["delete", "insert_overwrite"])
FAULTS = st.one_of(
    st.builds(
        Fault,
        st.sampled_from(
            [Effect.CRASH_BEFORE, Effect.CRASH_AFTER, Effect.LOST_ANSWER, Effect.FAILED]
        ),
        at=st.integers(1, 50),
    ),
    st.builds(
        Fault,
        st.just(Effect.TORN),
        kinds=st.just(frozenset({Kind.WRITE})),
        skip=st.integers(0, 2),
        keep=st.sampled_from([0, 1, 500]),
    ),
)


class Stream(RuleBasedStateMachine):
    """One table, a streaming query, a second one, and processes that end."""

    options: ClassVar[dict[str, str]]
    taken: ClassVar[Iterator[int]]
    """Counts the steps of all examples."""
    examples: ClassVar[str]
    """What an example counts as."""

    def __init__(self) -> None:
        super().__init__()
        forget_process()
        self.table = MemoryStorage(f"memory://stateful-{next(_tables)}")
        self.stages, self.others = count(), 0
        self.number = 0
        self.query, self.queries = "q", count()
        self.other, self.settled = "other", True
        self.once: list[tuple[str, Step]] = []
        """Queries that have written one batch and were not heard of since."""
        self.open: Step | None = None
        """The batch that Spark has not seen committed, and brings again."""
        self.last: Step | None = None
        self.states = [(Model(), False)]
        """What the table may hold, and whether the open batch is in it."""

    def step(self, operation: str, keys: list[int], tasks: int) -> Step:
        moment = next(self.stages)
        # Equal ordering values: what is committed later wins, also where it was written earlier.
        rows = trips(*((f"k{k}", "xy"[k % 2], 1, float(100 * moment + k)) for k in keys))
        exists = any(self.table.files)
        return Step(rows, operation if exists else "upsert", tasks)

    @precondition(lambda self: self.open is None)
    @rule(operation=OPERATIONS, keys=KEYS, tasks=st.integers(1, 2))
    def batch(self, operation: str, keys: list[int], tasks: int) -> None:
        self.open = self.step(operation, keys, tasks)
        self.attempt(None)

    @precondition(lambda self: self.open is None)
    @rule(operation=OPERATIONS, keys=KEYS, tasks=st.integers(1, 2), fault=FAULTS)
    def batch_that_fails(self, operation: str, keys: list[int], tasks: int, fault: Fault) -> None:
        self.open = self.step(operation, keys, tasks)
        self.attempt(fault)

    @precondition(lambda self: self.open is not None)
    @rule(fault=st.none() | FAULTS)
    def again(self, fault: Fault | None) -> None:
        self.attempt(fault)

    @precondition(lambda self: self.open is None)
    @rule(keys=KEYS)
    def stopped(self, keys: list[int]) -> None:
        """The tasks have written, and the driver ends before it commits."""
        self.open = self.step("upsert", keys, 1)
        run(self.table, self.options, self.number, self.open, next(self.stages), self.query,
            commit=False)  # fmt: skip
        self.look()

    @precondition(lambda self: self.open is None and self.last is not None)
    @rule()
    def replay(self) -> None:
        """Spark died after the commit and before its own log: the same batch once more."""
        assert self.last is not None
        run(self.table, self.options, self.number - 1, self.last, next(self.stages), self.query)
        self.look()

    @precondition(lambda self: self.open is None and self.number > 0)
    @rule(keys=KEYS, back=st.integers(1, 15))
    def number_of_other_rows(self, keys: list[int], back: int) -> None:
        """An old copy of a checkpoint, or a source that gives other rows: they are refused."""
        step = self.step("upsert", keys, 1)
        with pytest.raises(ReplayMismatchError):
            run(self.table, self.options, max(0, self.number - back), step, next(self.stages),
                self.query)  # fmt: skip
        self.look()

    @rule(keys=KEYS)
    def number_left_out(self, keys: list[int]) -> None:
        """A number that was passed over is refused, also where other rows count as done."""
        query = f"gap {next(self.queries)}"
        for number in (0, 2):
            step = self.step("upsert", keys, 1)
            run(self.table, self.options, number, step, next(self.stages), query)
            self.states = [(model.after(step), done) for model, done in self.decided()]
        options = {**self.options, "hoodie.py.replay.accept.different": "true"}
        with pytest.raises(ReplayMismatchError, match="no rows were ever written"):
            run(self.table, options, 1, self.step("upsert", keys, 1), next(self.stages), query)
        self.look()

    @precondition(lambda self: self.open is None and self.number > 0)
    @rule(operation=OPERATIONS, keys=KEYS, tasks=st.integers(1, 2), data=st.data())
    def batch_beside_a_missing_file(
        self, operation: str, keys: list[int], tasks: int, data: Any
    ) -> None:
        """A data file is lost, and restored later: the batch is refused meanwhile, or is right."""
        others = (".hoodie", "_delta_log")
        paths = [path for path in self.table.files if not path.startswith(others)]
        path = data.draw(st.sampled_from(sorted(paths)))
        lost = self.table.read(path)
        self.table.delete(path)
        forget_process()
        self.open = self.step(operation, keys, tasks)
        try:
            run(self.table, self.options, self.number, self.open, next(self.stages), self.query)
        except HoodieError:
            refused = True
        else:
            refused = False
        # what says that a folder is a partition is put again by whoever writes to it
        if not path.endswith("/.hoodie_partition_metadata") or path not in self.table.files:
            self.table.put_if_absent(path, lost)
        if refused:
            self.attempt(None)
        else:
            self.states = [(model, False) for model, done in self.decided() if done]
            self.number, self.last, self.open = self.number + 1, self.open, None
            self.look()

    @rule(keys=KEYS)
    def new_checkpoint(self, keys: list[int]) -> None:
        """A query that the table has not seen writes its first batch, and is heard of no more."""
        query, step = f"once {next(self.queries)}", self.step("upsert", keys, 1)
        run(self.table, self.options, 0, step, next(self.stages), query)
        self.states = [(model.after(step), done) for model, done in self.decided()]
        self.once.append((query, step))
        self.look()

    @precondition(lambda self: self.once)
    @rule(data=st.data())
    def forgotten(self, data: Any) -> None:
        """A batch comes again of a query that the newest commits may not name any more."""
        query, step = data.draw(st.sampled_from(self.once))
        run(self.table, self.options, 0, step, next(self.stages), query)
        self.states = self.decided()
        self.look()

    @precondition(lambda self: self.open is None and self.number > 0)
    @rule(keys=KEYS)
    def deleted(self, keys: list[int]) -> None:
        """Somebody deletes the table: the stream is stopped, and begun anew with a checkpoint."""
        self.table = MemoryStorage(f"memory://stateful-{next(_tables)}")
        forget_process()
        with pytest.raises(MissedBatchesError):
            run(self.table, self.options, self.number, self.step("upsert", keys, 1),
                next(self.stages), self.query)  # fmt: skip
        assert not self.table.files
        self.query, self.number = f"q {next(self.queries)}", 0
        self.last, self.once, self.states = None, [], [(Model(), False)]
        self.others = 0

    @rule(operation=OPERATIONS, keys=KEYS)
    def other_writer(self, operation: str, keys: list[int]) -> None:
        """A second query commits; where it finds a pending batch, it decides about that first."""
        step = self.step(operation, keys, 1)
        run(self.table, self.options, self.others, step, next(self.stages), self.other)
        self.others += 1
        self.states = [(model.after(step), done) for model, done in self.decided()]
        self.look()

    @precondition(lambda self: any(self.table.files))
    @rule()
    def recovery(self) -> None:
        begin(self.table, self.options, trips().schema, "recovery")
        self.states = self.decided()
        assert_well(self.table, self.options, settled=self.settled)
        self.look()

    def decided(self) -> list[tuple[Model, bool]]:
        """What the table may hold once a pending batch has been committed or undone."""
        if self.open is None:
            return self.states
        return self.states + [(m.after(self.open), True) for m, done in self.states if not done]

    def attempt(self, fault: Fault | None) -> None:
        """Bring the open batch."""
        assert self.open is not None
        step = self.open
        after = [(model, True) for model, done in self.decided() if done]
        # hypothesis may hand the same fault out again, and striking counts in it
        faults = [] if fault is None else [Fault(fault.effect, fault.at, fault.kinds,
                                                 skip=fault.skip, keep=fault.keep)]  # fmt: skip
        storage: Any = FaultyStorage(self.table, faults)
        try:
            run(storage, self.options, self.number, step, next(self.stages), self.query)
        except (SimulatedCrash, HoodieError):
            assert fault is not None
            forget_process()
            self.states += after
        else:
            self.states = [(model, False) for model, _ in after]
            self.number, self.last, self.open = self.number + 1, step, None
        self.look()

    def look(self) -> None:
        """Leave of what the table may hold what it does hold."""
        tally("model steps")
        next(self.taken)
        seen = found(self.table)
        self.states = [(model, done) for model, done in self.states if model.plain() == seen]
        assert self.states, "a reader sees what no order of what happened can have left"
        self.states = self.states[:1] + [s for s in self.states[1:] if s != self.states[0]]

    def teardown(self) -> None:
        tally(self.examples)
        if any(self.table.files):
            self.recovery()


def explored(
    kind: dict[str, str],
    index: str,
    examples: int,
    steps: int,
    *,
    version: str = "6",
    machine: type[Stream] = Stream,
    counted: str = "stateful examples",
) -> int:
    """Return how many steps were taken."""
    options = {k: v for k, v in {**TRIPS, **kind, **INDEXES[index]}.items() if v}
    options[VERSION] = version
    taken = count()
    held = {"options": options, "taken": taken, "examples": counted}
    machine = type(machine.__name__, (machine,), held)
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            derandomize="CI" in os.environ,  # the same histories in every run of CI
            print_blob=True,
        ),
    )
    return next(taken)


@pytest.mark.parametrize(("kind", "version"), [(COW, "6"), (MOR, "9")], ids=["cow", "mor, 9"])
def test_a_stream_in_a_few_states(kind: dict[str, str], version: str) -> None:
    explored(kind, "BUCKET", 5, 20, version=version)


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("kind", [COW, MOR], ids=["cow", "mor"])
def test_a_stream_in_all_its_states(kind: dict[str, str], index: str, version: str) -> None:
    explored(kind, index, EXAMPLES, STEPS, version=version)


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("kind", [COW, MOR], ids=["cow", "mor"])
def test_a_stream_in_more_of_its_states(kind: dict[str, str], index: str, version: str) -> None:
    counted = "stateful examples, nightly"
    taken = explored(kind, index, NIGHTLY, STEPS, version=version, counted=counted)
    assert taken >= NIGHTLY * STEPS // 2  # hypothesis cuts some examples short
