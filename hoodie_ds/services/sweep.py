"""Sweeps what late tasks left: files under an instant that completed, or went, without them.

Our readers never see such files, since a commit names its own. Readers that list folders do, so
each start of a batch removes them. A late task leaves its marker behind, which is how it is found.
"""

from __future__ import annotations

from hoodie_ds.services.failed_write import marked_files
from hoodie_ds.table.opened import Table
from hoodie_ds.timeline.paths import TEMP, temp_folder
from hoodie_ds.timeline.timeline import Timeline, read_commit


def left_over_times(table: Table) -> list[str]:
    """Instant times that have a temporary folder.

    To be taken before the timeline is loaded: an instant is on the timeline before its folder
    exists, so one that is not on a timeline loaded later has been rolled back.
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
    pending = {instant.time for instant in timeline.pending}
    for time in times:
        if time in pending:
            continue
        instant = timeline.commit_at(time)
        if instant is None and timeline.is_committed(time):
            continue  # archived: which files it named is not known here
        named = read_commit(table.storage, instant).file_paths if instant else frozenset()
        for path in marked_files(table, time) - named:
            table.storage.delete(path)
        table.storage.delete(temp_folder(time))
