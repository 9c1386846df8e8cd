"""The commits that say which micro-batches are in a table.

The newest write of this library carries the guard. It does not know of writes that were pending at
the time and completed later, nor of later commits of other engines, so these are read too.
Compactions, clusterings and cleans carry no guard. After a rollback to one of them, or after
another engine has archived, the write that carries the guard may be in the archive alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from heapq import merge
from itertools import chain
from typing import Final

from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.table import open_table
from hoodie_ds.timeline.archive.archive import archive_of
from hoodie_ds.timeline.bodies.commit_metadata import PENDING_KEY, CommitMetadata
from hoodie_ds.timeline.instant import Instant
from hoodie_ds.timeline.instant_status import counts
from hoodie_ds.timeline.instant_time import padded
from hoodie_ds.timeline.loading import read_commit
from hoodie_ds.timeline.timeline import Timeline

GuardCommit = tuple[Instant, CommitMetadata]
_Unread = tuple[Instant, Callable[[], CommitMetadata]]

_AT: Final = "_hoodie_ds_at"
"""Key in the decision log: the newest write that was in the table at the decision."""

_OTHERS: Final = "_hoodie_ds_beside"
"""Key in the decision log: JSON of the entries of further commits."""


def guard_commits(storage: Storage, timeline: Timeline) -> list[GuardCommit]:
    """Return the commits of a timeline that say which batches it has, the newest first."""
    return _select(_active(storage, timeline))


def covers_all(timeline: Timeline, found: Sequence[GuardCommit]) -> bool:
    """Whether the archive has nothing to add to the result of `guard_commits`.

    A write that a savepoint keeps may be older than archived ones. And other engines archive writes
    that were pending with the newest.
    """
    ours = [(instant.time, commit) for instant, commit in found if _is_ours(commit)]
    pending = {time for _, commit in ours for time in commit.extra[PENDING_KEY].split()}
    is_recent = any(not timeline.starts_after(time) for time, _ in ours)
    return is_recent and not any(timeline.starts_after(time) for time in pending)


def guard_commits_until(storage: Storage, timeline: Timeline, time: str) -> list[GuardCommit]:
    """Return the same for the table as it was after a write, including archived commits."""
    return _select(_all_until(storage, timeline, time))


def carried_entries(commits: Iterable[CommitMetadata], newest: str) -> dict[str, str]:
    """Return the entries of commits that the decision log carries."""
    first, *others = [commit.guard_entries for commit in commits] or [{}]
    return {**first, **({_OTHERS: json.dumps(others)} if others else {}), _AT: newest}


def carried_with(
    entries: Mapping[str, str], instant: Instant, timeline: Timeline
) -> dict[str, str]:
    """Return the entries that the decision to complete a write carries."""
    newest = next(timeline.commits_backwards(), instant)
    return {**entries, _AT: max(instant.time, newest.time, key=padded)}


def carried_as_outdated(entries: Mapping[str, str], instant: Instant) -> dict[str, str]:
    """Return the entries that a decision to roll back an instant carries, which had some of it.

    They do not count once it is rolled back; then the archive is read.
    """
    return {**entries, _AT: instant.time}


def entries_carried(
    storage: Storage, timeline: Timeline, carried: Mapping[str, str]
) -> list[Mapping[str, str]]:
    """Return the entries that the decision log carries, or those of commits if they are outdated.

    They are outdated if another engine, which logs no decisions, rolled back their newest write.
    """
    at = carried.get(_AT, "")  # earlier releases did not say
    if at and not counts(storage, timeline, at):
        return [c.guard_entries for _, c in guard_commits_until(storage, timeline, at)]
    return [carried, *json.loads(carried.get(_OTHERS, "[]"))]


def commits_naming(
    storage: Storage, timeline: Timeline, time: str, queries: Iterable[str]
) -> dict[str, GuardCommit]:
    """Return for each query the newest commit up to a time that has a batch of it, if any.

    Reads the whole archive if a query has none, so it is for rare cases.
    """
    wanted, found = set(queries), dict[str, GuardCommit]()
    for instant, read in _all_until(storage, timeline, time) if wanted else ():
        commit = read()
        named = wanted & commit.batches.keys()
        found |= dict.fromkeys(named, (instant, commit))
        wanted -= named
        if not wanted:
            break
    return found


def _all_until(storage: Storage, timeline: Timeline, time: str) -> Iterator[_Unread]:
    """Yield the commits up to a time, the newest first; the archive is read last, if at all."""
    active = [found for found in _active(storage, timeline) if _place(found) <= padded(time)]
    after = [found for found in active if not timeline.starts_after(found[0].time)]
    archived = (i for i in _archived(storage, timeline) if _place(i) <= padded(time))
    older = merge(active[len(after) :], archived, key=_place, reverse=True)
    return chain(after, older)


def _select(commits: Iterable[_Unread]) -> list[GuardCommit]:
    """Take commits down to the newest of ours, then those that were pending at its time."""
    found: list[GuardCommit] = []
    wanted: set[str] | None = None
    for instant, read in commits:
        if wanted is None or instant.time in wanted:
            commit = read()
            found.append((instant, commit))
            if _is_ours(commit):
                wanted = (wanted or set()).union(commit.extra[PENDING_KEY].split())
        if wanted is not None and not any(padded(t) < padded(instant.time) for t in wanted):
            break
    return found


def _is_ours(commit: CommitMetadata) -> bool:
    """Whether a commit is a write of ours."""
    return PENDING_KEY in commit.extra


def _active(storage: Storage, timeline: Timeline) -> Iterator[_Unread]:
    return ((i, partial(read_commit, storage, i)) for i in timeline.commits_backwards())


def _archived(storage: Storage, timeline: Timeline) -> Iterator[_Unread]:
    folder = open_table(storage).properties.archive_folder
    for instant, commit in archive_of(storage, timeline.layout, folder).writes_backwards():
        yield instant, partial(_same, commit)


def _same(commit: CommitMetadata) -> CommitMetadata:
    return commit


def _place(found: _Unread) -> str:
    return padded(found[0].time)
