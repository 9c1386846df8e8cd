"""Writes the rows of a table with record keys, file group by file group, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.arrow_columns import Numbers, one_chunk
from hoodie_ds.columns.meta_columns import RECORD_KEY
from hoodie_ds.environment import Clock
from hoodie_ds.handles.context import WriteContext, WriteStatus
from hoodie_ds.handles.stamp import with_automatic_keys
from hoodie_ds.index.write_profile import SmallFile, WriteProfile
from hoodie_ds.sink.file_groups.bucket_writer import BucketWriter
from hoodie_ds.sink.file_groups.buffers import Flusher
from hoodie_ds.sink.file_groups.insert_writer import InsertWriter
from hoodie_ds.sink.file_groups.kept_values import kept_values, with_kept_values
from hoodie_ds.sink.file_groups.packing import reserve
from hoodie_ds.sink.hidden_columns import TaskOwnership
from hoodie_ds.sink.locate.routers import LookupRouter, Target, router_of
from hoodie_ds.sink.messages import StagedRows, WriteMetrics
from hoodie_ds.sink.records import KeyedRows
from hoodie_ds.sink.write_plan import WritePlan
from hoodie_ds.table.file_slice import FileGroupId


class KeyedWriter:
    """One task's writer of a table with record keys.

    `inserting` is the plan by which new file groups are written, if it is another one.
    """

    def __init__(
        self,
        plan: WritePlan,
        context: WriteContext,
        clock: Clock,
        metrics: WriteMetrics,
        inserting: WritePlan | None = None,
    ) -> None:
        self._plan = plan
        self._inserting = inserting or plan
        self._context = context
        self._metrics = metrics
        self._budget = plan.budget
        self._flusher = Flusher(clock, metrics)
        self._router = router_of(plan, context.task_partition)
        self._profile = WriteProfile(plan.table, plan.timeline, plan.options)
        self._filled_bytes = 0
        self._buffered_bytes = 0  # updated incrementally: a batch may have thousands of writers
        self._writers: dict[FileGroupId, BucketWriter | InsertWriter] = {}

    def write(self, keyed: KeyedRows, locations: Numbers | None = None) -> None:
        """Buffer rows; flush the largest buffers when memory is short.

        `locations` are those that an assigner found in this batch's view.
        """
        self.take(self._router.route(keyed, locations), keyed.rows.nbytes)

    def take(
        self,
        routed: Iterable[tuple[Target, pa.Table]],
        size: int,
        moved: pa.Table | None = None,
    ) -> None:
        """Buffer rows that are split by target already.

        `size` is the bytes of all of them; a row that goes to several groups counts once. `moved`
        are the `kept_values` of records that leave other file groups.
        """
        self._flusher.collect()
        self._make_room(size)
        left = size
        for target, rows in routed:
            part = self._with_kept(rows, target, moved)
            if target.begins_groups and self._plan.index is None:
                part = with_automatic_keys(self._context, part)
            left -= part.nbytes
            if left < 0:
                self._make_room(part.nbytes)
            writer = self._writer(target)
            writer.buffer.add(part)
            self._buffered_bytes += part.nbytes
            if writer.buffer.nbytes >= self._budget.flush_bytes and not writer.holds_until_close:
                self._flush(writer)
        held = self._buffered_bytes + self._flusher.in_flight_bytes
        self._metrics.max_buffered_bytes = max(self._metrics.max_buffered_bytes, held)

    def close(self, owns: TaskOwnership) -> tuple[list[WriteStatus], list[StagedRows]]:
        """Write the remaining rows; inserts first, as small files take some of them."""
        self._flusher.close()
        statuses: list[WriteStatus] = []
        staged: list[StagedRows] = []
        for insert in [w for w in self._writers.values() if isinstance(w, InsertWriter)]:
            small_files = self._small_files(insert.partition_path, owns)
            self._buffered_bytes -= insert.buffer.nbytes
            written, set_aside = insert.close(owns.keys, small_files, self._fill)
            statuses += written
            staged += set_aside
        for writer in self._writers.values():
            if isinstance(writer, BucketWriter):
                written, set_aside = writer.close(owns.groups)
                statuses += written
                staged += set_aside
        return statuses, staged

    def discard(self, cause: BaseException) -> None:
        """Discard all open files."""
        self._flusher.discard()
        for writer in self._writers.values():
            writer.discard(cause)

    def _with_kept(self, rows: pa.Table, target: Target, moved: pa.Table | None) -> pa.Table:
        if not self._plan.kept or not self._plan.meets_stored_rows:
            return rows
        keys = one_chunk(rows.column(RECORD_KEY))
        kept = kept_values(self._plan, target.latest, keys)
        if moved is not None:
            here = pc.is_in(moved.column(RECORD_KEY), value_set=keys)
            kept = pa.concat_tables([kept, moved.filter(here)])
        return with_kept_values(self._plan, rows, kept)

    def _make_room(self, incoming: int) -> None:
        """Flush the largest buffers until `incoming` bytes more fit into the task's memory."""
        allowed = max(0, self._budget.buffer_bytes - incoming)
        while self._buffered_bytes > allowed:
            self._flush(max(self._writers.values(), key=lambda writer: writer.buffer.nbytes))
        while self._flusher.in_flight_bytes > max(0, allowed - self._buffered_bytes):
            self._flusher.wait_for_one()

    def _flush(self, writer: BucketWriter | InsertWriter) -> None:
        self._buffered_bytes -= writer.buffer.nbytes
        for rows in writer.buffer.take():
            self._flusher.submit(partial(writer.flush, rows), rows.nbytes)

    def _small_files(self, partition_path: str, owns: TaskOwnership) -> list[SmallFile]:
        """File groups that no other task fills or updates in this batch."""
        assert isinstance(self._router, LookupRouter)
        if not self._plan.operation.fills_small_files:
            return []
        slices = self._router.latest_slices(partition_path)
        if owns.groups:
            if owns.num_tasks:
                slices = self._router.own_slices(partition_path, owns.num_tasks)
            return self._profile.small_files([s for s in slices if not self._has_log(s.group)])
        if self._plan.looks_up:
            return []  # other tasks may update keys there
        return reserve(self._context, self._profile.small_files(slices))

    def _has_log(self, group: FileGroupId) -> bool:
        writer = self._writers.get(group)
        return isinstance(writer, BucketWriter) and writer.has_log

    def _fill(self, small: SmallFile, rows: pa.Table) -> None:
        writer = self._writer(Target(small.slice.group, small.slice))
        assert isinstance(writer, BucketWriter)
        self._filled_bytes += rows.nbytes
        held = self._buffered_bytes + self._filled_bytes
        writer.add_inserts(rows, may_hold=held <= self._budget.buffer_bytes)

    def _writer(self, target: Target) -> BucketWriter | InsertWriter:
        writer = self._writers.get(target.group)
        if writer is None:
            group, find = target.group, self._router.positions
            writer = (
                InsertWriter(self._inserting, self._context, group.partition_path)
                if target.begins_groups
                else BucketWriter(self._plan, self._context, group, target.latest, find)
            )
            self._writers[target.group] = writer
        return writer
