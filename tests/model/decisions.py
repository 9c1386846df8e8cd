"""Several writers that decide by turns: commits and rollbacks, by processes that pause and die.

A process may pause for any time at any step, and anyone may take any pending instant for dead at
any time: heartbeats and locks are as bad as they can be. What has to hold the table together is
the order of turns alone. Where a variant has a lock instead, its lease ends whenever it likes.

| step | function |
|---|---|
| begin | `Coordinator.begin`, and in it `recover_lazily` |
| claim, open, write | `open_instant` and a task's file, for each task |
| begin the turn, take the lock | `exclusive_commit.excluding` |
| the newest turn is n; carry out | `resolution.apply_pending`: `newest_decision`, `_apply` |
| load the timeline | `commit._try_to_commit`: `_check_done`, `check_not_undone`, `check_groups` |
| manifest | `_put_manifest` |
| take turn n, list again | `append_decision` |
| follow, complete | `put_completed`: of the writer, `complete_from_manifest`, a rollback |
| finish | the rest of `exclusive_commit.finish`: the temporary folder goes |
| roll back: look, request, delete, complete, off the timeline, folder | `rollback.roll_back` |
| sweep: list, load, delete | `recover_lazily`, `load_timeline`, `sweep` |

The last process begins when all others have ended: what it leaves is what recovery leaves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

NOBODY: Final = -1
ENDED: Final = ("dead", "failed", "committed", "done")


class Decision(NamedTuple):
    """What a turn says."""

    kind: Literal["complete", "roll back"]
    time: int


class File(NamedTuple):
    """A data file: who wrote it, in which task."""

    writer: int
    task: int


class Record(NamedTuple):
    """What a completed file says, and the manifest before it."""

    writer: int
    files: frozenset[File]
    seen: frozenset[int]
    """Commits that the writer had seen when it began."""
    turn: int = 0
    """The newest turn when the timeline was loaded to be checked."""


class Instant(NamedTuple):
    """All that lies under one instant time."""

    claim: int = NOBODY
    owner: int = NOBODY
    """Who opened it, as its inflight file says."""
    files: frozenset[File] = frozenset()
    markers: frozenset[File] = frozenset()
    manifest: Record | None = None
    completed: Record | None = None
    undoes: int = 0
    """The time of the instant that a rollback of this time is to undo."""
    undone: bool = False
    """Whether the rollback of this time is complete."""
    followed: bool = False
    """Whether the table's follower has taken it in."""

    @property
    def is_pending(self) -> bool:
        """Whether it is a write that is open."""
        return self.owner != NOBODY and self.completed is None


class Process(NamedTuple):
    """A writer, or a recovery."""

    step: str = "begin"
    proposed: int = 0
    time: int = 0
    task: int = 0
    opened: int = 0
    """The time that its first task opened."""
    seen: frozenset[int] = frozenset()
    recovered: bool = False
    goal: Decision | None = None
    turn: int = 0
    deed: Decision | None = None
    """The decision that it carries out."""
    own: bool = False
    """Whether that is its goal."""
    record: Record | None = None
    rollback: int = 0
    found: frozenset[File] = frozenset()
    swept: tuple[frozenset[File] | None, ...] = ()


class State(NamedTuple):
    """Storage and processes."""

    processes: tuple[Process, ...]
    instants: tuple[Instant, ...]
    turns: tuple[Decision | None, ...] = ()
    """None for one that was deleted."""
    order: tuple[int, ...] = ()
    """Times of completed instants as they completed."""
    lock: int = NOBODY
    crashes: int = 0
    lost: int = 0


@dataclass(frozen=True)
class Rules:
    """What every process keeps to; each default is the safe one."""

    turns: bool = True
    lock: Literal["none", "lease", "until death"] = "none"
    carries_out: bool = True
    looks_again: bool = True
    """Whether a writer whose turn is taken starts again, rather than take the next."""
    loads_after_turn: bool = True
    checks_conflicts: bool = True
    checks_replay_in_turn: bool = True
    checks_rollbacks: Literal["all", "pending"] = "all"
    unseen_by: Literal["set", "time"] = "set"
    """How a commit is known to be unseen; by time, one before the first seen counts as seen."""
    manifest: Literal["before turn", "none"] = "before turn"
    missing_manifest: Literal["look again", "roll back"] = "look again"
    rollback_takes_turn: bool = True
    rollback_loads: bool = True
    dead_manifest: Literal["rolled back", "the next turn", "any turn", "no turn"] = "rolled back"
    """Whether recovery completes a dead instant that has a manifest, and by which turn."""
    rollback_time: Literal["claimed and looked up", "claimed", "claimed, let go", "by its name"] = (
        "claimed and looked up"
    )
    """How a rollback takes a time of its own."""
    turns_kept: Literal["all", "the newest"] = "the newest"
    lists_turns_again: bool = True
    """Whether a writer looks, once it has put its turn, whether it is the newest."""
    sweeps: Literal["markers", "folders"] = "markers"
    follower: Literal["none", "undecided", "before", "before, of writers", "after"] = "none"
    """Whether the table has a follower, and when it takes an instant in: with its manifest, before
    it is visible, before that where its writer completes it, or afterwards."""

    def completing(self, *, writer: bool) -> str:
        """The first step on the way to complete an instant, by its writer or another process."""
        follows = self.follower == "before" or (self.follower == "before, of writers" and writer)
        return "carry out: follow" if follows else "carry out: complete"


@dataclass(frozen=True)
class Writer:
    """What a process is there for."""

    batch: int
    group: int
    tasks: int = 1
    recovers: bool = True
    commits: bool = True
    sweeps: bool = False


@dataclass(frozen=True)
class Turns:
    """Writers that keep to some rules, within bounds."""

    writers: tuple[Writer, ...]
    rules: Rules = Rules()
    crashes: int = 1
    lost: int = 0
    """Answers to the put of a turn that do not come: the put, made again, finds the name taken."""
    early: bool = False
    """Whether the first writer had begun, and the second committed, before the others begin."""

    def start(self) -> State:
        """An empty table; or one with a commit later than the time that a writer proposes."""
        times = 2 * len(self.writers) + 4
        processes = (Process(),) * (len(self.writers) + 1)
        state = State(processes, (Instant(),) * times)
        if self.early:
            record = Record(1, frozenset({File(1, 0)}), frozenset())
            there = Instant(1, 1, record.files, completed=record)
            begun = Process("claim", proposed=1, time=1, recovered=True)
            state = _put(state, 2, there)._replace(
                processes=(begun, Process("committed"), *processes[2:]),
                turns=(Decision("complete", 2),),
                order=(2,),
            )
        return state

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        """What each process may do next."""
        last = len(self.writers)
        for who, process in enumerate(state.processes):
            if process.step in ENDED or process.step == "settled":
                continue
            if who == last and any(p.step not in ENDED for p in state.processes[:last]):
                continue
            name = f"writer {who}" if who < last else "last recovery"
            for what, after in _STEPS[process.step](self, state, who, process):
                yield f"{name}: {what}", after
            if state.crashes < self.crashes and who < last:
                lock = NOBODY if state.lock == who else state.lock
                dead = _with(state, who, Process("dead"))
                yield f"{name}: dies", dead._replace(crashes=state.crashes + 1, lock=lock)

    def wrong(self, state: State) -> str | None:
        """Commits are serial, whole, once, for good; and recovery leaves nothing open."""
        for place, time in enumerate(state.order):
            instant = state.instants[time]
            record = instant.completed
            if record is not None and state.processes[record.writer].step == "failed":
                return f"commit {time} stands, and its writer was told that it failed"
            if record is None or not record.files <= instant.files:
                return f"rows of commit {time} are gone"
            if instant.undoes:
                return f"time {time} is that of a commit and of a rollback"
            if self.rules.follower != "none" and not instant.followed:
                return f"the follower does not know commit {time}"
            mine = self.writers[record.writer]
            for earlier in state.order[:place]:
                before = state.instants[earlier].completed
                if before is None:
                    continue
                theirs = self.writers[before.writer]
                if theirs.batch == mine.batch:
                    return f"commits {earlier} and {time} are of one batch"
                if theirs.group == mine.group and earlier not in record.seen:
                    return f"commit {time} lost the update of commit {earlier}"
        for instant in state.instants:
            if instant.undone and state.instants[instant.undoes].completed is not None:
                return f"commit {instant.undoes} was rolled back"
            if instant.undone and self.rules.follower != "none" and not instant.followed:
                return f"the follower does not know the rollback of {instant.undoes}"
            if instant.undone and state.instants[instant.undoes].followed:
                return f"the follower has taken {instant.undoes} in, which was rolled back"
            if instant.undoes and instant.owner != NOBODY:
                return "one time is that of a write and of a rollback"
        if any(process.step == "stuck" for process in state.processes):
            return "a process can not go on"
        if state.processes[-1].step == "settled":
            return self._unsettled(state)
        return None

    def unfinished(self, state: State) -> str | None:
        """Whoever was killed, the last recovery comes to its end."""
        return None if state.processes[-1].step == "settled" else "a process waits for ever"

    def _unsettled(self, state: State) -> str | None:
        if any(instant.is_pending for instant in state.instants):
            return "an instant is left open"
        held = {self.writers[record.writer].batch for _, record in _completed(state)}
        for writer, process in zip(self.writers, state.processes, strict=False):
            if process.step == "committed" and writer.batch not in held:
                return f"batch {writer.batch} is not there, and its writer was told that it is"
        return None

    # Begin: the timeline, what is dead, a time

    def _begin(self, state: State, who: int, process: Process) -> Iterator[tuple[str, State]]:
        if who == len(self.writers):
            yield "begin", _with(state, who, process._replace(step="look"))
            return
        writer = self.writers[who]
        if writer.sweeps:
            yield from self._list_left_over(state, who, process)
            return
        if writer.recovers and not process.recovered:
            for time, instant in enumerate(state.instants):
                if instant.is_pending:
                    yield from self._recover(state, who, process, time, instant)
        if not writer.commits:
            yield "begin: nothing to do", _with(state, who, Process("done"))
            return
        seen = frozenset(time for time, _ in _completed(state))
        time = _latest(state) + 1
        begun = Process("claim", time, time, seen=seen, recovered=True)
        yield f"begin: {time} is next", _with(state, who, begun)

    def _recover(
        self, state: State, who: int, process: Process, time: int, instant: Instant
    ) -> Iterator[tuple[str, State]]:
        has_manifest = instant.manifest is not None
        if self.rules.dead_manifest == "no turn" and has_manifest:
            deed = Decision("complete", time)
            step = self.rules.completing(writer=False)
            after = process._replace(step=step, deed=deed, record=instant.manifest, recovered=True)
            yield f"begin: {time} has a manifest", _with(state, who, after)
            return
        completes = has_manifest and self.rules.dead_manifest != "rolled back"
        goal = Decision("complete" if completes else "roll back", time)
        if self.rules.rollback_takes_turn:
            after = process._replace(step="lock", goal=goal, recovered=True)
        else:
            after = process._replace(
                step="roll back: look" if self.rules.rollback_loads else "roll back: list",
                deed=goal,
                own=True,
                goal=goal,
                recovered=True,
            )
        yield f"begin: {time} is taken for dead", _with(state, who, after)

    # Tasks

    def _claim(self, state: State, who: int, process: Process) -> Iterator[tuple[str, State]]:
        time = process.time
        instant = state.instants[time]
        if instant.claim not in (NOBODY, who):
            moved = process._replace(time=time + 1)
            yield f"claim {time}: taken", _with(state, who, moved)
            return
        after = _put(state, time, instant._replace(claim=who))
        yield f"claim {time}", _with(after, who, process._replace(step="open"))

    def _open(self, state: State, who: int, process: Process) -> Iterator[tuple[str, State]]:
        time = process.time
        instant = state.instants[time]
        if instant.owner not in (NOBODY, who):
            moved = process._replace(step="claim", time=time + 1)
            yield f"open {time}: taken", _with(state, who, moved)
            return
        after = _put(state, time, instant._replace(owner=who))
        yield f"open {time}", _with(after, who, process._replace(step="write"))

    def _write(self, state: State, who: int, process: Process) -> Iterator[tuple[str, State]]:
        time, task = process.time, process.task
        instant = state.instants[time]
        file = {File(who, task)}
        written = instant._replace(files=instant.files | file, markers=instant.markers | file)
        opened = process.opened or time
        after = process._replace(step="claim", task=task + 1, opened=opened, time=process.proposed)
        if opened != time:
            after = Process("failed")  # tasks of one batch wrote under several instants
        elif task + 1 == self.writers[who].tasks:
            after = after._replace(
                step="lock", time=time, goal=Decision("complete", time), proposed=0
            )
        yield f"task {task} writes", _with(_put(state, time, written), who, after)

    # The turn

    def _lock(self, state: State, who: int, process: Process) -> Iterator[tuple[str, State]]:
        after = _with(state, who, process._replace(step="look"))
        if self.rules.lock == "none":
            yield "begin the turn", after
        elif state.lock == NOBODY:
            yield "take the lock", after._replace(lock=who)
        elif self.rules.lock == "lease":
            yield f"take the lock, the lease of {state.lock} is over", after._replace(lock=who)

    def _look(self, state: State, who: int, process: Process) -> Iterator[tuple[str, State]]:
        if self._loads_first(process):
            yield from self._load_first(state, who, process)
            return
        turn, newest = _newest(state)
        looked = process._replace(turn=turn, deed=newest, own=False)
        if newest is None or not self.rules.carries_out:
            after = looked._replace(step="load", deed=None)
        elif newest.kind == "complete":
            after = looked._replace(step="carry out: is it complete?")
        else:
            after = looked._replace(step="roll back: look")
        yield f"the newest turn is {turn}", _with(state, who, after)

    def _loads_first(self, process: Process) -> bool:
        """Whether a commit is judged by the timeline as it was before the turn was looked up."""
        commits = process.goal is not None and process.goal.kind == "complete"
        return commits and not self.rules.loads_after_turn

    def _is_complete(self, state: State, who: int, process: Process) -> Iterator[tuple[str, State]]:
        assert process.deed is not None
        if state.instants[process.deed.time].completed is not None:
            yield "carry out: it is complete", self._carried_out(state, who, process)
        else:
            step = "carry out: read the manifest"
            yield "carry out: it is not complete", _with(state, who, process._replace(step=step))

    def _read_manifest(
        self, state: State, who: int, process: Process
    ) -> Iterator[tuple[str, State]]:
        assert process.deed is not None
        time = process.deed.time
        manifest = state.instants[time].manifest
        if manifest is not None:
            step = self.rules.completing(writer=False)
            after = process._replace(step=step, record=manifest)
            yield "carry out: read the manifest", _with(state, who, after)
        elif self.rules.missing_manifest == "roll back":
            deed = Decision("roll back", time)
            after = process._replace(step="roll back: list", deed=deed)
            yield "carry out: no manifest, roll back", _with(state, who, after)
        elif state.instants[time].completed is not None:
            yield "carry out: it is complete by now", self._carried_out(state, who, process)
        else:
            yield "carry out: no manifest", _with(state, who, Process("stuck"))

    def _follow(self, state: State, who: int, process: Process) -> Iterator[tuple[str, State]]:
        """The follower takes the instant in, without a look at whether it has already."""
        assert process.deed is not None
        time = process.deed.time
        after = _put(state, time, state.instants[time]._replace(followed=True))
        if self.rules.follower == "after":
            yield f"follow {time}", self._carried_out(after, who, process)
        else:
            step = process._replace(step="carry out: complete")
            yield f"follow {time}", _with(after, who, step)

    def _complete(self, state: State, who: int, process: Process) -> Iterator[tuple[str, State]]:
        assert process.deed is not None
        time = process.deed.time
        instant = state.instants[time]
        after = state
        if instant.completed is None:
            after = _put(state, time, instant._replace(completed=process.record))
            after = after._replace(order=(*state.order, time))
        if self.rules.follower == "after":
            step = process._replace(step="carry out: follow")
            yield f"complete {time}", _with(after, who, step)
        else:
            yield f"complete {time}", self._carried_out(after, who, process)

    def _carried_out(self, state: State, who: int, process: Process) -> State:
        """What a process does next, having carried out a decision."""
        done = process._replace(deed=None, record=None, rollback=0, found=frozenset())
        if process.deed is not None and process.own:
            step = "finish" if process.deed.time == process.opened else "begin"
            done = done._replace(step=step, own=False)
            if step == "begin":
                state = _unlocked(state, who)
                done = done._replace(goal=None, turn=0)
                if who == len(self.writers):
                    done = done._replace(step="look")
        elif process.goal is None:  # a recommit without a turn
            done = done._replace(step="begin" if who < len(self.writers) else "load")
        elif self._loads_first(process):
            done = done._replace(step="manifest")
        else:
            done = done._replace(step="load")
        return _with(state, who, done)

    def _load(self, state: State, who: int, process: Process) -> Iterator[tuple[str, State]]:
        goal = process.goal
        if who == len(self.writers) and goal is None:
            pending = [time for time, instant in enumerate(state.instants) if instant.is_pending]
            if not pending:
                yield "nothing is left to do", _with(state, who, Process("settled"))
                return
            yield from self._recover(state, who, process, pending[0], state.instants[pending[0]])
            return
        assert goal is not None
        what, after = self._judged(state, who, process, goal)
        if after.step in (*ENDED, "begin"):
            state = _unlocked(state, who)
        yield f"load the timeline: {what}", _with(state, who, after)

    def _load_first(self, state: State, who: int, process: Process) -> Iterator[tuple[str, State]]:
        assert process.goal is not None
        what, after = self._judged(state, who, process, process.goal)
        step = after.step if after.step in ENDED else "look after loading"
        yield f"load the timeline: {what}", _with(state, who, after._replace(step=step))

    def _look_after_loading(
        self, state: State, who: int, process: Process
    ) -> Iterator[tuple[str, State]]:
        turn, newest = _newest(state)
        step = "carry out: is it complete?" if newest else "manifest"
        after = process._replace(turn=turn, deed=newest, step=step)
        yield f"the newest turn is {turn}", _with(state, who, after)

    def _judged(
        self, state: State, who: int, process: Process, goal: Decision
    ) -> tuple[str, Process]:
        """Whether a process may go on to its decision, by the timeline as it is now."""
        rules, time = self.rules, goal.time
        instant = state.instants[time]
        if goal.kind == "roll back":
            if rules.rollback_loads and not instant.is_pending:
                again = process._replace(step="begin", goal=None, turn=0)
                return f"{time} is not open", again
            return f"{time} is open", process._replace(step="take the turn")
        if time != process.opened:
            return self._judged_for_dead(state, process, time)
        mine = self.writers[who]
        commits = _completed(state)
        if rules.checks_replay_in_turn and any(
            self.writers[record.writer].batch == mine.batch for _, record in commits
        ):
            return "the batch is there", Process("committed")
        against = [i for i in state.instants if i.undoes == time]
        if rules.checks_rollbacks == "pending":
            against = [i for i in against if not i.undone]
        if instant.owner != who or against:
            return "rolled back", Process("failed")
        first = min(process.seen, default=0)
        for other, record in commits:
            if other in process.seen or (rules.unseen_by == "time" and other < first):
                continue
            if rules.checks_conflicts and self.writers[record.writer].group == mine.group:
                return f"conflict with {other}", Process("failed")
        files = frozenset(File(who, task) for task in range(mine.tasks))
        record = Record(who, files, process.seen, process.turn)
        step = "manifest" if rules.manifest == "before turn" else "take the turn"
        return "no conflict", process._replace(step=step, record=record)

    def _judged_for_dead(self, state: State, process: Process, time: int) -> tuple[str, Process]:
        """Whether recovery may complete a dead writer's instant."""
        instant = state.instants[time]
        if not instant.is_pending:
            return f"{time} is not open", process._replace(step="begin", goal=None, turn=0)
        undone = any(other.undoes == time for other in state.instants)
        manifest = instant.manifest
        old = manifest is not None and manifest.turn != process.turn
        if undone or manifest is None or (old and self.rules.dead_manifest == "the next turn"):
            goal = Decision("roll back", time)
            return f"{time} is to be undone", process._replace(step="take the turn", goal=goal)
        return f"{time} is whole", process._replace(step="take the turn", record=manifest)

    def _manifest(self, state: State, who: int, process: Process) -> Iterator[tuple[str, State]]:
        assert process.goal is not None
        time = process.goal.time
        if process.record is None:  # its timeline was loaded before the newest turn
            files = frozenset(File(who, task) for task in range(self.writers[who].tasks))
            process = process._replace(record=Record(who, files, process.seen))
        instant = state.instants[time]
        followed = instant.followed or self.rules.follower == "undecided"
        after = _put(state, time, instant._replace(manifest=process.record, followed=followed))
        yield "manifest", _with(after, who, process._replace(step="take the turn"))

    def _take(self, state: State, who: int, process: Process) -> Iterator[tuple[str, State]]:
        goal, turn = process.goal, process.turn + 1
        assert goal is not None
        taken = turn <= len(state.turns) and state.turns[turn - 1] is not None
        if not self.rules.turns:
            yield "decide without a turn", _with(state, who, self._decided(process))
        elif not taken:
            turns = (*state.turns[: turn - 1], goal, *state.turns[turn:])
            after = state._replace(turns=turns)
            listing = process._replace(step="list again", turn=turn)
            yield f"take turn {turn}: {goal.kind} {goal.time}", _with(after, who, listing)
            if state.lost < self.lost:
                again = process._replace(step="look", record=None)
                after = _with(after._replace(lost=state.lost + 1), who, again)
                yield f"take turn {turn}: no answer, look again", after
        elif self.rules.looks_again:
            again = process._replace(step="look", record=None)
            yield f"turn {turn} is taken, look again", _with(state, who, again)
        else:
            again = process._replace(turn=turn)
            yield f"turn {turn} is taken, try the next", _with(state, who, again)

    def _list_again(self, state: State, who: int, process: Process) -> Iterator[tuple[str, State]]:
        mine = process.turn
        if self.rules.lists_turns_again and _newest(state)[0] != mine:
            again = process._replace(step="look", record=None)
            yield "list again: others came after, look again", _with(state, who, again)
            return
        turns = state.turns
        if self.rules.turns_kept == "the newest":
            turns = ((None,) * (mine - 1)) + turns[mine - 1 :]
        after = _with(state._replace(turns=turns), who, self._decided(process))
        yield "list again: it is the newest", after

    def _decided(self, process: Process) -> Process:
        """A process that is about to do what it has decided."""
        goal = process.goal
        assert goal is not None
        step = "roll back: look"
        if goal.kind == "complete":
            step = self.rules.completing(writer=True)
        if goal.kind == "roll back" and not self.rules.rollback_loads:
            step = "roll back: list"
        return process._replace(step=step, deed=goal, own=True)

    def _finish(self, state: State, who: int, process: Process) -> Iterator[tuple[str, State]]:
        assert process.goal is not None
        time = process.goal.time
        gone = state.instants[time]._replace(claim=NOBODY, markers=frozenset(), manifest=None)
        after = _with(_unlocked(_put(state, time, gone), who), who, Process("committed"))
        yield "finish", after

    # Roll back

    def _look_at_dead(
        self, state: State, who: int, process: Process
    ) -> Iterator[tuple[str, State]]:
        assert process.deed is not None
        time = process.deed.time
        if not state.instants[time].is_pending:
            yield f"roll back {time}: it is not open", self._carried_out(state, who, process)
            return
        found = self._to_request(state, process, state.instants[time].markers)
        yield f"roll back {time}: it is open", _with(state, who, found)

    def _list_dead(self, state: State, who: int, process: Process) -> Iterator[tuple[str, State]]:
        assert process.deed is not None
        # Trusts that the instant is open, and takes its files from its markers or their names.
        files = state.instants[process.deed.time].files
        found = self._to_request(state, process, files)
        yield f"roll back {process.deed.time}", _with(state, who, found)

    def _to_request(self, state: State, process: Process, files: frozenset[File]) -> Process:
        next_time = _latest(state) + 1
        return process._replace(step="roll back: request", rollback=next_time, found=files)

    def _request(self, state: State, who: int, process: Process) -> Iterator[tuple[str, State]]:
        assert process.deed is not None
        rule = self.rules.rollback_time
        for time in range(process.rollback, len(state.instants)):
            instant = state.instants[time]
            claimed = instant.claim != NOBODY and rule != "by its name"
            found = instant.owner != NOBODY and rule == "claimed and looked up"
            if instant.undoes or claimed or found:
                continue
            put = instant._replace(undoes=process.deed.time)
            if rule != "by its name":
                put = put._replace(claim=who)
            after = process._replace(step="roll back: delete", rollback=time)
            yield f"roll back: request {time}", _with(_put(state, time, put), who, after)
            return
        raise AssertionError("too few times")

    def _delete(self, state: State, who: int, process: Process) -> Iterator[tuple[str, State]]:
        assert process.deed is not None
        time = process.deed.time
        instant = state.instants[time]
        after = _put(state, time, instant._replace(files=instant.files - process.found))
        follows = self.rules.follower != "none"
        following = "roll back: follow" if follows else "roll back: complete"
        step = process._replace(step=following, found=frozenset())
        yield f"roll back: delete the files of {time}", _with(after, who, step)

    def _follow_rollback(
        self, state: State, who: int, process: Process
    ) -> Iterator[tuple[str, State]]:
        rollback = state.instants[process.rollback]._replace(followed=True)
        after = _put(state, process.rollback, rollback)
        step = process._replace(step="roll back: complete")
        yield f"roll back: follow {process.rollback}", _with(after, who, step)

    def _undone(self, state: State, who: int, process: Process) -> Iterator[tuple[str, State]]:
        rollback = state.instants[process.rollback]._replace(undone=True)
        after = _put(state, process.rollback, rollback)
        step = process._replace(step="roll back: off the timeline")
        yield f"roll back: {process.rollback} is complete", _with(after, who, step)

    def _off(self, state: State, who: int, process: Process) -> Iterator[tuple[str, State]]:
        assert process.deed is not None
        time = process.deed.time
        after = _put(state, time, state.instants[time]._replace(owner=NOBODY))
        step = process._replace(step="roll back: folder")
        yield f"roll back: {time} leaves the timeline", _with(after, who, step)

    def _folder(self, state: State, who: int, process: Process) -> Iterator[tuple[str, State]]:
        assert process.deed is not None
        time = process.deed.time
        gone = state.instants[time]._replace(claim=NOBODY, markers=frozenset(), manifest=None)
        after = _put(state, time, gone)
        if self.rules.rollback_time == "claimed, let go":
            own = after.instants[process.rollback]._replace(claim=NOBODY)
            after = _put(after, process.rollback, own)
        yield "roll back: the folder goes", self._carried_out(after, who, process)

    # Sweep

    def _list_left_over(
        self, state: State, who: int, process: Process
    ) -> Iterator[tuple[str, State]]:
        """Take the times that have a folder, or better the markers in them."""
        listed = tuple(
            instant.markers if instant.claim != NOBODY or instant.markers else None
            for instant in state.instants
        )
        after = process._replace(step="sweep: load", swept=listed)
        yield "sweep: list folders", _with(state, who, after)

    def _load_to_sweep(
        self, state: State, who: int, process: Process
    ) -> Iterator[tuple[str, State]]:
        unknown = tuple(
            None if instant.owner != NOBODY or instant.undoes else listed
            for instant, listed in zip(state.instants, process.swept, strict=True)
        )
        after = process._replace(step="sweep: delete", swept=unknown)
        yield "sweep: load the timeline", _with(state, who, after)

    def _sweep(self, state: State, who: int, process: Process) -> Iterator[tuple[str, State]]:
        instants = []
        for instant, listed in zip(state.instants, process.swept, strict=True):
            if listed is None:
                instants.append(instant)
                continue
            files = instant.markers if self.rules.sweeps == "folders" else listed
            swept = instant._replace(files=instant.files - files, markers=instant.markers - files)
            if self.rules.sweeps == "folders":
                swept = swept._replace(claim=NOBODY, manifest=None)
            instants.append(swept)
        after = state._replace(instants=tuple(instants))
        yield "sweep: delete", _with(after, who, Process("done"))


_STEPS: Final = {
    "begin": Turns._begin,
    "claim": Turns._claim,
    "open": Turns._open,
    "write": Turns._write,
    "lock": Turns._lock,
    "look": Turns._look,
    "look after loading": Turns._look_after_loading,
    "carry out: is it complete?": Turns._is_complete,
    "carry out: read the manifest": Turns._read_manifest,
    "carry out: follow": Turns._follow,
    "carry out: complete": Turns._complete,
    "load": Turns._load,
    "manifest": Turns._manifest,
    "take the turn": Turns._take,
    "list again": Turns._list_again,
    "finish": Turns._finish,
    "roll back: look": Turns._look_at_dead,
    "roll back: list": Turns._list_dead,
    "roll back: request": Turns._request,
    "roll back: delete": Turns._delete,
    "roll back: follow": Turns._follow_rollback,
    "roll back: complete": Turns._undone,
    "roll back: off the timeline": Turns._off,
    "roll back: folder": Turns._folder,
    "sweep: load": Turns._load_to_sweep,
    "sweep: delete": Turns._sweep,
    "stuck": lambda *_: iter(()),
}


def _latest(state: State) -> int:
    """The greatest time on the timeline."""
    used = (t for t, i in enumerate(state.instants) if i.owner != NOBODY or i.undoes)
    return max(used, default=0)


def _newest(state: State) -> tuple[int, Decision | None]:
    """The newest turn that is there, and what it says; 0 before the first."""
    there = [(number, turn) for number, turn in enumerate(state.turns, 1) if turn is not None]
    return there[-1] if there else (0, None)


def _completed(state: State) -> list[tuple[int, Record]]:
    return [(t, i.completed) for t, i in enumerate(state.instants) if i.completed is not None]


def _put(state: State, time: int, instant: Instant) -> State:
    before, after = state.instants[:time], state.instants[time + 1 :]
    return state._replace(instants=(*before, instant, *after))


def _with(state: State, who: int, process: Process) -> State:
    before, after = state.processes[:who], state.processes[who + 1 :]
    return state._replace(processes=(*before, process, *after))


def _unlocked(state: State, who: int) -> State:
    return state._replace(lock=NOBODY) if state.lock == who else state
