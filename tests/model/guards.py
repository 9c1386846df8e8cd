"""What a table knows of its writers, while it is archived and taken back.

Writers number their batches. A commit carries the last of one writer alone, and puts the others
aside. Whoever looks has to find of each writer the last batch that is in the table.

| step | function |
|---|---|
| begin | `open_instant`: the time is taken |
| commit | `commit_record`, `put_aside` |
| rewrite | `Compactor`, which carries no guard |
| archive | `archive` |
| restore | `restore_by_hand`, `carried_without` |
| restore of another engine | none: no decision is logged |
| look | `ReplayGuard.load`, `guard_commits`, `entries_carried`, `recall` |
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

WRITERS = (0, 1)
Guard = frozenset[tuple[int, int]]
"""Writers and the numbers of their last batches."""


class Commit(NamedTuple):
    """A completed instant: whose batch it is, and what it tells."""

    time: int
    writer: int = -1
    number: int = 0
    guard: Guard | None = None
    beside: frozenset[int] = frozenset()
    """Times of the instants that were pending."""


class State(NamedTuple):
    """Timeline, archive, and what lies beside them."""

    active: tuple[Commit, ...] = ()
    archived: tuple[Commit, ...] = ()
    pending: frozenset[tuple[int, int]] = frozenset()
    """Times and writers."""
    aside: frozenset[tuple[int, int, int]] = frozenset()
    """Writers, times of the commits that left them out, and numbers."""
    carried: tuple[int, Guard] = (0, frozenset())
    """Time of the newest commit of its moment, and what was known."""
    begun: int = 0

    @property
    def times(self) -> set[int]:
        return {commit.time for commit in self.table}

    @property
    def table(self) -> tuple[Commit, ...]:
        return self.archived + self.active


@dataclass(frozen=True)
class Guards:
    """The rules in force, and the bounds."""

    of_a_commit: bool = True
    """Whether what is put aside counts while its commit is in the table; else for ever."""
    keeps_older: bool = True
    """Whether what was put aside before stays until the next is archived."""
    at_its_time: bool = True
    """Whether a commit tells of those of earlier times alone."""
    asks_archive: bool = True
    """Whether a restore looks into the archive."""
    carried_at: bool = True
    """Whether what is carried counts while its newest commit is in the table; else for ever."""
    instants: int = 4

    def start(self) -> State:
        return State()

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        if state.begun < self.instants:
            time = state.begun + 1
            busy = {writer for _, writer in state.pending}
            for writer in WRITERS:
                if writer not in busy:
                    pending = state.pending | {(time, writer)}
                    yield f"{writer}: begin", state._replace(pending=pending, begun=time)
            rewrite = (*state.active, Commit(time))
            yield "rewrite", state._replace(active=rewrite, begun=time)
        for time, writer in sorted(state.pending):
            yield f"{writer}: commit", self._committed(state, time, writer)
        oldest = state.active[:1]
        if len(state.active) > 1 and all(oldest[0].time < time for time, _ in state.pending):
            after = state._replace(active=state.active[1:], archived=state.archived + oldest)
            yield "archive", after
        for at in range(1, len(state.active)):
            yield f"restore to {at}", self._restored(state, at, logged=True)
            yield f"restore of another engine to {at}", self._restored(state, at, logged=False)

    def wrong(self, state: State) -> str | None:
        for writer in WRITERS:
            there = max((c.number for c in state.table if c.writer == writer), default=0)
            known = self._known(state, writer)
            if known < there:
                return f"a batch of {writer} is forgotten"
            if known > there:
                return f"a batch of {writer} that was taken back counts"
        return None

    def unfinished(self, state: State) -> str | None:
        return None

    def _committed(self, state: State, time: int, writer: int) -> State:
        number = self._known(state, writer) + 1
        newest = max((commit.time for commit in state.active), default=0)
        of_all = self._told_now(state)
        is_late = self.at_its_time and newest > time
        before = _told(_until(state.table, time)) if is_late else of_all
        beside = frozenset(t for t, _ in state.pending if t != time)
        commit = Commit(time, writer, number, frozenset({(writer, number)}), beside)
        aside = state.aside
        for other, last in before - {(writer, last) for _, last in before}:
            archived = {c.time for c in state.archived}
            done = max((t for w, t, _ in aside if w == other and t in archived), default=0)
            done = done if self.keeps_older else time
            aside = frozenset(f for f in aside if f[0] != other or f[1] >= done)
            aside |= {(other, time, last)}
        return state._replace(
            active=tuple(sorted((*state.active, commit))),
            pending=state.pending - {(time, writer)},
            aside=aside,
            carried=(max(time, newest), _merged(of_all, commit.guard or frozenset())),
        )

    def _restored(self, state: State, at: int, *, logged: bool) -> State:
        kept = state.active[:at]
        last = kept[-1].time
        after = state._replace(
            active=kept, pending=frozenset(p for p in state.pending if p[0] < last)
        )
        if not logged:
            return after
        told = _told(state.archived + kept if self.asks_archive else kept)
        return after._replace(carried=(last, told))

    def _known(self, state: State, writer: int) -> int:
        told = dict(self._told_now(state))
        if writer in told:
            return told[writer]
        files = [(t, n) for w, t, n in state.aside if w == writer]
        if not self.of_a_commit:
            return max((n for _, n in files), default=0)
        return max((f for f in files if f[0] in state.times), default=(0, 0))[1]

    def _told_now(self, state: State) -> Guard:
        """What commits of the timeline tell, and what is carried where they do not tell all."""
        ours = [commit for commit in state.active if commit.guard is not None]
        beside = ours[-1].beside if ours else frozenset()
        told = _told(state.active)
        if ours and all(time >= state.active[0].time for time in beside):
            return told
        return _merged(told, self._carried(state))

    def _carried(self, state: State) -> Guard:
        at, guard = state.carried
        if self.carried_at and at and at not in state.times:
            return _told(state.table)
        return guard


def _merged(one: Guard, other: Guard) -> Guard:
    found = dict(one)
    for writer, number in other:
        found[writer] = max(number, found.get(writer, 0))
    return frozenset(found.items())


def _until(commits: tuple[Commit, ...], time: int) -> tuple[Commit, ...]:
    return tuple(commit for commit in commits if commit.time <= time)


def _told(commits: tuple[Commit, ...]) -> Guard:
    """What the newest write tells, and those that were pending beside it."""
    found: Guard = frozenset()
    wanted: frozenset[int] | None = None
    for commit in reversed(commits):
        if commit.guard is not None and (wanted is None or commit.time in wanted):
            wanted = (wanted or frozenset()) | commit.beside
            found = _merged(found, commit.guard)
    return found
