"""What `Coordinator.begin` decides for one batch and hands to its tasks.

A `Batch` is pickled into every task, so that all of them, and every further attempt of each, see
the same table and make the same decisions. It comes back with their messages, so that the process
that commits needs no memory of its own (RFC-24: the coordinator's state is on the timeline).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from hoodie_ds.config.enums import (
    DuplicatePolicy,
    IndexType,
    LogBlockFormat,
    MergeMode,
    Operation,
    TableType,
)
from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.formats.avro.schema import arrow_to_avro
from hoodie_ds.index.bucket_layout import BucketLayout
from hoodie_ds.index.choice import keys_are_global
from hoodie_ds.record.field_path import resolve
from hoodie_ds.record.keys.keygen import KeyGenerator, KeySpec
from hoodie_ds.record.merge.concat import Concat
from hoodie_ds.record.merge.hook_rule import HookMerger, merger_of
from hoodie_ds.record.merge.rule import Merger
from hoodie_ds.record.meta_columns import with_meta_columns
from hoodie_ds.sink.replay_guard import BatchId, ReplayGuard
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.instant import Action
from hoodie_ds.timeline.timeline import Timeline


@dataclass(frozen=True)
class Batch:
    """One batch to be written.

    Parameters
    ----------
    table : Table
        The table.
    options : WriteOptions
        How to write.
    operation : Operation
        What to do with the rows.
    index : IndexType or None
        How the file group of a key is found; None in a table without record keys.
    layout : BucketLayout or None
        The buckets of a bucket index.
    schema : pyarrow.Schema
        The table's user columns once this batch is in.
    timeline : Timeline
        The table as this batch sees it.
    guard : ReplayGuard
        What was committed before.
    proposed_time : str
        Instant time to open, if it is still free.
    attempt : str
        A text that no other attempt to write a batch has.
    owner : str
        Who opens the instant: this attempt, or that of an earlier micro-batch of the instant.
    creation_ms : int or None
        Time, in milliseconds since the Unix epoch, at which the table is created by the batch's
        first row, or by its commit if there is none; None for a table that is there.
    """

    table: Table
    options: WriteOptions
    operation: Operation
    index: IndexType | None
    layout: BucketLayout | None
    schema: pa.Schema
    timeline: Timeline
    guard: ReplayGuard
    proposed_time: str
    attempt: str
    owner: str
    creation_ms: int | None

    def __post_init__(self) -> None:
        """Refuse a merge hook that cannot be had, before anything is written."""
        _ = self.merger

    @property
    def given_id(self) -> BatchId | None:
        """The identity that options give a batch write."""
        writer, number = self.options.checkpoint_identifier, self.options.batch_identifier
        return None if writer is None or number is None else BatchId(writer, number)

    @property
    def view(self) -> FileSystemView:
        """The files of the table as this batch sees it."""
        return FileSystemView(self.table.storage, self.timeline, self.options.verify_checksums)

    @property
    def action(self) -> Action:
        """The action of the batch's instant."""
        return write_action(self.table.properties, self.operation)

    @property
    def has_global_keys(self) -> bool:
        """Whether a record key is unique in the whole table rather than in its partition."""
        index = self.index
        return index is not None and keys_are_global(index, self.table.properties, self.options)

    @property
    def moves_records(self) -> bool:
        """Whether a record moves when a row says another partition than the one it is in."""
        match self.index:
            case IndexType.GLOBAL_BLOOM:
                return self.options.bloom_moves_records
            case IndexType.GLOBAL_SIMPLE:
                return self.options.simple_moves_records
        return self.has_global_keys

    @property
    def looks_up(self) -> bool:
        """Whether it matters which keys are stored."""
        checked = self.options.duplicate_policy is not DuplicatePolicy.NONE
        return self.operation.merges or (self.operation is Operation.INSERT and checked)

    @cached_property
    def stored_schema(self) -> pa.Schema:
        """The schema of data files: meta columns, then user columns."""
        return with_meta_columns(self.schema)

    @cached_property
    def avro_schema(self) -> str:
        """Avro schema of the user columns, as commits carry it."""
        return arrow_to_avro(self.schema, self.table.properties.name)

    @cached_property
    def stored_avro_schema(self) -> str:
        """Avro schema of data files."""
        return arrow_to_avro(self.stored_schema, self.table.properties.name)

    @cached_property
    def key_generator(self) -> KeyGenerator:
        """Makes record keys and partition paths."""
        return KeyGenerator.of(key_spec(self.table.properties, self.options))

    @property
    def stored_merger(self) -> Merger | HookMerger:
        """Merges what is stored in base and log files."""
        return merger_of(self.table.properties, self.options.merge_hook)

    @property
    def merger(self) -> Merger | HookMerger | Concat:
        """Merges records of the batch into what is stored; an insert puts them beside it."""
        if self.operation.merges:
            return self.stored_merger
        return Concat(self.stored_merger if self.options.combine_before_insert else None)

    @property
    def log_block_format(self) -> LogBlockFormat:
        """How rows are encoded in log files.

        Hudi 1.2 on the JVM compares text from parquet blocks wrongly with text from elsewhere.
        """
        if self.options.log_block_format is not None:
            return self.options.log_block_format
        empty = self.schema.empty_table()
        kinds = [resolve(empty, path).type for path in self.ordering_fields]
        by_text = any(pa.types.is_string(kind) for kind in kinds)
        return LogBlockFormat.AVRO if by_text else LogBlockFormat.PARQUET

    @property
    def ordering_fields(self) -> tuple[str, ...]:
        """Fields that the merger compares; none where the commit order decides."""
        properties = self.table.properties
        by_event_time = properties.merge_mode is MergeMode.EVENT_TIME_ORDERING
        return properties.ordering_fields if by_event_time else ()


def write_action(properties: TableProperties, operation: Operation) -> Action:
    """Return the action of instants that an operation opens."""
    if operation.replaces:
        return Action.REPLACE_COMMIT
    cow = properties.table_type is TableType.COPY_ON_WRITE
    return Action.COMMIT if cow else Action.DELTA_COMMIT


def key_spec(properties: TableProperties, options: WriteOptions) -> KeySpec:
    """Describe a table's key generator.

    The encoding of a COMPLEX key with one field is the table's own where it records one, else the
    option's, else Hudi's for version 6 (``field:value``).
    """
    prefixed = properties.complex_key_prefixed
    if prefixed is None:
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
