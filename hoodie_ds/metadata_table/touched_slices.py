"""The file slices that a write touches, before it and after it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from hoodie_ds.columns.meta_columns import with_meta_columns, without_meta_columns
from hoodie_ds.formats.avro.schema import avro_to_arrow
from hoodie_ds.metadata_table.listing import MetadataListing
from hoodie_ds.metadata_table.stored import MetadataTable
from hoodie_ds.slices.file_slice_reader import FileSliceReader
from hoodie_ds.slices.slice_keys import NO_KEYS, live_keys
from hoodie_ds.storage.protocol import FileStatus
from hoodie_ds.table.file_slice import FileGroupId, FileSlice, group_of_file
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.table.table import Table
from hoodie_ds.table.table_schema import column_history, declared_avro
from hoodie_ds.timeline.file_changes import FileChanges
from hoodie_ds.timeline.timeline import Timeline


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
class TouchedSlices:
    """Some file groups at one moment: their files by path, and their latest slices."""

    reader: FileSliceReader
    files: Mapping[str, FileStatus]
    groups: Collection[FileGroupId]

    @classmethod
    def before(
        cls, table: Table, metadata: MetadataTable, groups: Collection[FileGroupId], schema: str
    ) -> TouchedSlices:
        """Return file groups as they are before a write, whose schema may be new."""
        reader = slice_reader(table, metadata.data, schema)
        listing = MetadataListing.of(metadata)
        paths = {group.partition_path for group in groups}
        if listing is not None:
            listed = listing.files(paths)
        else:
            listed = [status for path in paths for status in reader.view.files_of(path)]
        files = {one.path: one for one in listed if group_of_file(one.path) in groups}
        return cls(reader, files, groups)

    def after(self, time: str, changes: FileChanges) -> TouchedSlices:
        """Return them as they are once the write of a time is complete."""
        old, paths = self.reader.view, changes.added.keys()
        view = _Completing(old.storage, old.timeline, old.verify, time=time, paths=paths)
        added = {
            path: FileStatus(path, one.file_size_bytes)
            for path, one in changes.added.items()
            if FileGroupId(one.partition_path, one.file_id) in self.groups
        }
        return TouchedSlices(replace(self.reader, view=view), {**self.files, **added}, self.groups)

    @cached_property
    def latest(self) -> Mapping[FileGroupId, FileSlice]:
        """The latest slice of each file group that has one."""
        return {one.group: one for one in self.reader.view.slices_among(self.files.values())}

    def keys(self, group: FileGroupId) -> pa.Array:
        """Return the record keys of a file group's rows."""
        return live_keys(self.reader, self.latest[group]) if group in self.latest else NO_KEYS


def slice_reader(table: Table, timeline: Timeline, schema: str = "") -> FileSliceReader:
    """Return the reader of a table with the columns of a schema, by default its own."""
    view = FileSystemView(table.storage, timeline, verify=False)
    declared = schema or declared_avro(table, timeline)
    columns = without_meta_columns(avro_to_arrow(declared)) if declared else pa.schema([])
    properties = table.properties
    kept = with_meta_columns(columns) if properties.populate_meta_fields else columns
    history = column_history(table, timeline)
    return FileSliceReader.of(view, properties, kept, history=history)
