"""Appends a batch's records to a file group as a log file of its own (merge-on-read)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.arrow_columns import Mask, Numbers, as_numpy
from hoodie_ds.columns.meta_columns import RECORD_KEY
from hoodie_ds.config.enums import LogBlockFormat
from hoodie_ds.formats.log.data_block import encode_avro_block, encode_parquet_block, in_blocks
from hoodie_ds.formats.log.delete_block import encode_delete_block
from hoodie_ds.formats.log.record_positions import located
from hoodie_ds.formats.schema_conversion import conform
from hoodie_ds.handles.context import WriteContext, WriteStatus
from hoodie_ds.handles.data_file import ensure_partition_metafile, open_data_file
from hoodie_ds.handles.stamp import fill_meta_columns
from hoodie_ds.record.merge.merger import RecordSet
from hoodie_ds.table.file_name import LogFileName
from hoodie_ds.table.file_slice import FileGroupId
from hoodie_ds.timeline.bodies.commit_metadata import LogWrite, WriteStat
from hoodie_ds.timeline.paths import in_partition


@dataclass(frozen=True, slots=True)
class LogTarget:
    """The file slice that a log file joins."""

    group: FileGroupId
    base_instant: str  # the slice's; the writer's own time if the group is new
    base_file: str  # its name, empty if the slice has none
    version: int  # higher than that of any log file of the slice
    is_new: bool  # whether the file group begins with this log file
    named_after: str = ""  # instant in the file name if not `base_instant`; see `table.slicing`
    located_in: str = ""  # instant of the base file that positions of records are of
    slice_logs: tuple[str, ...] = ()
    """Names of the slice's log files, if the commit must name them: a CDC query of this commit
    reads the slice without the new log file (Hudi's ``getDependentFileSlice...``)."""


class AppendHandle:
    """One log file of one file group and one batch (Hudi's ``HoodieAppendHandle``).

    Each batch writes a new log file and never appends to one that another writer may hold, so the
    handle's whole output appears or vanishes with its instant (RFC-24; HUDI-2450).
    """

    def __init__(self, context: WriteContext, target: LogTarget) -> None:
        self._context = context
        self._target = target
        token = context.log_token(target.version)
        named = target.named_after or target.base_instant
        self._name = str(LogFileName(target.group.file_id, named, target.version, token))
        self._path = in_partition(target.group.partition_path, self._name)
        self._ranges = context.new_ranges()
        self._num_live = 0
        self._num_deletes = 0
        self._num_blocks = 0
        if target.is_new:
            ensure_partition_metafile(context, target.group.partition_path)
        # Hudi refuses to roll back an instant of layout 2 with an APPEND marker.
        kind = "APPEND" if context.shares_log_files else "CREATE"
        self._opened = open_data_file(context, self._path, kind)
        self._output = self._opened.__enter__()

    @property
    def target(self) -> LogTarget:
        """The slice that the file joins."""
        return self._target

    @property
    def bytes_written(self) -> int:
        """Bytes in the file so far."""
        return self._output.size

    def write(self, records: RecordSet, positions: Numbers | None = None) -> None:
        """Add one record per key: deletes that precede their row, then rows, then deletes.

        `positions` are those of the keys in the base file, negative where they are unknown; the
        records of a block are in their order.
        """
        if positions is None:
            positions = np.full(records.num_rows, -1)
        elif (np.diff(positions) < 0).any():
            order = np.argsort(positions, kind="stable")
            records, positions = records.take(order), positions[order]
        deleted = records.deleted
        if records.replacing is not None:
            # A separate delete, so that the row is not merged with earlier rows of its key.
            cleared = records.replacing
            keys = records.rows.column(RECORD_KEY).filter(pa.array(cleared))
            self._write_delete_block(keys, None, positions[cleared])
            deleted = deleted & ~cleared
        at = positions[~records.deleted]
        for rows in in_blocks(records.changed_rows(), self._context.log_block_bytes):
            self._write_rows(rows, at[: rows.num_rows])
            at = at[rows.num_rows :]
        if deleted.any():
            self._write_deletes(records, deleted, positions)
        self._num_deletes += int(records.deleted.sum())

    def close(self) -> WriteStatus:
        """Finish the file and make it durable."""
        self._opened.__exit__(None, None, None)
        target = self._target
        stat = WriteStat(
            file_id=target.group.file_id,
            path=self._path,
            partition_path=target.group.partition_path,
            prev_commit=target.base_instant,
            num_writes=self._num_live,
            num_inserts=self._num_live if target.is_new else 0,
            num_update_writes=0 if target.is_new else self._num_live,
            num_deletes=self._num_deletes,
            total_write_bytes=self._output.size,
            file_size_bytes=self._output.size,
            total_log_records=self._num_live + self._num_deletes,
            total_log_blocks=self._num_blocks,
            log=LogWrite(target.version, 0, target.base_file, (*target.slice_logs, self._name)),
        )
        ranges = {} if self._ranges is None else self._ranges.found
        return WriteStatus(stat, self._output.checksum, ranges=ranges)

    def discard(self, cause: BaseException) -> None:
        """Abandon the file; nothing of it stays."""
        self._opened.__exit__(type(cause), cause, cause.__traceback__)

    def _write_rows(self, rows: pa.Table, positions: Numbers) -> None:
        context, places = self._context, located(self._target.located_in, positions)
        # In a log record, Hudi's file name column holds the file id.
        group = self._target.group
        stamped = fill_meta_columns(context, rows, group.partition_path, group.file_id)
        if self._ranges is not None:
            self._ranges.add(conform(stamped, context.schema))
        if context.log_block_format is LogBlockFormat.PARQUET:
            block = encode_parquet_block(
                stamped, context.avro_schema, context.instant_time, context.codec, places
            )
        else:
            block = encode_avro_block(
                stamped, context.avro_schema, context.instant_time, located=places
            )
        self._output.write(block)
        self._num_live += rows.num_rows
        self._num_blocks += 1

    def _write_deletes(self, records: RecordSet, deleted: Mask, positions: Numbers) -> None:
        """Write deletes with and without an ordering value in separate blocks.

        hudi-rs refuses a block that mixes them, since an unconditional delete is the integer 0
        whatever the type of the ordering field is.
        """
        chosen, positions = pa.array(deleted), positions[deleted]
        keys = records.rows.column(RECORD_KEY).filter(chosen)
        if not records.ordering:
            self._write_delete_block(keys, None, positions)
            return
        ordering = _ordering_values([column.filter(chosen) for column in records.ordering])
        is_null = as_numpy(pc.is_null(ordering))
        self._write_delete_block(keys.filter(pa.array(is_null)), None, positions[is_null])
        ordered = pa.array(~is_null)
        self._write_delete_block(
            keys.filter(ordered), ordering.filter(ordered), positions[~is_null]
        )

    def _write_delete_block(
        self, keys: pa.ChunkedArray, ordering: pa.Array | None, positions: Numbers
    ) -> None:
        if not len(keys):
            return
        context, target = self._context, self._target
        partition = pa.repeat(target.group.partition_path, len(keys))
        places = located(target.located_in, positions)
        self._output.write(
            encode_delete_block(
                keys, partition, ordering, context.instant_time, context.avro_schema, places
            )
        )
        self._num_blocks += 1


def _ordering_values(columns: list[pa.ChunkedArray]) -> pa.Array:
    """One value per delete; for several fields a struct, null if all of its fields are."""
    arrays = [column.combine_chunks() for column in columns]
    if len(arrays) == 1:
        return arrays[0]
    missing = reduce(pc.and_, [pc.is_null(array) for array in arrays])
    return pa.StructArray.from_arrays(arrays, [str(i) for i in range(len(arrays))], mask=missing)
