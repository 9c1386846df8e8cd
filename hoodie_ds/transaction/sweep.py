"""The sweep: deletes files of late tasks, whose instant ended without them.

Readers of this library never see such files, as a commit names its own. Readers that list folders
do, so each batch deletes them when it begins. They are found by the late tasks' markers.
"""

from __future__ import annotations

from collections.abc import Mapping

from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.instant import State
from hoodie_ds.timeline.instant_time import padded
from hoodie_ds.timeline.paths import claim_path, work_folder
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction.failed_write import announced, delete_leftovers
from hoodie_ds.transaction.temporary_files import delete_temporary, temporary_files


def sweep(table: Table, timeline: Timeline, found: Mapping[str, frozenset[str]]) -> None:
    """Delete the files of late tasks, then all temporary files of their instants.

    `found` is the result of `left_over`, taken before the timeline was loaded.
    """
    rollbacks = (*timeline.rollbacks, *timeline.restores)
    undone = {i.time for i in rollbacks if i.state is State.COMPLETED}
    view = FileSystemView(table.storage, timeline)
    latest = padded(timeline.latest_time or "")
    for time, paths in sorted(found.items()):
        if latest and padded(time) > latest and paths == {claim_path(time)}:
            continue  # of a service that is about to be planned; no process takes an earlier time
        commit = timeline.commit_at(time)
        is_commit = commit is not None and not commit.num_batches
        # Pending, joined, another action or archived: which files count is not known here. Those
        # of a rollback are the commands that hide failed blocks, and stay.
        known_otherwise = not is_commit and (timeline.at(time) or view.is_committed(time))
        if known_otherwise and time not in undone:
            if not timeline.at(time) and not announced(time, paths):
                _drop_work(table.storage, time, paths)
            continue
        marked = {} if time in undone else announced(time, paths)
        late = {p: m for p, m in marked.items() if not (is_commit and view.names(time, p))}
        delete_leftovers(table.storage, time, late, is_complete=is_commit)
        if paths >= temporary_files(table.storage, time):
            delete_temporary(table.storage, time)


def _drop_work(storage: Storage, time: str, paths: frozenset[str]) -> None:
    """Delete this library's temporary files of an instant that another engine archived."""
    if all(path.startswith(f"{work_folder(time)}/") for path in paths):
        storage.delete(work_folder(time))
