"""The archived writes of a table, for queries that reach back before its timeline."""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from typing import Final

from hoodie_ds.errors import NotFoundError
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.archive.archived_timeline import archived_instants
from hoodie_ds.timeline.archive.lsm_snapshot import ArchiveFile, newest_snapshot
from hoodie_ds.timeline.archive.lsm_timeline import archived_rows
from hoodie_ds.timeline.instant import WRITE_ACTIONS, Instant
from hoodie_ds.timeline.layout import V1
from hoodie_ds.timeline.paths import HOODIE
from hoodie_ds.timeline.timeline import Timeline

_TRIES: Final = 5


def archived_writes(storage: Storage, timeline: Timeline, folder: str) -> list[Instant]:
    """Return the completed writes that the archive has and the active timeline has not, by time.

    The timeline was loaded before: an archiver adds to the archive first. Raises `NotFoundError` if
    files of the archive are gone each time that they are listed.
    """
    if timeline.layout == V1.version:
        archived = archived_instants(storage, f"{HOODIE}/{folder}")
        found = {i.time: i for i in archived if i.action in WRITE_ACTIONS}
    else:
        found = {i.time: i for i in _writes_ended_after(storage, "")}
    return [found[time] for time in sorted(found) if timeline.commit_at(time) is None]


def archived_writes_ended_after(storage: Storage, timeline: Timeline, moment: str) -> list[Instant]:
    """Return those writes of layout 2 with a completion time after `moment`, by time.

    A process reads a file of the archive once, unless it has such a write.
    """
    late = sorted(_writes_ended_after(storage, moment), key=lambda instant: instant.time)
    return [instant for instant in late if timeline.commit_at(instant.time) is None]


def _writes_ended_after(storage: Storage, moment: str) -> list[Instant]:
    for _ in range(_TRIES):
        with suppress(NotFoundError):  # merged into another file meanwhile
            files = [f for f in newest_snapshot(storage).files if _latest_end(storage, f) > moment]
            return [i for file in files for i in _writes(storage, file) if i.ended > moment]
    raise NotFoundError(f"{storage.root}: the files of the archive come and go; try again")


@lru_cache(maxsize=256)
def _latest_end(storage: Storage, file: ArchiveFile) -> str:
    """The last completion time of a write in a file of the archive; empty if it has none."""
    return max((instant.ended for instant in _writes(storage, file)), default="")


def _writes(storage: Storage, file: ArchiveFile) -> list[Instant]:
    return [i for i, _ in archived_rows(storage, file) if i.action in WRITE_ACTIONS]
