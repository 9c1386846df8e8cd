"""Writes one bucket's records: the buffer in front of the handles (RFC-24's ``BucketWriter``)."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from hoodie_ds.config.kinds import TableType
from hoodie_ds.handles.append_handle import AppendHandle, LogTarget
from hoodie_ds.handles.context import WriteContext, WriteStatus
from hoodie_ds.handles.create_handle import CreateHandle
from hoodie_ds.record.merger import RecordSet
from hoodie_ds.sink.batch import Batch
from hoodie_ds.sink.messages import StagedRows
from hoodie_ds.sink.records import to_records
from hoodie_ds.sink.staging import read_staged, stage, write_merged
from hoodie_ds.table.file_slice import FileGroupId, FileSlice


class BucketWriter:
    """Buffers the rows of one file group and writes them in mini-batches.

    Parameters
    ----------
    batch : Batch
        The batch.
    context : WriteContext
        Task and instant.
    group : FileGroupId
        The file group.
    latest : FileSlice or None
        Its latest slice; None for a new group.
    """

    def __init__(
        self, batch: Batch, context: WriteContext, group: FileGroupId, latest: FileSlice | None
    ) -> None:
        self._batch = batch
        self._context = context
        self._group = group
        self._latest = latest
        self._cow = batch.table.properties.table_type is TableType.COPY_ON_WRITE
        self._buffer: list[pa.Table] = []
        self._log: AppendHandle | None = None
        self._statuses: list[WriteStatus] = []
        self._staged: list[StagedRows] = []
        self.buffered_bytes = 0

    @property
    def holds_until_close(self) -> bool:
        """Whether rows are best kept until the batch ends, for a base file to be written once."""
        return self._cow or (self._latest is None and self._log is None)

    def add(self, rows: pa.Table) -> None:
        """Buffer rows: user columns and ``_hoodie_record_key``."""
        self._buffer.append(rows)
        self.buffered_bytes += rows.nbytes

    def flush(self) -> None:
        """Write the buffer out before the batch ends, to free its memory.

        Merge-on-read appends a log block. Copy-on-write cannot write a base file yet, as more rows
        may come, and stages the rows.
        """
        if not self._buffer:
            return
        rows = pa.concat_tables(self._buffer)
        if self._cow:
            part = stage(self._context, self._group, rows, len(self._staged))
            self._staged.append(part)
        else:
            self._append(self._batch.merger.combine(to_records(self._batch, rows)))
        # Let go only now: had the write failed, nothing would have been lost.
        self._buffer.clear()
        self.buffered_bytes = 0

    def close(self, owns_group: bool) -> tuple[list[WriteStatus], list[StagedRows]]:
        """Write what is left and finish the files.

        Parameters
        ----------
        owns_group : bool
            Whether all rows of the group in this batch came to this task.
        """
        if self._cow and not owns_group:
            self.flush()
            return self._statuses, self._staged
        if self._cow:
            self._write_base(self._drain())
        elif self._latest is None and owns_group and self._log is None:
            self._begin_slice(self._batch.merger.combine(self._drain()))
        else:
            self.flush()
        if self._log is not None:
            self._statuses.append(self._log.close())
            self._log = None
        return self._statuses, []

    def discard(self, cause: BaseException) -> None:
        """Give up the open file."""
        if self._log is not None:
            self._log.discard(cause)

    def _drain(self) -> RecordSet:
        staged = [read_staged(self._context, part) for part in self._staged]
        rows = pa.concat_tables([*staged, *self._buffer])
        self._buffer.clear()
        self.buffered_bytes = 0
        return to_records(self._batch, rows)

    def _write_base(self, records: RecordSet) -> None:
        status = write_merged(self._batch, self._context, self._group, records, self._latest)
        if status is not None:
            self._statuses.append(status)

    def _begin_slice(self, combined: RecordSet) -> None:
        """Start a merge-on-read group with a base file; deletes follow in a log, as tombstones."""
        live = combined.live_rows()
        base_file = ""
        if live.num_rows:
            handle = CreateHandle(self._context, self._group)
            handle.write(live)
            status = handle.close()
            self._statuses.append(status)
            base_file = status.stat.path.rpartition("/")[2]
        if combined.deleted.any():
            tombstones = combined.take(combined.deleted.nonzero()[0])
            target = LogTarget(
                self._group, self._context.instant_time, base_file, 1, is_new=not base_file
            )
            self._log = AppendHandle(self._context, target)
            self._log.write(tombstones)

    def _append(self, combined: RecordSet) -> None:
        if self._log is None:
            self._log = AppendHandle(self._context, self._next_log())
        self._log.write(combined)
        if self._log.bytes_written >= self._batch.options.logfile_max_bytes:
            target = self._log.target
            self._statuses.append(self._log.close())
            self._log = AppendHandle(self._context, replace(target, version=target.version + 1))

    def _next_log(self) -> LogTarget:
        latest = self._latest
        if latest is None:
            return LogTarget(self._group, self._context.instant_time, "", 1, is_new=True)
        version = max((log.name.version for log in latest.logs), default=0) + 1
        base_file = str(latest.base.name) if latest.base else ""
        return LogTarget(self._group, latest.base_instant, base_file, version, is_new=False)
