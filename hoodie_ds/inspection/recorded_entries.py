"""What a metadata table says of the files of the newest slices, compared with the files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Final, NamedTuple

from hoodie_ds.config.properties.table_properties import BLOOM_FILTERS
from hoodie_ds.filters.bounds import Bounds
from hoodie_ds.formats.column_ranges import ColumnRange
from hoodie_ds.metadata_table.bloom_records import stored_filters
from hoodie_ds.metadata_table.column_index import ColumnIndex
from hoodie_ds.metadata_table.column_records import file_statistics, partition_statistics
from hoodie_ds.metadata_table.file_ranges import Ranges, stored_ranges
from hoodie_ds.metadata_table.keys_of_rows import OfRows
from hoodie_ds.metadata_table.payload import BLOOM_FILTER, STATS, Record
from hoodie_ds.metadata_table.record_changes import all_indexes, stored_places
from hoodie_ds.metadata_table.record_index import group_of
from hoodie_ds.metadata_table.secondary_changes import stored_values
from hoodie_ds.metadata_table.statistics import COLUMN_STATS, PARTITION_STATS, recorded_bounds
from hoodie_ds.metadata_table.stored import MetadataTable
from hoodie_ds.metadata_table.undone_records import Meaning, differing_records
from hoodie_ds.table.file_name import BaseFileName
from hoodie_ds.table.secondary_index import secondary_indexes
from hoodie_ds.table.table import Table
from hoodie_ds.table.table_schema import declared_avro, numbered_columns
from hoodie_ds.timeline.paths import METADATA_TABLE, V1

_NAMED: Final = 3
"""Keys that a divergence names at most."""


class Divergence(NamedTuple):
    """What is wrong in a partition of the metadata table, of a file or partition of the table."""

    partition: str
    where: str
    message: str


def filter_divergences(
    table: Table, metadata: MetadataTable, paths: Iterable[str]
) -> Iterator[Divergence]:
    """Yield the base files of which there is no bloom filter, or another one than in them."""
    known = metadata.by_key(BLOOM_FILTERS)
    for path in paths:
        for key, expected in stored_filters(table.storage, "", [path]).items():
            record = known.get(key)
            if record is None or record[BLOOM_FILTER]["isDeleted"]:
                yield Divergence(BLOOM_FILTERS, path, "the metadata table lacks its bloom filter")
            elif record[BLOOM_FILTER]["bloomFilter"] != expected[BLOOM_FILTER]["bloomFilter"]:
                message = "the metadata table has another bloom filter of it"
                yield Divergence(BLOOM_FILTERS, path, message)


def index_divergences(
    table: Table, metadata: MetadataTable, partition: str
) -> Iterator[Divergence]:
    """Yield what is wrong in an index of rows: records of no row, and rows without a record."""
    if declared_avro(table, metadata.data) is None:
        return
    wrong: dict[str, list[str]] = {"of no row": [], "missing or wrong": []}
    for name, given in _parts(table, metadata, partition).items():
        found = differing_records(table, metadata, metadata, name, *given)
        for key, record in sorted(found.items()):
            wrong["of no row" if record is None else "missing or wrong"].append(key)
    for what, keys in wrong.items():
        if keys:
            some = ", ".join(map(repr, keys[:_NAMED]))
            message = f"records of the metadata table are {what}: {len(keys):,}, such as {some}"
            yield Divergence(partition, f"{METADATA_TABLE}/{partition}", message)


def _parts(
    table: Table, metadata: MetadataTable, partition: str
) -> Mapping[str, tuple[OfRows, Meaning, Callable[[str], str] | None]]:
    """What an index of rows consists of: one index, or one of each partition of the table."""
    for index in secondary_indexes(table):
        if index.partition == partition:
            return {partition: (partial(stored_values, index), bool, index.hashed)}
    indexes = all_indexes(table, metadata)
    return {index: (partial(stored_places, index), group_of, None) for index in indexes}


def statistics_divergences(
    table: Table, metadata: MetadataTable, paths: Iterable[str]
) -> Iterator[Divergence]:
    """Yield files and partitions without statistics, or with such as deny values that they have.

    Of log files of layout 1 nothing is said: they may have blocks that were rolled back. Nor is of
    tables whose files have columns under other names.
    """
    schema, columns = declared_avro(table, metadata.data), numbered_columns(table, metadata.data)
    if schema is None or (columns is not None and columns.changes()):
        return
    index = ColumnIndex.of(table, schema)
    there = {COLUMN_STATS, PARTITION_STATS} & {*metadata.partitions}
    known = {name: metadata.by_key(name) for name in there}
    by_partition: dict[str, list[Ranges]] = {}
    for path in paths:
        folder, _, name = path.rpartition("/")
        if table.layout == V1.version and BaseFileName.parse(name) is None:
            continue
        found = stored_ranges(table, path, schema, index.of_files)
        ranges = {column: one for column, one in found.items() if one.rows}
        by_partition.setdefault(folder, []).append(
            {column: one for column, one in ranges.items() if column in index.defined}
        )
        if COLUMN_STATS in known:
            expected = file_statistics(folder, name, ranges, index.version)
            yield from _denied(COLUMN_STATS, path, expected, known[COLUMN_STATS], ranges)
    if PARTITION_STATS in known:
        for folder, files in by_partition.items():
            kinds = {column: one for ranges in files for column, one in ranges.items()}
            expected = partition_statistics(folder, files, {}, index.version)
            yield from _denied(PARTITION_STATS, folder, expected, known[PARTITION_STATS], kinds)


def _denied(
    partition: str,
    where: str,
    expected: Mapping[str, Record],
    known: Mapping[str, Record],
    columns: Mapping[str, ColumnRange],
) -> Iterator[Divergence]:
    """Yield what is wrong with the statistics of a file or partition; some columns may have none.

    Other engines may leave columns out, and readers do without them.
    """
    if expected and known.keys().isdisjoint(expected):
        yield Divergence(partition, where, "the metadata table lacks its statistics")
    for key, record in expected.items():
        column = record[STATS]["columnName"]
        if key in known:
            ends = (
                recorded_bounds(one[STATS], columns[column].kind) for one in (known[key], record)
            )
            if not _holds(*ends):
                message = f"the metadata table denies values that its column {column} has"
                yield Divergence(partition, where, message)


def _holds(known: Bounds | None, actual: Bounds | None) -> bool:
    """Whether what is known of a column leaves room for the values that it has."""
    if known is None or actual is None:
        return True
    if actual.nulls and not known.nulls:
        return False
    if not actual.values:
        return True
    low, high = known.low, known.high
    return known.values and low <= actual.low and actual.high <= high  # type: ignore[operator]
