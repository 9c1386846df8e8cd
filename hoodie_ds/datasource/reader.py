"""``spark.read.format("hoodie_py")``: a snapshot query, one split for each file slice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from hoodie_ds.reader.snapshot import Snapshot
from hoodie_ds.table.file_slice import FileSlice

_BATCH_ROWS: Final = 10_000
"""Spark's own size of an Arrow batch: larger ones only hold memory on its side."""


@dataclass
class SliceSplit(InputPartition):
    """One file slice to read."""

    slice: FileSlice


class HoodieReader(DataSourceReader):
    """Reads the snapshot that was the latest when the query was planned.

    Parameters
    ----------
    snapshot : Snapshot
        The table at that moment.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def partitions(self) -> list[InputPartition]:
        """Return the splits (driver)."""
        return [SliceSplit(found) for found in self._snapshot.slices()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one split (executor)."""
        assert isinstance(partition, SliceSplit)
        names = self._snapshot.schema.names
        for rows in self._snapshot.reader().read(partition.slice, names):
            yield from rows.to_batches(max_chunksize=_BATCH_ROWS)
