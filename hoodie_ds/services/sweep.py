"""Sweeps what late tasks left: files under an instant that completed, or went, without them.

Our readers never see such files, since a commit names its own. Readers that list folders do, so
each start of a batch removes them. A late task leaves its marker behind, which is how it is found.
"""

from __future__ import annotations

from hoodie_ds.services.failed_write import marked_files
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.table.opened import Table
from hoodie_ds.timeline.instant import Action
from hoodie_ds.timeline.paths import TEMP, temp_folder
from hoodie_ds.timeline.timeline import Timeline


def left_over_times(table: Table) -> list[str]:
    """Instant times that have a temporary folder.

    To be taken before the timeline is loaded: an instant is on the timeline before its folder
    holds more than a claim, so one that is not on a timeline loaded later has been rolled back.
    """
    folders = table.storage.list(TEMP, folders=True)
    names = (status.path.rpartition("/")[2] for status in folders)
    return [name for name in names if name.isdigit()]


def sweep(table: Table, timeline: Timeline, times: list[str]) -> None:
    """Delete the files of late tasks, then their instants' temporary folders.

    Parameters
    ----------
    table : Table
        The table.
    timeline : Timeline
        Loaded after `times` were taken.
    times : list of str
        From `left_over_times`.
    """
    undone = {i.time for i in timeline.completed if i.action is Action.ROLLBACK}
    known = {instant.time for instant in (*timeline.pending, *timeline.completed)}
    view = FileSystemView(table.storage, timeline)
    for time in times:
        if time in undone:  # its files are the commands that hide failed blocks: they stay
            table.storage.delete(temp_folder(time))
            continue
        commit = timeline.commit_at(time)
        is_commit = commit is not None and not commit.num_batches
        # Pending, prepared, another kind of instant, or archived: which of the files count is not
        # known here.
        if not is_commit and (time in known or timeline.is_committed(time)):
            continue
        for path in sorted(marked_files(table, time)):
            if not (is_commit and view.names(time, path)):
                table.storage.delete(path)
        table.storage.delete(temp_folder(time))
