"""Records of the partition ``record_index``: where an instant leaves record keys.

They are made from data files, so that a recovery makes them too. The keys that a write adds to file
groups, and takes from them, are compared with the index; a compaction moves none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import partial

import pyarrow as pa

from hoodie_ds.config.properties.table_properties import RECORD_INDEX
from hoodie_ds.metadata_table.delta_commit import new_groups
from hoodie_ds.metadata_table.joined_keys import JoinedKeys
from hoodie_ds.metadata_table.listing import MetadataListing
from hoodie_ds.metadata_table.payload import Record
from hoodie_ds.metadata_table.record_index import (
    group_of,
    index_record,
    places_of,
    record_indexes,
)
from hoodie_ds.metadata_table.record_keys import folder_of, groups_among, index_of, indexed_path
from hoodie_ds.metadata_table.stored import MetadataTable
from hoodie_ds.metadata_table.touched_slices import TouchedSlices, slice_reader
from hoodie_ds.metadata_table.undone_records import Records, undone_records
from hoodie_ds.slices.slice_keys import NO_KEYS, live_keys, logged_keys, without
from hoodie_ds.storage.protocol import names_in
from hoodie_ds.table.file_slice import FileGroupId, FileSlice
from hoodie_ds.table.metadata_table import record_index
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.bodies.commit_metadata import WriteStat
from hoodie_ds.timeline.file_changes import FileChanges, file_changes
from hoodie_ds.timeline.instant import WRITE_ACTIONS, Action, Instant
from hoodie_ds.timeline.instant_time import epoch_ms
from hoodie_ds.timeline.rollbacks import undone_by
from hoodie_ds.timeline.timeline import Timeline


def joined_keys(
    table: Table, metadata: MetadataTable, instant: Instant, changes: FileChanges
) -> JoinedKeys:
    """Return what the tasks of a write have made of its entries, if that can be used."""

    def num_groups(index: str) -> int:
        if folder_of(index) != index:
            return len(metadata.slices(index)) or new_groups(table)
        return groups_among(names_in(metadata.view.storage, index), index)

    named = changes.key_files
    return JoinedKeys.of(table.storage, instant.time, named, changes.added, num_groups)


def record_changes(
    table: Table,
    metadata: MetadataTable,
    instant: Instant,
    changes: FileChanges,
    joined: JoinedKeys,
) -> dict[str, Records]:
    """Return the records of what an instant did that is about to be completed, of each index.

    Without the entries that its tasks have made.
    """
    if undone := undone_by(table.storage, instant):
        return {
            index: undone_records(
                table, metadata, index, instant, undone, partial(stored_places, index), group_of
            )
            for index in _touched_by(table, metadata, instant, undone)
        }
    if instant.action not in WRITE_ACTIONS:
        return {}
    paths = {one.partition_path for one in changes.added.values()}
    records: dict[str, Records] = {index: {} for index in record_indexes(table, sorted(paths))}
    if changes.replaced or (changes.added and not changes.is_rewrite):
        records |= _written(table, metadata, instant, changes, joined)
    return records


def _touched_by(
    table: Table, metadata: MetadataTable, undoing: Instant, times: Collection[str]
) -> Collection[str]:
    """The indexes to which the instants of some times may have done something."""
    commits = [metadata.timeline.commit_at(time) for time in times]
    if record_index(table) != "partition" or undoing.action is Action.RESTORE or None in commits:
        return all_indexes(table, metadata)
    stats = (file_changes(metadata.view.storage, one).added.values() for one in commits if one)
    written = {
        one.file_id for added in stats for one in added if one.partition_path == RECORD_INDEX
    }
    return sorted({index_of(indexed_path(one)) for one in written})


def all_indexes(table: Table, metadata: MetadataTable) -> list[str]:
    """Return the record indexes of a table, also of partitions that it has no more."""
    if record_index(table) != "partition":
        return [RECORD_INDEX]
    indexed = {indexed_path(one.group.file_id) for one in metadata.slices(RECORD_INDEX)}
    return [
        index_of(path) for path in sorted(indexed.union(MetadataListing(metadata).partitions()))
    ]


def _written(
    table: Table,
    metadata: MetadataTable,
    instant: Instant,
    changes: FileChanges,
    joined: JoinedKeys,
) -> Iterator[tuple[str, Records]]:
    known = joined.files.get(RECORD_INDEX, ())
    left = (one for path, one in changes.added.items() if path not in known)
    stats = sorted(left, key=lambda one: one.log is None)
    added = {FileGroupId(one.partition_path, one.file_id): one for one in stats}
    replaced = {FileGroupId(*one) for one in changes.replaced_groups}
    before = TouchedSlices.before(table, metadata, {*added, *replaced}, changes.schema)
    after = before.after(instant.time, changes)
    at = epoch_ms(instant.time, table.properties.timeline_in_utc)
    for index, groups in _by_index(table, {*added, *replaced}).items():
        places: dict[str, FileGroupId] = {}
        logged: set[str] = set()
        gone: set[str] = set()
        for group in () if changes.is_rewrite else replaced & groups:
            gone.update(before.keys(group).to_pylist())
        for group in (group for group in added if group in groups):
            found, lost = moved_keys(before, after, added[group], instant.time)
            places |= dict.fromkeys(found.to_pylist(), group)
            logged.update(found.to_pylist() if added[group].log else ())
            gone.update(lost.to_pylist())
        if not (places or gone):
            continue
        # A base file says which keys are new in it; a log file has those of updates too.
        asked = pa.array(logged | gone, pa.string())
        known = places_of(metadata, asked, index).by_key()
        records: Records = {
            key: index_record(group, at) for key, group in places.items() if known.get(key) != group
        }
        # A key may be elsewhere for long, and a file group have no more of it than its delete.
        lost = {key for key in gone - places.keys() if known.get(key) in groups}
        yield index, records | dict.fromkeys(lost.difference(joined.placed(index, lost)))


def _by_index(table: Table, groups: Collection[FileGroupId]) -> Mapping[str, set[FileGroupId]]:
    found: dict[str, set[FileGroupId]] = {}
    for group in groups:
        for index in record_indexes(table, [group.partition_path]):
            found.setdefault(index, set()).add(group)
    return found


def moved_keys(
    before: TouchedSlices, after: TouchedSlices, stat: WriteStat, time: str
) -> tuple[pa.Array, pa.Array]:
    """The keys that a file of a write adds to its file group, and those that it takes from it."""
    group = FileGroupId(stat.partition_path, stat.file_id)
    if _only_updates(stat, before.latest.get(group)):
        return NO_KEYS, NO_KEYS
    if stat.log is not None:
        return logged_keys(after.reader, after.latest[group], time)
    new, old = after.keys(group), before.keys(group)
    return without(new, old), without(old, new)


def _only_updates(stat: WriteStat, older: FileSlice | None) -> bool:
    """Whether a base file has the keys of the slice before it."""
    if stat.log is not None or older is None or older.logs:
        return False
    return stat.prev_commit == older.base_instant and not (stat.num_inserts or stat.num_deletes)


def stored_places(
    index: str, table: Table, timeline: Timeline
) -> Iterator[tuple[pa.Array, Record]]:
    """Yield the record keys of each file slice of an index, and their record; see `OfRows`."""
    reader = slice_reader(table, timeline)
    utc = table.properties.timeline_in_utc
    if index == RECORD_INDEX:
        files = reader.view.data_files()
    else:
        files = reader.view.files_of(index.removeprefix(index_of("")))
    for slice_ in reader.view.slices_among(files):
        at = epoch_ms(slice_.base_instant, utc)
        yield live_keys(reader, slice_), index_record(slice_.group, at)
