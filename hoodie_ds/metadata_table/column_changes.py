"""Records of the partitions ``column_stats`` and ``partition_stats`` that an instant leaves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from hoodie_ds.columns.meta_columns import with_meta_columns
from hoodie_ds.formats.avro.schema import avro_to_arrow
from hoodie_ds.formats.column_ranges import ColumnRange, ColumnRanges
from hoodie_ds.formats.log.data_block import decode_data_block
from hoodie_ds.formats.log.log_block import BlockType, read_blocks
from hoodie_ds.formats.parquet.base_file_reader import BaseFileReader
from hoodie_ds.metadata_table.column_index import ColumnIndex
from hoodie_ds.metadata_table.column_records import (
    deleted_file_statistics,
    file_statistics,
    partition_key,
    partition_statistics,
)
from hoodie_ds.metadata_table.payload import Record
from hoodie_ds.metadata_table.statistics import COLUMN_STATS, PARTITION_STATS
from hoodie_ds.metadata_table.stored import MetadataTable
from hoodie_ds.table.file_name import BaseFileName
from hoodie_ds.table.table import Table
from hoodie_ds.table.table_schema import declared_avro
from hoodie_ds.timeline.file_changes import FileChanges

Ranges = Mapping[str, ColumnRange]
_DATA: Final = (BlockType.AVRO_DATA, BlockType.PARQUET_DATA)


def column_changes(table: Table, changes: FileChanges) -> dict[str, dict[str, Record]]:
    """Return the records of what an instant did, by partition of the metadata table and key."""
    there = table.properties.metadata_partitions
    kept = [name for name in (COLUMN_STATS, PARTITION_STATS) if name in there]
    gone = changes.deleted | changes.removed
    if not kept or not (changes.added or gone):
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
    if PARTITION_STATS in kept:
        known = _known(table, added, index.defined)
        for partition, files in added.items():
            of_partitions |= partition_statistics(partition, files, known, version)
    return {COLUMN_STATS: of_files, PARTITION_STATS: of_partitions}


def stored_ranges(table: Table, path: str, avro_schema: str, columns: Iterable[str]) -> Ranges:
    """Read the ranges of columns in a data file, whose rows have the columns of a schema."""
    name = path.rpartition("/")[2]
    if BaseFileName.parse(name) is not None:
        schema = with_meta_columns(avro_to_arrow(avro_schema))
        with table.storage.open_input(path) as source:
            return BaseFileReader(source, schema, path, trusted=True).ranges(columns)
    found = ColumnRanges(columns)
    for block in read_blocks(table.storage.read(path), path):
        if block.block_type in _DATA:
            found.add(decode_data_block(block, path, lambda: True))
    return found.found


def _known(table: Table, partitions: Iterable[str], columns: Iterable[str]) -> dict[str, Record]:
    """The records of partitions, by key, as they are before the instant."""
    metadata = MetadataTable.open(table, table.load_timeline())
    if metadata is None:
        return {}
    keys = {partition_key(path, column) for path in partitions for column in columns}
    return metadata.by_key(PARTITION_STATS, keys)
