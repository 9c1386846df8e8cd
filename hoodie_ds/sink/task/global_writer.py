"""Writes rows to a table whose record keys are unique in all of its partitions.

Where a row goes depends on the other rows of its key, whatever their partitions. So rows are set
aside until the batch ends; then they are placed by the task, where no other has the same keys, else
by the commit, once for all tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa

from hoodie_ds.config.enums import Operation
from hoodie_ds.environment import Clock
from hoodie_ds.handles.context import WriteContext, WriteStatus
from hoodie_ds.record.meta_columns import RECORD_KEY
from hoodie_ds.sink.batch import Batch
from hoodie_ds.sink.hidden_columns import Numbers, Ownership
from hoodie_ds.sink.locate.key_locations import StoredPlaces
from hoodie_ds.sink.locate.record_locations import Placement
from hoodie_ds.sink.memory_budget import MemoryBudget
from hoodie_ds.sink.messages import StagedRows
from hoodie_ds.sink.metrics import WriteMetrics
from hoodie_ds.sink.stage.key_partitions import by_shares, stage_by_share
from hoodie_ds.sink.task.buffers import Flusher, RowBuffer
from hoodie_ds.sink.task.keyed_writer import KeyedWriter


class GlobalWriter:
    """One task's writer of a table with global record keys.

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
        self._clock = clock
        self._metrics = metrics
        self._max_bytes = MemoryBudget.of(batch.options).placing_bytes
        self._flusher = Flusher(clock, metrics)
        self._buffer = RowBuffer()
        self._staged: list[StagedRows] = []

    def write(self, rows: pa.Table, places: Numbers | None = None) -> None:
        """Take rows of the table's user columns; set them aside where memory is due."""
        keyed = rows.append_column(RECORD_KEY, self._batch.key_generator.record_keys(rows))
        if self._buffer.nbytes + keyed.nbytes > self._max_bytes:
            self._set_aside()
        self._buffer.add(keyed)
        held = self._buffer.nbytes
        self._metrics.max_buffered_bytes = max(self._metrics.max_buffered_bytes, held)

    def close(self, owns: Ownership) -> tuple[list[WriteStatus], list[StagedRows]]:
        """Write the rows, or leave them to the commit; see `KeyedWriter.close`."""
        if self._staged or not owns.keys:
            self._set_aside()
        self._flusher.close()
        if not owns.keys:
            return [], self._staged
        parts = self._staged or self._buffer.take()
        return write_placed(
            self._batch, self._context, parts, self._clock, self._metrics, owns.groups
        )

    def discard(self, cause: BaseException) -> None:
        """Do nothing but stop: there is no open file."""
        self._flusher.discard()

    def _set_aside(self) -> None:
        for rows in self._buffer.take():
            self._flusher.submit(partial(self._stage, rows), rows.nbytes)
            self._flusher.wait_for_one()

    def _stage(self, rows: pa.Table) -> None:
        self._staged.append(stage_by_share(self._context, rows, len(self._staged)))


def write_placed(
    batch: Batch,
    context: WriteContext,
    parts: Sequence[StagedRows] | Sequence[pa.Table],
    clock: Clock,
    metrics: WriteMetrics,
    is_alone: bool,
) -> tuple[list[WriteStatus], list[StagedRows]]:
    """Place rows and write them.

    Parameters
    ----------
    batch : Batch
        The batch.
    context : WriteContext
        Task and instant.
    parts : sequence of StagedRows or pyarrow.Table
        All rows of their keys, in order of arrival: set aside, or in memory if they are few.
    clock, metrics
        As for a `GlobalWriter`.
    is_alone : bool
        Whether nobody else writes to the same file groups in this batch; updates of base files are
        staged otherwise.
    """
    # What merging made for new file groups must not be merged a second time.
    options = replace(batch.options, combine_before_insert=False)
    final = replace(batch, operation=Operation.INSERT, options=options)
    writer = KeyedWriter(batch, context, clock, metrics, final)
    stored = StoredPlaces(batch)
    staged = [part for part in parts if isinstance(part, StagedRows)]
    few = by_shares(staged, MemoryBudget.of(batch.options).placing_bytes) if staged else [parts]
    try:
        for some in few:
            for target, rows in Placement(batch, some, stored).placed():
                writer.take([(target, rows)], rows.nbytes)
        return writer.close(Ownership(groups=is_alone, keys=True))
    except BaseException as error:
        writer.discard(error)
        raise
