"""Writes the rows of a table with record keys, file group by file group, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import pyarrow as pa

from hoodie_ds.config.clock import Clock
from hoodie_ds.handles.context import WriteContext, WriteStatus
from hoodie_ds.sink.batch import Batch
from hoodie_ds.sink.bucket_router import BucketRouter
from hoodie_ds.sink.bucket_writer import BucketWriter
from hoodie_ds.sink.flusher import Flusher
from hoodie_ds.sink.index_router import IndexRouter
from hoodie_ds.sink.insert_writer import InsertWriter
from hoodie_ds.sink.memory_budget import MemoryBudget
from hoodie_ds.sink.messages import StagedRows
from hoodie_ds.sink.metrics import WriteMetrics
from hoodie_ds.sink.target import Router, Target
from hoodie_ds.table.file_slice import FileGroupId


class KeyedWriter:
    """One task's writer of a table with record keys.

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
    inserting : Batch, optional
        The batch as writers of new file groups are to see it; `batch` if None.
    """

    def __init__(
        self,
        batch: Batch,
        context: WriteContext,
        clock: Clock,
        metrics: WriteMetrics,
        inserting: Batch | None = None,
    ) -> None:
        self._batch = batch
        self._inserting = inserting or batch
        self._context = context
        self._metrics = metrics
        self._budget = MemoryBudget.of(batch.options)
        self._flusher = Flusher(clock, metrics)
        self._router = _router(batch)
        self._writers: dict[FileGroupId, BucketWriter | InsertWriter] = {}

    def write(self, rows: pa.Table) -> None:
        """Take rows of the table's user columns; flush the largest buffers where memory is due."""
        self.take(self._router.route(rows), rows.nbytes)

    def take(self, routed: Iterable[tuple[Target, pa.Table]], size: int) -> None:
        """Take rows that are parted by target already; `size` is the bytes of all of them."""
        self._flusher.collect()
        self._make_room(size)
        for target, part in routed:
            writer = self._writer(target)
            writer.buffer.add(part)
            if writer.buffer.nbytes >= self._budget.flush_bytes and not writer.holds_until_close:
                self._flush(writer)
        held = self._buffered_bytes() + self._flusher.in_flight_bytes
        self._metrics.max_buffered_bytes = max(self._metrics.max_buffered_bytes, held)

    def close(
        self, is_alone: bool, is_shuffled: bool
    ) -> tuple[list[WriteStatus], list[StagedRows]]:
        """Write what is left.

        Parameters
        ----------
        is_alone : bool
            Whether there is no other task.
        is_shuffled : bool
            Whether all rows sit where `shuffle_by_file_group` sent them: no other task then has
            rows of the same buckets, or, with an index that looks keys up, of the same keys.
        """
        owns_groups = is_alone or (is_shuffled and self._batch.layout is not None)
        owns_keys = is_alone or is_shuffled
        self._flusher.close()
        statuses: list[WriteStatus] = []
        staged: list[StagedRows] = []
        for writer in self._writers.values():
            owns = owns_keys if isinstance(writer, InsertWriter) else owns_groups
            written, set_aside = writer.close(owns)
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
            self._flush(max(self._writers.values(), key=lambda writer: writer.buffer.nbytes))
        while self._flusher.in_flight_bytes > max(0, allowed - self._buffered_bytes()):
            self._flusher.wait_for_one()

    def _buffered_bytes(self) -> int:
        return sum(writer.buffer.nbytes for writer in self._writers.values())

    def _flush(self, writer: BucketWriter | InsertWriter) -> None:
        for rows in writer.buffer.take():
            self._flusher.submit(partial(writer.flush, rows), rows.nbytes)

    def _writer(self, target: Target) -> BucketWriter | InsertWriter:
        writer = self._writers.get(target.group)
        if writer is None:
            writer = (
                InsertWriter(self._inserting, self._context, target.group.partition_path)
                if target.begins_groups
                else BucketWriter(self._batch, self._context, target.group, target.latest)
            )
            self._writers[target.group] = writer
        return writer


def _router(batch: Batch) -> Router:
    return IndexRouter(batch) if batch.layout is None else BucketRouter(batch, batch.layout)
