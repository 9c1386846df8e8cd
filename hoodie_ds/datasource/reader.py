"""``spark.read.format("hoodie_py")``: a snapshot query, one split for each file slice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from hoodie_ds.reader.declared import as_declared
from hoodie_ds.reader.snapshot import Snapshot
from hoodie_ds.table.file_slice import FileSlice

_BATCH_ROWS: Final = 10_000
"""Spark's own size of an Arrow batch: larger ones only hold memory on its side."""


@dataclass
class SliceSplit(InputPartition):
    """One file slice to read; None where a table has none, as Spark wants one split at least."""

    slice: FileSlice | None


class HoodieReader(DataSourceReader):
    """Reads the snapshot that was the latest when the query was planned.

    Parameters
    ----------
    snapshot : Snapshot
        The table at that moment.
    columns : pyarrow.Schema
        What to return, in the types that Spark expects.
    """

    def __init__(self, snapshot: Snapshot, columns: pa.Schema) -> None:
        self._snapshot = snapshot
        self._columns = columns

    def partitions(self) -> list[InputPartition]:
        """Return the splits (driver)."""
        found: list[FileSlice | None] = [*self._snapshot.slices()]
        return [SliceSplit(slice) for slice in found or [None]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one split (executor)."""
        assert isinstance(partition, SliceSplit)
        if partition.slice is None:
            return
        for rows in self._snapshot.reader().read(partition.slice, self._columns.names):
            declared = as_declared(rows, self._columns)
            yield from declared.to_batches(max_chunksize=_BATCH_ROWS)
