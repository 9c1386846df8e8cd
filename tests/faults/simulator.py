"""A stream on one thread, from a seed: tasks in any order, retries, late attempts, aborts, faults.

Another actor runs before an operation of the one that is at work, so attempts interleave without
threads, and the same seed does the same, byte for byte (P25).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pyarrow as pa

from hoodie_ds.config.limits import Limits
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import HoodieError, WriteConflictError
from hoodie_ds.sink.batch import Batch
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.messages import TaskCommitMessage, TaskId
from hoodie_ds.sink.replay_guard import BatchId
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.testing import (
    Effect,
    Fault,
    FaultyStorage,
    Kind,
    MemoryStorage,
    Operation,
    Recorder,
    SimClock,
    SimIds,
    SimulatedCrash,
    forget_process,
)
from tests.faults.keepers import GIVING_WAY, OFTEN, keeper, services_of
from tests.faults.scenarios import BLOOM, STATE, VERSIONS
from tests.faults.stream import OPERATION, QUERY, Model, Step, assert_well, found
from tests.tables import TRIPS, TYPE, TYPES, VERSION, trips

BATCHES = 6
TRIES = 12
FAULTS = (Effect.CRASH_BEFORE, Effect.CRASH_AFTER, Effect.LOST_ANSWER, Effect.FAILED)
SPAN = "hoodie.streaming.batches.per.commit"
INDEXES: tuple[dict[str, str], ...] = ({}, BLOOM, {**BLOOM, **STATE})


class Simulation:
    """One table and the processes that write to it."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.recorder, self.clock, self.ids = Recorder(), SimClock(), SimIds(seed)
        self.table = MemoryStorage(f"memory://seed-{seed}", clock=self.clock)
        chosen = {**TRIPS, **self.draw.choice(INDEXES), TYPE: self.draw.choice(TYPES)}
        chosen[VERSION] = self.draw.choice(VERSIONS)
        self.span = self.draw.choice([1, 1, 2, 3])
        chosen |= {SPAN: str(self.span), **GIVING_WAY}
        self.options = {key: value for key, value in chosen.items() if value}
        self.visible = self.model = Model()
        self.ended_in_put = False
        """Whether a driver that was stopped may have ended in that very put."""
        self.served = 0
        self.serving = False
        self.late: list[Callable[[], object]] = []
        self.passed: list[tuple[str, Step]] = []

    def run(self) -> str:
        """Write all batches; return the trace's hash. Commits carry one writer: others are past."""
        forget_process()
        for number in range(BATCHES):
            step = self._step(number)
            self.model = self.model.after(step)
            after = self.visible if (number + 1) % self.span else self.model
            self._until_committed(number, step, after)
            self.visible = after
            assert found(self.table) == after.plain(), f"batch {number}: not the model"
            if self.span == 1:
                self._serve()
                assert found(self.table) == after.plain(), "a service changed rows"
            if self.span == 1 and self.draw.random() < 0.4:
                self._passers_by(number)
        self.late.clear()
        self._coordinator("upsert", self._process(0)).begin(trips().schema)
        if self.ended_in_put or self.served:
            self._archive_all()
        # Of a file that a clean took the archive has the successor, which is not looked for there.
        assert_well(self.table, self.options, settled=True, but_for="has no successor")
        return self.recorder.trace_hash

    def _archive_all(self) -> None:
        """Archive all that was written, after which no file of an undone instant may be left.

        Until then there may be one that came after its instant was undone, and whose writer ended
        before it looked for that.
        """
        table = keeper(self.table, {**self.options, SPAN: "1"}, "the last one", self.clock)
        for name in services_of(self.options):
            getattr(table, name)()  # what others have planned is carried out
        for number in range(int(OFTEN["hoodie.keep.min.commits"])):
            step = replace(self._step(BATCHES + number), operation="upsert")
            table.upsert(step.rows)
            self.model = self.model.after(step)
        table.archive()
        assert found(self.table) == self.model.plain(), "archiving: not the model"

    def _step(self, number: int) -> Step:
        keys = self.draw.sample(range(10), self.draw.randint(1, 6))
        rows = trips(*((f"k{k}", f"c{k % 2}", number, float(10 * number + k)) for k in keys))
        operation = "upsert"
        if number and self.draw.random() < 0.25:
            replaces = ["insert_overwrite"] if self.span == 1 else []
            operation = self.draw.choice(["delete", *replaces])
        return Step(rows, operation, self.draw.randint(1, 3))

    def _passers_by(self, number: int) -> None:
        """A query that writes one batch and is forgotten, and one of those before it once more."""
        query = f"passer-by {number}"
        self.passed.append((query, replace(self._step(number), operation="upsert", tasks=1)))
        self.visible = self.model = self.model.after(self.passed[-1][1])
        for name, step in (self.passed[-1], self.draw.choice(self.passed)):
            while not self._passes(name, step):
                self.recorder.note(f"{name}: once more")
            assert found(self.table) == self.model.plain(), f"{name}: not once"

    def _passes(self, name: str, step: Step) -> bool:
        """Write a batch; false if a clustering rewrote its file groups meanwhile."""
        coordinator = self._coordinator(step.operation, self._process(0))
        batch = coordinator.begin(step.rows.schema, name)
        try:
            coordinator.commit([self._attempt(batch, 0, step, step.rows, 0, 0, 0.0, name)()])
        except WriteConflictError:
            return False
        return True

    def _until_committed(self, number: int, step: Step, model: Model) -> None:
        """Spark's loop: the same batch until a commit has returned, and at times once more."""
        before, after = self.visible.plain(), model.plain()
        for attempt in range(TRIES):
            fault_rate = 0.5 if attempt < TRIES - 2 else 0.0
            try:
                self._try(number, step, fault_rate)
            except (SimulatedCrash, HoodieError) as error:
                self.recorder.note(type(error).__name__)
                self.clock.advance(self.draw.choice([0, 1, 60_000, -3_600_000]))
                seen = found(self.table)
                assert seen in (before, after), f"batch {number}: a part of it"
                continue
            assert found(self.table) == after, f"batch {number}: committed, and not there"
            if self.draw.random() < 0.8:  # else Spark died before its commit log: once more
                return
            self._zombies()
        raise AssertionError(f"batch {number} does not come through without faults")

    def _try(self, number: int, step: Step, fault_rate: float) -> None:
        stops = self.draw.random() < fault_rate / 2
        stopped_at = self.draw.randint(1, 60) if stops else 0
        overtaken = self._overtaken(stopped_at, number, step) if stops else None
        process = self._process(fault_rate, overtaken, stopped_at)
        coordinator = self._coordinator(step.operation, process)
        batch = coordinator.begin(step.rows.schema, QUERY)
        messages: list[TaskCommitMessage] = []
        try:
            messages += [
                self._task(batch, number, step, task, fault_rate) for task in range(step.tasks)
            ]
            if self.draw.random() < 0.1:
                coordinator.abort([*messages, None])  # the query was stopped
                raise SimulatedCrash("stopped")
            coordinator.commit(messages)
            if self.draw.random() < 0.2:
                coordinator.commit(messages)
            if self.draw.random() < 0.2:
                coordinator.abort(messages)
        except HoodieError:
            slots: list[TaskCommitMessage | None] = [*messages, *[None] * (step.tasks - 1)]
            coordinator.abort(slots)
            raise
        if self.draw.random() < 0.3:
            self._zombies()

    def _overtaken(self, at: int, number: int, step: Step) -> Callable[[Operation], None]:
        """Stop a driver before one of its operations, while another one writes the batch.

        It goes on later, as if nothing had happened.
        """

        def before(operation: Operation) -> None:
            if operation.number == at:
                self.recorder.note("another driver takes over")
                self._try(number, step, 0.0)

        return before

    def _task(
        self, batch: Batch, number: int, step: Step, task: int, fault_rate: float
    ) -> TaskCommitMessage:
        """A task and its attempts, some of which fail, run beside another, or come too late."""
        rows = step.rows.filter(pa.array([i % step.tasks == task for i in range(len(step.rows))]))
        for attempt in range(3):
            work = self._attempt(batch, number, step, rows, task, attempt, 0.0)
            roll = self.draw.random()
            if roll < 0.15:
                self.late.append(work)  # speculation: the loser of two attempts
            elif roll < 0.3 * fault_rate + 0.15 and attempt < 2:
                try:
                    self._attempt(batch, number, step, rows, task, attempt, 1.0)()
                except (SimulatedCrash, HoodieError) as error:
                    self.recorder.note(f"task {task}.{attempt}: {type(error).__name__}")
                    continue
            else:
                return work()
        return self._attempt(batch, number, step, rows, task, 9, 0.0)()

    def _attempt(
        self,
        batch: Batch,
        number: int,
        step: Step,
        rows: pa.Table,
        task: int,
        attempt: int,
        fault_rate: float,
        query: str = QUERY,
    ) -> Callable[[], TaskCommitMessage]:
        """An attempt in a process of its own, with the rows in an order of its own."""
        order = self.draw.sample(range(len(rows)), len(rows))
        size = self.draw.randint(1, 4)

        def work() -> TaskCommitMessage:
            process = cast(Storage, self._process(fault_rate, self._interleaved()))
            table = replace(batch.table, storage=process)
            mine = replace(batch, plan=replace(batch.plan, table=table))
            message = write_task(
                mine,
                TaskId(task, 0, attempt),  # Spark's numbers, which begin anew with each driver
                BatchId(query, number),
                rows.take(pa.array(order, pa.int64())).to_batches(size),
                sole_writer=step.tasks == 1,
                clock=self.clock,
            )
            return replace(message, batch=batch)

        return work

    def _interleaved(self) -> Callable[[Operation], None]:
        """Let late attempts run before one of the operations."""
        at = self.draw.randint(1, 40)

        def before(operation: Operation) -> None:
            if operation.number == at:
                self._zombies()

        return before

    def _serve(self) -> None:
        """A service in a process of its own, which ends or not; none within another one.

        Not beside an instant of several batches, after which it is not known when it completes.
        """
        if self.serving or self.span > 1 or not any(self.table.files):
            return
        self.serving, self.served = True, self.served + 1
        name, rate = self.draw.choice(services_of(self.options)), self.draw.choice([0.0, 0.0, 1.0])
        self.recorder.note(name)
        table = keeper(self._process(rate), self.options, f"{name} {self.served}", self.clock)
        try:
            getattr(table, name)()
        except (SimulatedCrash, HoodieError) as error:
            if not rate:
                raise AssertionError(f"{name}: {error}") from error
            self.recorder.note(f"{name}: {type(error).__name__}")
        finally:
            self.serving = False

    def _zombies(self) -> None:
        if self.draw.random() < 0.5:
            self._serve()
        waiting, self.late = self.late, []
        for work in waiting:
            try:
                work()
            except HoodieError as error:
                self.recorder.note(f"late: {type(error).__name__}")

    def _process(
        self,
        fault_rate: float,
        before: Callable[[Operation], None] | None = None,
        stopped_at: int = 0,
    ) -> FaultyStorage:
        """A process, with a fault or without one."""
        faults = [self._fault()] if self.draw.random() < fault_rate else []
        self.ended_in_put |= any(stopped_at and _is_near(fault, stopped_at) for fault in faults)
        return FaultyStorage(self.table, faults, self.recorder, before)

    def _fault(self) -> Fault:
        if self.draw.random() < 0.2:
            size, number = self.draw.choice([0, 1, 100, 1000]), self.draw.randint(0, 3)
            return Fault(Effect.TORN, kinds=frozenset({Kind.WRITE}), skip=number, keep=size)
        return Fault(self.draw.choice(FAULTS), at=self.draw.randint(1, 60))

    def _coordinator(self, operation: str, process: FaultyStorage) -> Coordinator:
        given: dict[str, Any] = {**self.options, OPERATION: operation, "path": self.table.root}
        options = replace(WriteOptions.parse(given), limits=Limits(writers_carried=1))
        return Coordinator(options, cast(Storage, process), self.clock, self.ids)


def _is_near(fault: Fault, number: int) -> bool:
    """Whether a fault may strike at an operation, or at the next: a file is created, then put."""
    return fault.at is None or fault.at in (number, number + 1)
