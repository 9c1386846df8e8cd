"""The metadata table as a follower of its table: it knows each instant before it is visible."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import pyarrow as pa

from hoodie_ds.config.properties.table_properties import BLOOM_FILTERS, RECORD_INDEX
from hoodie_ds.config.service_switches import Service
from hoodie_ds.metadata_table.bloom_records import bloom_changes
from hoodie_ds.metadata_table.column_changes import column_changes
from hoodie_ds.metadata_table.delta_commit import (
    Blocks,
    Entries,
    by_file_group,
    in_index,
    put_delta_commit,
)
from hoodie_ds.metadata_table.file_records import file_records
from hoodie_ds.metadata_table.joined_keys import JoinedKeys, LostKeysError
from hoodie_ds.metadata_table.payload import Record
from hoodie_ds.metadata_table.record_changes import joined_keys, record_changes
from hoodie_ds.metadata_table.record_keys import file_id
from hoodie_ds.metadata_table.secondary_changes import secondary_changes
from hoodie_ds.metadata_table.stored import FILES_PARTITION, MetadataTable
from hoodie_ds.metadata_table.trust import NOT_RECORDED
from hoodie_ds.table.file_slice import FileGroupId
from hoodie_ds.table.secondary_index import secondary_indexes
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.file_changes import FileChanges
from hoodie_ds.timeline.instant import Instant
from hoodie_ds.timeline.timeline import Timeline

_LIST_OF_FILES = FileGroupId(FILES_PARTITION, file_id(FILES_PARTITION, 0))


class MetadataFollower:
    """Keeps a metadata table up to date; see `hoodie_ds.sync.followers.Follower`.

    A rollback is recorded as the files that it deletes, after those of the write that it rolls
    back. So a process that puts a delta commit late finds its name taken, or a compaction above it.
    """

    service: ClassVar[Service] = Service.METADATA
    names_files: ClassVar[bool] = True

    def check(self, columns: pa.Schema) -> None:
        """Do nothing: any write can be followed."""

    def before(self, table: Table, completed: Instant, changes: FileChanges) -> None:
        """Record what the instant does to files."""
        if completed.action in NOT_RECORDED:
            return
        records: dict[FileGroupId, Entries] = {_LIST_OF_FILES: file_records(completed, changes)}
        others: dict[str, Entries] = {
            **column_changes(table, completed, changes),
            BLOOM_FILTERS: bloom_changes(table, completed.time, changes),
        }
        for partition, found in others.items():
            records |= by_file_group(table, partition, found)
        try:
            of_rows, blocks = _of_rows(table, completed, changes)
            put_delta_commit(table, completed, {**records, **of_rows}, blocks)
        except LostKeysError:  # others have completed the instant, or its data files tell
            self.before(table, completed, replace(changes, key_files={}))

    def after(self, table: Table, timeline: Timeline | None = None) -> None:
        """Do nothing: it knows each instant already."""

    def repair(self, table: Table, *, dry: bool = False) -> None:
        """Do nothing: only a new listing brings it up to date."""


def _of_rows(
    table: Table, completed: Instant, changes: FileChanges
) -> tuple[dict[FileGroupId, dict[str, Record | None]], Blocks]:
    """Return the records of the indexes of rows, and what tasks have made of them.

    There are none if the metadata table knows the instant: its files may be gone by now.
    """
    records: dict[FileGroupId, dict[str, Record | None]] = {}
    secondary = [*secondary_indexes(table)]
    is_indexed = RECORD_INDEX in table.properties.metadata_partitions
    if not (secondary or is_indexed):
        return records, {}
    metadata = MetadataTable.open(table, table.load_timeline())
    if metadata is None or metadata.timeline.commit_at(completed.time) is not None:
        return records, {}
    joined = JoinedKeys()
    if is_indexed:
        joined = joined_keys(table, metadata, completed, changes)
        for name, found in record_changes(table, metadata, completed, changes, joined).items():
            if name == RECORD_INDEX:
                records |= by_file_group(table, name, found)
            else:
                records |= in_index(table, metadata, name, completed.time, found)
    for index in secondary:
        found = secondary_changes(table, metadata, index, completed, changes, joined)
        records |= by_file_group(table, index.partition, found, index.hashed)
    return records, joined.blocks
