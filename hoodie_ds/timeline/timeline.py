"""The instants of a table as they were at one moment: which are complete, which are pending."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, wraps
from itertools import chain, takewhile
from typing import Final, TypeVar

from hoodie_ds.columns.html_table import html_table
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.instant import WRITE_ACTIONS, Action, Instant, State
from hoodie_ds.timeline.instant_time import padded
from hoodie_ds.timeline.settled_instants import Settled, instants_digest

T = TypeVar("T")
_TABLES: Final = 8
"""Tables of which a process keeps what was computed of their timelines."""
_NOTHING_SETTLED: Final = Settled()
_SHOWN: Final = 20
"""Instants that a notebook shows."""


@dataclass(frozen=True, eq=False)
class Timeline:
    """Instants of a table, one per time, each in the furthest state it had reached.

    Parameters
    ----------
    recent : tuple of Instant
        Completed instants, by time; those that are settled come before.
    pending : tuple of Instant
        Requested or inflight instants, by time.
    savepoints : tuple of Instant
        Savepoints, by time: each has the time of the commit that it keeps.
    settled : Settled
        Completed instants that do not change any more.
    layout : int
        Version of the layout in which they lie.
    begins : str
        Of a timeline of the past, the time before which instants have been archived; empty where
        the commits tell.
    """

    recent: tuple[Instant, ...] = ()
    pending: tuple[Instant, ...] = ()
    savepoints: tuple[Instant, ...] = ()
    settled: Settled = _NOTHING_SETTLED
    layout: int = 1
    begins: str = ""

    def __repr__(self) -> str:
        numbers = f"{self.num_completed} completed, {len(self.pending)} pending"
        return f"<Timeline: {numbers}, latest {self.latest_time}>"

    def _repr_html_(self) -> str:
        """Return the newest instants as a table, as notebooks show it."""
        newest = (*self.completed[-_SHOWN:], *self.pending)
        ordered = sorted(newest, key=lambda instant: padded(instant.time))[: -_SHOWN - 1 : -1]
        rows = [
            {"time": i.time, "action": i.action.value, "state": i.state.value,
             "completed": i.completion_time}
            for i in ordered
        ]  # fmt: skip
        return html_table(repr(self)[1:-1], rows, len(rows))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timeline) and self.instants == other.instants

    def __hash__(self) -> int:
        return self.digest

    @classmethod
    def of(
        cls,
        instants: Iterable[Instant],
        settled: Settled = _NOTHING_SETTLED,
        layout: int = 1,
    ) -> Timeline:
        """Reduce the steps found on storage to one instant per time, later than the settled."""
        furthest: dict[tuple[str, bool], Instant] = {}
        rank = {State.REQUESTED: 0, State.INFLIGHT: 1, State.COMPLETED: 2}
        for instant in instants:
            one = (instant.time, instant.action is Action.SAVEPOINT)
            known = furthest.get(one)
            if known is None or rank[instant.state] > rank[known.state]:
                furthest[one] = instant
        ordered = sorted(furthest.values(), key=lambda instant: padded(instant.time))
        recent: list[Instant] = []
        pending: list[Instant] = []
        savepoints: list[Instant] = []
        for instant in ordered:
            if instant.action is Action.SAVEPOINT:
                savepoints.append(instant)
            else:
                (recent if instant.counts else pending).append(instant)
        return cls(tuple(recent), tuple(pending), tuple(savepoints), settled, layout)

    def __reduce__(self) -> tuple[Callable[..., Timeline], tuple[object, ...]]:
        """Pickle to what takes little room and time: timelines travel with tasks."""
        parts = [_packed(part) for part in (self.recent, self.pending, self.savepoints)]
        settled = self.settled
        return _unpacked, (parts, settled.packed, settled.digest, self.layout, self.begins)

    def past(self, time: str, is_later: Callable[[Instant], bool]) -> Timeline:
        """Return the timeline of an earlier moment.

        Parameters
        ----------
        time : str
            From this time on nothing that has been archived belongs to it.
        is_later : callable
            Whether an instant does not belong to it.
        """
        kept = Timeline.of((i for i in self.instants if not is_later(i)), layout=self.layout)
        return replace(kept, begins=min(self.start, padded(time)))

    @property
    def completed(self) -> tuple[Instant, ...]:
        """Completed instants, by time; to list all of a long timeline takes time."""
        return self.settled.instants + self.recent

    @property
    def num_completed(self) -> int:
        """How many instants are completed."""
        return len(self.settled) + len(self.recent)

    @cached_property
    def commits(self) -> tuple[Instant, ...]:
        """Completed instants that brought data files, by time; all, as in `completed`."""
        return tuple(self._commits_forwards())

    @cached_property
    def _recent_commits(self) -> tuple[Instant, ...]:
        return tuple(i for i in self.recent if i.action in WRITE_ACTIONS)

    def _commits_forwards(self) -> Iterator[Instant]:
        old = self.settled.writes() if self._has_settled else ()
        return chain(old, self._recent_commits)

    def commits_backwards(self) -> Iterator[Instant]:
        """Yield `commits`, the newest first."""
        newest = reversed(self._recent_commits)
        return chain(newest, self.settled.writes_backwards()) if self._has_settled else newest

    def commits_since(self, time: str) -> Iterator[Instant]:
        """Yield those of `commits` whose times are not less than one, the newest first."""
        first = padded(time)
        return takewhile(lambda found: padded(found.time) >= first, self.commits_backwards())

    @property
    def _has_settled(self) -> bool:
        return self.settled.times.size > 0

    @cached_property
    def first_commit(self) -> Instant | None:
        """The oldest of `commits`; None if there is none."""
        return next(self._commits_forwards(), None)

    @cached_property
    def first_time(self) -> str:
        """Its time, padded; empty if there is none."""
        return "" if self.first_commit is None else padded(self.first_commit.time)

    def time_before(self, time: str) -> str | None:
        """Time of the newest of `commits` before a time; None if there is none."""
        earlier = (i.time for i in self.commits_backwards() if padded(i.time) < padded(time))
        return next(earlier, None)

    def commits_beyond(self, other: Timeline) -> Iterator[Instant]:
        """Yield `commits` that another timeline lacks, or has with another end, by time."""
        is_alike = self.settled is other.settled
        old = () if is_alike else self.settled.writes_beyond(other.settled)
        mine = chain(old, self._recent_commits)
        return (i for i in mine if not _is_same(i, other.commit_at(i.time)))

    def cleans_beyond(self, other: Timeline) -> list[Instant]:
        """Return the cleans, pending ones too, that an earlier timeline does not have."""
        known = {instant.time for instant in (*other.deletions, *other.pending)}
        found = (*self.deletions, *self.pending)
        return [i for i in found if i.action is Action.CLEAN and i.time not in known]

    @cached_property
    def replace_commits(self) -> tuple[Instant, ...]:
        """Those of `commits` that take file groups away too."""
        return self._completed_of(Action.REPLACE_COMMIT)

    @cached_property
    def rollbacks(self) -> tuple[Instant, ...]:
        """Rollbacks, completed and pending."""
        pending = (i for i in self.pending if i.action is Action.ROLLBACK)
        return (*self._completed_of(Action.ROLLBACK), *pending)

    @cached_property
    def restores(self) -> tuple[Instant, ...]:
        """Completed restores, by time."""
        return self._completed_of(Action.RESTORE)

    @cached_property
    def deletions(self) -> tuple[Instant, ...]:
        """Completed instants by which committed files go: cleanings, then restores."""
        return (*self._completed_of(Action.CLEAN), *self.restores)

    def _completed_of(self, action: Action) -> tuple[Instant, ...]:
        recent = (i for i in self.recent if i.action is action)
        old = self.settled.of_action(action) if self._has_settled else ()
        return (*old, *recent)

    @cached_property
    def joined(self) -> Instant | None:
        """The open instant that the writer joins, if there is one; see `with_joined`."""
        return next((instant for instant in self._recent_commits if instant.num_batches), None)

    def with_joined(self, joined: Instant | None) -> Timeline:
        """Return the timeline as it looks to the writer that joins an open instant."""
        if joined is None:
            return self
        young = (*self.recent, *self.pending, *self.savepoints)
        rest = (i for i in young if i.time != joined.time)
        return Timeline.of([*rest, joined], self.settled, self.layout)

    @property
    def instants(self) -> tuple[Instant, ...]:
        """All instants; what `of` makes the same timeline of."""
        return (*self.completed, *self.pending, *self.savepoints)

    @cached_property
    def latest_time(self) -> str | None:
        """The greatest time of any instant, pending ones included, or of the end of one."""
        last = [instants[-1] for instants in (self.recent, self.pending) if instants]
        ends = [i.completion_time for i in (*self.recent, *self.savepoints)]
        if self._has_settled:
            ends.append(self.settled.latest_end)
            last += () if self.recent else (self.completed[-1],)
        return max(filter(None, [*(i.time for i in last), *ends]), key=padded, default=None)

    @cached_property
    def pending_compactions(self) -> tuple[Instant, ...]:
        """Compactions that were scheduled and have not completed."""
        return tuple(i for i in self.pending if i.action is Action.COMPACTION)

    @cached_property
    def pending_restores(self) -> tuple[Instant, ...]:
        """Restores to a savepoint that another engine has begun and not completed."""
        return tuple(i for i in self.pending if i.action is Action.RESTORE)

    @cached_property
    def digest(self) -> int:
        """32 bits by which timelines that show the same file slices are known (signed)."""
        young = (*self._recent_commits, *self.pending_compactions, *self.savepoints)
        total = (self.settled.digest + instants_digest(young)) & ((1 << 64) - 1)
        return (total & ((1 << 32) - 1)) - (1 << 31)

    @cached_property
    def _commit_times(self) -> dict[str, Instant]:
        return {instant.time: instant for instant in self._recent_commits}

    def commit_at(self, time: str) -> Instant | None:
        """Return the completed write instant with this time, if it is on the active timeline."""
        found = self._commit_times.get(time)
        return self.settled.write_at(time) if found is None and self._has_settled else found

    def is_pending(self, time: str) -> bool:
        """Whether the instant with this time was requested and has not completed."""
        return any(instant.time == time for instant in self.pending)

    def at(self, time: str) -> tuple[Instant, ...]:
        """Return the instants with this time, savepoints left out."""
        young = tuple(i for i in (*self.recent, *self.pending) if i.time == time)
        return young or self.settled.at(time)

    def starts_after(self, time: str) -> bool:
        """Whether a time lies before the active timeline, as those of archived instants do."""
        return padded(time) < self.start

    def has_other(self, instant: Instant) -> bool:
        """Whether another action has an instant's time."""
        return any(i.action is not instant.action for i in self.at(instant.time))

    def is_committed(self, time: str) -> bool:
        """Whether data written under an instant time is part of the table, by this timeline alone.

        As in Hudi, a time before the start of the active timeline counts as committed: its instant
        has been archived. A pending instant never does. `instant_status` considers rollbacks and
        the archive too.
        """
        if self.commit_at(time) is not None:
            return True
        return not self.is_pending(time) and self.starts_after(time)

    @cached_property
    def start(self) -> str:
        """Time of the first commit that no savepoint keeps, as archiving passes over those; padded.

        Where savepoints keep all of them, whatever is missing between them has been archived too.
        Empty if there is no commit.
        """
        if self.begins:
            return self.begins
        kept = {savepoint.time for savepoint in self.savepoints}
        first = next((i for i in self._commits_forwards() if i.time not in kept), None)
        first = first or next(self.commits_backwards(), None)
        return "" if first is None else padded(first.time)


_KINDS: Final = [(action, state) for action in Action for state in State]
_KIND_CODES: Final = {kind: code for code, kind in enumerate(_KINDS)}
_Packed = tuple[str, bytes, dict[int, int], str]


def _packed(instants: tuple[Instant, ...]) -> _Packed:
    batches = {number: i.num_batches for number, i in enumerate(instants) if i.num_batches}
    kinds = bytes([_KIND_CODES[i.action, i.state] for i in instants])
    ends = ",".join([i.completion_time for i in instants])
    return ",".join([i.time for i in instants]), kinds, batches, ends


def _unpacked(
    parts: Iterable[_Packed], settled: bytes, digest: int, layout: int, begins: str
) -> Timeline:
    recent, pending, savepoints = (tuple(_instants(*packed, layout)) for packed in parts)
    old = Settled.unpacked(settled, digest, layout)
    return Timeline(recent, pending, savepoints, old, layout, begins)


def _instants(
    times: str, kinds: bytes, batches: Mapping[int, int], ends: str, layout: int
) -> Iterator[Instant]:
    # Without instants there is one empty string, and no kind.
    parts = zip(times.split(","), kinds, ends.split(","), strict=False)
    for number, (time, kind, end) in enumerate(parts):
        yield Instant(time, *_KINDS[kind], batches.get(number, 0), layout, end)


def _is_same(instant: Instant, found: Instant | None) -> bool:
    """Whether what is found is a commit that ended as it had; a table may have changed layouts."""
    end = instant.completion_time
    return found is not None and (not end or found.completion_time in (end, ""))


def once_per_timeline(
    compute: Callable[[Storage, Timeline], T],
) -> Callable[[Storage, Timeline], T]:
    """Keep the last value of each table for as long as it is asked for the same timeline object.

    A timeline that is loaded anew is another one, though it shows the same instants.
    """

    @lru_cache(maxsize=_TABLES)
    def last(_: Storage) -> list[tuple[Timeline, T]]:
        return []

    @wraps(compute)
    def known(storage: Storage, timeline: Timeline) -> T:
        kept = last(storage)
        if not kept or kept[0][0] is not timeline:
            kept[:] = [(timeline, compute(storage, timeline))]
        return kept[0][1]

    return known
