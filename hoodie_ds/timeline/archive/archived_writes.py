"""The writes of a table that have left its timeline: for queries that reach back before it."""

from __future__ import annotations

from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.archive.archived_timeline import archived_instants
from hoodie_ds.timeline.archive.lsm_snapshot import newest_snapshot
from hoodie_ds.timeline.archive.lsm_timeline import archived_rows
from hoodie_ds.timeline.instant import WRITE_ACTIONS, Instant
from hoodie_ds.timeline.instants import Timeline
from hoodie_ds.timeline.layout.v1 import V1
from hoodie_ds.timeline.paths import HOODIE


def archived_writes(storage: Storage, timeline: Timeline, folder: str) -> list[Instant]:
    """Return the completed writes that the archive has and the active timeline has not, by time.

    Parameters
    ----------
    storage : Storage
        Rooted at the table's base path.
    timeline : Timeline
        The active timeline, loaded before: an archiver adds before it takes off.
    folder : str
        Name of the archive's folder, which layout 1 alone leaves open.

    Raises
    ------
    CorruptFileError, NotFoundError
        A file of the archive is damaged, or has just been merged into another one.
    """
    if timeline.layout == V1.version:
        archived = archived_instants(storage, f"{HOODIE}/{folder}")
        found = {i.time: i for i in archived if i.action in WRITE_ACTIONS}
    else:
        found = {
            instant.time: instant
            for file in newest_snapshot(storage).files
            for instant, _ in archived_rows(storage, file)
            if instant.action in WRITE_ACTIONS
        }
    return [found[time] for time in sorted(found) if timeline.commit_at(time) is None]
