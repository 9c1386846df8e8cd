"""What partitions hold once writes are undone.

Hudi records the ends of the rows that a write leaves in a partition, in place of the wider ones
before. They may be narrower than the rows of files that a rollback or a restore brings back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from itertools import chain, islice
from typing import Final

import pyarrow as pa

from hoodie_ds.columns.meta_columns import with_meta_columns
from hoodie_ds.filters.predicate import type_of
from hoodie_ds.formats.avro.schema import avro_to_arrow
from hoodie_ds.formats.column_ranges import ColumnRange
from hoodie_ds.metadata_table.column_index import ColumnIndex
from hoodie_ds.metadata_table.column_records import (
    file_key,
    has_wrapper,
    of_partition,
    recorded_range,
    widest,
)
from hoodie_ds.metadata_table.file_ranges import Ranges, stored_ranges
from hoodie_ds.metadata_table.payload import STATS, Record
from hoodie_ds.metadata_table.record_keys import UNPARTITIONED, hashed
from hoodie_ds.metadata_table.statistics import COLUMN_STATS, PARTITION_STATS
from hoodie_ds.metadata_table.stored import MetadataTable
from hoodie_ds.metadata_table.trust import may_be_listed
from hoodie_ds.table.file_slice import FileSlice
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.bodies.rollback_metadata import rolled_back
from hoodie_ds.timeline.file_changes import file_changes
from hoodie_ds.timeline.instant import REPLACING, Action, Instant, State
from hoodie_ds.timeline.paths import instant_path

_FILES_AT_ONCE: Final = 5_000
"""Files whose records are held at a time."""


def restored_ranges(
    table: Table, metadata: MetadataTable, undoing: Instant, schema: str, index: ColumnIndex
) -> dict[str, list[Ranges]]:
    """Return the ranges of columns in each file of the partitions in which writes are undone.

    The files are those that the table has without the writes. They are read where statistics say
    too little.
    """
    kinds = _types(schema, index)
    left = (
        (one.group.partition_path, file)
        for one in _slices(table, metadata, undoing)
        for file in one.files
    )
    found: dict[str, list[Ranges]] = {}
    while files := [*islice(left, _FILES_AT_ONCE)]:
        names = {file.path: file.path.rpartition("/")[2] for _, file in files}
        keys = {
            file_key(path, names[file.path], column) for path, file in files for column in kinds
        }
        stored = metadata.by_key(COLUMN_STATS, keys)
        for path, file in files:
            records = {c: stored.get(file_key(path, names[file.path], c)) for c in kinds}
            ranges = _recorded(records, kinds, index.version)
            if missing := kinds.keys() - ranges.keys():
                for column, known in stored_ranges(table, file.path, schema, missing).items():
                    typed = replace(known, kind=kinds[column])
                    ranges[column] = known if known.kind == typed.kind else widest(typed)
            found.setdefault(path, []).append(ranges)
    return found


def _recorded(
    records: Mapping[str, Record | None], kinds: Mapping[str, pa.DataType], version: str
) -> dict[str, ColumnRange]:
    """The ranges of those columns of a file of which its records say enough."""
    found = {
        column: recorded_range(record[STATS], kinds[column], version)
        for column, record in records.items()
        if record is not None
    }
    return {column: known for column, known in found.items() if known is not None}


def _types(schema: str, index: ColumnIndex) -> dict[str, pa.DataType]:
    """The types of the columns that partitions have statistics of."""
    columns = with_meta_columns(avro_to_arrow(schema))
    paths = {
        name: (name,) if name in columns.names else tuple(name.split(".")) for name in index.defined
    }
    types = {name: type_of(path, columns) for name, path in paths.items()}
    return {
        name: kind
        for name, kind in types.items()
        if kind is not None and has_wrapper(kind, index.version)
    }


def _slices(table: Table, metadata: MetadataTable, undoing: Instant) -> Iterator[FileSlice]:
    """Yield the slices of the partitions in which writes are undone."""
    partitions = _touched(metadata, undoing)
    if partitions is None or partitions:
        view = FileSystemView(table.storage, metadata.data, verify=False)
        yield from view.slices_among(
            status
            for status in view.data_files()
            if partitions is None or hashed(status.folder or UNPARTITIONED) in partitions
        )


def _touched(metadata: MetadataTable, undoing: Instant) -> Collection[str] | None:
    """The partitions, hashed, in which a write is undone; None if they are not known.

    They are those of the records that it put into log files, unless it replaced file groups of
    others too.
    """
    path = instant_path(undoing.at(State.REQUESTED))
    if undoing.action is Action.RESTORE:
        return None
    time, action = rolled_back(metadata.storage.read(path), path)
    commit = metadata.timeline.commit_at(time)
    if commit is None:
        return None if may_be_listed(metadata, time) else ()
    added = file_changes(metadata.view.storage, commit).added.items()
    named = {one for one, stat in added if stat.partition_path == PARTITION_STATS}
    slices = metadata.slices(PARTITION_STATS)
    there = {log.path for slice_ in slices for log in slice_.logs}
    if action in REPLACING or not named or not named <= there:
        return None
    later = metadata.without_pending([time])
    logged = (later.logged(slice_, times=[time]) for slice_ in slices)
    return {of_partition(key) for key, _ in chain.from_iterable(logged)}
