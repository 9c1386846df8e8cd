"""Every operation of every scenario fails once, in every way: the stream still gives the model."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hoodie_ds.testing import (
    CRASHES,
    ERRORS,
    MemoryStorage,
    one_thread,
    sweep,
    sweep_pairs,
)
from tests.faults.scenarios import SCENARIOS, Scenario
from tests.faults.stream import Model, assert_well, begin, found, run
from tests.faults.tally import COUNTS, reached, tally

QUICK = (
    "upsert, cow",
    "upsert, mor",
    "first batch, cow",
    "first insert into a new partition, mor",
    "schema add, mor",
    "append without keys",
    "table create",
    "state, mor",
)

LATER = 90
"""A stage of an application that came after the one that ended."""


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    with one_thread():
        yield


class Sweep:
    """A scenario, run by processes that fail, and the checks of what they leave."""

    def __init__(self, name: str, scenario: Scenario) -> None:
        self.scenario = scenario
        self.opts = scenario.opts
        self.first = len(scenario.before)
        self.start = MemoryStorage(f"memory://{name}")
        self.models = [Model(keyed=scenario.keyed)]
        for number, step in enumerate(scenario.before):
            # Whole instants, so that what follows begins one of its own.
            opts = {**self.opts, "hoodie.streaming.batches.per.commit": "1"}
            run(self.start, opts, number, step, number)
            self.models[0] = self.models[0].after(step)
        for step in scenario.steps:
            self.models.append(self.models[-1].after(step))
        self.committed = 0
        if scenario.dead is not None:
            run(self.start, self.opts, self.first, scenario.dead, 70, commit=False)

    @property
    def spans(self) -> bool:
        return "hoodie.streaming.batches.per.commit" in self.opts

    def play(self, storage: object) -> None:
        """The stream until the process ends."""
        self.committed = 0
        for number, step in enumerate(self.scenario.steps, self.first):
            run(storage, self.opts, number, step, number)
            self.committed += 1

    def recover(self, storage: object) -> None:
        """The start of the process after the one that ended, and no more."""
        begin(storage, self.opts, self.scenario.steps[0].rows.schema)

    def check(self, left: MemoryStorage, raised: BaseException | None) -> None:
        self.check_atomic(left, raised)
        if raised is None:
            return
        self._check_recovery(left)
        self._replay(left)
        before = left.files
        step = self.scenario.steps[-1]
        if step.rows.num_rows:
            run(left, self.opts, self.first + len(self.scenario.steps) - 1, step, 2 * LATER)
        again = {path: body for path, body in left.files.items() if ".temp" not in path}
        assert again == {path: body for path, body in before.items() if ".temp" not in path}
        assert_well(left, self.opts, settled=True)

    def check_after_two(self, left: MemoryStorage, raised: BaseException | None) -> None:
        """What two processes left that ended: a reader's view of it, and the stream's replay."""
        assert raised is not None
        self.check_atomic(left, raised)
        self._replay(left)
        assert_well(left, self.opts, settled=True)

    def check_atomic(self, left: MemoryStorage, raised: BaseException | None) -> None:
        assert_well(left, self.opts)
        last = 0 if self.spans and self.committed < 2 else self.committed
        allowed = [self.models[last].plain()]
        if raised is not None:
            allowed.append(self.models[-1 if self.spans else self.committed + 1].plain())
        assert found(left) in allowed, "a reader sees a part of a batch, or not what was committed"

    def _replay(self, left: MemoryStorage) -> None:
        """Spark runs the batch again whose commit did not return, and then the rest."""
        for number in range(self.committed, len(self.scenario.steps)):
            step = self.scenario.steps[number]
            run(left, self.opts, self.first + number, step, LATER + number)
        assert found(left) == self.models[-1].plain(), "the stream's replay is not the model"

    def _check_recovery(self, left: MemoryStorage) -> None:
        """The next begin leaves nothing pending (but an instant it goes on with), once."""
        self.recover(left)
        recovered = left.files
        assert_well(left, self.opts, settled=not self.spans)
        self.recover(left)
        assert left.files == recovered, "recovery is not idempotent"


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_the_process_may_end_at_every_operation(name: str) -> None:
    swept = Sweep(name, SCENARIOS[name])
    tally("crash points", sweep(swept.start, swept.play, swept.check, CRASHES))
    tally("scenarios", 1)


PAIRS_SAMPLED = 50
"""One pair of so many is tried where the suite is not the nightly one."""


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_the_next_process_may_end_while_it_recovers(name: str) -> None:
    swept = Sweep(name, SCENARIOS[name])
    tried = sweep_pairs(
        swept.start, swept.play, swept.recover, swept.check_after_two, PAIRS_SAMPLED
    )
    tally("pairs of crashes", tried)


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("name", SCENARIOS)
def test_all_pairs_of_ends(name: str) -> None:
    swept = Sweep(name, SCENARIOS[name])
    tried = sweep_pairs(swept.start, swept.play, swept.recover, swept.check_after_two)
    tally("pairs of crashes, nightly", tried)
    tally("scenarios of pairs", 1)


ERRORS_TRIED = [
    name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in SCENARIOS
]


@pytest.mark.parametrize("name", ERRORS_TRIED)
def test_every_operation_may_fail(name: str) -> None:
    swept = Sweep(name, SCENARIOS[name])
    tally("failed operations", sweep(swept.start, swept.play, swept.check, ERRORS))


@pytest.mark.slow
def test_enough_was_tried() -> None:
    """Counted in this very run, if all of it ran."""
    if COUNTS["scenarios"] == len(SCENARIOS):
        reached("crash points", "scenarios", "pairs of crashes")


@pytest.mark.slow
@pytest.mark.nightly
def test_enough_pairs_were_tried() -> None:
    if COUNTS["scenarios of pairs"] == len(SCENARIOS):
        reached("pairs of crashes, nightly")
