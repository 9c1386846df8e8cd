"""Records of a partition ``secondary_index_*``: which values an instant leaves in rows.

As Hudi's ``SecondaryIndexRecordGenerationUtils`` makes them, from all rows that the written file
groups had before and have afterwards. They name no file group: the record index says where it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

import pyarrow as pa

from hoodie_ds.columns.arrow_columns import one_chunk
from hoodie_ds.columns.meta_columns import RECORD_KEY
from hoodie_ds.metadata_table.joined_keys import JoinedKeys
from hoodie_ds.metadata_table.payload import SECONDARY_INDEX, Record, RecordType
from hoodie_ds.metadata_table.stored import MetadataTable
from hoodie_ds.metadata_table.touched_slices import TouchedSlices, slice_reader
from hoodie_ds.metadata_table.undone_records import Records, undone_records
from hoodie_ds.slices.file_slice_reader import FileSliceReader
from hoodie_ds.slices.slice_keys import NO_KEYS, without
from hoodie_ds.table.file_slice import FileGroupId, FileSlice
from hoodie_ds.table.secondary_index import SecondaryIndex
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.file_changes import FileChanges
from hoodie_ds.timeline.instant import WRITE_ACTIONS, Instant
from hoodie_ds.timeline.rollbacks import undone_by
from hoodie_ds.timeline.timeline import Timeline

THERE: Final[Record] = {
    "type": int(RecordType.SECONDARY_INDEX),
    SECONDARY_INDEX: {"isDeleted": False},
}


def secondary_changes(
    table: Table,
    metadata: MetadataTable,
    index: SecondaryIndex,
    instant: Instant,
    changes: FileChanges,
    joined: JoinedKeys,
) -> Records:
    """Return the records of what an instant did that is about to be completed.

    Without the entries that its tasks have made.
    """
    if undone := undone_by(table.storage, instant):
        of_rows = partial(stored_values, index)
        given = of_rows, bool, index.hashed
        return undone_records(table, metadata, index.partition, instant, undone, *given)
    if instant.action not in WRITE_ACTIONS or changes.is_rewrite:
        return {}
    known = joined.files.get(index.partition, ())
    left = (one for path, one in changes.added.items() if path not in known)
    added = {FileGroupId(one.partition_path, one.file_id) for one in left}
    replaced = {FileGroupId(*one) for one in changes.replaced_groups}
    before = TouchedSlices.before(table, metadata, added | replaced, changes.schema)
    after = before.after(instant.time, changes)
    there: set[str] = set()
    gone: set[str] = set()
    for group in added | replaced:
        found, lost = moved_values(index, before, after if group in added else None, group)
        there.update(found.to_pylist())
        gone.update(lost.to_pylist())
    # A row that is gone here may have moved into another file group.
    lost = gone.difference(joined.placed(index.partition, gone, index.hashed))
    return dict.fromkeys(lost - there) | dict.fromkeys(there, THERE)


def moved_values(
    index: SecondaryIndex, before: TouchedSlices, after: TouchedSlices | None, group: FileGroupId
) -> tuple[pa.Array, pa.Array]:
    """Return the keys of an index that a write adds by a file group, and those that it takes.

    It takes all if there is nothing `after` it.
    """
    old = _keys(index, before, group)
    new = NO_KEYS if after is None else _keys(index, after, group)
    return without(new, old), without(old, new)


def stored_values(
    index: SecondaryIndex, table: Table, timeline: Timeline
) -> Iterator[tuple[pa.Array, Record]]:
    """Yield the keys of each file slice of a table, and their record; see `OfRows`."""
    reader = slice_reader(table, timeline)
    for slice_ in reader.view.slices_among(reader.view.data_files()):
        yield _keys_of_rows(index, reader, slice_), THERE


def _keys(index: SecondaryIndex, slices: TouchedSlices, group: FileGroupId) -> pa.Array:
    slice_ = slices.latest.get(group)
    return NO_KEYS if slice_ is None else _keys_of_rows(index, slices.reader, slice_)


def _keys_of_rows(index: SecondaryIndex, reader: FileSliceReader, slice_: FileSlice) -> pa.Array:
    pieces = [NO_KEYS]
    for rows in reader.read(slice_, [RECORD_KEY, index.column]):
        values, record_keys = map(one_chunk, rows.select([index.column, RECORD_KEY]).columns)
        pieces.append(index.keys(values, record_keys))
    return pa.concat_arrays(pieces)
