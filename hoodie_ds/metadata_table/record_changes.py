"""Records of the partition ``record_index``: where an instant leaves record keys.

They are made from data files, so that a recovery makes them too. The keys that a write adds to file
groups, and takes from them, are compared with the index; a compaction moves none.
"""

from __future__ import annotations

from collections.abc import Iterator

from hoodie_ds.config.properties.table_properties import RECORD_INDEX
from hoodie_ds.metadata_table.payload import Record
from hoodie_ds.metadata_table.record_index import group_of, index_record
from hoodie_ds.metadata_table.stored import MetadataTable
from hoodie_ds.metadata_table.touched_slices import TouchedSlices, slice_reader
from hoodie_ds.metadata_table.undone_records import Records, undone_records
from hoodie_ds.slices.slice_keys import live_keys, logged_keys, without
from hoodie_ds.table.file_slice import FileGroupId, FileSlice
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.bodies.commit_metadata import WriteStat
from hoodie_ds.timeline.file_changes import FileChanges
from hoodie_ds.timeline.instant import WRITE_ACTIONS, Instant
from hoodie_ds.timeline.instant_time import epoch_ms
from hoodie_ds.timeline.rollbacks import undone_by
from hoodie_ds.timeline.timeline import Timeline


def record_changes(
    table: Table, metadata: MetadataTable, instant: Instant, changes: FileChanges
) -> Records:
    """Return the records of what an instant did that is about to be completed."""
    if undone := undone_by(table.storage, instant):
        return undone_records(
            table, metadata, RECORD_INDEX, instant, undone, stored_places, group_of
        )
    moves_keys = changes.replaced or (changes.added and not changes.is_rewrite)
    if instant.action not in WRITE_ACTIONS or not moves_keys:
        return {}
    return _written(table, metadata, instant, changes)


def _written(
    table: Table, metadata: MetadataTable, instant: Instant, changes: FileChanges
) -> Records:
    stats = sorted(changes.added.values(), key=lambda one: one.log is None)
    added = {FileGroupId(one.partition_path, one.file_id): one for one in stats}
    replaced = {FileGroupId(*one) for one in changes.replaced_groups}
    touched = {*added, *replaced}
    before = TouchedSlices.before(table, metadata, touched, changes.schema)
    after = before.after(instant.time, changes)
    places: dict[str, FileGroupId] = {}
    gone: set[str] = set()
    for group in () if changes.is_rewrite else replaced:
        gone.update(before.keys(group).to_pylist())
    for group, stat in added.items():
        if _only_updates(stat, before.latest.get(group)):
            continue
        if stat.log is not None:
            found, lost = logged_keys(after.reader, after.latest[group], instant.time)
        else:
            new, old = after.keys(group), before.keys(group)
            found, lost = without(new, old), without(old, new)
        places |= dict.fromkeys(found.to_pylist(), group)
        gone.update(lost.to_pylist())
    if not (places or gone):
        return {}
    stored = metadata.by_key(RECORD_INDEX, {*places, *gone})
    known = {key: group_of(record) for key, record in stored.items()}
    at = epoch_ms(instant.time, table.properties.timeline_in_utc)
    records: Records = {
        key: index_record(group, at) for key, group in places.items() if known.get(key) != group
    }
    # A key may be elsewhere for long, and a file group have no more of it than its delete.
    return records | {key: None for key in gone - places.keys() if known.get(key) in touched}


def _only_updates(stat: WriteStat, older: FileSlice | None) -> bool:
    """Whether a base file has the keys of the slice before it."""
    if stat.log is not None or older is None or older.logs:
        return False
    return stat.prev_commit == older.base_instant and not (stat.num_inserts or stat.num_deletes)


def stored_places(table: Table, timeline: Timeline) -> Iterator[tuple[str, Record]]:
    """Yield the record keys of all rows of a table; those of a file group have the same record."""
    reader = slice_reader(table, timeline)
    utc = table.properties.timeline_in_utc
    for slice_ in reader.view.slices_among(reader.view.data_files()):
        record = index_record(slice_.group, epoch_ms(slice_.base_instant, utc))
        yield from ((key, record) for key in live_keys(reader, slice_).to_pylist())
