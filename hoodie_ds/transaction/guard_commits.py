"""The commits that tell which micro-batches are in a table.

The newest write of ours carries the guard. It cannot know of those that were pending beside it and
completed later, nor of commits of other engines after it; so these are looked at too. Compactions,
clusterings and cleans carry none. Where a table goes back to one of them, or another engine
archives, the write that tells may be in the archive alone.
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

Telling = tuple[Instant, CommitMetadata]
_Unread = tuple[Instant, Callable[[], CommitMetadata]]

_AT: Final = "_hoodie_ds_at"
"""Key of what the decision log carries: the newest write that was in the table then."""

_BESIDE: Final = "_hoodie_ds_beside"
"""Key of the same: JSON of the entries of further commits."""


def guarding_commits(storage: Storage, timeline: Timeline) -> list[Telling]:
    """Return the commits of a timeline that tell its micro-batches, the newest first."""
    return _telling(_active(storage, timeline))


def tells_all(timeline: Timeline, found: Sequence[Telling]) -> bool:
    """Whether the archive has nothing to add to what `guarding_commits` has found.

    A write of ours that a savepoint keeps may be older than those that were archived around it. And
    other engines archive what was pending beside the newest.
    """
    ours = [(instant.time, commit) for instant, commit in found if _is_ours(commit)]
    beside = {time for _, commit in ours for time in commit.extra[PENDING_KEY].split()}
    is_recent = any(not timeline.starts_after(time) for time, _ in ours)
    return is_recent and not any(timeline.starts_after(time) for time in beside)


def guarding_commits_until(storage: Storage, timeline: Timeline, time: str) -> list[Telling]:
    """Return the same of the table as it was after a write, archived commits among them."""
    return _telling(_all_until(storage, timeline, time))


def carried_entries(commits: Iterable[CommitMetadata], newest: str) -> dict[str, str]:
    """Return what the decision log is to carry of commits."""
    first, *others = [commit.guard_entries for commit in commits] or [{}]
    return {**first, **({_BESIDE: json.dumps(others)} if others else {}), _AT: newest}


def carried_with(
    entries: Mapping[str, str], instant: Instant, timeline: Timeline
) -> dict[str, str]:
    """Return what the decision to complete a write carries."""
    newest = next(timeline.commits_backwards(), instant)
    return {**entries, _AT: max(instant.time, newest.time, key=padded)}


def entries_carried(
    storage: Storage, timeline: Timeline, carried: Mapping[str, str]
) -> list[Mapping[str, str]]:
    """Return the entries that the decision log carries; none if they tell of what is gone.

    Another engine logs no decision when it takes writes back.
    """
    at = carried.get(_AT, "")  # earlier releases did not say
    if at and not counts(storage, timeline, at):
        return [c.guard_entries for _, c in guarding_commits_until(storage, timeline, at)]
    return [carried, *json.loads(carried.get(_BESIDE, "[]"))]


def naming_commits(
    storage: Storage, timeline: Timeline, time: str, queries: Iterable[str]
) -> dict[str, Telling]:
    """Return the newest commit up to a time that names each of some queries, as far as one does.

    Reads all of the archive where none does: for what is seldom asked.
    """
    wanted, found = set(queries), dict[str, Telling]()
    for instant, read in _all_until(storage, timeline, time) if wanted else ():
        commit = read()
        named = wanted & commit.batches.keys()
        found |= dict.fromkeys(named, (instant, commit))
        wanted -= named
        if not wanted:
            break
    return found


def _all_until(storage: Storage, timeline: Timeline, time: str) -> Iterator[_Unread]:
    """Yield the commits up to a time, the newest first; the archive is read where it is reached."""
    active = [found for found in _active(storage, timeline) if _place(found) <= padded(time)]
    after = [found for found in active if not timeline.starts_after(found[0].time)]
    archived = (i for i in _archived(storage, timeline) if _place(i) <= padded(time))
    older = merge(active[len(after) :], archived, key=_place, reverse=True)
    return chain(after, older)


def _telling(commits: Iterable[_Unread]) -> list[Telling]:
    """Take commits down to the newest of ours, and of those before it what was pending beside."""
    found: list[Telling] = []
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
