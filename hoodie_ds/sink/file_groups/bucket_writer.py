"""Writes one bucket's records: the buffer in front of the handles (RFC-24's ``BucketWriter``)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import pyarrow as pa

from hoodie_ds.columns.arrow_columns import Numbers, one_chunk
from hoodie_ds.columns.meta_columns import RECORD_KEY
from hoodie_ds.config.enums import TableType
from hoodie_ds.handles.append_handle import AppendHandle, LogTarget
from hoodie_ds.handles.context import WriteContext, WriteStatus
from hoodie_ds.record.merge.merger import RecordSet
from hoodie_ds.sink.file_groups.base_files import begin_slice, write_merged
from hoodie_ds.sink.file_groups.buffers import RowBuffer
from hoodie_ds.sink.locate.key_locations import apply_policy
from hoodie_ds.sink.messages import StagedRows
from hoodie_ds.sink.records import to_records
from hoodie_ds.sink.stage.incoming_rows import Incoming
from hoodie_ds.sink.stage.staging import stage
from hoodie_ds.sink.write_plan import WritePlan
from hoodie_ds.table.file_slice import FileGroupId, FileSlice
from hoodie_ds.table.planned_services import compacting
from hoodie_ds.table.slicing import SLICINGS

FindPositions: TypeAlias = Callable[[FileSlice, pa.Array], Numbers | None]
"""Where keys are in the base file of a slice; see `Router.positions`."""


class BucketWriter:
    """Buffers the rows of one file group and writes them in mini-batches."""

    def __init__(
        self,
        plan: WritePlan,
        context: WriteContext,
        group: FileGroupId,
        latest: FileSlice | None,
        find: FindPositions,
    ) -> None:
        self._plan = plan
        self._context = context
        self._group = group
        self._latest = latest
        self._find = find
        is_logged = plan.table.properties.table_type is TableType.MERGE_ON_READ
        self._rewrites = not is_logged or plan.index is None
        self.buffer = RowBuffer()
        self._log: AppendHandle | None = None
        self._statuses: list[WriteStatus] = []
        self._staged: list[StagedRows] = []
        self._inserts: list[StagedRows | pa.Table] = []

    @property
    def has_log(self) -> bool:
        """Whether rows have been appended to a log file already."""
        return self._log is not None

    def add_inserts(self, rows: pa.Table, may_hold: bool) -> None:
        """Add combined rows of new keys to the next base file, staged unless they may be held."""
        assert not self.has_log, self._group
        self._rewrites = True  # Hudi's indexes on the JVM look for keys only in base files
        if may_hold:
            self._inserts.append(rows)
        else:
            number = len(self._inserts)
            self._inserts.append(stage(self._context, self._group, rows, number, are_inserts=True))

    @property
    def holds_until_close(self) -> bool:
        """Whether rows should be kept until the batch ends, to write a base file once."""
        return self._rewrites or (self._latest is None and self._log is None)

    def flush(self, rows: pa.Table) -> None:
        """Write a mini-batch from `buffer` before the batch ends, to free its memory.

        Merge-on-read appends a log block. Copy-on-write stages the rows, as more may come for the
        base file. Flushes of one writer run one after another, maybe in another thread than the
        rest.
        """
        if self._rewrites:
            self._stage(rows)
        else:
            records = apply_policy(self._plan, to_records(self._plan, rows), self._latest)
            self._append(self._plan.merger.combine(records))

    def close(self, owns_group: bool) -> tuple[list[WriteStatus], list[StagedRows]]:
        """Write the remaining rows and finish the files.

        With `owns_group`, this task has all rows of the group in this batch.
        """
        # Only a task that has the group to itself gets inserts.
        owns_group = owns_group or bool(self._inserts)
        if self._rewrites and not owns_group:
            self._flush_rest()
            return self._statuses, self._staged
        if self._rewrites:
            self._write_base(self._rest())
        elif self._latest is None and self._log is None and owns_group:
            rest = self._rest()
            self._statuses += begin_slice(self._plan, self._context, self._group, rest)
        elif self._latest is None and self._log is None and self._is_little():
            # One base file for the rows of all tasks, rather than a log file for each task.
            self._stage_rest()
            return self._statuses, self._staged
        else:
            self._flush_rest()
        if self._log is not None:
            self._statuses.append(self._log.close())
            self._log = None
        return self._statuses, []

    def discard(self, cause: BaseException) -> None:
        """Discard the open file."""
        if self._log is not None:
            self._log.discard(cause)

    def _flush_rest(self) -> None:
        for rows in self.buffer.take():
            self.flush(rows)

    def _is_little(self) -> bool:
        """Whether the remaining rows are left to the commit, which merges those of all tasks."""
        return self.buffer.nbytes <= self._plan.options.limits.gathered_bytes

    def _stage_rest(self) -> None:
        for rows in self.buffer.take():
            self._stage(rows)

    def _stage(self, rows: pa.Table) -> None:
        self._staged.append(stage(self._context, self._group, rows, len(self._staged)))

    def _rest(self) -> Incoming:
        return Incoming(self._plan, [*self._staged, *self.buffer.take()])

    def _write_base(self, incoming: Incoming) -> None:
        status = write_merged(
            self._plan, self._context, self._group, incoming, self._latest, self._inserts
        )
        if status is not None:
            self._statuses.append(status)

    def _append(self, combined: RecordSet) -> None:
        if self._log is None:
            self._log = AppendHandle(self._context, self._next_log())
        self._log.write(combined, self._positions(combined))
        if self._log.bytes_written >= self._plan.options.logfile_max_bytes:
            target = self._log.target
            self._statuses.append(self._log.close())
            self._log = AppendHandle(self._context, replace(target, version=target.version + 1))

    def _positions(self, combined: RecordSet) -> Numbers | None:
        """Where the keys of records are in the base file, if the write knows."""
        if self._latest is None or not self._plan.writes_positions:
            return None
        return self._find(self._latest, one_chunk(combined.rows.column(RECORD_KEY)))

    def _next_log(self) -> LogTarget:
        latest = self._latest
        if latest is None:
            return LogTarget(self._group, self._context.instant_time, "", 1, is_new=True)
        # A pending compaction begins the slice after the latest one.
        pending = compacting(self._context.storage, self._plan.timeline).get(self._group)
        start, slicing = pending or latest.base_instant, SLICINGS[self._plan.timeline.layout]
        named = slicing.named_after(start, self._context.instant_time)
        versions = (log.name.version for log in latest.logs if log.name.base_instant == named)
        base_file = str(latest.base.name) if latest.base and not pending else ""
        version = max(versions, default=0) + 1
        located_in = latest.base.name.instant_time if latest.base else ""
        target = LogTarget(
            self._group, start, base_file, version, False, named_after=named, located_in=located_in
        )
        if self._context.logging is None:
            return target
        logs = tuple(log.file_name for log in latest.logs)
        base_file = str(latest.base.name) if latest.base else ""
        return replace(target, base_file=base_file, slice_logs=logs)
