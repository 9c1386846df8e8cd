"""A table at one moment, which its reader holds on to."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from hoodie_ds.columns.meta_columns import with_meta_columns
from hoodie_ds.config.enums import MergeMode
from hoodie_ds.errors import HoodieError
from hoodie_ds.filters.predicate import ALL, Predicate, columns_used
from hoodie_ds.log import Log
from hoodie_ds.metadata_table.listing import MetadataListing
from hoodie_ds.metadata_table.record_index import indexed_groups
from hoodie_ds.metadata_table.secondary_lookup import keys_of_values
from hoodie_ds.metadata_table.statistics import ColumnStatistics, partition_bounds
from hoodie_ds.metadata_table.stored import MetadataTable
from hoodie_ds.reader.pruner import Pruner
from hoodie_ds.slices.file_slice_reader import FileSliceReader
from hoodie_ds.storage.protocol import FileStatus, Storage
from hoodie_ds.table.file_slice import FileGroupId, FileSlice, group_of_file
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.table.live_files import check_nothing_is_missing, every, naming_remedies
from hoodie_ds.table.schema_on_read import ALL_AS_NOW, ColumnHistory
from hoodie_ds.table.table import Table, open_table
from hoodie_ds.table.table_schema import column_history, table_schema
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction.lost_instants import check_nothing_is_lost


@dataclass(frozen=True)
class PinnedTable:
    """A table at one moment, that of its timeline.

    `schema` has the five meta columns, then the user's; where files are without meta columns, only
    the user's, as in Hudi. `is_past` says that the user chose the moment: files may have been
    cleaned since. With `metadata` the metadata table lists the files, where there is one that has
    caught up. `history` says under which names files have the columns of `schema`.
    """

    table: Table
    timeline: Timeline
    schema: pa.Schema
    merge_hook: str | Callable[..., object] | None = None
    verify: bool = True
    is_past: bool = False
    metadata: bool = False
    history: ColumnHistory = ALL_AS_NOW

    @classmethod
    def latest(
        cls,
        storage: Storage,
        merge_hook: str | Callable[..., object] | None = None,
        verify: bool = True,
        metadata: bool = False,
    ) -> PinnedTable:
        """Open a table as it is now.

        `merge_hook`, or its import path, merges the rows of a table with merge mode CUSTOM;
        `verify` says whether files are compared with their commits' checksums, and `metadata`
        whether the metadata table may list files. Raises
        `TableNotFoundError`, `UnsupportedTableError`, or `OptionError` if a merge-on-read table
        needs a merge hook and none is given, or it cannot be imported.
        """
        table = open_table(storage)
        table.properties.check_readable()
        timeline = table.load_timeline()
        columns, history = _columns(table, timeline), column_history(table, timeline)
        pinned = cls(
            table, timeline, columns, merge_hook, verify, metadata=metadata, history=history
        )
        pinned.reader()  # refuses a merge hook that is missing
        return pinned

    def at(self, then: Timeline) -> PinnedTable:
        """Return the table as a timeline of its past has it, with the columns of that time.

        Before its first commit it has the present columns.
        """
        past = replace(self, timeline=then, is_past=True)
        if then.first_commit is None:
            return past
        history = column_history(self.table, then)
        return replace(past, schema=_columns(self.table, then), history=history)

    def with_columns_of(self, other: PinnedTable) -> PinnedTable:
        """Return the table with the columns that it has at another moment."""
        return replace(self, schema=other.schema, history=other.history)

    @property
    def _log(self) -> Log:
        return Log(self.table.storage.root)

    def slices(self, pruner: Pruner | None = None) -> Iterator[FileSlice]:
        """Latest file slices, partition by partition, without those that a pruner rules out.

        Raises `CorruptFileError` if a file of the slices, or the completed file of a commit, is
        missing, or a file is not as it was written.
        """
        view = self.view
        recorded = self._recorded(pruner) if self.metadata else None
        files = view.data_files() if recorded is None else recorded[1]
        if self.verify or self.is_past:
            check_nothing_is_lost(self.table, self.timeline)
            if recorded is None:
                check_nothing_is_missing(view.storage, view.timeline, {file.path for file in files})
        if pruner is not None:
            files = [file for file in files if pruner.keeps(file)]
        slices = view.slices_among(files)
        if recorded is not None and pruner is not None:
            slices = self._with_matches(recorded[0], list(slices), pruner)
        with naming_remedies(view.storage, view.timeline):
            yield from slices

    def _recorded(self, pruner: Pruner | None) -> tuple[MetadataTable, list[FileStatus]] | None:
        """The metadata table, and the files that it lists in the partitions that a pruner keeps.

        None if there is none, or if it is not complete: then only the folders tell what is wrong.
        """
        try:
            metadata = MetadataTable.open(self.table, self.timeline)
            listing = None if metadata is None else MetadataListing.of(metadata)
            if listing is None:
                return None
            kept = every if pruner is None else pruner.keeps_partition
            paths = [path for path in listing.partitions() if kept(path)]
            groups = self._indexed(listing.metadata, pruner, paths)
            keeps = _keeps(pruner, groups)
            paths = [path for path in paths if keeps(path)]
            out = frozenset[str]()
            if pruner is not None:
                out = frozenset(self._without_matches(listing.metadata, paths, pruner))
            files = listing.files([path for path in paths if path not in out])
            found = {file.path for file in files}
            among = partial(_is_among, keeps, out)
            check_nothing_is_missing(self.table.storage, self.timeline, found, among=among)
        except HoodieError as error:
            self._log.debug("the folders are listed, and not the metadata table: %s", error)
            return None
        if groups is not None:
            files = [file for file in files if group_of_file(file.path) in groups]
        return listing.metadata, files

    def _without_matches(
        self, metadata: MetadataTable, paths: Sequence[str], pruner: Pruner
    ) -> Iterator[str]:
        """Yield the partitions that statistics rule out.

        None where merging two rows may make a value that neither has, or where files have had a
        column under another name.
        """
        mode = self.table.properties.merge_mode
        if self.merge_hook is not None or self.history.since or mode is MergeMode.CUSTOM:
            return
        given = self.table.properties.partition_fields
        columns = [field for field in self._used(pruner) if field.name not in given]
        if not columns:
            return
        try:
            known = partition_bounds(metadata, paths, columns)
        except HoodieError as error:
            self._log.debug("no statistics of partitions are used: %s", error)
            return
        yield from (path for path in paths if not pruner.may_hold(path, known.get(path, {})))

    def _used(self, pruner: Pruner) -> list[pa.Field]:
        """The columns that a pruner's filter is about."""
        used = columns_used(pruner.predicate)
        return [field for field in self.schema if used is None or field.name in used]

    def _indexed(
        self, metadata: MetadataTable, pruner: Pruner | None, paths: Sequence[str]
    ) -> frozenset[FileGroupId] | None:
        """The file groups of the keys that a pruner keeps in partitions; None if not known."""
        if pruner is None or self.is_past:
            return None
        try:
            keys = self._keys(metadata, pruner)
            return None if keys is None else indexed_groups(self.table, metadata, keys, paths)
        except HoodieError as error:
            self._log.debug("no record index of the metadata table is used: %s", error)
            return None

    def _keys(self, metadata: MetadataTable, pruner: Pruner) -> Collection[str] | None:
        """The record keys that a pruner keeps, by its filter or by secondary indexes."""
        if pruner.keys is not None:
            return pruner.keys.keys
        if self.history != ALL_AS_NOW:
            return None
        return keys_of_values(self.table, metadata, pruner.predicate, self.schema)

    def _with_matches(
        self, metadata: MetadataTable, slices: Sequence[FileSlice], pruner: Pruner
    ) -> Iterator[FileSlice]:
        """Return the slices that statistics do not rule out.

        Those with log files stay, which may have any other values, and those with other names.
        """
        bases = (found.base for found in slices if found.base is not None and not found.logs)
        alone = [b for b in bases if self.history.renaming(b.name.instant_time) is None]
        try:
            known = ColumnStatistics(metadata).bounds(alone, self._used(pruner))
        except HoodieError as error:
            self._log.debug("no statistics of the metadata table are used: %s", error)
            known = {}
        return (found for found in slices if pruner.keeps_slice(found, known))

    def pruner(self, predicate: Predicate) -> Pruner | None:
        """Return what rules out files and rows that a predicate does not match, if anything."""
        table, properties = self.table, self.table.properties
        fields = (*properties.record_key_fields, *properties.partition_fields)
        # Keys and paths were made of the columns that had the names of the fields then.
        if predicate == ALL or not self.history.keeps({f.partition(".")[0] for f in fields}):
            return None
        return Pruner.of(predicate, properties, self.schema, table.storage, self.timeline)

    @property
    def view(self) -> FileSystemView:
        """Which files are visible."""
        return FileSystemView(self.table.storage, self.timeline, self.verify)

    def reader(
        self, view: FileSystemView | None = None, remembers: bool = False
    ) -> FileSliceReader:
        """Return the reader of the slices; `view` says which blocks of log files count."""
        return FileSliceReader.of(
            view or self.view,
            self.table.properties,
            self.schema,
            self.merge_hook,
            remembers,
            self.history,
        )


def _is_among(keeps: Callable[[str], bool], out: Collection[str], path: str) -> bool:
    """Whether a partition is one that a filter keeps and that is not left out."""
    return keeps(path) and path not in out


def _keeps(pruner: Pruner | None, groups: Collection[FileGroupId] | None) -> Callable[[str], bool]:
    """Which partitions a pruner keeps, of file groups if they are known."""
    keeps = every if pruner is None else pruner.keeps_partition
    if groups is None:
        return keeps
    paths = {group.partition_path for group in groups}
    return lambda path: path in paths and keeps(path)


def _columns(table: Table, timeline: Timeline) -> pa.Schema:
    columns = table_schema(table, timeline) or pa.schema([])
    return with_meta_columns(columns) if table.properties.populate_meta_fields else columns
