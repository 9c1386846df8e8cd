"""Records of the partition ``files``: what an instant did to the files of the table.

As Hudi's ``HoodieTableMetadataUtil`` makes them: a write names the partitions it wrote to, even if
they are known, and each partition has a record of its new and deleted files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from hoodie_ds.metadata_table.payload import FILES, Record, RecordType
from hoodie_ds.metadata_table.record_keys import UNPARTITIONED
from hoodie_ds.timeline.file_changes import FileChanges
from hoodie_ds.timeline.instant import WRITE_ACTIONS, Instant

ALL_PARTITIONS: Final = "__all_partitions__"
"""Key of the record that lists the partitions."""

_Sizes = Mapping[str, int | None]
"""Bytes of files by path, None of deleted ones."""


def file_records(instant: Instant, changes: FileChanges) -> dict[str, Record]:
    """Return the records of a completed instant by their keys."""
    # A restore may mark a log file as it undoes one write, and delete it with the one before.
    sizes = {**changes.marked, **dict.fromkeys(changes.deleted | changes.removed)}
    for path, stat in changes.added.items():
        sizes |= {path: stat.file_size_bytes, **dict(stat.change_files)}
    records = {
        partition: _record(RecordType.FILE_LIST, listed)
        for partition, listed in _by_partition(sizes).items()
    }
    if instant.action in WRITE_ACTIONS:
        records[ALL_PARTITIONS] = partition_list(records)
    return records


def listing_records(sizes: Mapping[str, int], partitions: Iterable[str]) -> dict[str, Record]:
    """Return the records of a listing of all files, by path, and of all partitions."""
    records = {
        partition: _record(RecordType.FILE_LIST, listed)
        for partition, listed in _by_partition(sizes).items()
    }
    records[ALL_PARTITIONS] = partition_list(path or UNPARTITIONED for path in partitions)
    return records


def partition_list(partitions: Iterable[str]) -> Record:
    """Return the record that lists partitions, by their keys."""
    return _record(RecordType.PARTITION_LIST, dict.fromkeys(partitions, 0))


def _by_partition(sizes: _Sizes) -> dict[str, dict[str, int | None]]:
    found: dict[str, dict[str, int | None]] = {}
    for path, size in sizes.items():
        partition, _, name = path.rpartition("/")
        found.setdefault(partition or UNPARTITIONED, {})[name] = size
    return found


def _record(kind: RecordType, sizes: _Sizes) -> Record:
    entries = {
        name: {"size": size or 0, "isDeleted": size is None} for name, size in sorted(sizes.items())
    }
    return {"type": int(kind), FILES: entries}
