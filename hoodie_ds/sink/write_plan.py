"""What a write does, and to which table.

A `WritePlan` is all that the phases need which locate, stage, merge and write rows; it has no
instant. Before the shuffle it is made by reading alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import chain
from typing import TypeAlias

import pyarrow as pa

from hoodie_ds.columns.meta_columns import with_meta_columns
from hoodie_ds.config.concurrency import Concurrency
from hoodie_ds.config.enums import (
    DuplicatePolicy,
    LogBlockFormat,
    MergeMode,
    Operation,
    TableType,
)
from hoodie_ds.config.properties.table_properties import RECORD_INDEX, TableProperties
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import TimelineError, WriteConflictError
from hoodie_ds.formats.avro.evolution import evolved_avro
from hoodie_ds.formats.parquet.base_file_reader import MadeColumn
from hoodie_ds.index.protocol import Index, LookupIndex
from hoodie_ds.metadata_table.stored import MetadataTable
from hoodie_ds.record.field_path import resolve
from hoodie_ds.record.keys.keygen import KeyGenerator, KeySpec
from hoodie_ds.record.merge.concat_merger import ConcatMerger
from hoodie_ds.record.merge.hook_merger import HookMerger, merger_of
from hoodie_ds.record.merge.merger import Merger
from hoodie_ds.sink.row_change import RowChange
from hoodie_ds.sink.row_merge import RowMerge
from hoodie_ds.slices.file_slice_reader import FileSliceReader
from hoodie_ds.storage.protocol import FileStatus
from hoodie_ds.table.fs_view import FileSystemView, WholeView
from hoodie_ds.table.metadata_table import wanted_record_index
from hoodie_ds.table.schema_on_read import ALL_AS_NOW, ColumnHistory
from hoodie_ds.table.secondary_index import SecondaryIndex
from hoodie_ds.table.table import Table
from hoodie_ds.table.table_schema import virtual_keys
from hoodie_ds.timeline.instant import Action
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction.pending_action import write_action


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """What a write without rows does to the table's columns."""

    statement: tuple[bytes, ...]  # the changes, by which a repeated write is recognised
    before: pa.Schema  # the user columns that the table had
    first: str = ""  # those columns with numbers, as JSON, if the write is the first to number them
    added: tuple[str, ...] = ()  # columns that batches have added, by their names from now on
    changes: bool = False  # whether anything changes
    is_committed: bool = False  # whether the table has the write under its number already


Change: TypeAlias = RowChange | RowMerge
"""What a write does to the table's own rows."""


@dataclass(frozen=True)
class WriteView(WholeView):
    """A whole view for a write: files that others removed meanwhile are a conflict."""

    concurrency: Concurrency = field(default_factory=Concurrency)

    def _check(self, listed: list[FileStatus], partition_path: str | None = None) -> None:
        try:
            super()._check(listed, partition_path)
        except TimelineError as error:
            raise WriteConflictError(
                f"{error}; the batch is not committed and can be run again; "
                f"{self.concurrency.remedy}"
            ) from error


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """Shares of a task's memory, ``write.task.max.size``, in Arrow bytes.

    The limit covers all that a task holds for its rows, as in Hudi's Flink writer: buffers are half
    of it; the other half is for combining rows of one key and for encoding, which need copies.
    """

    buffer_bytes: int  # rows waiting to be written, of all file groups
    flush_bytes: int  # rows of one file group flushed together
    encode_bytes: int  # rows encoded as one row group or log block
    locating_bytes: int
    """Rows whose global keys are located together; as much again is for the result."""
    chunk_bytes: int  # rows taken at once
    lookup_bytes: int  # stored record keys that an index caches

    @classmethod
    def of(cls, options: WriteOptions) -> MemoryBudget:
        """Divide the limit of a write."""
        cap = options.task_max_bytes
        return cls(
            cap // 2,
            min(options.batch_bytes, cap // 4),
            cap // 8,
            max(1, cap // 4),
            cap // 16,
            cap // 8,
        )


@dataclass(frozen=True)
class WritePlan:
    """What a write does, and to which table; all that locating, staging and merging rows need."""

    table: Table
    timeline: Timeline
    options: WriteOptions
    operation: Operation
    index: Index | None  # None without record keys
    schema: pa.Schema  # the table's user columns once the rows are in
    key_generator: KeyGenerator  # makes record keys and partition paths
    declared: str | None = None  # Avro JSON of the columns before
    kept: tuple[str, ...] = ()  # columns that the rows lack, whose stored values stay
    rows_are_merged: bool = False  # one row a key, merged with the stored one
    rescales: bool = False  # whether the table has `index` only once the write is complete
    indexed: tuple[str, ...] = ()  # columns with statistics in the metadata table
    secondary: tuple[SecondaryIndex, ...] = ()  # indexes of columns in the metadata table
    history: ColumnHistory = ALL_AS_NOW  # under which names files have the columns
    numbered: str = ""  # the columns as commits number them, if they do
    columns: ColumnChange | None = None  # what becomes of the columns, if there are no rows
    change: Change | None = None  # what makes the rows from those of the table

    def __getstate__(self) -> dict[str, object]:
        """Send the fields alone; each process computes what follows from them."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @cached_property
    def keeps_record_index(self) -> bool:
        """Whether the metadata table has a record index, or gets one."""
        properties = self.table.properties
        is_there = RECORD_INDEX in properties.metadata_partitions
        return is_there or wanted_record_index(properties, self.options) is not None

    @cached_property
    def metadata(self) -> MetadataTable | None:
        """The metadata table by the write's timeline; None if there is none that may be read."""
        return MetadataTable.open(self.table, self.timeline)

    @property
    def view(self) -> FileSystemView:
        """The files of the table as the write sees it; files that it replaces may be missing."""
        if self.operation.replaces:
            return FileSystemView(self.table.storage, self.timeline, self.options.verify_checksums)
        return self.whole_view

    @property
    def whole_view(self) -> FileSystemView:
        """The files of the table as the write sees it; a missing file is an error."""
        options = self.options
        given = self.table.storage, self.timeline, options.verify_checksums
        return WriteView(*given, concurrency=options.concurrency)

    @cached_property
    def action(self) -> Action:
        """The action of the write's instant."""
        return write_action(self.table.properties, replaces=self.operation.replaces)

    @cached_property
    def budget(self) -> MemoryBudget:
        """The shares of a task's memory."""
        return MemoryBudget.of(self.options)

    @cached_property
    def looks_up(self) -> bool:
        """Whether the write needs to know which keys are stored."""
        checked = self.options.duplicate_policy is not DuplicatePolicy.NONE
        return self.operation.merges or (self.operation is Operation.INSERT and checked)

    @property
    def meets_stored_rows(self) -> bool:
        """Whether rows are merged with stored ones of their keys: when they are written, or read.

        Inserts into log files are, and into base files are rows of their own.
        """
        is_logged = self.table.properties.table_type is TableType.MERGE_ON_READ
        return self.operation.merges or is_logged

    @property
    def may_move_keys(self) -> bool:
        """Whether a file group may lose a key that another one gets.

        Changes by a filter leave rows where they are, and no merge inserts a key that is stored.
        """
        upserts = self.operation is Operation.UPSERT and self.change is None
        index = self.index
        return (
            upserts and isinstance(index, LookupIndex) and index.is_global and index.moves_records
        )

    @cached_property
    def taken_schema(self) -> pa.Schema:
        """The user columns that the write takes: a delete only those of keys and their order."""
        is_delete = self.operation is Operation.DELETE
        return needed_to_delete(self.schema, self.table.properties) if is_delete else self.schema

    @cached_property
    def stored_schema(self) -> pa.Schema:
        """The schema of data files: meta columns, then user columns."""
        return with_meta_columns(self.schema)

    @cached_property
    def avro_schema(self) -> str:
        """Avro schema of the user columns, as commits carry it."""
        return evolved_avro(self.schema, self.table.properties.name, self.declared)

    @cached_property
    def stored_avro_schema(self) -> str:
        """Avro schema of data files."""
        return evolved_avro(self.stored_schema, self.table.properties.name, self.declared)

    @cached_property
    def virtual_keys(self) -> MadeColumn | None:
        """Makes the record keys of stored rows, if files do not have them."""
        return virtual_keys(self.table.properties, self.schema)

    def slice_reader(self, view: FileSystemView) -> FileSliceReader:
        """Return the reader of file slices in a view of the table, such as `view`."""
        return FileSliceReader(
            view,
            self.stored_schema,
            self.stored_merger,
            self.ordering_fields,
            self.table.properties.delete_marker,
            self.virtual_keys,
            history=self.history,
        )

    @cached_property
    def stored_merger(self) -> Merger | HookMerger:
        """Merges what is stored in base and log files."""
        return merger_of(self.table.properties, self.options.merge_hook)

    @cached_property
    def merger(self) -> Merger | HookMerger | ConcatMerger:
        """Merges incoming records into stored ones; an insert adds them instead."""
        if self.operation.merges and not self.rows_are_merged:
            return self.stored_merger
        return ConcatMerger(self.stored_merger if self.combines else None)

    @property
    def writes_positions(self) -> bool:
        """Whether log blocks may say where their records are in the base file: from version 8."""
        return self.options.writes_positions and self.table.layout > 1

    @property
    def combines(self) -> bool:
        """Whether several incoming rows of a key become one."""
        wanted = self.operation.merges or self.options.combine_before_insert
        return wanted and not self.rows_are_merged

    @cached_property
    def log_block_format(self) -> LogBlockFormat:
        """How rows are encoded in log files.

        Hudi 1.2 on the JVM compares strings of Parquet blocks wrongly with other strings.
        """
        if self.options.log_block_format is not None:
            return self.options.log_block_format
        empty = self.schema.empty_table()
        kinds = [resolve(empty, path).type for path in self.ordering_fields]
        by_text = any(pa.types.is_string(kind) for kind in kinds)
        return LogBlockFormat.AVRO if by_text else LogBlockFormat.PARQUET

    @cached_property
    def ordering_fields(self) -> tuple[str, ...]:
        """Fields that the merger compares; none if the commit order decides."""
        properties = self.table.properties
        by_event_time = properties.merge_mode is MergeMode.EVENT_TIME_ORDERING
        return properties.ordering_fields if by_event_time else ()


def needed_to_delete(columns: pa.Schema, properties: TableProperties) -> pa.Schema:
    """Return the columns that a delete needs: those of keys, partitions and ordering.

    There is one at least, as a table of Arrow without columns has no rows.
    """
    keys = (properties.record_key_fields, properties.partition_fields, properties.ordering_fields)
    paths = set(chain.from_iterable(keys))
    needed = paths | {path.partition(".")[0] for path in paths}
    return pa.schema([field for field in columns if field.name in needed] or [*columns][:1])


def key_spec(properties: TableProperties, options: WriteOptions) -> KeySpec:
    """Describe a table's key generator.

    The encoding of a COMPLEX key with one field is the table's own if it records one, else the
    option's, else Hudi's for version 6 (``field:value``). Keys that are not stored are made as
    readers make them.
    """
    prefixed = properties.complex_key_prefixed
    if not properties.populate_meta_fields:
        prefixed = properties.makes_prefixed_keys
    elif prefixed is None:
        prefixed = not options.complex_keygen_new_encoding
    return KeySpec(
        kind=properties.key_generator,
        record_key_fields=properties.record_key_fields,
        partition_fields=_partition_fields(properties, options),
        hive_style=properties.hive_style,
        url_encode=properties.url_encode,
        timestamp_options={**properties.key_generator_options, **options.key_generator_options},
        consistent_logical_timestamp=bool(options.consistent_logical_timestamp),
        complex_key_prefixed=prefixed,
    )


def _partition_fields(properties: TableProperties, options: WriteOptions) -> tuple[str, ...]:
    """The table's partition fields, with the types that CUSTOM needs: its own, else the option's.

    In tables of version 6 Hudi itself records plain names.
    """
    given = options.partition_fields or ()
    typed = given if any(":" in field for field in given) else ()
    return properties.partition_field_specs or typed or properties.partition_fields
