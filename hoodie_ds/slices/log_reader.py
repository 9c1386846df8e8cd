"""Log files of a slice to records, in the order in which they are merged.

A block counts if the commit of its instant is complete and, where that commit is on the active
timeline, names the file; blocks of other instants are those of failed or unfinished writes. Blocks
that a rollback command names do not count either (Hudi tech spec, "log format").
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.meta_columns import IS_DELETED, PARTITION_PATH, RECORD_KEY, ROW_OPERATION
from hoodie_ds.errors import CorruptFileError, NotFoundError, SchemaError, UnsupportedTableError
from hoodie_ds.formats.log.data_block import decode_data_block
from hoodie_ds.formats.log.delete_block import decode_delete_block
from hoodie_ds.formats.log.log_block import BlockType, HeaderKey, LogBlock, read_blocks
from hoodie_ds.formats.parquet.base_file_reader import MadeColumn
from hoodie_ds.formats.schema_conversion import conform, of_file
from hoodie_ds.formats.timestamp_repair import relabelled
from hoodie_ds.hints import COPY
from hoodie_ds.record.deletes import DeleteMarker, deletes_among
from hoodie_ds.record.field_path import resolve
from hoodie_ds.record.merge.merger import RecordSet
from hoodie_ds.slices.merge_outcomes import BlockId
from hoodie_ds.slices.uncommitted_logs import (
    is_uncommitted,
    refuse_rolled_back,
    was_never_committed,
)
from hoodie_ds.storage.memory_map import release
from hoodie_ds.table.block_order import BlockPlace, in_order
from hoodie_ds.table.file_slice import LogFile
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.table.schema_on_read import ALL_AS_NOW, ColumnHistory
from hoodie_ds.timeline.paths import TEMP, instant_of_temporary, marked_file

_DATA = (BlockType.AVRO_DATA, BlockType.PARQUET_DATA)

HELD_BYTES: Final = 64 << 20
"""Bytes of log files that are held in memory by default."""


class BlockRecords(NamedTuple):
    """The records of a block: its instant, its file, and its number among all of its blocks."""

    instant: str
    log: LogFile
    number: int
    records: RecordSet
    header: Mapping[int, str]


class OpenLogs(NamedTuple):
    """The blocks of log files that count, in the order of merging, and all blocks that are held."""

    places: tuple[BlockPlace, ...]
    files: Mapping[LogFile, list[LogBlock]]

    @property
    def are_partial(self) -> bool:
        """Whether a block has rows with some of the columns only."""
        return any(place.is_partial for place in self.places)


ColumnsOf: TypeAlias = Callable[[BlockPlace, LogBlock], Collection[str]]
"""Which columns of a block are needed; none if it is not."""


@dataclass(frozen=True)
class LogReader:
    """Reads log files into records of one schema.

    `schema` has the columns to read, with ``_hoodie_record_key`` and those of the ordering fields,
    which are empty where the commit order decides. `delete_marker` is a column and its value that
    makes a row a delete; `virtual_keys` makes record keys where log files are without them.

    If log files have more than `held_bytes`, one at a time is opened, twice, and the parsed part of
    a large one held. `only_commits` counts in blocks of Parquet: Hudi filters those as it reads
    them, and neither rows of Avro blocks nor deletes. `history` says under which names blocks have
    the columns.
    """

    view: FileSystemView
    schema: pa.Schema
    ordering_fields: tuple[str, ...]
    delete_marker: DeleteMarker | None
    virtual_keys: MadeColumn | None = None
    held_bytes: int = HELD_BYTES
    only_commits: tuple[str, ...] | None = None
    history: ColumnHistory = ALL_AS_NOW

    def read(self, logs: tuple[LogFile, ...]) -> Iterator[RecordSet]:
        """Yield the records of all blocks that count, one set per block.

        Raises `UnsupportedTableError` if a block has an unknown kind, and `TimelineError` if a
        commit that counts was rolled back meanwhile.
        """
        return (block.records for block in self.by_block(logs))

    def by_block(self, logs: tuple[LogFile, ...]) -> Iterator[BlockRecords]:
        """Yield the records of all blocks that count, block by block; raises as `read`."""
        return self.records(self.open(logs))

    def open(self, logs: tuple[LogFile, ...]) -> OpenLogs:
        """Return the blocks that count; raises as `read`."""
        held = sum(log.size for log in logs) <= self.held_bytes
        files = {log: self._blocks(log) for log in logs} if held else {}
        rolled_back, places = set(), []
        for log in logs:
            for number, block in enumerate(files[log] if held else self._blocks(log)):
                if block.block_type is BlockType.COMMAND:
                    rolled_back.add(block.header.get(HeaderKey.TARGET_INSTANT_TIME))
                elif block.block_type is not BlockType.CORRUPT:
                    places.append(BlockPlace.of(log, number, block))
        refuse_rolled_back(self.view, rolled_back)
        counted = [p for p in places if p.time not in rolled_back and self._counts(p)]
        return OpenLogs(tuple(in_order(counted)), files)

    def records(
        self,
        logs: OpenLogs,
        among: Container[BlockId] | None = None,
        columns_of: ColumnsOf | None = None,
    ) -> Iterator[BlockRecords]:
        """Yield the records of opened log files, block by block.

        If given, of the blocks `among` them, and with the `columns_of` each, which are asked last;
        others are null.
        """
        opened, blocks = None, list[LogBlock]()
        for place in logs.places:
            log = place.log
            if among is not None and (log.path, place.number) not in among:
                continue
            if log is not opened:
                opened, blocks = log, logs.files.get(log) or self._blocks(log)
            block = blocks[place.number]
            columns = self.schema.names if columns_of is None else columns_of(place, block)
            if columns:
                records = self._records(place, block, columns)
                yield BlockRecords(place.time, log, place.number, records, block.header)
            release(block.content)

    def _blocks(self, log: LogFile) -> list[LogBlock]:
        """Read a log file, also one that is being written, or that a killed writer left.

        Returns nothing of a file that was never committed and was rolled back after the listing.
        """
        try:
            data = self.view.read_log(log)
        except NotFoundError:
            if was_never_committed(self.view, log):
                return []
            raise
        try:
            return list(read_blocks(data, log.path))
        except CorruptFileError:
            if self._is_unfinished(log.path) or is_uncommitted(self.view, log):
                return list(read_blocks(data, log.path, lenient=True))
            with suppress(NotFoundError):
                if self.view.storage.read(log.path) == data:
                    raise
        return self._blocks(log)  # it was being written, and its commit or rollback came in between

    def _is_unfinished(self, path: str) -> bool:
        """Whether a marker announces a file that no visible commit names."""
        for status in self.view.storage.list(TEMP, recursive=True):
            time = instant_of_temporary(status.path)
            if time is not None and marked_file(time, status.path) == path:
                return not (self.view.is_committed(time) and self.view.names(time, path))
        return False

    def _counts(self, place: BlockPlace) -> bool:
        counts = self.only_commits is None or place.time in self.only_commits
        if place.block_type is BlockType.PARQUET_DATA and not counts:
            return False
        return self.view.is_committed(place.time) and self.view.names(place.time, place.log.path)

    def _records(self, place: BlockPlace, block: LogBlock, columns: Collection[str]) -> RecordSet:
        log = place.log
        if block.block_type is BlockType.DELETE:
            return self._deletes(decode_delete_block(block, log.path), log.path)
        if block.block_type not in _DATA:
            raise UnsupportedTableError(
                f"{log.path} holds a block of kind {block.block_type}, which this release does "
                "not read; compact the table with the engine that wrote it"
            )
        trusted = partial(self.view.vouches_for, place.time, log.path)
        renaming, needed = self.history.renaming(place.time), self._needed(columns)
        if renaming is None:
            rows = decode_data_block(block, log.path, trusted, needed)
        else:
            rows = decode_data_block(block, log.path, trusted, renaming.stored(needed))
            rows = renaming.renamed(rows)
        deleted = deletes_among(rows, self.delete_marker)
        lacking = None
        if block.is_partial:
            absent = [n not in (*rows.column_names, RECORD_KEY) for n in self.schema.names]
            lacking = np.tile(np.array(absent, dtype=np.bool_), (rows.num_rows, 1))
        made = self.virtual_keys
        sources = self.schema if made is None else made.sources(self.schema)
        try:
            rows = conform(relabelled(rows, sources), sources)
        except SchemaError as error:
            raise of_file(error, log.path) from error
        rows = rows if made is None else made.complete(rows, self.schema)
        ordering = tuple(resolve(rows, p) for p in self.ordering_fields)
        return RecordSet(rows, deleted, ordering, lacking=lacking)

    def _needed(self, columns: Collection[str]) -> frozenset[str]:
        """Columns that records with some columns are made of, where a block has them."""
        schema = pa.schema([field for field in self.schema if field.name in columns])
        sources = schema if self.virtual_keys is None else self.virtual_keys.sources(schema)
        marker = () if self.delete_marker is None else self.delete_marker[:1]
        return frozenset({*columns, *sources.names, IS_DELETED, ROW_OPERATION, *marker})

    def _deletes(self, entries: pa.Table, path: str) -> RecordSet:
        keys = {
            RECORD_KEY: entries.column("record_key"),
            PARTITION_PATH: entries.column("partition_path"),
        }
        rows = conform(pa.table(keys), self.schema)
        deleted = np.ones(rows.num_rows, dtype=np.bool_)
        return RecordSet(rows, deleted, self._ordering(rows, entries.column("ordering"), path))

    def _ordering(
        self, rows: pa.Table, values: pa.ChunkedArray, path: str
    ) -> tuple[pa.ChunkedArray, ...]:
        """The deletes' ordering values in the fields' types; null in an unconditional delete."""
        fields = self.ordering_fields
        columns = [values]
        if pa.types.is_struct(values.type):
            columns = [pc.struct_field(values, [i]) for i in range(values.type.num_fields)]
        elif pa.types.is_null(values.type):
            columns = [values] * len(fields)
        if fields and len(columns) != len(fields):
            raise UnsupportedTableError(
                f"{path}: its deletes have {len(columns)} ordering values each, but the table has "
                f"the ordering fields {', '.join(fields)}; compact the table with the engine that "
                "wrote it"
            )
        kinds = [resolve(rows, field).type for field in fields]
        try:
            return tuple(column.cast(kind) for column, kind in zip(columns, kinds, strict=False))
        except pa.ArrowException as error:
            raise CorruptFileError(
                f"{path}: the ordering values of its deletes do not fit {', '.join(fields)} "
                f"({str(error)[:200]})",
                COPY,
                path,
            ) from error
