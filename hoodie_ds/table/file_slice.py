"""File groups and their slices: one version of a group is a base file plus its log files."""

from __future__ import annotations

from dataclasses import dataclass

from hoodie_ds.table.file_name import BaseFileName, LogFileName
from hoodie_ds.timeline.paths import in_partition


@dataclass(frozen=True, slots=True, order=True)
class FileGroupId:
    """Identity of a file group; ids repeat across partitions, the pair does not."""

    partition_path: str
    file_id: str

    def __str__(self) -> str:
        return f"{self.partition_path or '(no partition)'}/{self.file_id}"


def group_of_file(path: str) -> FileGroupId:
    """Return the file group of a data file."""
    partition_path, _, name = path.rpartition("/")
    return FileGroupId(partition_path, name.removeprefix(".").partition("_")[0])


@dataclass(frozen=True, slots=True)
class BaseFile:
    """A base file on storage; `size` in bytes.

    `checksum` is the xxh64 in its commit, and `footer` that of its Parquet footer; None if they are
    unknown or must not be compared. `trusted` says whether bytes that pass this comparison are
    those that a writer committed, also where the user turned it off.
    """

    partition_path: str
    name: BaseFileName
    size: int
    checksum: str | None = None
    trusted: bool = False
    footer: str | None = None

    @property
    def path(self) -> str:
        """Path relative to the base path."""
        return in_partition(self.partition_path, str(self.name))


@dataclass(frozen=True, slots=True)
class LogFile:
    """A log file on storage; `size` in bytes. `file_name` is the name as found."""

    partition_path: str
    name: LogFileName
    file_name: str
    size: int

    @property
    def path(self) -> str:
        """Path relative to the base path."""
        return in_partition(self.partition_path, self.file_name)


@dataclass(frozen=True, slots=True)
class FileSlice:
    """One version of a file group.

    `base_instant` is that of the base file; without one, of the first log file. `logs` are in the
    order in which they are merged.
    """

    group: FileGroupId
    base_instant: str
    base: BaseFile | None
    logs: tuple[LogFile, ...]

    @property
    def files(self) -> tuple[BaseFile | LogFile, ...]:
        """Its files, the base file first."""
        return self.logs if self.base is None else (self.base, *self.logs)

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return sum(file.size for file in self.files)
