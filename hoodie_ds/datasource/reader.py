"""``spark.read.format("hoodie_py")``: a query of a table, its tasks packed into splits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from hoodie_ds.datasource.packing import packed_for_all_cores
from hoodie_ds.datasource.task import in_worker
from hoodie_ds.filters.predicate import ALL, Predicate
from hoodie_ds.filters.rows import matching
from hoodie_ds.filters.spark import from_spark
from hoodie_ds.reader.declared_schema import declared_batches
from hoodie_ds.reader.query import Query
from hoodie_ds.reader.scan_plan import ScanTask
from hoodie_ds.reader.snapshot import SliceExecutor

BATCH_ROWS: Final = 10_000
"""Spark's own size of an Arrow batch: larger ones only take memory on its side."""


@dataclass
class PackedSplit(InputPartition):
    """The tasks of one split; empty for an empty table, as Spark needs at least one split."""

    tasks: tuple[ScanTask, ...]


class HoodieReader(DataSourceReader):
    """Reads `columns`, in Spark's types, of the table as it was when the query was opened."""

    def __init__(self, query: Query, columns: pa.Schema) -> None:
        self._query = query
        self._columns = columns
        self._predicate: Predicate = ALL

    def partitions(self) -> list[InputPartition]:
        """Return the splits (driver)."""
        plan = self._query.plan(self._predicate)
        may_divide = isinstance(plan.executor, SliceExecutor)
        found = packed_for_all_cores([*plan.tasks], may_divide=may_divide)
        return [PackedSplit(tasks) for tasks in found or [()]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one split (executor)."""
        assert isinstance(partition, PackedSplit)
        executor = self._query.plan(self._predicate).executor
        with in_worker():
            for task in partition.tasks:
                pieces = executor.read(task, self._columns.names)
                left = (matching(rows, self._predicate) for rows in pieces)
                yield from declared_batches(left, self._columns, BATCH_ROWS)


class FilteringReader(HoodieReader):
    """Drops rows that the filters of a query rule out.

    Spark 4.3 keeps a reader with the filters of one query and reuses it for other queries of the
    same DataFrame, which then miss rows. So filter pushdown is an option.
    """

    def pushFilters(self, filters: list[Filter]) -> list[Filter]:  # noqa: N802
        """Keep the filters that rule rows out, and leave all filters to Spark as well."""
        stored = pa.schema(map(self._query.schema.field, self._columns.names))
        self._predicate = from_spark(filters, stored)
        return filters
