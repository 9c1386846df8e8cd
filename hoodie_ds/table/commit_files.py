"""What commits say of files, kept small, so that a process reads each commit once.

A timeline may have tens of thousands of commits, and a table as many log files. So no question
about one file is answered by a walk over the commits: a log block names its instant, a base file's
name does. Where neither helps, each commit since the slice began is looked at once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import Final

from hoodie_ds.environment import forget_at_fork
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.bodies.commit_metadata import CommitMetadata, WriteStat
from hoodie_ds.timeline.instant import Instant
from hoodie_ds.timeline.instant_time import padded
from hoodie_ds.timeline.loading import read_commit
from hoodie_ds.timeline.paths import in_partition
from hoodie_ds.timeline.timeline import Timeline

_TABLES: Final = 8
_HELD_BYTES: Final = 64 << 20
_COMMIT_BYTES: Final = 1_000
_FILE_BYTES: Final = 700


@dataclass(frozen=True, slots=True)
class CommitFiles:
    """Files of one commit.

    Parameters
    ----------
    stats : mapping of str to WriteStat
        Files that it wrote, by path.
    named : frozenset of str
        Those, their files of change data, and the other log files of the slices that it wrote to.
    checksums : mapping of str to str
        The xxh64 of files by path; empty in commits of other writers.
    replaced : mapping of str to tuple of str
        File ids that it replaced, by partition path.
    """

    stats: Mapping[str, WriteStat]
    named: frozenset[str]
    checksums: Mapping[str, str]
    replaced: Mapping[str, tuple[str, ...]]

    @property
    def nbytes(self) -> int:
        """About how much memory it takes."""
        replaced = sum(map(len, self.replaced.values()))
        return _COMMIT_BYTES + _FILE_BYTES * (len(self.named) + replaced)


def commit_files(storage: Storage, instant: Instant) -> CommitFiles:
    """Return what a completed write instant says of files.

    Raises
    ------
    TimelineError, CorruptFileError
        As in `read_commit`.
    """
    return _of_table(storage).commit(instant)


def newest_commit_naming(
    storage: Storage, timeline: Timeline, path: str, since: str
) -> CommitFiles | None:
    """Return the newest commit that wrote to a file; None if there is none.

    It walks over the commits since a time. Of a log file ask `newest_commit_of` of
    `hoodie_ds.table.live_files`, which knows the answer for the newest slices.

    Parameters
    ----------
    storage : Storage
        Rooted at the table's base path.
    timeline : Timeline
        Which commits there are.
    path : str
        The file.
    since : str
        The instant time at which its slice begins: earlier commits cannot name it.
    """
    return _of_table(storage).newest_naming(timeline, path, since)


class _TableFiles:
    """The commits of one table.

    Parameters
    ----------
    storage : Storage
        Rooted at the table's base path.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._commits: OrderedDict[Instant, CommitFiles] = OrderedDict()
        self._held_bytes = 0
        self._writers: dict[str, set[Instant]] = {}
        self._indexed: set[Instant] = set()
        self._walked: tuple[Timeline, str] | None = None
        self._lock = Lock()

    def commit(self, instant: Instant) -> CommitFiles:
        with self._lock:
            known = self._commits.get(instant)
            if known is not None:
                self._commits.move_to_end(instant)
                return known
        found = _read(self._storage, instant)
        with self._lock:
            if instant not in self._commits:
                self._commits[instant] = found
                self._held_bytes += found.nbytes
            while self._held_bytes > _HELD_BYTES:
                _, dropped = self._commits.popitem(last=False)
                self._held_bytes -= dropped.nbytes
        return found

    def newest_naming(self, timeline: Timeline, path: str, since: str) -> CommitFiles | None:
        self._index(timeline, padded(since))
        with self._lock:
            found = [i for i in self._writers.get(path, ()) if timeline.commit_at(i.time) == i]
        newest = max(found, key=lambda instant: padded(instant.time), default=None)
        return None if newest is None else self.commit(newest)

    def _index(self, timeline: Timeline, since: str) -> None:
        """Note which files the commits since a time wrote to."""
        walked = self._walked
        if walked is not None and walked[0] is timeline and walked[1] <= since:
            return
        for instant in timeline.commits_backwards():
            if padded(instant.time) < since:
                break
            if instant not in self._indexed:
                written = self.commit(instant).stats
                with self._lock:
                    for path in written:
                        self._writers.setdefault(path, set()).add(instant)
                    self._indexed.add(instant)
        self._walked = timeline, since


@lru_cache(maxsize=_TABLES)
def _of_table(storage: Storage) -> _TableFiles:
    return _TableFiles(storage)


forget_at_fork(_of_table.cache_clear)


def _read(storage: Storage, instant: Instant) -> CommitFiles:
    return files_of_commit(read_commit(storage, instant))


def files_of_commit(commit: CommitMetadata) -> CommitFiles:
    """Return what the metadata of a commit says of files."""
    named: set[str] = set()
    for stat in commit.stats:
        named.update(stat.paths)
        if stat.log is not None:
            named |= {in_partition(stat.partition_path, name) for name in stat.log.log_files}
    stats = {stat.path: stat for stat in commit.stats}
    return CommitFiles(stats, frozenset(named), commit.checksums, commit.replaced)
