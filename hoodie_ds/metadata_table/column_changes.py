"""Records of the partitions ``column_stats`` and ``partition_stats`` that an instant leaves."""

from __future__ import annotations

from hoodie_ds.metadata_table.column_index import ColumnIndex
from hoodie_ds.metadata_table.column_records import (
    deleted_file_statistics,
    file_statistics,
    partition_key,
    partition_statistics,
)
from hoodie_ds.metadata_table.file_ranges import Ranges, stored_ranges
from hoodie_ds.metadata_table.payload import Record
from hoodie_ds.metadata_table.statistics import COLUMN_STATS, PARTITION_STATS
from hoodie_ds.metadata_table.stored import MetadataTable
from hoodie_ds.metadata_table.undone_statistics import restored_ranges
from hoodie_ds.table.table import Table
from hoodie_ds.table.table_schema import declared_avro
from hoodie_ds.timeline.file_changes import FileChanges
from hoodie_ds.timeline.instant import Instant
from hoodie_ds.timeline.rollbacks import undone_by


def column_changes(
    table: Table, instant: Instant, changes: FileChanges
) -> dict[str, dict[str, Record]]:
    """Return the records of what an instant did, by partition of the metadata table and key."""
    there = table.properties.metadata_partitions
    kept = [name for name in (COLUMN_STATS, PARTITION_STATS) if name in there]
    gone = changes.deleted | changes.removed
    undone = undone_by(table.storage, instant)
    if not kept or not (changes.added or gone or undone):
        return {}
    schema = changes.schema or declared_avro(table, table.load_timeline())
    if schema is None:
        return {}
    index = ColumnIndex.of(table, schema)
    columns, version = index.of_files, index.version
    of_files: dict[str, Record] = {}
    of_partitions: dict[str, Record] = {}
    for path in sorted(gone):
        folder, _, name = path.rpartition("/")
        of_files |= deleted_file_statistics(folder, name, columns, version)
    added: dict[str, list[Ranges]] = {}
    for path, stat in changes.added.items():
        ranges = changes.ranges.get(path) or stored_ranges(table, path, schema, columns)
        name = path.rpartition("/")[2]
        of_files |= file_statistics(stat.partition_path, name, ranges, version)
        named = {column: known for column, known in ranges.items() if column in index.defined}
        added.setdefault(stat.partition_path, []).append(named)
    if PARTITION_STATS not in kept:
        return {COLUMN_STATS: of_files}
    metadata = MetadataTable.open(table, table.load_timeline())
    if metadata is not None:
        if undone and metadata.timeline.commit_at(instant.time) is None:
            added = restored_ranges(table, metadata, instant, schema, index)
        keys = {partition_key(path, column) for path in added for column in index.defined}
        known = metadata.without_pending(undone).by_key(PARTITION_STATS, keys)
        for partition, files in added.items():
            of_partitions |= partition_statistics(partition, files, known, version)
    return {COLUMN_STATS: of_files, PARTITION_STATS: of_partitions}
