"""Several writers of one timeline: which rules keep them from losing each other's rows.

After Vanlightly's model of copy-on-write upserts. A writer finds the file group of a key, merges
the key into a copy of the group's newest file slice, and commits the copy. A reader takes, of each
file group, the slice of the newest commit.

| step | function |
|---|---|
| begin | `Coordinator.begin`: the instant time is proposed |
| open | `open_instant`: the name is taken |
| look up | `LookupRouter`, `BucketRouter`: the file group of a key |
| lock the group | none: Hudi's way without optimistic concurrency |
| read, write | `KeyedWriter`: base file in, base file out |
| decide | `check_groups`, `check_new_keys` |
| complete | `put_completed` |
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

KEYS: Final = (0, 1)
GROUPS: Final = (0, 1)
NOBODY: Final = -1

Rows = frozenset[tuple[int, int]]
"""Key and value of each row."""


class Name(NamedTuple):
    """What the files of one operation have in their names."""

    time: int
    salt: int = 0


class Slice(NamedTuple):
    """A base file."""

    group: int
    name: Name
    rows: Rows


class Commit(NamedTuple):
    """A completed instant, and the file group it brings a slice of."""

    name: Name
    group: int


class Writer(NamedTuple):
    """One writer and the operation it is at."""

    step: str = "begin"
    value: int = 0
    key: int = 0
    name: Name = Name(0)
    group: int = NOBODY
    known: int = NOBODY
    """The group that the key was found in."""
    base: Name | None = None
    rows: Rows = frozenset()
    clock: int = 0


class State(NamedTuple):
    """Storage, writers, and what was told to be in the table."""

    writers: tuple[Writer, ...]
    opened: frozenset[Name] = frozenset()
    slices: frozenset[Slice] = frozenset()
    commits: frozenset[Commit] = frozenset()
    told: tuple[int, ...] = (0,) * len(KEYS)
    """The value of each key that was committed last; 0 for none."""
    lock: int = NOBODY
    group_locks: tuple[int, ...] = (NOBODY,) * len(GROUPS)
    begun: int = 0
    crashes: int = 0


@dataclass(frozen=True)
class Writers:
    """The rules in force, and the bounds."""

    times: Literal["monotonic", "local clocks"] = "monotonic"
    control: Literal["none", "optimistic", "pessimistic"] = "optimistic"
    key_check: bool = True
    put_if_absent: bool = False
    salt: bool = False
    writers: int = 2
    operations: int = 3
    crashes: int = 0

    def start(self) -> State:
        """An empty table."""
        return State((Writer(),) * self.writers)

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        """What each writer may do next."""
        for who, writer in enumerate(state.writers):
            if writer.step == "begin":
                if state.begun < self.operations:
                    yield from self._begin(state, who, writer)
                continue
            for what, after in _STEPS[writer.step](self, state, who, writer):
                yield f"writer {who}: {what}", after
            if state.crashes < self.crashes:
                dead = _idle(state, who, writer)
                yield f"writer {who}: dies", dead._replace(crashes=state.crashes + 1)

    def wrong(self, state: State) -> str | None:
        """A reader sees the last committed value of each key, once."""
        found: dict[int, list[int]] = {key: [] for key in KEYS}
        for rows in _view(state).values():
            for key, value in rows:
                found[key].append(value)
        for key in KEYS:
            expected = [state.told[key]] if state.told[key] else []
            if found[key] != expected:
                return f"key {key} is read as {sorted(found[key])}, committed was {expected}"
        return None

    def unfinished(self, state: State) -> str | None:
        """Every operation ends, well or not."""
        idle = all(writer.step == "begin" for writer in state.writers)
        return None if idle and state.begun == self.operations else "an operation does not end"

    def _begin(self, state: State, who: int, writer: Writer) -> Iterator[tuple[str, State]]:
        clocks = [writer] if self.times == "local clocks" else state.writers
        time = max(w.clock for w in clocks) + 1
        value = state.begun + 1
        name = Name(time, value if self.salt else 0)
        for key in KEYS:
            begun = Writer("open", value, key, name, clock=time)
            after = _with(state, who, begun)._replace(begun=value)
            yield f"writer {who}: begin, key {key} = {value} at {time}", after

    def _open(self, state: State, who: int, writer: Writer) -> Iterator[tuple[str, State]]:
        if self.put_if_absent and writer.name in state.opened:
            yield "open: the time is taken, give up", _idle(state, who, writer)
            return
        after = _with(state, who, writer._replace(step="look up"))
        yield "open", after._replace(opened=state.opened | {writer.name})

    def _look_up(self, state: State, who: int, writer: Writer) -> Iterator[tuple[str, State]]:
        known = _group_of(state, writer.key)
        step = "lock the group" if self.control == "pessimistic" else "read"
        for group in GROUPS if known == NOBODY else (known,):
            routed = writer._replace(step=step, group=group, known=known)
            yield f"look up: file group {group}", _with(state, who, routed)

    def _lock_group(self, state: State, who: int, writer: Writer) -> Iterator[tuple[str, State]]:
        if state.group_locks[writer.group] == NOBODY:
            locks = _at(state.group_locks, writer.group, who)
            after = _with(state, who, writer._replace(step="read"))
            yield f"lock file group {writer.group}", after._replace(group_locks=locks)

    def _read(self, state: State, who: int, writer: Writer) -> Iterator[tuple[str, State]]:
        base = _newest(state, writer.group)
        if self.control != "none" and base is not None and base.time >= writer.name.time:
            yield (
                "read: the newest slice is later than this write, give up",
                _idle(state, who, writer),
            )
            return
        rows = _rows(state, writer.group, base)
        merged = frozenset(
            {*((k, v) for k, v in rows if k != writer.key), (writer.key, writer.value)}
        )
        read = writer._replace(step="write", base=base, rows=merged)
        yield f"read: base {base and base.time}", _with(state, who, read)

    def _write(self, state: State, who: int, writer: Writer) -> Iterator[tuple[str, State]]:
        same = {s for s in state.slices if (s.group, s.name) == (writer.group, writer.name)}
        if same and self.put_if_absent:
            yield "write: the name is taken, give up", _idle(state, who, writer)
            return
        put = Slice(writer.group, writer.name, writer.rows)
        after = _with(state, who, writer._replace(step="decide"))
        yield "write", after._replace(slices=(state.slices - same) | {put})

    def _decide(self, state: State, who: int, writer: Writer) -> Iterator[tuple[str, State]]:
        if state.lock != NOBODY:
            return
        moved = self.control == "optimistic" and _newest(state, writer.group) != writer.base
        known = _group_of(state, writer.key)
        if moved or (self.key_check and known not in (NOBODY, writer.group)):
            yield "decide: conflict, give up", _idle(state, who, writer)
            return
        held = who if self.control != "none" else NOBODY
        yield "decide", _with(state, who, writer._replace(step="complete"))._replace(lock=held)

    def _complete(self, state: State, who: int, writer: Writer) -> Iterator[tuple[str, State]]:
        same = {commit for commit in state.commits if commit.name == writer.name}
        after = _idle(state, who, writer)
        if same and self.put_if_absent:
            yield "complete: the name is taken, give up", after
            return
        commits = (state.commits - same) | {Commit(writer.name, writer.group)}
        told = _at(state.told, writer.key, writer.value)
        yield "complete", after._replace(commits=commits, told=told)


_STEPS: Final = {
    "open": Writers._open,
    "look up": Writers._look_up,
    "lock the group": Writers._lock_group,
    "read": Writers._read,
    "write": Writers._write,
    "decide": Writers._decide,
    "complete": Writers._complete,
}


def _newest(state: State, group: int) -> Name | None:
    return max((commit.name for commit in state.commits if commit.group == group), default=None)


def _rows(state: State, group: int, name: Name | None) -> Rows:
    return next((s.rows for s in state.slices if (s.group, s.name) == (group, name)), frozenset())


def _view(state: State) -> dict[int, Rows]:
    return {group: _rows(state, group, _newest(state, group)) for group in GROUPS}


def _group_of(state: State, key: int) -> int:
    read = _view(state).items()
    return next((group for group, rows in read if any(k == key for k, _ in rows)), NOBODY)


def _at(values: tuple[int, ...], place: int, value: int) -> tuple[int, ...]:
    return (*values[:place], value, *values[place + 1 :])


def _with(state: State, who: int, writer: Writer) -> State:
    writers = (*state.writers[:who], writer, *state.writers[who + 1 :])
    return state._replace(writers=writers)


def _idle(state: State, who: int, writer: Writer) -> State:
    """The writer has let go of everything but its clock."""
    locks = tuple(NOBODY if holder == who else holder for holder in state.group_locks)
    lock = NOBODY if state.lock == who else state.lock
    return _with(state, who, Writer(clock=writer.clock))._replace(lock=lock, group_locks=locks)
