"""The file-system view: which slice of each file group a reader or writer must see.

A file is visible if the instant in its name is committed and, where the commit is still on the
active timeline, its metadata names the file. Listing alone is not enough: a late task may have left
a file under an instant that completed without it.

In version 6 a log file carries the *base* instant in its name, so only its blocks show which
commits wrote it; they are checked where they are read. `hoodie_ds.table.slicing` decides which log
files are on top of which base file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Final

from hoodie_ds.errors import CorruptFileError, UnsupportedTableError
from hoodie_ds.formats.log.log_block import Bytes, first_instant
from hoodie_ds.hints import restored
from hoodie_ds.storage.memory_map import memory_map
from hoodie_ds.storage.protocol import FileStatus, NamesFiles, Storage
from hoodie_ds.table.checksums import HELD_BYTES, check_log_bytes, check_size
from hoodie_ds.table.file_name import BaseFileName, CdcFileName, LogFileName, other_format
from hoodie_ds.table.file_slice import BaseFile, FileGroupId, FileSlice, LogFile
from hoodie_ds.table.live_files import check_listed, newest_commit_of, replaced_ids
from hoodie_ds.table.slicing import SLICINGS, Moment
from hoodie_ds.timeline.bodies.commit_metadata import FOOTER
from hoodie_ds.timeline.commands import changing
from hoodie_ds.timeline.file_changes import (
    FileChanges,
    file_changes,
)
from hoodie_ds.timeline.instant_status import counts
from hoodie_ds.timeline.instant_time import padded
from hoodie_ds.timeline.paths import HOODIE
from hoodie_ds.timeline.timeline import Timeline

_FOLDERS: Final = 8
_FILES_OF_AN_INSTANT: Final = 3
_LISTED_AT_ONCE: Final = 1_000  # by an object store

PREFIX_LENGTH: Final = 8
"""Characters of a file id that name a bucket."""


@dataclass(frozen=True)
class FileSystemView:
    """Visible file slices of a table as of a timeline.

    Files of instants that are not committed on the timeline are invisible. `verify` says whether
    files are compared with the checksums of their commits; sizes always are. `extension` is that of
    base files. `shows_replaced` makes file groups visible that replace commits have hidden.
    """

    storage: Storage
    timeline: Timeline
    verify: bool = True
    extension: str = "parquet"
    shows_replaced: bool = False

    def data_files(self) -> list[FileStatus]:
        """All data files, visible or not, by one listing of the table; those of change data too.

        Commits do not name all partitions: other writers may have archived those that created them.
        """
        return [
            status
            for status in self._listed()
            if not status.path.startswith(f"{HOODIE}/") and _is_data(status)
        ]

    def _listed(self) -> list[FileStatus]:
        """All files of the table; those of the timeline only if that takes fewer requests."""
        folders = [f.path for f in self.storage.list("", folders=True) if f.path != HOODIE]
        timeline_pages = _FILES_OF_AN_INSTANT * self.timeline.num_completed // _LISTED_AT_ONCE
        if len(folders) > _FOLDERS + timeline_pages and not isinstance(self.storage, NamesFiles):
            return self.storage.list("", recursive=True)
        below = (self.storage.list(folder, recursive=True) for folder in folders)
        return sorted(chain(self.storage.list(""), *below), key=lambda status: status.path)

    def slices_among(self, files: Iterable[FileStatus]) -> Iterator[FileSlice]:
        """Latest visible slice of each file group of listed files, partition by partition."""
        by_partition: dict[str, list[FileStatus]] = {}
        for status in files:
            by_partition.setdefault(status.folder, []).append(status)
        for partition_path, listed in sorted(by_partition.items()):
            yield from self._slices_of(partition_path, listed)

    def latest_slices(self, partition_path: str) -> list[FileSlice]:
        """Latest visible slice of each file group of a partition, by file id.

        Raises `CorruptFileError` if the base file below the log files of a slice is missing, or two
        base files claim one slice.
        """
        return self._slices_of(partition_path, self.files_of(partition_path))

    def files_of(self, partition_path: str) -> list[FileStatus]:
        """All files of a partition, by one listing."""
        return self.storage.list(partition_path)

    def partition(self, partition_path: str) -> PartitionFiles:
        """List the files of a partition, to see the slices of some file groups."""
        return PartitionFiles(self, partition_path)

    def _slices_of(self, partition_path: str, listed: Iterable[FileStatus]) -> list[FileSlice]:
        replaced = () if self.shows_replaced else self.replaced_ids(partition_path)
        groups: dict[str, list[BaseFile | LogFile]] = {}
        for status in listed:
            found = data_file(partition_path, status, self.extension)
            if found is not None and found.name.file_id not in replaced:
                groups.setdefault(found.name.file_id, []).append(found)
        slices = (
            self._latest_slice(FileGroupId(partition_path, file_id), files)
            for file_id, files in sorted(groups.items())
        )
        return [found for found in slices if found is not None]

    def is_committed(self, time: str) -> bool:
        """Whether what was written under an instant time is part of the table."""
        return counts(self.storage, self.timeline, time)

    def names(self, instant_time: str, path: str) -> bool:
        """Whether the commit of an instant names a file; an archived one names all of its own."""
        instant = self.timeline.commit_at(instant_time)
        return instant is None or path in file_changes(self.storage, instant).named

    def read_log(self, log: LogFile) -> Bytes:
        """Return the content of a log file, a memory map of a large one.

        Raises `CorruptFileError` if it is not what the newest commit that names it has written.
        """
        if log.size > HELD_BYTES:
            data: Bytes = memory_map(self.storage, log.path)
        else:
            data = self.storage.read(log.path)
        commit = self._commit_of(log, data)
        if commit is not None and log.path in commit.added:
            checksum = commit.checksums.get(log.path) if self.verify else None
            check_log_bytes(log, data, commit.added[log.path], checksum)
        return data

    def vouches_for(self, instant_time: str, path: str) -> bool:
        """Whether the bytes that an instant wrote to a file are as they were committed.

        They are if its commit has a checksum of the file, or if checksums must not be compared.
        """
        instant = self.timeline.commit_at(instant_time)
        known = instant is not None and path in file_changes(self.storage, instant).checksums
        return known or not self.verify

    def _commit_of(self, log: LogFile, data: Bytes) -> FileChanges | None:
        """The newest commit that wrote to a log file: its blocks name it, or all are read.

        A log file that one of our commits wrote is whole, and no writer appends to it; nor does any
        in layout 2. Others may append to theirs in layout 1, and then only a later commit than its
        blocks name shows that the end is lost.
        """
        time = first_instant(data, log.path)
        instant = None if time is None else self.timeline.commit_at(time)
        if instant is not None:
            commit = file_changes(self.storage, instant)
            if log.path in commit.checksums or (instant.layout != 1 and log.path in commit.added):
                return commit
        return newest_commit_of(self.storage, self.timeline, log)

    def replaced_ids(self, partition_path: str) -> frozenset[str]:
        """File ids of a partition that replace commits of the active timeline have hidden."""
        return replaced_ids(self.storage, self.timeline).get(partition_path, frozenset())

    def _latest_slice(
        self, group: FileGroupId, files: list[BaseFile | LogFile]
    ) -> FileSlice | None:
        base = self._newest_base(group, [file for file in files if isinstance(file, BaseFile)])
        logs = [file for file in files if isinstance(file, LogFile)]
        moment = Moment(self.storage, self.timeline, self.is_committed)
        latest = SLICINGS[self.timeline.layout].latest(moment, group, base, logs)
        if latest is None:
            return None
        self._check_base_is_there(latest)
        return latest

    def _newest_base(self, group: FileGroupId, files: list[BaseFile]) -> BaseFile | None:
        """The newest visible base file; older ones are not examined."""
        by_time: dict[str, list[BaseFile]] = {}
        for file in files:
            by_time.setdefault(file.name.instant_time, []).append(file)
        for time in sorted(by_time, key=padded, reverse=True):
            if not self.is_committed(time):
                continue
            visible = [found for found in by_time[time] if self.names(time, found.path)]
            if len(visible) > 1:
                raise CorruptFileError(
                    f"{self.storage.root}: {visible[0].path} and {visible[1].path} are both the "
                    f"base file of {group} at {time}",
                    "remove the one that a retried task left over",
                )
            if visible:
                return self.checked(visible[0])
        return None

    def checked(self, base: BaseFile) -> BaseFile:
        """The file with what its commit says of it."""
        if not self.verify:
            base = replace(base, trusted=True)
        instant = self.timeline.commit_at(base.name.instant_time)
        commit = None if instant is None else file_changes(self.storage, instant)
        path = base.path
        if commit is None or path not in commit.added:
            return base
        check_size(path, base.size, commit.added[path])
        known = commit.checksums.get(path) if self.verify else None
        footer = commit.checksums.get(path + FOOTER)
        return base if known is None else replace(base, checksum=known, footer=footer, trusted=True)

    def _check_base_is_there(self, latest: FileSlice) -> None:
        instant = self.timeline.commit_at(latest.base_instant)
        if latest.base is not None or instant is None:
            return
        for stat in file_changes(self.storage, instant).added.values():
            if stat.log is None and FileGroupId(stat.partition_path, stat.file_id) == latest.group:
                before = self.timeline.time_before(instant.time)
                raise CorruptFileError(
                    f"{self.storage.root}/{stat.path}, the base file of {latest.group} written at "
                    f"{latest.base_instant}, is missing",
                    restored(partial(changing, self.storage), before),
                )


@dataclass(frozen=True)
class WholeView(FileSystemView):
    """A view that lists no partition of which a file is missing that commits name.

    A write that continued without the file would bring back the slice before it, or store keys a
    second time; and its commit would make reads succeed again, which fail until then.
    """

    def data_files(self) -> list[FileStatus]:
        """All data files, see `FileSystemView.data_files`; raises as `check_listed`."""
        listed = super().data_files()
        self._check(listed)
        return listed

    def files_of(self, partition_path: str) -> list[FileStatus]:
        """All files of a partition; raises as `data_files` does."""
        listed = super().files_of(partition_path)
        self._check(listed, partition_path)
        return listed

    def _check(self, listed: list[FileStatus], partition_path: str | None = None) -> None:
        found = {status.path for status in listed}
        check_listed(self.storage, self.timeline, found, partition_path)


class PartitionFiles:
    """The files of a partition, of which only those that are requested are examined."""

    def __init__(self, view: FileSystemView, partition_path: str) -> None:
        self._view = view
        self._path = partition_path
        self._by_prefix: dict[str, list[FileStatus]] = {}
        for status in view.files_of(partition_path):
            name = status.path.rpartition("/")[2].removeprefix(".")
            self._by_prefix.setdefault(name[:PREFIX_LENGTH], []).append(status)

    @property
    def prefixes(self) -> Collection[str]:
        """The beginnings of the file names."""
        return self._by_prefix.keys()

    def latest_slices(self, prefix: str) -> list[FileSlice]:
        """Latest slices of the file groups whose id begins with `PREFIX_LENGTH` characters."""
        return self._view._slices_of(self._path, self._by_prefix.get(prefix, ()))


def _is_data(status: FileStatus) -> bool:
    is_change_data = CdcFileName.parse(status.path.rpartition("/")[2]) is not None
    return is_change_data or data_file("", status) is not None


def data_file(
    partition_path: str, status: FileStatus, extension: str = "parquet"
) -> BaseFile | LogFile | None:
    """Return the data file with a name in a partition; None for any other file.

    Raises `UnsupportedTableError` if it is a base file of another format than that of the
    extension: without it rows would be missing.
    """
    file_name = status.path.rpartition("/")[2]
    base = BaseFileName.parse(file_name, extension)
    if base is not None:
        return BaseFile(partition_path, base, status.size)
    log = LogFileName.parse(file_name)
    if log is not None:
        return LogFile(partition_path, log, file_name, status.size)
    other = other_format(file_name)
    if other is not None:
        raise UnsupportedTableError(
            f"base file {status.path} is in the format {other}, and this release reads Parquet "
            "alone; use Apache Hudi on the JVM for the table, or copy it into one of Parquet files"
        )
    return None
