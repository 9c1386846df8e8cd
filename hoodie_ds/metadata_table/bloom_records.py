"""Records of the partition ``bloom_filters``: the filters in the footers of base files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyarrow as pa

from hoodie_ds.formats.parquet.base_file_reader import BaseFileReader
from hoodie_ds.metadata_table.payload import Record, RecordType
from hoodie_ds.metadata_table.record_keys import UNPARTITIONED, digest, hashed
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.file_name import BaseFileName
from hoodie_ds.table.metadata_table import has_bloom_filters
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.file_changes import FileChanges

_FILTER: Final = "BloomFilterMetadata"


def bloom_changes(table: Table, time: str, changes: FileChanges) -> dict[str, Record]:
    """Return the records of what the instant of a time did, by key.

    A file without a filter has none, as in Hudi.
    """
    if not has_bloom_filters(table.properties):
        return {}
    records: dict[str, Record] = {}
    for path in sorted(changes.deleted | changes.removed):
        if _is_base_file(path):
            records[_key(path)] = _record(time, "", b"", is_deleted=True)
    return records | stored_filters(table.storage, time, changes.added)


def stored_filters(storage: Storage, time: str, paths: Iterable[str]) -> dict[str, Record]:
    """Return the records of the filters in base files, by key."""
    records: dict[str, Record] = {}
    for path in filter(_is_base_file, paths):
        with storage.open_input(path) as source:
            stored = BaseFileReader(source, pa.schema([]), path, trusted=True).stored_bloom_filter()
        if stored is not None:
            records[_key(path)] = _record(time, *stored)
    return records


def _is_base_file(path: str) -> bool:
    return BaseFileName.parse(path.rpartition("/")[2]) is not None


def _key(path: str) -> str:
    folder, _, name = path.rpartition("/")
    return hashed(folder or UNPARTITIONED) + digest(name)


def _record(time: str, kind: str, text: bytes, *, is_deleted: bool = False) -> Record:
    found = {"type": kind, "timestamp": time, "bloomFilter": text, "isDeleted": is_deleted}
    return {"type": RecordType.BLOOM_FILTER, _FILTER: found}
