"""Writes the rows of a table without record keys: append-only, into files of its own."""

from __future__ import annotations

from functools import partial
from typing import Final

from hoodie_ds.columns.arrow_columns import Numbers
from hoodie_ds.environment import Clock
from hoodie_ds.handles.context import WriteContext, WriteStatus, new_group
from hoodie_ds.handles.create_handle import CreateHandle
from hoodie_ds.index.write_profile import WriteProfile
from hoodie_ds.sink.file_groups.buffers import Flusher
from hoodie_ds.sink.file_groups.packing import reserve
from hoodie_ds.sink.hidden_columns import TaskOwnership
from hoodie_ds.sink.messages import StagedRows, WriteMetrics
from hoodie_ds.sink.records import KeyedRows, split_by_partition
from hoodie_ds.sink.write_plan import WritePlan
from hoodie_ds.table.file_slice import FileSlice

_QUEUE_CHUNKS: Final = 1
"""Chunks that may wait for the encoder, next to the current one: more would only take memory."""


class AppendWriter:
    """One task's writer of an append-only table.

    A background thread encodes rows while the next batches arrive.
    """

    def __init__(
        self, plan: WritePlan, context: WriteContext, clock: Clock, metrics: WriteMetrics
    ) -> None:
        self._plan = plan
        self._context = context
        self._handles: dict[str, CreateHandle] = {}
        self._num_files: dict[str, int] = {}
        self._statuses: list[WriteStatus] = []
        self._profile = WriteProfile(plan.table, plan.timeline, plan.options)
        self._metrics = metrics
        self._budget = plan.budget
        self._flusher = Flusher(clock, metrics)

    def write(self, keyed: KeyedRows, locations: Numbers | None = None) -> None:
        """Queue rows for encoding."""
        size = keyed.rows.nbytes
        self._flusher.collect()
        while self._flusher.in_flight_bytes > _QUEUE_CHUNKS * size:
            self._flusher.wait_for_one()
        self._flusher.submit(partial(self._encode, keyed), size)

    def close(self, owns: TaskOwnership) -> tuple[list[WriteStatus], list[StagedRows]]:
        """Finish the files; file groups are always this task's own."""
        self._flusher.close()
        self._statuses += [handle.close() for handle in self._handles.values()]
        return self._statuses, []

    def discard(self, cause: BaseException) -> None:
        """Discard all open files."""
        self._flusher.discard()
        for handle in self._handles.values():
            handle.discard(cause)

    def _encode(self, keyed: KeyedRows) -> None:
        for partition_path, part in split_by_partition(keyed.paths, keyed.rows):
            handle = self._handles.get(partition_path)
            if handle is None:
                handle = self._handles[partition_path] = self._begin_file(partition_path)
            handle.write(part)
            if handle.bytes_written >= self._plan.options.parquet_max_file_bytes:
                self._statuses.append(self._handles.pop(partition_path).close())
            self._make_room()

    def _make_room(self) -> None:
        """Flush the largest open row groups while all of them together exceed the buffer."""
        while True:
            held = sum(handle.pending_bytes for handle in self._handles.values())
            self._metrics.max_buffered_bytes = max(self._metrics.max_buffered_bytes, held)
            if held <= self._budget.buffer_bytes:
                return
            max(self._handles.values(), key=lambda handle: handle.pending_bytes).flush()

    def _begin_file(self, partition_path: str) -> CreateHandle:
        number = self._num_files.get(partition_path, 0)
        self._num_files[partition_path] = number + 1
        small = self._small_file(partition_path) if number == 0 else None
        if small is None or small.base is None:
            return CreateHandle(self._context, new_group(self._context, partition_path, number))
        handle = CreateHandle(self._context, small.group)
        handle.copy(small.base)
        return handle

    def _small_file(self, partition_path: str) -> FileSlice | None:
        """A file group to append to, if small ones are filled and one is left."""
        profile = self._profile
        if not profile.limit_bytes or not self._plan.operation.fills_small_files:
            return None
        view = self._plan.view
        small_files = profile.small_files(view.latest_slices(partition_path))
        return next((small.slice for small in reserve(self._context, small_files)), None)
