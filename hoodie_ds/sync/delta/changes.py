"""The base files that were added and removed since the newest version of a Delta log.

The files of a Delta table are the base files of the newest slices: Hudi's read-optimised query.
Only file groups that newer commits changed are compared; if commits do not show all changes, the
whole table is compared with the whole log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import islice, takewhile
from typing import Final

from hoodie_ds.storage.protocol import FileStatus, Storage
from hoodie_ds.sync.delta.log import SyncPoint
from hoodie_ds.table.file_name import BaseFileName
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.timeline.file_changes import file_changes
from hoodie_ds.timeline.instant import Action, Instant
from hoodie_ds.timeline.instant_time import padded
from hoodie_ds.timeline.timeline import Timeline

_MOST_COMMITS: Final = 50
"""With more new commits the whole table is compared."""
_LISTED: Final = 50
"""Number of newest commits that a version lists one by one, as an older one may complete late."""
_DELETING: Final = (Action.CLEAN, Action.RESTORE)


@dataclass(frozen=True, slots=True)
class Changes:
    """Base files that were added and removed."""

    commits: tuple[Instant, ...]
    added: Mapping[str, FileStatus]
    removed: frozenset[str] | None  # None for a comparison of the whole table


def changes_since(storage: Storage, timeline: Timeline, synced: SyncPoint) -> Changes | None:
    """Return the changes by the commits that a log lacks; None if commits do not show all changes.

    They do not if commits in the log were rolled back, if a clean may have deleted files that the
    log still has, or if there are too many commits.
    """
    beyond = takewhile(lambda i: padded(i.time) > synced.up_to, timeline.commits_backwards())
    late = (timeline.commit_at(time) for time in synced.pending)
    known = {i.time: i for i in (*beyond, *late) if i is not None}
    new = tuple(known[time] for time in sorted(known.keys() - set(synced.after), key=padded))
    first = timeline.first_commit
    start = "" if first is None else padded(first.time)
    if any(padded(time) >= start for time in set(synced.after) - known.keys()):
        return None
    if not new:
        return Changes((), {}, frozenset())
    oldest = padded(new[0].time)
    is_cleaned = any(
        i.action in _DELETING and padded(i.time) > oldest
        for i in (*timeline.recent, *timeline.pending)
    )
    before = replace(timeline, recent=tuple(i for i in timeline.recent if i not in new))
    settled = before.num_completed + len(new) != timeline.num_completed
    earlier = before.first_commit
    is_first = earlier is None or padded(earlier.time) > oldest
    if is_cleaned or settled or is_first or len(new) > _MOST_COMMITS:
        return None
    return _of_groups(storage, timeline, before, new)


def whole_table(storage: Storage, timeline: Timeline) -> Changes:
    """Return all visible base files as added."""
    listed = FileSystemView(storage, timeline).data_files()
    newest = next(timeline.commits_backwards(), None)
    return Changes(() if newest is None else (newest,), _visible(storage, timeline, listed), None)


def covered(timeline: Timeline) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Return the time up to which a version covers all commits, and the times of others.

    These are the commits after it, and the pending instants up to it.
    """
    newest = tuple(islice(timeline.commits_backwards(), _LISTED + 1))
    up_to = "" if len(newest) <= _LISTED else padded(newest[-1].time)
    after = tuple(i.time for i in reversed(newest[:_LISTED]))
    return up_to, after, tuple(i.time for i in timeline.pending if padded(i.time) <= up_to)


def _of_groups(
    storage: Storage, timeline: Timeline, before: Timeline, new: Iterable[Instant]
) -> Changes:
    """Compare the file groups that some commits wrote or replaced, before and after them."""
    touched: dict[str, set[str]] = {}
    for instant in new:
        commit = file_changes(storage, instant)
        for partition, ids in commit.replaced.items():
            touched.setdefault(partition, set()).update(ids)
        for stat in commit.added.values():
            if _base_id(stat.path) is not None:
                touched.setdefault(stat.partition_path, set()).add(stat.file_id)
    listed = [
        status
        for partition, ids in sorted(touched.items())
        for status in storage.list(partition)
        if _base_id(status.path) in ids
    ]
    was, now = (_visible(storage, one, listed) for one in (before, timeline))
    added = {path: status for path, status in now.items() if path not in was}
    return Changes(tuple(new), added, frozenset(was.keys() - now.keys()))


def _visible(
    storage: Storage, timeline: Timeline, listed: Iterable[FileStatus]
) -> dict[str, FileStatus]:
    """Return the newest visible base files among those listed, by path."""
    files = {status.path: status for status in listed if _base_id(status.path) is not None}
    view = FileSystemView(storage, timeline, verify=False)
    bases = (found.base for found in view.slices_among(files.values()))
    return {base.path: files[base.path] for base in bases if base is not None}


def _base_id(path: str) -> str | None:
    name = BaseFileName.parse(path.rpartition("/")[2])
    return None if name is None else name.file_id
