"""Which commits wrote to a file of an older file slice: an index of the commits since it began.

A timeline may have tens of thousands of commits, and a table as many log files. So no lookup of one
file iterates over the commits: a log block names its instant, as does a base file's name. Where
neither helps, each commit since the slice began is read once.
"""

from __future__ import annotations

from functools import lru_cache
from threading import Lock
from typing import Final

from hoodie_ds.environment import forget_at_fork
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.file_changes import FileChanges, file_changes
from hoodie_ds.timeline.instant import Instant
from hoodie_ds.timeline.instant_time import padded
from hoodie_ds.timeline.timeline import Timeline

_TABLES: Final = 8


def newest_commit_naming(
    storage: Storage, timeline: Timeline, path: str, since: str
) -> FileChanges | None:
    """Return the newest commit that wrote to a file; None if there is none.

    It iterates over the commits since the instant time `since` at which the file's slice begins.
    For a log file call `newest_commit_of` of `hoodie_ds.table.live_files`, which knows the newest
    slices.
    """
    return _index(storage).newest_naming(timeline, path, since)


class _Index:
    """The commits of one table by the files that they wrote to, as far as they were read."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._writers: dict[str, set[Instant]] = {}
        self._indexed: set[Instant] = set()
        self._walked: tuple[Timeline, str] | None = None
        self._lock = Lock()

    def newest_naming(self, timeline: Timeline, path: str, since: str) -> FileChanges | None:
        self._walk(timeline, padded(since))
        with self._lock:
            found = [i for i in self._writers.get(path, ()) if timeline.commit_at(i.time) == i]
        newest = max(found, key=lambda instant: padded(instant.time), default=None)
        return None if newest is None else file_changes(self._storage, newest)

    def _walk(self, timeline: Timeline, since: str) -> None:
        """Index the files that the commits since a time wrote to."""
        walked = self._walked
        if walked is not None and walked[0] is timeline and walked[1] <= since:
            return
        for instant in timeline.commits_backwards():
            if padded(instant.time) < since:
                break
            if instant not in self._indexed:
                written = file_changes(self._storage, instant).added
                with self._lock:
                    for path in written:
                        self._writers.setdefault(path, set()).add(instant)
                    self._indexed.add(instant)
        self._walked = timeline, since


@lru_cache(maxsize=_TABLES)
def _index(storage: Storage) -> _Index:
    return _Index(storage)


forget_at_fork(_index.cache_clear)
