"""A timeline as it was at one moment: which instants are complete, which are pending."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from typing import Final

import xxhash

from hoodie_ds.errors import NotFoundError, TimelineError
from hoodie_ds.storage.names import names_in
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.commit_metadata import CommitMetadata
from hoodie_ds.timeline.instant import WRITE_ACTIONS, Action, Instant, State
from hoodie_ds.timeline.instant_time import padded
from hoodie_ds.timeline.paths import HOODIE, commit_path

_TABLES: Final = 8
"""Tables of which a process remembers the last timeline."""


@dataclass(frozen=True)
class Timeline:
    """Instants of a table, one per time, each in the furthest state it had reached.

    Parameters
    ----------
    completed : tuple of Instant
        Completed instants, by time.
    pending : tuple of Instant
        Requested or inflight instants, by time.
    savepoints : tuple of Instant
        Savepoints, by time: each has the time of the commit that it keeps.
    """

    completed: tuple[Instant, ...] = ()
    pending: tuple[Instant, ...] = ()
    savepoints: tuple[Instant, ...] = ()

    def __repr__(self) -> str:
        numbers = f"{len(self.completed)} completed, {len(self.pending)} pending"
        return f"<Timeline: {numbers}, latest {self.latest_time}>"

    @classmethod
    def of(cls, instants: Iterable[Instant]) -> Timeline:
        """Fold the steps found on storage into one instant per time."""
        furthest: dict[tuple[str, bool], Instant] = {}
        rank = {State.REQUESTED: 0, State.INFLIGHT: 1, State.COMPLETED: 2}
        for instant in instants:
            one = (instant.time, instant.action is Action.SAVEPOINT)
            known = furthest.get(one)
            if known is None or rank[instant.state] > rank[known.state]:
                furthest[one] = instant
        ordered = sorted(furthest.values(), key=lambda instant: padded(instant.time))
        others = [i for i in ordered if i.action is not Action.SAVEPOINT]
        return cls(
            tuple(i for i in others if i.state is State.COMPLETED),
            tuple(i for i in others if i.state is not State.COMPLETED),
            tuple(i for i in ordered if i.action is Action.SAVEPOINT),
        )

    def __reduce__(self) -> tuple[Callable[..., Timeline], tuple[list[_Packed]]]:
        """Pickle to what takes little room and time: timelines travel with tasks."""
        return _unpacked, (
            [_packed(part) for part in (self.completed, self.pending, self.savepoints)],
        )

    @cached_property
    def commits(self) -> tuple[Instant, ...]:
        """Completed instants that brought data files, by time."""
        return tuple(i for i in self.completed if i.action in WRITE_ACTIONS)

    @cached_property
    def replace_commits(self) -> tuple[Instant, ...]:
        """Those of `commits` that take file groups away too."""
        return tuple(i for i in self.commits if i.action is Action.REPLACE_COMMIT)

    @cached_property
    def rollbacks(self) -> tuple[Instant, ...]:
        """Rollbacks, completed and pending."""
        found = (*self.completed, *self.pending)
        return tuple(i for i in found if i.action is Action.ROLLBACK)

    @property
    def prepared(self) -> Instant | None:
        """The instant that takes further micro-batches, if there is one; see `with_prepared`."""
        return next((instant for instant in self.commits if instant.num_batches), None)

    def with_prepared(self, prepared: Instant | None) -> Timeline:
        """Return the timeline as it looks to the writer that goes on with a pending instant."""
        if prepared is None:
            return self
        rest = (i for i in self.instants if i.time != prepared.time)
        return Timeline.of([*rest, prepared])

    @property
    def instants(self) -> tuple[Instant, ...]:
        """All instants; what `of` makes the same timeline of."""
        return (*self.completed, *self.pending, *self.savepoints)

    @property
    def latest_time(self) -> str | None:
        """The greatest time of any instant, pending ones included."""
        last = [instants[-1] for instants in (self.completed, self.pending) if instants]
        return max((i.time for i in last), key=padded, default=None)

    @property
    def pending_compactions(self) -> tuple[Instant, ...]:
        """Compactions that were scheduled and have not completed."""
        return tuple(i for i in self.pending if i.action is Action.COMPACTION)

    @property
    def pending_restores(self) -> tuple[Instant, ...]:
        """Restores to a savepoint that another engine has begun and not completed."""
        return tuple(i for i in self.pending if i.action is Action.RESTORE)

    @cached_property
    def digest(self) -> int:
        """32 bits by which timelines that show the same file slices are known (xxh32, signed)."""
        seen = (*self.commits, *self.pending_compactions, *self.savepoints)
        names = list(chain.from_iterable((i.time, i.action) for i in seen))
        names += [f"{i.time} {i.num_batches}" for i in seen if i.num_batches]
        return xxhash.xxh32_intdigest("\n".join(names).encode()) - (1 << 31)

    @cached_property
    def _commit_times(self) -> dict[str, Instant]:
        return {instant.time: instant for instant in self.commits}

    @cached_property
    def commit_times(self) -> frozenset[str]:
        """Times of `commits`."""
        return frozenset(self._commit_times)

    def commit_at(self, time: str) -> Instant | None:
        """Return the completed write instant with this time, if it is on the active timeline."""
        return self._commit_times.get(time)

    def is_pending(self, time: str) -> bool:
        """Whether the instant with this time was requested and has not completed."""
        return any(instant.time == time for instant in self.pending)

    def starts_after(self, time: str) -> bool:
        """Whether a time lies before the active timeline, as those of archived instants do."""
        return bool(self.commits) and padded(time) < self._start

    def has_other(self, instant: Instant) -> bool:
        """Whether another action has an instant's time."""
        found = (*self.completed, *self.pending)
        return any(i.time == instant.time and i.action is not instant.action for i in found)

    def is_committed(self, time: str) -> bool:
        """Whether data written under an instant time is part of the table.

        As in Hudi, a time before the start of the active timeline counts as committed: its instant
        has been archived. A pending instant never does.
        """
        if time in self._commit_times:
            return True
        return not self.is_pending(time) and self.starts_after(time)

    @cached_property
    def _start(self) -> str:
        """Time of the first commit that no savepoint keeps, as archiving passes over those.

        Where savepoints keep all of them, whatever is missing between them has been archived too.
        """
        kept = {savepoint.time for savepoint in self.savepoints}
        first = next((i for i in self.commits if i.time not in kept), self.commits[-1])
        return padded(first.time)


def load_timeline(storage: Storage) -> Timeline:
    """Read the active timeline (layout 1: the direct files of ``.hoodie``).

    All names are listed each time, and what is new or gone since the last time is taken in. So the
    answer is exact, and a long timeline is not taken apart anew.
    """
    memory = _memory(storage)
    known = memory.known
    names = set(names_in(storage, HOODIE))
    timeline = _of_names(names) if known is None else _changed(*known, names)
    memory.known = names, timeline
    return timeline


@dataclass(slots=True)
class _Memory:
    """The names that were listed last, and the timeline that they made."""

    known: tuple[set[str], Timeline] | None = None


@lru_cache(maxsize=_TABLES)
def _memory(_: Storage) -> _Memory:
    return _Memory()


def _of_names(names: Iterable[str]) -> Timeline:
    found = (Instant.parse(name) for name in sorted(names))
    return Timeline.of(instant for instant in found if instant is not None)


def _changed(known: set[str], timeline: Timeline, names: set[str]) -> Timeline:
    """Return the timeline of some names, given that of others which are mostly the same."""
    changed = [instant.time for name in known ^ names if (instant := Instant.parse(name))]
    if not changed:
        return timeline
    since = min(changed)[:14]
    later = _of_names(name for name in names if name >= since)
    return Timeline(
        _before(timeline.completed, since) + later.completed,
        _before(timeline.pending, since) + later.pending,
        _before(timeline.savepoints, since) + later.savepoints,
    )


def _before(instants: tuple[Instant, ...], second: str) -> tuple[Instant, ...]:
    """Instants of earlier seconds: 14 digits compare alike with times of 14 and of 17."""
    return instants[: bisect_left(instants, second, key=lambda instant: instant.time)]


_KINDS: Final = [(action, state) for action in Action for state in State]
_KIND_CODES: Final = {kind: code for code, kind in enumerate(_KINDS)}
_Packed = tuple[str, bytes, dict[int, int]]


def _packed(instants: tuple[Instant, ...]) -> _Packed:
    batches = {number: i.num_batches for number, i in enumerate(instants) if i.num_batches}
    kinds = bytes([_KIND_CODES[i.action, i.state] for i in instants])
    return ",".join([i.time for i in instants]), kinds, batches


def _unpacked(parts: Iterable[_Packed]) -> Timeline:
    return Timeline(*(tuple(_instants(*packed)) for packed in parts))


def _instants(times: str, kinds: bytes, batches: Mapping[int, int]) -> Iterator[Instant]:
    for number, (time, kind) in enumerate(zip(times.split(","), kinds, strict=False)):
        yield Instant(time, *_KINDS[kind], batches.get(number, 0))


@lru_cache(maxsize=512)
def read_commit(storage: Storage, instant: Instant) -> CommitMetadata:
    """Read what a completed write instant did; kept, as completed files never change.

    Raises
    ------
    TimelineError
        The instant has been archived since the timeline was loaded.
    CorruptFileError
        The file is not what a version 6 table holds there.
    """
    path = commit_path(instant)
    try:
        data = storage.read(path)
    except NotFoundError as error:
        raise TimelineError(
            f"{path} is gone: the instant was archived or rolled back while it was being read; "
            "load the table again"
        ) from error
    return CommitMetadata.from_bytes(data, path)
