"""Writes rows to a table whose record keys are unique in all of its partitions.

Where a row goes depends on the other rows of its key, whatever their partitions. So rows are staged
until the batch ends. Then the task locates them, if no other task has the same keys; otherwise the
commit does, once for all tasks.
"""

from __future__ import annotations

from functools import partial

import pyarrow as pa

from hoodie_ds.columns.arrow_columns import Numbers
from hoodie_ds.environment import Clock
from hoodie_ds.handles.context import WriteContext, WriteStatus
from hoodie_ds.sink.file_groups.buffers import Flusher, RowBuffer
from hoodie_ds.sink.file_groups.global_locations import write_located
from hoodie_ds.sink.hidden_columns import TaskOwnership
from hoodie_ds.sink.messages import StagedRows, WriteMetrics
from hoodie_ds.sink.records import KeyedRows
from hoodie_ds.sink.stage.key_partitions import stage_by_key_partition
from hoodie_ds.sink.write_plan import WritePlan


class GlobalWriter:
    """One task's writer of a table with global record keys."""

    def __init__(
        self, plan: WritePlan, context: WriteContext, clock: Clock, metrics: WriteMetrics
    ) -> None:
        self._plan = plan
        self._context = context
        self._clock = clock
        self._metrics = metrics
        self._max_bytes = plan.budget.locating_bytes
        self._flusher = Flusher(clock, metrics)
        self._buffer = RowBuffer()
        self._staged: list[StagedRows] = []

    def write(self, keyed: KeyedRows, locations: Numbers | None = None) -> None:
        """Buffer rows; stage them when the buffer is full."""
        rows = keyed.with_keys
        if self._buffer.nbytes + rows.nbytes > self._max_bytes:
            self._set_aside()
        self._buffer.add(rows)
        held = self._buffer.nbytes
        self._metrics.max_buffered_bytes = max(self._metrics.max_buffered_bytes, held)

    def close(self, owns: TaskOwnership) -> tuple[list[WriteStatus], list[StagedRows]]:
        """Write the rows, or leave them to the commit; see `KeyedWriter.close`."""
        if self._staged or not owns.keys:
            self._set_aside()
        self._flusher.close()
        if not owns.keys:
            return [], self._staged
        parts = self._staged or self._buffer.take()
        return write_located(self._plan, self._context, parts, self._clock, self._metrics, owns)

    def discard(self, cause: BaseException) -> None:
        """Only stop the flusher: there is no open file."""
        self._flusher.discard()

    def _set_aside(self) -> None:
        for rows in self._buffer.take():
            self._flusher.submit(partial(self._stage, rows), rows.nbytes)
            self._flusher.wait_for_one()

    def _stage(self, rows: pa.Table) -> None:
        self._staged.append(stage_by_key_partition(self._context, rows, len(self._staged)))
