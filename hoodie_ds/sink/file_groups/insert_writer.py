"""Writes rows of new keys, in a table whose index looks keys up.

A key may come several times, in several tasks too. So the rows of a partition are combined before
they become file groups: by the task if no other has the same keys, otherwise by the commit.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from hoodie_ds.handles.context import WriteContext, WriteStatus
from hoodie_ds.index.write_profile import SmallFile
from hoodie_ds.sink.file_groups.buffers import RowBuffer
from hoodie_ds.sink.file_groups.packing import Fill, pack
from hoodie_ds.sink.messages import StagedRows
from hoodie_ds.sink.stage.incoming_rows import Incoming
from hoodie_ds.sink.stage.staging import stage
from hoodie_ds.sink.write_plan import WritePlan
from hoodie_ds.table.file_slice import FileGroupId


class InsertWriter:
    """Buffers the inserts of one partition."""

    def __init__(self, plan: WritePlan, context: WriteContext, partition_path: str) -> None:
        self._plan = plan
        self._context = context
        self._partition_path = partition_path
        self.buffer = RowBuffer()
        self._staged: list[StagedRows] = []

    @property
    def partition_path(self) -> str:
        """The partition."""
        return self._partition_path

    @property
    def holds_until_close(self) -> bool:
        """True: rows should be kept until the batch ends, to write base files once."""
        return True

    def flush(self, rows: pa.Table) -> None:
        """Stage rows, to free their memory."""
        group = FileGroupId(self._partition_path, "")
        self._staged.append(stage(self._context, group, rows, len(self._staged)))

    def close(
        self, owns_keys: bool, small_files: Sequence[SmallFile], fill: Fill
    ) -> tuple[list[WriteStatus], list[StagedRows]]:
        """Fill small files and begin file groups, or leave the rows to the commit; see `pack`.

        With `owns_keys`, no other task has rows of the same keys.
        """
        plan = self._plan
        if plan.combines and not owns_keys:
            for rows in self.buffer.take():
                self.flush(rows)
            return [], self._staged
        incoming = Incoming(plan, [*self._staged, *self.buffer.take()])
        context = self._context
        return pack(plan, context, self._partition_path, incoming, small_files, fill), []

    def discard(self, cause: BaseException) -> None:
        """Do nothing: there is no open file."""
