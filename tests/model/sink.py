"""One stream's sink: replays, speculation, crashes, lost answers, late tasks, another writer.

Each micro-batch has a row per part, and a task per part writes it. Whoever reads must see all of
a batch or nothing, once, and all of it from when Spark has logged it.

| step | function |
|---|---|
| begin: recommit | `complete_from_manifest` |
| begin: roll back | `rollback.roll_back` |
| begin: sweep | `sweep.sweep` |
| begin | `Coordinator.begin`: guard and proposed time |
| task: open, look, write | `write_task`: `open_instant`, then a file under a name of its own |
| commit | `_try_to_commit`: `_check_done`, `check_not_undone`, of `check_groups` the replay guard |
| manifest | `_put_manifest` |
| drop | `delete_own_lost` |
| complete | `put_completed` |
| finish | the rest of `exclusive_commit.finish`; then Spark logs the batch |
| abort | `Coordinator.abort` |

The other writer commits rows of its own; `begin` and `complete` are those of the coordinator too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

NOBODY: Final = -1
OTHER: Final = -2
"""Owner, and batch, of what the other writer writes."""


class File(NamedTuple):
    """A data file: its part of the batch, and which try wrote it."""

    part: int
    run: int
    attempt: int


class Record(NamedTuple):
    """What a completed file says, and the manifest before it."""

    batch: int
    files: frozenset[File]
    guard: frozenset[int]
    beside: frozenset[int]
    """Instant times that were pending beside it."""


class Instant(NamedTuple):
    """All that lies under one instant time."""

    owner: int = NOBODY
    files: frozenset[File] = frozenset()
    manifest: Record | None = None
    completed: Record | None = None
    undone: bool = False
    """Whether a rollback is on the timeline, so that the time is not proposed again."""

    @property
    def is_pending(self) -> bool:
        """Whether it is on the timeline and not complete."""
        return self.owner != NOBODY and self.completed is None


class Task(NamedTuple):
    """A task attempt; it outlives its driver."""

    run: int
    time: int
    part: int
    attempt: int
    step: str = "open"


class Driver(NamedTuple):
    """The process that runs the query, or the next one."""

    step: str = "begin"
    run: int = 0
    time: int = 0
    opened: int = 0
    guard: frozenset[int] = frozenset()
    answers: tuple[int, ...] = ()
    record: Record | None = None
    seen: int = 0
    """Number of commits when the record was made."""


class State(NamedTuple):
    """Spark, storage, and what may still go wrong."""

    driver: Driver
    tasks: frozenset[Task]
    instants: tuple[Instant, ...]
    order: tuple[int, ...] = ()
    """Times of completed instants as they completed; a turn each."""
    logged: int = 0
    other: tuple[str, int] = ("away", 0)
    crashes: int = 0
    lost: int = 0
    attempts: int = 0


@dataclass(frozen=True)
class Sink:
    """The rules in force, and the bounds."""

    replay_check: Literal["none", "newest only", "from the newest"] = "from the newest"
    refuses_unknown: bool = True
    """Whether a commit is refused that a later one, which is complete, does not know of."""
    reader: Literal["metadata", "lists"] = "metadata"
    drops_extra_files: bool = True
    looks_before_writing: bool = False
    abort_looks: bool = True
    rollback_looks: bool = True
    unknown_is_failed: bool = False
    batches: int = 1
    parts: int = 1
    crashes: int = 1
    lost: int = 1
    attempts: int = 1
    other: bool = False

    def start(self) -> State:
        """An empty table and a query that was never run."""
        times = (
            (1 + self.other) * (self.batches + self.crashes + self.lost + 1) + 2 * self.other + 1
        )
        other = ("begin", 0) if self.other else ("away", 0)
        return State(Driver(), frozenset(), (Instant(),) * times, other=other)

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        """What the driver, a task or the other writer may do next."""
        driver = state.driver
        if state.logged < self.batches:
            yield from _STEPS[driver.step](self, state, driver)
            if state.crashes < self.crashes and driver.step != "begin":
                again = state._replace(driver=Driver(run=driver.run + 1))
                yield "the driver dies", again._replace(crashes=state.crashes + 1)
        for task in state.tasks:
            yield from self._task(state, task)
        yield from self._other(state)

    def wrong(self, state: State) -> str | None:
        """All of a batch or nothing, once; and all of what Spark has logged."""
        for time in state.order:
            if state.instants[time].completed is None:
                return f"commit {time} is gone"
        for batch in range(self.batches):
            rows: list[int] = []
            for instant in state.instants:
                if instant.completed is not None and instant.completed.batch == batch:
                    listed = self.reader == "lists"
                    visible = instant.files if listed else instant.completed.files & instant.files
                    rows += [file.part for file in visible]
            complete = sorted(rows) == list(range(self.parts))
            if not complete and (rows or batch < state.logged):
                return f"batch {batch} is read as parts {sorted(rows)}"
            if not complete and any(
                i.completed and i.completed.batch == batch for i in state.instants
            ):
                return f"the files of batch {batch} are gone"
        return None

    def unfinished(self, state: State) -> str | None:
        """When nothing fails any more, the query goes on to its end."""
        return None if state.logged == self.batches else f"batch {state.logged} is never logged"

    # The driver

    def _begin(self, state: State, driver: Driver) -> Iterator[tuple[str, State]]:
        for time, instant in enumerate(state.instants):
            left = self._recovered(instant)
            if left is not None:
                step, now = left
                done = now.completed != instant.completed
                order = (*state.order, time) if done else state.order
                yield f"begin: {step} {time}", _put(state, time, now)._replace(order=order)
                return
        guard = self._guard(state)
        batch = state.logged
        if batch in guard:
            yield "begin: committed already", state._replace(driver=driver._replace(step="finish"))
            return
        # The clock may have moved on since; with another writer this decides whose time is less.
        for ahead in (1, 2) if self.other else (1,):
            time = _latest(state) + ahead
            run = Driver("wait", driver.run, time, 0, guard, (NOBODY,) * self.parts)
            tasks = {Task(driver.run, time, part, 0) for part in range(self.parts)}
            after = state._replace(driver=run, tasks=state.tasks | tasks)
            yield f"begin: batch {batch} at {time}", after

    def _recovered(self, instant: Instant) -> tuple[str, Instant] | None:
        """The next thing that recovery does to an instant."""
        if instant.owner == OTHER or instant.owner == NOBODY:
            return None
        if instant.is_pending and instant.manifest is not None:
            return "recommit", instant._replace(completed=instant.manifest, manifest=None)
        if instant.is_pending or not self.rollback_looks:
            if instant.files:
                return "roll back, files of", instant._replace(files=frozenset())
            return "roll back", Instant(undone=True)
        assert instant.completed is not None
        if instant.files - instant.completed.files:
            return "sweep", instant._replace(files=instant.files & instant.completed.files)
        return None

    def _guard(self, state: State) -> frozenset[int]:
        """Batches that the table is known to hold."""
        done = {t: i.completed for t, i in enumerate(state.instants) if i.completed is not None}
        if self.replay_check == "none" or not done:
            return frozenset()
        if self.replay_check == "newest only":
            return frozenset({done[max(done)].batch})
        guard: frozenset[int] = frozenset()
        waiting, seen = sorted(done), set[int]()
        while waiting:
            time = waiting.pop()
            if time not in seen:
                seen.add(time)
                guard |= done[time].guard
                waiting = sorted(done[time].beside & set(done))
        return guard

    def _wait(self, state: State, driver: Driver) -> Iterator[tuple[str, State]]:
        if NOBODY not in driver.answers:
            yield "commit", self._checked(state, driver)
            return
        if state.attempts < self.attempts:
            for part, answer in enumerate(driver.answers):
                task = Task(driver.run, driver.time, part, 1)
                if answer == NOBODY and task not in state.tasks:
                    after = state._replace(tasks=state.tasks | {task}, attempts=state.attempts + 1)
                    yield f"part {part} gets a second attempt", after

    def _checked(self, state: State, driver: Driver) -> State:
        """The timeline is loaded again: done, undone, or to be recorded."""
        guard = self._guard(state)
        if state.logged in guard:
            return state._replace(driver=driver._replace(step="finish"))
        instant = state.instants[driver.opened]
        undone = instant.owner != driver.run or instant.completed is not None
        if undone or self._is_unknown(state, driver.opened):
            return state._replace(driver=driver._replace(step="abort"))
        files = frozenset(File(p, driver.run, a) for p, a in enumerate(driver.answers))
        pending = {t for t, i in enumerate(state.instants) if i.is_pending and t != driver.opened}
        record = Record(state.logged, files, guard | {state.logged}, frozenset(pending))
        seen = len(state.order)
        return state._replace(driver=driver._replace(step="manifest", record=record, seen=seen))

    def _is_unknown(self, state: State, time: int) -> bool:
        """Whether a replay check that begins at the newest commit would miss this one."""
        later = (i.completed for i in state.instants[time + 1 :] if i.completed is not None)
        return self.refuses_unknown and any(time not in record.beside for record in later)

    def _manifest(self, state: State, driver: Driver) -> Iterator[tuple[str, State]]:
        instant = state.instants[driver.opened]._replace(manifest=driver.record)
        after = _put(state, driver.opened, instant)
        yield "manifest", after._replace(driver=driver._replace(step="drop"))

    def _drop(self, state: State, driver: Driver) -> Iterator[tuple[str, State]]:
        instant = state.instants[driver.opened]
        after = state._replace(driver=driver._replace(step="complete"))
        if self.drops_extra_files:
            assert driver.record is not None
            kept = instant._replace(files=instant.files & driver.record.files)
            after = _put(after, driver.opened, kept)
        yield "drop files that no answer names", after

    def _complete(self, state: State, driver: Driver) -> Iterator[tuple[str, State]]:
        if driver.seen != len(state.order):
            yield "the turn is taken, commit again", self._checked(state, driver)
            return
        instant = state.instants[driver.opened]._replace(completed=driver.record)
        after = _put(state, driver.opened, instant)._replace(order=(*state.order, driver.opened))
        yield "complete", after._replace(driver=driver._replace(step="finish"))
        if state.lost < self.lost:
            aborting = driver._replace(step="abort")
            for what, left in (("complete: no answer", after), ("complete: fails", state)):
                yield what, left._replace(driver=aborting, lost=state.lost + 1)

    def _finish(self, state: State, driver: Driver) -> Iterator[tuple[str, State]]:
        after = state
        if driver.opened:
            instant = state.instants[driver.opened]._replace(manifest=None)
            after = _put(state, driver.opened, instant)
        again = Driver(run=driver.run + 1)
        yield "finish, and Spark logs it", after._replace(driver=again, logged=state.logged + 1)

    def _abort(self, state: State, driver: Driver) -> Iterator[tuple[str, State]]:
        instant = state.instants[driver.opened]
        after = state
        if not self.abort_looks:
            after = _put(state, driver.opened, instant._replace(files=frozenset()))
        elif self.unknown_is_failed:
            after = _put(state, driver.opened, Instant(undone=True))
        yield "abort, and the query starts again", after._replace(driver=Driver(run=driver.run + 1))

    # Tasks

    def _task(self, state: State, task: Task) -> Iterator[tuple[str, State]]:
        who = f"task {task.part}.{task.attempt} of run {task.run}"
        instant = state.instants[task.time]
        rest = state.tasks - {task}
        if task.step == "open":
            if instant.owner not in (NOBODY, task.run):
                moved = task._replace(time=task.time + 1)
                yield f"{who}: time {task.time} is taken", state._replace(tasks=rest | {moved})
                return
            step = "look" if self.looks_before_writing else "write"
            after = _put(state, task.time, instant._replace(owner=task.run))
            opened = task._replace(step=step)
            yield f"{who}: open {task.time}", after._replace(tasks=rest | {opened})
            return
        if task.step == "look":
            looked = {task._replace(step="write")} if instant.is_pending else set()
            yield f"{who}: look", state._replace(tasks=rest | looked)
            return
        file = File(task.part, task.run, task.attempt)
        after = _put(state, task.time, instant._replace(files=instant.files | {file}))
        after = after._replace(tasks=rest)
        driver = state.driver
        awaited = driver.step == "wait" and driver.run == task.run
        if awaited and driver.answers[task.part] == NOBODY:
            answers = list(driver.answers)
            answers[task.part] = task.attempt
            told = driver._replace(answers=tuple(answers), opened=task.time)
            after = after._replace(driver=told)
        yield f"{who}: write", after

    # The other writer

    def _other(self, state: State) -> Iterator[tuple[str, State]]:
        step, time = state.other
        if step == "begin":
            for ahead in (1, 2):
                proposed = _latest(state) + ahead
                yield f"other: begin at {proposed}", state._replace(other=("complete", proposed))
        elif step == "complete":
            while state.instants[time].owner != NOBODY:
                time += 1
            if self._is_unknown(state, time):
                yield f"other: gives {time} up", state._replace(other=("away", 0))
                return
            beside = frozenset(t for t, i in enumerate(state.instants) if i.is_pending)
            record = Record(OTHER, frozenset(), self._guard(state) | {OTHER}, beside)
            after = _put(state, time, Instant(owner=OTHER, completed=record))
            order = (*state.order, time)
            yield f"other: open and complete {time}", after._replace(other=("away", 0), order=order)


_STEPS: Final = {
    "begin": Sink._begin,
    "wait": Sink._wait,
    "manifest": Sink._manifest,
    "drop": Sink._drop,
    "complete": Sink._complete,
    "finish": Sink._finish,
    "abort": Sink._abort,
}


def _latest(state: State) -> int:
    used = (t for t, i in enumerate(state.instants) if i.undone or i.owner != NOBODY)
    return max(used, default=0)


def _put(state: State, time: int, instant: Instant) -> State:
    before, after = state.instants[:time], state.instants[time + 1 :]
    return state._replace(instants=(*before, instant, *after))
