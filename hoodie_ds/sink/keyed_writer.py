"""Routes the rows of a table with record keys to the writers of their buckets."""

from __future__ import annotations

from functools import partial

import pyarrow as pa

from hoodie_ds.config.clock import Clock
from hoodie_ds.formats.base_file_reader import BaseFileReader
from hoodie_ds.handles.context import WriteContext, WriteStatus
from hoodie_ds.index.bucket import unused_file_id
from hoodie_ds.index.bucket_layout import by_bucket
from hoodie_ds.record.meta_columns import RECORD_KEY
from hoodie_ds.sink.batch import Batch
from hoodie_ds.sink.bucket_writer import BucketWriter
from hoodie_ds.sink.flusher import Flusher
from hoodie_ds.sink.memory_budget import MemoryBudget
from hoodie_ds.sink.messages import StagedRows
from hoodie_ds.sink.metrics import WriteMetrics
from hoodie_ds.sink.records import BucketKey, split_by_bucket
from hoodie_ds.table.file_slice import FileGroupId, FileSlice
from hoodie_ds.table.fs_view import FileSystemView


class KeyedWriter:
    """One task's writer of a bucket-indexed table.

    Parameters
    ----------
    batch : Batch
        The batch.
    context : WriteContext
        Task and instant.
    clock : Clock
        For the time that flushes take.
    metrics : WriteMetrics
        Where flushes and buffers are counted.
    """

    def __init__(
        self, batch: Batch, context: WriteContext, clock: Clock, metrics: WriteMetrics
    ) -> None:
        self._batch = batch
        self._context = context
        self._metrics = metrics
        self._budget = MemoryBudget.of(batch.options)
        self._flusher = Flusher(clock, metrics)
        self._view = FileSystemView(batch.table.storage, batch.timeline)
        self._slices: dict[str, dict[int, FileSlice]] = {}
        self._writers: dict[BucketKey, BucketWriter] = {}

    def write(self, rows: pa.Table) -> None:
        """Take rows of the table's user columns; flush the largest buffers where memory is due."""
        self._flusher.collect()
        self._make_room(rows.nbytes)
        for key, part in split_by_bucket(self._batch, rows):
            writer = self._writers.get(key)
            if writer is None:
                writer = self._writers[key] = self._open(key)
            writer.add(part)
            if writer.buffered_bytes >= self._budget.flush_bytes and not writer.holds_until_close:
                self._flush(writer)
        held = self._buffered_bytes() + self._flusher.in_flight_bytes
        self._metrics.max_buffered_bytes = max(self._metrics.max_buffered_bytes, held)

    def close(self, owns_groups: bool) -> tuple[list[WriteStatus], list[StagedRows]]:
        """Write what is left.

        Parameters
        ----------
        owns_groups : bool
            Whether no other task has rows of the file groups that this one has rows of.
        """
        self._flusher.close()
        statuses: list[WriteStatus] = []
        staged: list[StagedRows] = []
        for writer in self._writers.values():
            written, set_aside = writer.close(owns_groups)
            statuses += written
            staged += set_aside
        return statuses, staged

    def discard(self, cause: BaseException) -> None:
        """Give up all open files."""
        self._flusher.discard()
        for writer in self._writers.values():
            writer.discard(cause)

    def _make_room(self, incoming: int) -> None:
        """Flush the largest buffers until so many bytes more are no more than the task may hold."""
        allowed = max(0, self._budget.buffer_bytes - incoming)
        while self._buffered_bytes() > allowed:
            self._flush(max(self._writers.values(), key=lambda writer: writer.buffered_bytes))
        while self._flusher.in_flight_bytes > max(0, allowed - self._buffered_bytes()):
            self._flusher.wait_for_one()

    def _buffered_bytes(self) -> int:
        return sum(writer.buffered_bytes for writer in self._writers.values())

    def _flush(self, writer: BucketWriter) -> None:
        rows = writer.take_buffer()
        self._flusher.submit(partial(writer.flush, rows), rows.nbytes)

    def _open(self, key: BucketKey) -> BucketWriter:
        latest = self._locate(key)
        if latest is not None and not self._batch.operation.replaces:
            return BucketWriter(self._batch, self._context, latest.group, latest)
        # What this batch replaces is in use until its commit.
        live = {latest.group.file_id} if latest else set()
        taken = self._view.replaced_ids(key.partition_path) | live
        group = FileGroupId(key.partition_path, unused_file_id(key.bucket, taken))
        return BucketWriter(self._batch, self._context, group, None)

    def _locate(self, key: BucketKey) -> FileSlice | None:
        assert self._batch.layout is not None
        known = self._slices.get(key.partition_path)
        if known is None:
            slices = self._view.latest_slices(key.partition_path)
            known = self._slices[key.partition_path] = by_bucket(self._batch.layout, slices)
        latest = known.get(key.bucket)
        if latest is not None and self._batch.table.properties.num_buckets is None:
            self._check_hash(latest)
        return latest

    def _check_hash(self, latest: FileSlice) -> None:
        """Look at stored keys, in a table whose properties do not say how they were hashed."""
        assert self._batch.layout is not None
        if latest.base is None:
            return
        key_column = pa.schema([pa.field(RECORD_KEY, pa.string())])
        with self._batch.table.storage.open_input(latest.base.path) as source:
            rows = next(BaseFileReader(source, key_column, latest.base.path).pieces(), None)
            if rows is not None:
                self._batch.layout.check(latest, rows.column(RECORD_KEY).slice(0, 1000))
