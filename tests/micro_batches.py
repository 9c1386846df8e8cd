"""A stream as Spark runs it, without Spark: batches of tasks, each begun and committed anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.sink.batch import Batch
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.messages import TaskCommitMessage, TaskId, WriteResult
from hoodie_ds.sink.replay_guard import BatchId
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.storage.protocol import Storage
from tests.faults.writers import NoPauses, Place


@dataclass
class MicroBatches:
    """The micro-batches of one query into a table.

    Parameters
    ----------
    place : Place
        The table; its options are those of the query.
    query : str
        The query's identity.
    """

    place: Place
    query: str = "query"

    def writer(self, storage: Storage | None = None) -> Coordinator:
        """What Spark's driver makes anew for each batch."""
        place = self.place
        options = WriteOptions.parse({**place.opts, "path": "/t"})
        return Coordinator(options, storage or place.storage, place.clock, place.ids, NoPauses())

    def begin(self, schema: pa.Schema) -> Batch:
        """Begin a batch, a second after the last."""
        self.place.clock.advance(1000)
        return self.writer().begin(schema, is_stream=True)

    def task(self, batch: Batch, number: int, task: int, rows: pa.Table) -> TaskCommitMessage:
        """Run a task of a batch; the first one has all the rows."""
        sent = rows.to_batches() if task == 0 else []
        id_ = TaskId(task, number, task)
        return write_task(batch, id_, BatchId(self.query, number), sent, clock=self.place.clock)

    def run(self, number: int, rows: pa.Table, tasks: int = 2) -> WriteResult:
        """Run a whole batch."""
        batch = self.begin(rows.schema)
        messages = [self.task(batch, number, task, rows) for task in range(tasks)]
        return self.commit(messages)

    def commit(self, messages: Sequence[TaskCommitMessage]) -> WriteResult:
        """Commit a batch."""
        return self.writer().commit(messages)
