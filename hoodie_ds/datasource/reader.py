"""``spark.read.format("hoodie_py")``: a query of a table, one split for each task of its plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from hoodie_ds.reader.declared import as_declared
from hoodie_ds.reader.query import Query
from hoodie_ds.reader.scan_plan import ScanTask

_BATCH_ROWS: Final = 10_000
"""Spark's own size of an Arrow batch: larger ones only hold memory on its side."""


@dataclass
class TaskSplit(InputPartition):
    """One task to read; None where a table has none, as Spark wants one split at least."""

    task: ScanTask | None


class HoodieReader(DataSourceReader):
    """Reads what a query asks for, as the table was when the query was opened.

    Parameters
    ----------
    query : Query
        The query.
    columns : pyarrow.Schema
        What to return, in the types that Spark expects.
    """

    def __init__(self, query: Query, columns: pa.Schema) -> None:
        self._query = query
        self._columns = columns

    def partitions(self) -> list[InputPartition]:
        """Return the splits (driver)."""
        found: list[ScanTask | None] = [*self._query.plan().tasks]
        return [TaskSplit(task) for task in found or [None]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one split (executor)."""
        assert isinstance(partition, TaskSplit)
        if partition.task is None:
            return
        executor = self._query.plan().executor
        for rows in executor.read(partition.task, self._columns.names):
            declared = as_declared(rows, self._columns)
            yield from declared.to_batches(max_chunksize=_BATCH_ROWS)
