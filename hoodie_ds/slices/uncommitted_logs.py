"""Log files that belong to no visible commit, so that a reader may do without them."""

from __future__ import annotations

from collections.abc import Iterable

from hoodie_ds.table.file_slice import LogFile
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.table.live_files import newest_commit_of, rolled_back
from hoodie_ds.timeline.instant_time import following
from hoodie_ds.timeline.loading import load_timeline


def is_uncommitted(view: FileSystemView, log: LogFile) -> bool:
    """Whether no commit names a log file, with all commits of its slice active."""
    if _may_be_archived(view, log):
        return False
    return newest_commit_of(view.storage, view.timeline, log) is None


def was_never_committed(view: FileSystemView, log: LogFile) -> bool:
    """Whether a log file that is gone belonged to no commit of a view.

    If commits of its slice may be archived, the present timeline decides: committed files are
    deleted by a clean or a restore.
    """
    if newest_commit_of(view.storage, view.timeline, log) is not None:
        return False
    if not _may_be_archived(view, log):
        return True
    now = load_timeline(view.storage, view.timeline.layout)
    since = set(now.deletions).difference(view.timeline.deletions)
    return not any(since)


def refuse_rolled_back(view: FileSystemView, times: Iterable[str | None]) -> None:
    """Raise `TimelineError` if rollback blocks, of instants at `times`, undo a commit of a view.

    The rollback came after the view, and may be unfinished: the commit's rows would still count in
    files that it has not reached.
    """
    found = [view.timeline.commit_at(time) for time in times if time is not None]
    shown = [instant for instant in found if instant is not None]
    if not shown:
        return
    now = load_timeline(view.storage, view.timeline.layout)
    undone = rolled_back(view.storage, shown, now)
    if undone is not None:
        raise undone


def _may_be_archived(view: FileSystemView, log: LogFile) -> bool:
    """Whether commits that appended to a log file's slice may be archived."""
    return view.is_committed(following(log.name.base_instant))
