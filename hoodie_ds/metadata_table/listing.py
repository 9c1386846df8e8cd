"""Listing a table's files by its metadata table, instead of its folders."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.log import Log
from hoodie_ds.metadata_table.file_records import ALL_PARTITIONS
from hoodie_ds.metadata_table.payload import FILES, Record
from hoodie_ds.metadata_table.record_keys import UNPARTITIONED
from hoodie_ds.metadata_table.stored import FILES_PARTITION, MetadataTable
from hoodie_ds.metadata_table.stored_records import REBUILD
from hoodie_ds.metadata_table.trust import lacking
from hoodie_ds.storage.protocol import FileStatus
from hoodie_ds.timeline.paths import in_partition


@dataclass(frozen=True, slots=True)
class MetadataListing:
    """The partitions and files that a metadata table lists."""

    metadata: MetadataTable

    @classmethod
    def of(cls, metadata: MetadataTable) -> MetadataListing | None:
        """Return the listing; None if there is none, or it lacks an instant of the table."""
        if FILES_PARTITION not in metadata.partitions:
            return None
        missing = next(lacking(metadata), None)
        if missing is not None:
            Log(metadata.view.storage.root).debug("lacks %s", missing)
            return None
        return cls(metadata)

    def partitions(self) -> list[str]:
        """Return the paths of all partitions; `CorruptFileError` if it does not list them."""
        records = list(self._records([ALL_PARTITIONS]))
        if not records:
            root = self.metadata.view.storage.root
            raise CorruptFileError(f"{root} lists no partitions", REBUILD)
        found = (name for record in records for name in _there(record))
        return sorted("" if name == UNPARTITIONED else name for name in found)

    def files(self, partitions: Collection[str]) -> list[FileStatus]:
        """Return the files of some partitions, sorted by path."""
        found = []
        for record in self._records([path or UNPARTITIONED for path in partitions]):
            path = "" if record["key"] == UNPARTITIONED else record["key"]
            listed = _there(record).items()
            found += [FileStatus(in_partition(path, name), size) for name, size in listed]
        return sorted(found, key=lambda status: status.path)

    def _records(self, keys: Collection[str]) -> Iterator[Record]:
        for group in self.metadata.records(FILES_PARTITION, keys):
            yield from group.values()


def _there(record: Record) -> dict[str, int]:
    """The entries of a record that are not deleted, with their sizes."""
    entries = record[FILES] or {}
    return {name: entry["size"] for name, entry in entries.items() if not entry["isDeleted"]}
