"""Files that commits name and that storage does not have.

Slices are made of the files that a listing shows. Of a file that was lost it shows nothing, so a
reader that went by it alone would return fewer rows, or older ones, and not know it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from threading import Lock
from typing import Final

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.commit_files import CommitFiles, commit_files
from hoodie_ds.table.file_name import BaseFileName, LogFileName
from hoodie_ds.table.file_slice import FileGroupId
from hoodie_ds.timeline.instant import Instant
from hoodie_ds.timeline.instant_time import padded
from hoodie_ds.timeline.paths import commit_path
from hoodie_ds.timeline.timeline import Timeline

_TABLES: Final = 8


@dataclass(slots=True)
class _Named:
    """Files of one file group: by path, when their slice begins, and the commit that names them."""

    files: dict[str, tuple[str, Instant]] = field(default_factory=dict)
    newest_base: str = ""

    def add(self, path: str, start: str, instant: Instant, is_base: bool) -> None:
        """Take a file, and let go of those of older slices."""
        if start >= self.newest_base:
            self.files[path] = start, instant
        if is_base and start > self.newest_base:
            self.newest_base = start
            self.files = {p: found for p, found in self.files.items() if found[0] >= start}


class _LiveFiles:
    """The files of the newest slices, as commits tell that are taken in any order."""

    def __init__(self) -> None:
        self.times: set[str] = set()
        self._groups: dict[FileGroupId, _Named] = {}
        self._replaced: dict[FileGroupId, set[Instant]] = {}

    def add(self, instant: Instant, commit: CommitFiles) -> None:
        """Take what one more commit tells."""
        for partition, ids in commit.replaced.items():
            for file_id in ids:
                self._replaced.setdefault(FileGroupId(partition, file_id), set()).add(instant)
        for stat in commit.stats.values():
            name = stat.path.rpartition("/")[2]
            base, log = BaseFileName.parse(name), LogFileName.parse(name)
            file = base or log
            if file is None:  # Hudi leaves the path out where it wrote nothing
                continue
            named = self._groups.setdefault(
                FileGroupId(stat.partition_path, file.file_id), _Named()
            )
            start = padded(log.base_instant if log else instant.time)
            named.add(stat.path, start, instant, base is not None)
        self.times.add(instant.time)

    def named(self, timeline: Timeline) -> Iterator[tuple[str, Instant]]:
        """Yield the files that commits of a timeline name, and by which.

        Commits that were archived since they were taken are asked for nothing: whether their files
        still count, others that were archived with them tell.
        """
        first = padded(timeline.commits[0].time) if timeline.commits else ""
        for group, named in self._groups.items():
            if any(padded(i.time) >= first for i in self._replaced.get(group, ())):
                continue
            for path, (_, instant) in named.files.items():
                if padded(instant.time) >= first:
                    yield path, instant


def check_nothing_is_missing(storage: Storage, timeline: Timeline, found: Collection[str]) -> None:
    """Compare the files that make up the newest slices, as the commits tell, with a listing.

    Files of older slices may have been cleaned, those of replaced file groups too; commits that
    have been archived are not asked.

    Parameters
    ----------
    storage : Storage
        Rooted at the table's base path.
    timeline : Timeline
        The table as it is read; loaded before the listing.
    found : collection of str
        Paths of the data files that storage has.

    Raises
    ------
    CorruptFileError
        A file is missing; names it and the commit that wrote it.
    """
    kept = _kept(storage)
    with kept.lock:
        kept.live = _grown(kept.live, storage, timeline)
        for path, instant in kept.live.named(timeline):
            if path not in found:
                raise CorruptFileError(
                    f"{storage.root}/{path} is missing, which {commit_path(instant)} names; "
                    "restore it from a copy before going on, or roll back that commit and those "
                    "after it"
                )


def _grown(live: _LiveFiles, storage: Storage, timeline: Timeline) -> _LiveFiles:
    """What is known with the commits of a timeline, or known anew."""
    times = timeline.commit_times
    others = live.times - times
    first = padded(timeline.commits[0].time) if times else ""
    # Later commits than the timeline has, or some that were rolled back: they must not count.
    if len(others) > len(times) or any(padded(time) >= first for time in others):
        live = _LiveFiles()
    for time in sorted(times - live.times, key=padded):
        instant = timeline.commit_at(time)
        assert instant is not None
        live.add(instant, commit_files(storage, instant))
    return live


@dataclass(slots=True)
class _Kept:
    """What this process knows of a table."""

    live: _LiveFiles = field(default_factory=_LiveFiles)
    lock: Lock = field(default_factory=Lock)


@lru_cache(maxsize=_TABLES)
def _kept(storage: Storage) -> _Kept:
    return _Kept()
