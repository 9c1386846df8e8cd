"""``df.write.format("hoodie_py")``: Spark makes one writer, and pickles it for tasks and commit."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from hoodie_ds.config.write_options import WriteOptions, check_numbered
from hoodie_ds.datasource.task import run_task, unwrap
from hoodie_ds.sink.coordinator import Coordinator


class HoodieBatchWriter(DataSourceArrowWriter):
    """Writes one DataFrame as one commit."""

    def __init__(self, options: WriteOptions, schema: pa.Schema) -> None:
        check_numbered(options)
        self._coordinator = Coordinator.of(options)
        self._batch = self._coordinator.begin(schema)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write one partition (executor, once per attempt)."""
        return run_task(self._batch, iterator, streaming=False)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Complete the instant (driver, once all tasks have answered)."""
        self._coordinator.commit(unwrap(messages))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Abort the write (driver)."""
        self._coordinator.abort(unwrap(messages))
