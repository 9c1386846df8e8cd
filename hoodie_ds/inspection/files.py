"""Partitions, file groups and files of a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from hoodie_ds.inspection.listing import Listing
from hoodie_ds.services.results import counted
from hoodie_ds.table.file_slice import FileSlice
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.table.live_files import near_groups
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.timeline import Timeline

SMALL_BYTES: Final = 100 << 20
"""Base files below this are small: ``hoodie.parquet.small.file.limit`` of Hudi."""


@dataclass(frozen=True, slots=True)
class FileGroupRow:
    """The newest slice of a file group.

    Older files are those outside the slice: a clean may delete them, or no commit names them.
    """

    partition: str
    file_id: str
    base_instant: str
    base_file: str  # its name, empty if there is none
    base_bytes: int
    log_files: int
    log_bytes: int
    log_ratio: float | None  # bytes of log files for each byte of the base file
    older_files: int
    older_bytes: int


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """The newest slices of a partition, or of the whole table; for the columns see `FileGroupRow`.

    Small files are base files below 100 MB. Older files include those of replaced file groups.
    """

    partition: str
    file_groups: int
    base_files: int
    base_bytes: int
    log_files: int
    log_bytes: int
    log_ratio: float | None
    small_files: int
    older_files: int
    older_bytes: int

    @classmethod
    def of(
        cls, partition: str, groups: Iterable[FileGroupRow], older: tuple[int, int]
    ) -> PartitionRow:
        """Return the sums of some file groups."""
        rows = list(groups)
        base, logs = sum(r.base_bytes for r in rows), sum(r.log_bytes for r in rows)
        based = [r for r in rows if r.base_file]
        return cls(
            partition,
            len(rows),
            len(based),
            base,
            sum(r.log_files for r in rows),
            logs,
            logs / base if base else None,
            sum(r.base_bytes < SMALL_BYTES for r in based),
            *older,
        )


@dataclass(frozen=True, slots=True, repr=False)
class TableFiles:
    """The files of a table.

    Parameters
    ----------
    groups : tuple of FileGroupRow
        Live file groups, by partition and id.
    older : dict of str to (int, int)
        Number and bytes of the files outside newest slices, by partition path.
    lost : dict of str to int
        Live file groups that commits name in partitions all of whose files are gone.
    """

    groups: tuple[FileGroupRow, ...]
    older: dict[str, tuple[int, int]]
    lost: dict[str, int] = field(default_factory=dict)

    @property
    def partitions(self) -> tuple[PartitionRow, ...]:
        """The partitions, by path."""
        by_path: dict[str, list[FileGroupRow]] = {path: [] for path in sorted(self.older)}
        for group in self.groups:
            by_path.setdefault(group.partition, []).append(group)
        rows = {
            path: PartitionRow.of(path, groups, self.older.get(path, (0, 0)))
            for path, groups in by_path.items()
        }
        for path, count in self.lost.items():
            rows[path] = replace(PartitionRow.of(path, (), (0, 0)), file_groups=count)
        return tuple(rows[path] for path in sorted(rows))

    @property
    def total(self) -> PartitionRow:
        """Their sums."""
        counts = sum(count for count, _ in self.older.values())
        older = counts, sum(size for _, size in self.older.values())
        return PartitionRow.of("", self.groups, older)

    def __repr__(self) -> str:
        partitions = counted(len(self.partitions), "partition")
        return f"<TableFiles: {partitions}, {counted(len(self.groups), 'file group')}>"

    def _repr_html_(self) -> str:
        return Listing(repr(self), tuple(self.partitions))._repr_html_()


def table_files(table: Table, timeline: Timeline) -> TableFiles:
    """Return the files of a table by one listing, which opens no data file and few commits."""
    view = FileSystemView(table.storage, timeline, verify=False)
    files = view.data_files()
    left = {status.path: status for status in files}
    by_group: dict[tuple[str, str], list[int]] = {}
    slices = list(view.slices_among(files))
    for slice_ in slices:
        for path in paths_of(slice_):
            left.pop(path, None)
    older: dict[str, tuple[int, int]] = {}
    for status in left.values():
        name = status.path.rpartition("/")[2].removeprefix(".")
        by_group.setdefault((status.folder, name.partition("_")[0]), []).append(status.size)
        count, size = older.get(status.folder, (0, 0))
        older[status.folder] = count + 1, size + status.size
    rows = (_row(s, by_group.get((s.group.partition_path, s.group.file_id), [])) for s in slices)
    folders = {status.folder for status in files}
    named = (group.partition_path for group in near_groups(table.storage, timeline))
    lost = Counter(path for path in named if path not in folders) if timeline.first_commit else {}
    return TableFiles(tuple(rows), older, dict(lost))


def paths_of(slice_: FileSlice) -> Iterator[str]:
    """Return the paths of the files of a slice, its base file first."""
    return (file.path for file in slice_.files)


def _row(slice_: FileSlice, older: list[int]) -> FileGroupRow:
    base, logs = slice_.base, sum(log.size for log in slice_.logs)
    size = base.size if base else 0
    return FileGroupRow(
        slice_.group.partition_path,
        slice_.group.file_id,
        slice_.base_instant,
        str(base.name) if base else "",
        size,
        len(slice_.logs),
        logs,
        logs / size if size else None,
        len(older),
        sum(older),
    )
