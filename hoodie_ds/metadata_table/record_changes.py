"""Records of the partition ``record_index``: where an instant leaves record keys.

They are made from data files, so that a recovery makes them too. The keys that a write adds to file
groups, and takes from them, are compared with the index; a compaction moves none. Keys that a write
has moved which is rolled back get the records that the metadata table has without that write. Where
something came after it, and after a restore, the whole index is compared with the rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from hoodie_ds.columns.meta_columns import with_meta_columns, without_meta_columns
from hoodie_ds.config.properties.table_properties import RECORD_INDEX
from hoodie_ds.formats.avro.schema import avro_to_arrow
from hoodie_ds.metadata_table.listing import MetadataListing
from hoodie_ds.metadata_table.payload import Record
from hoodie_ds.metadata_table.record_index import group_of, index_record
from hoodie_ds.metadata_table.stored import MetadataTable
from hoodie_ds.metadata_table.trust import may_be_listed
from hoodie_ds.slices.file_slice_reader import FileSliceReader
from hoodie_ds.slices.slice_keys import NO_KEYS, live_keys, logged_keys, without
from hoodie_ds.storage.protocol import FileStatus
from hoodie_ds.table.file_slice import FileGroupId, FileSlice, group_of_file
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.table.table import Table
from hoodie_ds.table.table_schema import column_history, declared_avro
from hoodie_ds.timeline.bodies.commit_metadata import WriteStat
from hoodie_ds.timeline.file_changes import FileChanges, file_changes
from hoodie_ds.timeline.instant import WRITE_ACTIONS, Action, Instant, State
from hoodie_ds.timeline.instant_time import epoch_ms
from hoodie_ds.timeline.rollbacks import undone_by
from hoodie_ds.timeline.timeline import Timeline

Records = dict[str, Record | None]
"""Records by record key; None of keys without a row."""


def record_changes(table: Table, instant: Instant, changes: FileChanges) -> Records:
    """Return the records of what an instant did that is about to be completed.

    There are none if the metadata table knows the instant: its files may be gone by now.
    """
    if RECORD_INDEX not in table.properties.metadata_partitions:
        return {}
    metadata = MetadataTable.open(table, table.load_timeline())
    if metadata is None or metadata.timeline.commit_at(instant.time) is not None:
        return {}
    if undone := undone_by(table.storage, instant):
        return _undone(table, metadata, instant, undone)
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
    before = _Slices.before(table, metadata, touched, changes.schema)
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


@dataclass(frozen=True)
class _Completing(FileSystemView):
    """A view in which an instant is complete that is about to be, with the files at some paths."""

    time: str = ""
    paths: Collection[str] = ()

    def is_committed(self, time: str) -> bool:
        """See `FileSystemView.is_committed`."""
        return time == self.time or super().is_committed(time)

    def names(self, instant_time: str, path: str) -> bool:
        """See `FileSystemView.names`."""
        if instant_time == self.time:
            return path in self.paths
        return super().names(instant_time, path)


@dataclass(frozen=True)
class _Slices:
    """Some file groups at one moment: their files by path, and their latest slices."""

    reader: FileSliceReader
    files: Mapping[str, FileStatus]

    @classmethod
    def before(
        cls, table: Table, metadata: MetadataTable, groups: Collection[FileGroupId], schema: str
    ) -> _Slices:
        """Return file groups as they are before a write, whose schema may be new."""
        reader = _reader(table, metadata.data, schema)
        listing = MetadataListing.of(metadata)
        paths = {group.partition_path for group in groups}
        if listing is not None:
            listed = listing.files(paths)
        else:
            listed = [status for path in paths for status in reader.view.files_of(path)]
        return cls(reader, {one.path: one for one in listed if group_of_file(one.path) in groups})

    def after(self, time: str, changes: FileChanges) -> _Slices:
        """Return them as they are once the write of a time is complete."""
        old, paths = self.reader.view, changes.added.keys()
        view = _Completing(old.storage, old.timeline, old.verify, time=time, paths=paths)
        added = {path: FileStatus(path, one.file_size_bytes) for path, one in changes.added.items()}
        return _Slices(replace(self.reader, view=view), {**self.files, **added})

    @cached_property
    def latest(self) -> Mapping[FileGroupId, FileSlice]:
        """The latest slice of each file group that has one."""
        return {one.group: one for one in self.reader.view.slices_among(self.files.values())}

    def keys(self, group: FileGroupId) -> pa.Array:
        """Return the record keys of a file group's rows."""
        return live_keys(self.reader, self.latest[group]) if group in self.latest else NO_KEYS


def _undone(
    table: Table, metadata: MetadataTable, undoing: Instant, times: Collection[str]
) -> Records:
    """Return the records that bring back the index of before some instants."""
    data = metadata.data
    others = tuple(instant for instant in data.pending if instant.time not in times)
    later = replace(metadata, data=replace(data, pending=others))
    if undoing.action is Action.RESTORE:
        return _differing(table, metadata, later)
    (time,) = times
    if metadata.timeline.commit_at(time) is None and not may_be_listed(metadata, time):
        return {}
    if not _is_newest(metadata, time):
        return _differing(table, metadata, later)
    dead = table.instant(time, Action.COMMIT, State.INFLIGHT)
    earlier = replace(metadata, data=replace(data, pending=(*others, dead)))
    slices = metadata.slices(RECORD_INDEX)
    moved = {key for slice_ in slices for key, _ in later.logged(slice_, times=times)}
    stored = earlier.by_key(RECORD_INDEX, moved)
    return {key: stored.get(key) for key in moved}


def _is_newest(metadata: MetadataTable, time: str) -> bool:
    """Whether an instant was the last to change the index, and no compaction has included it."""
    storage = metadata.view.storage
    for instant in metadata.timeline.commits_backwards():
        added = file_changes(storage, instant).added.items()
        named = {path for path, stat in added if stat.partition_path == RECORD_INDEX}
        if named:
            slices = metadata.slices(RECORD_INDEX)
            there = {log.path for slice_ in slices for log in slice_.logs}
            return instant.time == time and named <= there
    return False


def _differing(table: Table, metadata: MetadataTable, later: MetadataTable) -> Records:
    """Return the records in which the index differs from the rows of the table.

    The index is as it will be without them, and the rows are those without what is undone.
    """
    stored = later.by_key(RECORD_INDEX)
    there = dict(stored_places(table, metadata.data))
    records: Records = {key: None for key in stored if key not in there}
    for key, record in there.items():
        if key not in stored or group_of(stored[key]) != group_of(record):
            records[key] = record
    return records


def stored_places(table: Table, timeline: Timeline) -> Iterator[tuple[str, Record]]:
    """Yield the record keys of all rows of a table; those of a file group have the same record."""
    reader, utc = _reader(table, timeline), table.properties.timeline_in_utc
    for slice_ in reader.view.slices_among(reader.view.data_files()):
        record = index_record(slice_.group, epoch_ms(slice_.base_instant, utc))
        yield from ((key, record) for key in live_keys(reader, slice_).to_pylist())


def _reader(table: Table, timeline: Timeline, schema: str = "") -> FileSliceReader:
    view = FileSystemView(table.storage, timeline, verify=False)
    declared = schema or declared_avro(table, timeline)
    columns = without_meta_columns(avro_to_arrow(declared)) if declared else pa.schema([])
    properties = table.properties
    kept = with_meta_columns(columns) if properties.populate_meta_fields else columns
    history = column_history(table, timeline)
    return FileSliceReader.of(view, properties, kept, history=history)
