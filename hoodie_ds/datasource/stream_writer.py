"""``df.writeStream.format("hoodie_py")``: the adapter between Spark's calls and the coordinator.

Spark creates a writer twice in every micro-batch, in two driver processes: one is pickled for the
tasks, the other commits. Only the first has begun a batch.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.datasource.task import run_task, unwrap
from hoodie_ds.datasource.triggers import continuous_error
from hoodie_ds.errors import TimelineError
from hoodie_ds.sink.batch import Batch
from hoodie_ds.sink.coordinator import Coordinator


class HoodieStreamWriter(DataSourceStreamArrowWriter):
    """Writes micro-batches, each as one commit, exactly once.

    `batch` is what tasks write; None for the writer that commits.
    """

    def __init__(self, options: WriteOptions, batch: Batch | None = None) -> None:
        self._options = options
        self._batch = batch

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write one partition (executor, once per attempt)."""
        if self._batch is None:
            raise TimelineError("a task got a writer whose batch was never begun")
        return run_task(self._batch, iterator, streaming=True)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Complete the instant (driver, maybe again for the same batch)."""
        found = unwrap(messages)
        if found and all(message is None for message in found):
            # In continuous mode Spark commits epochs whose rows it never passes to Python.
            raise continuous_error(batchId)
        Coordinator.of(self._options).commit(found)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Abort the batch (driver); tasks may still be writing."""
        Coordinator.of(self._options).abort(unwrap(messages))
