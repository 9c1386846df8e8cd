"""Every operation of every scenario fails once, in every way: the stream still gives the model."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hoodie_ds.testing import CRASHES, ERRORS, MemoryStorage, check_table, one_thread, sweep
from tests.faults.scenarios import SCENARIOS, Scenario
from tests.faults.stream import Model, found, run, writer
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
            self._die(scenario)

    def _die(self, scenario: Scenario) -> None:
        kept = writer(self.start, self.opts)
        kept_commit = type(kept).commit
        try:
            type(kept).commit = lambda *_: None  # type: ignore[method-assign]
            assert scenario.dead is not None
            run(self.start, self.opts, self.first, scenario.dead, 70)
        finally:
            type(kept).commit = kept_commit  # type: ignore[method-assign]

    @property
    def buckets(self) -> bool:
        return "hoodie.index.type" not in self.opts and self.scenario.keyed

    def play(self, storage: object) -> None:
        """The stream until the process ends."""
        self.committed = 0
        for number, step in enumerate(self.scenario.steps, self.first):
            run(storage, self.opts, number, step, number)
            self.committed += 1

    def check(self, left: MemoryStorage, raised: BaseException | None) -> None:
        assert check_table(left.files, buckets=self.buckets) == []
        spans = "hoodie.streaming.batches.per.commit" in self.opts
        seen = found(left)
        last = 0 if spans and self.committed < 2 else self.committed
        allowed = [self.models[last].plain()]
        if raised is not None:
            allowed.append(self.models[-1 if spans else self.committed + 1].plain())
        assert seen in allowed, "a reader sees a part of a batch, or not what was committed"
        if raised is None:
            return
        self._check_recovery(left)
        # Spark runs the batch again whose commit did not return, and then the rest.
        for number in range(self.committed, len(self.scenario.steps)):
            step = self.scenario.steps[number]
            run(left, self.opts, self.first + number, step, LATER + number)
        assert found(left) == self.models[-1].plain(), "the stream's replay is not the model"
        before = left.files
        step = self.scenario.steps[-1]
        if step.rows.num_rows:
            run(left, self.opts, self.first + len(self.scenario.steps) - 1, step, 2 * LATER)
        again = {path: body for path, body in left.files.items() if ".temp" not in path}
        assert again == {path: body for path, body in before.items() if ".temp" not in path}
        assert check_table(left.files, settled=True, buckets=self.buckets) == []

    def _check_recovery(self, left: MemoryStorage) -> None:
        """The next begin leaves nothing pending (but an instant it goes on with), once."""
        spans = "hoodie.streaming.batches.per.commit" in self.opts
        schema = self.scenario.steps[0].rows.schema
        if not any(left.files) and self.scenario.steps[self.committed].operation == "delete":
            return
        writer(left, self.opts).begin(schema)
        recovered = left.files
        assert check_table(recovered, settled=not spans, buckets=self.buckets) == []
        writer(left, self.opts).begin(schema)
        assert left.files == recovered, "recovery is not idempotent"


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_the_process_may_end_at_every_operation(name: str) -> None:
    swept = Sweep(name, SCENARIOS[name])
    tally("crash points", sweep(swept.start, swept.play, swept.check, CRASHES))
    tally("scenarios", 1)


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
        reached("crash points", "scenarios")
