"""``spark.readStream.format("hoodie_py")``: what commits wrote, from one position to the next.

The offset of a query is the position of the last commit that was read (see
`hoodie_ds.reader.table_stream`). The offset of its first batch holds the beginning as well: Spark
keeps no initial offset, and would ask for another one if that batch comes again. Each offset
records the timeline's layout, as positions mean other moments in version 6 than later.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from hoodie_ds.config.read_options import ReadOptions
from hoodie_ds.datasource.compat import ReadAllAvailable, ReadMaxFiles, SupportsTriggerAvailableNow
from hoodie_ds.datasource.packing import packed_for_all_cores
from hoodie_ds.datasource.reader import BATCH_ROWS
from hoodie_ds.datasource.task import in_worker
from hoodie_ds.errors import SchemaError
from hoodie_ds.reader.declared_schema import declared_batches
from hoodie_ds.reader.scan_plan import Executor, ScanTask
from hoodie_ds.reader.table_stream import TableStream
from hoodie_ds.storage.connect import storage_to_read

_UNTIL: Final = "instant"
_AFTER: Final = "after"
_IS_INITIAL: Final = "initial"
_LAYOUT: Final = "layout"

Offset = dict[str, Any]


@dataclass
class StreamSplit(InputPartition):
    """Some of the tasks of a batch, and their executor."""

    executor: Executor
    tasks: tuple[ScanTask, ...]


class HoodieStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a table as a stream, in the types that Spark expects.

    Columns that the table gets later are read once the query is started again. A query ends where
    one of its columns is renamed or dropped.
    """

    def __init__(self, options: ReadOptions, columns: pa.Schema) -> None:
        self._options = options
        self._columns = columns
        self._target: Offset | None = None
        self._first: Offset = {}
        self._last: Offset = {}

    def __getstate__(self) -> dict[str, Any]:
        """What is sent to the tasks, which need only the columns."""
        return {"_columns": self._columns}

    def initialOffset(self) -> Offset:  # noqa: N802
        """Return where a new query begins; Spark before 4.2 asks after the end of a batch."""
        if not self._first:
            self._first = {**self._offset(self._stream.initial()), _IS_INITIAL: True}
        return self._first

    def getDefaultReadLimit(self) -> ReadAllAvailable | ReadMaxFiles:  # noqa: N802
        """Return the limit of a batch; this reader's options say in which unit."""
        limits = self._options.stream
        largest = limits.max_files or limits.max_commits
        return ReadAllAvailable() if largest is None else ReadMaxFiles(largest)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Let the query end with the commits that are complete now."""
        self._target = self._offset(self._stream.newest(""))

    def latestOffset(  # noqa: N802
        self, start: Offset | None = None, limit: object = None
    ) -> Offset:
        """Return where the next batch ends; `start` if there are no new commits.

        Releases of Spark before 4.2 pass neither where the batch begins nor a limit.
        """
        start = start or self._last or self.initialOffset()
        limited = limit is not None and not isinstance(limit, ReadAllAvailable)
        after = self._position(start)
        up_to = None if self._target is None else self._position(self._target)
        until = self._stream.next(after, limited, up_to)
        if until == after:
            return start
        end = self._offset(until)
        if start.get(_IS_INITIAL):
            end[_AFTER] = after
        self._last = end
        return end

    def reportLatestOffset(self) -> Offset | None:  # noqa: N802
        """Return the newest commit, for the progress of the query; Spark asks from 4.2 on."""
        last = self._last or self._first
        return self._offset(self._stream.newest(self._position(last))) if last else None

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Return the splits of a batch (driver)."""
        if start.get(_IS_INITIAL) and _AFTER in end:
            start = {**end, _UNTIL: end[_AFTER]}
        after, until = self._position(start), self._position(end)
        if after == until:
            return []
        query = self._stream.query(after, until)
        if gone := [name for name in self._columns.names if name not in query.schema.names]:
            raise SchemaError(
                f"{self._stream.storage.root}: columns that this query reads were renamed or "
                f"dropped ({', '.join(gone)}); start it again, with the columns of now"
            )
        plan = query.plan()
        packs = packed_for_all_cores(list(plan.tasks))
        return [StreamSplit(plan.executor, tasks) for tasks in packs]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one split (executor)."""
        assert isinstance(partition, StreamSplit)
        with in_worker():
            for task in partition.tasks:
                pieces = partition.executor.read(task, self._columns.names)
                yield from declared_batches(pieces, self._columns, BATCH_ROWS)

    def _offset(self, position: str) -> Offset:
        return {_UNTIL: position, _LAYOUT: self._stream.layout}

    def _position(self, offset: Offset) -> str:
        return self._stream.moved(offset[_UNTIL], offset.get(_LAYOUT))

    @property
    def _stream(self) -> TableStream:
        """The table, opened on demand, as it is not sent to tasks."""
        if "_opened" not in self.__dict__:
            self._opened = TableStream(storage_to_read(self._options), self._options)
        return self._opened
