"""A scenario, the processes that fail in it, and what may be left of them."""

from __future__ import annotations

from collections.abc import Callable

from hoodie_ds.testing import MemoryStorage, SimulatedCrash
from tests.faults.scenarios import SCENARIOS, Scenario
from tests.faults.stream import Model, assert_well, begin, found, run
from tests.tables import VERSION

LATER = 90
"""A stage of an application that came after the one that ended."""


class Sweep:
    """A scenario, run by processes that fail, and the checks of what they leave."""

    def __init__(self, name: str, scenario: Scenario | None = None, version: str = "6") -> None:
        scenario = scenario or SCENARIOS[name]
        self.scenario = scenario
        self.opts = {**scenario.opts, VERSION: version}
        self.first = len(scenario.before)
        self.start = MemoryStorage(f"memory://{name}")
        self.models = [Model(keyed=scenario.keyed, unique=scenario.unique)]
        for number, step in enumerate(scenario.before):
            # Whole instants, so that what follows begins one of its own.
            opts = {**self.opts, "hoodie.streaming.batches.per.commit": "1"}
            run(self.start, opts, number, step, number)
            self.models[0] = self.models[0].after(step)
        for step in scenario.steps:
            self.models.append(self.models[-1].after(step))
        self.committed = 0
        self._seen: set[int] = set()
        if scenario.dead is not None:
            run(self.start, self.opts, self.first, scenario.dead, 70, commit=False)
        later = any(path.startswith(".hoodie/timeline/") for path in self.start.files)
        assert later == (version == "9" and any(self.start.files))

    @property
    def spans(self) -> bool:
        return "hoodie.streaming.batches.per.commit" in self.opts

    def play(self, storage: object, reached: Callable[[int], None] = lambda _: None) -> None:
        """The stream until the process ends; says how many batches have been committed."""
        self.committed = 0
        for number, step in enumerate(self.scenario.steps, self.first):
            run(storage, self.opts, number, step, number)
            self.committed += 1
            reached(self.committed)

    def recover(self, storage: object) -> None:
        """The start of the process after the one that ended, and no more."""
        begin(storage, self.opts, self.scenario.steps[0].rows.schema)

    def check(self, left: MemoryStorage, raised: BaseException | None) -> None:
        """Look at what is left; of a process that ended these are its files, which it left once."""
        if isinstance(raised, SimulatedCrash):
            state = hash((self.committed, frozenset(left.files.items())))
            if state in self._seen:
                return
            self._seen.add(state)
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
            following = self.models[-1:] if self.spans else self.models[self.committed + 1 :][:1]
            allowed += [model.plain() for model in following]
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
