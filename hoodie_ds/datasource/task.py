"""What a task on an executor knows of itself, and the wrapper of its message."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from hoodie_ds.config.operation_options import OperationOptions
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import AccessDeniedError, OptionError, TimelineError, UnavailableError
from hoodie_ds.sink.batch import Batch
from hoodie_ds.sink.hidden_columns import TASK_COLUMN
from hoodie_ds.sink.messages import TaskCommitMessage, TaskId
from hoodie_ds.sink.replay_guard import BatchId
from hoodie_ds.sink.task_writer import write_task

QUERY_ID: Final = "sql.streaming.queryId"
"""Local property of the jobs of a streaming query: the id that its checkpoint keeps."""


@dataclass
class SparkMessage(WriterCommitMessage):
    """A task's message in Spark's wrapper."""

    message: TaskCommitMessage


def run_task(
    batch: Batch, batches: Iterator[pa.RecordBatch], streaming: bool
) -> WriterCommitMessage:
    """Write the rows of the task that this process runs."""
    batch_id = micro_batch() if streaming else batch.given_id
    with in_worker():
        return SparkMessage(write_task(batch, task_id(), batch_id, batches))


@contextmanager
def in_worker() -> Iterator[None]:
    """Add to an error that the storage denies access, or does not answer, that a worker met it.

    The driver has used the same storage before, so the worker lacks the driver's environment: a
    user who sees only the storage's answer looks in the wrong place.
    """
    try:
        yield
    except (AccessDeniedError, UnavailableError) as error:
        raise type(error)(
            f"{error}; this was in a Python worker on {socket.gethostname()}, which sees neither "
            "the driver's environment variables nor its files: pass credentials and endpoints as "
            "hoodie.py.storage.option.<name>, or set them on all nodes (spark.executorEnv.<NAME>)"
        ) from error


def refuse_number(options: WriteOptions) -> None:
    """Raise `OptionError` if a stream is given the number of a batch write."""
    if options.batch_identifier is not None:
        raise OptionError(
            OperationOptions.batch_identifier.key,
            options.batch_identifier,
            "a stream numbers its batches itself; leave it out",
        )


def task_id() -> TaskId:
    """Return the task attempt of this process."""
    context = _context()
    return TaskId(context.partitionId(), context.stageId(), context.taskAttemptId())


def of_this_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield rows of file groups, or keys, of which no other task has rows, and say so."""
    here = pa.scalar(task_id().partition, pa.int32())
    for rows in batches:
        yield rows.append_column(TASK_COLUMN, pa.repeat(here, rows.num_rows))


def _context() -> TaskContext:
    context = TaskContext.get()
    if context is None:
        raise TimelineError("a data writer was called outside a Spark task")
    return context


def unwrap(messages: Sequence[WriterCommitMessage | None]) -> list[TaskCommitMessage | None]:
    """Return the tasks' messages without Spark's wrapper; None for a task that did not finish."""
    return [message.message if isinstance(message, SparkMessage) else None for message in messages]


def micro_batch() -> BatchId:
    """Return the micro-batch that this task belongs to."""
    context = _context()
    query = context.getLocalProperty(QUERY_ID)
    number = context.getLocalProperty("streaming.sql.batchId")
    if query is None or number is None:
        raise TimelineError(
            "Spark did not give this task its query and batch, without which a replay cannot be "
            "recognised; write the stream through hoodie_py from a streaming query"
        )
    return BatchId(query, int(number))
