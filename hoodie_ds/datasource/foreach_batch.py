"""The same sink for ``writeStream.foreachBatch``, if a Python data source cannot be registered.

RFC-24 keeps a pipeline for engines without an operator coordinator; this is its counterpart. The
function that Spark calls begins the batch, runs the tasks as a job of its own, and commits.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, StructField, StructType

from hoodie_ds.config.operation_options import OperationOptions
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.datasource.builders import write_settings
from hoodie_ds.datasource.compat import arrow_schema
from hoodie_ds.datasource.task import QUERY_ID, in_worker, refuse_number, task_id
from hoodie_ds.errors import OptionError, WriteConflictError
from hoodie_ds.inspection.arguments import options as given_options
from hoodie_ds.sink.batch import Batch
from hoodie_ds.sink.commit.conflicts import retry_after_conflicts
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.messages import TaskId
from hoodie_ds.sink.replay.replay import with_known_batches
from hoodie_ds.sink.replay_guard import BatchId
from hoodie_ds.sink.task_writer import write_task

_MESSAGES: Final = StructType([StructField("message", BinaryType(), nullable=False)])


def foreach_batch(opts: Mapping[str, str]) -> Callable[[DataFrame, int], None]:
    """Return a function for ``writeStream.foreachBatch`` that writes each micro-batch once.

    A batch that Spark runs again, after a failure or a restart from the checkpoint, is recognised
    by the query's identity and the batch id; its rows are compared with those in the table
    (`ReplayMismatchError` if they differ) and dropped. The identity is the option
    ``hoodie.datasource.write.streaming.checkpoint.identifier`` and the id that Spark keeps in the
    checkpoint: so a new checkpoint is a new query, whose batches are all written. Spark Connect
    hides that id: give another identifier there with a new checkpoint, or its batches are refused.
    Give every query of a table an identifier of its own, and keep it as long as the checkpoint.

    Unlike the data source, this cannot overlap a batch's commit with the next batch (a mini-batch
    cannot outlive the function's call), nor write from a session whose data frames cannot run
    Python on Arrow data. Rows must not depend on how often they are computed, as Spark may compute
    them again within a batch; cache them if they do.

    Parameters
    ----------
    opts : mapping of str to str
        Options of the write, ``path`` and the identifier among them.

    Returns
    -------
    callable
        Takes a data frame and a batch id. Raises `HoodieError` where the write is refused.

    Raises
    ------
    OptionError
        An option is unknown or malformed, or the identifier is missing.

    Examples
    --------
    >>> name = {"hoodie.datasource.write.streaming.checkpoint.identifier": "trips-stream"}
    >>> writer = stream.writeStream.foreachBatch(hoodie_ds.foreach_batch({**opts, **name}))
    >>> query = writer.option("checkpointLocation", "/tmp/trips-checkpoint").start()
    """
    call = given_options(opts)
    identifier = _identifier(WriteOptions.parse(call))
    parsed: list[WriteOptions] = []

    def write(rows: DataFrame, number: int) -> None:
        if not parsed:  # a query keeps its session, and Spark is asked for each of its settings
            parsed.append(WriteOptions.parse({**write_settings(rows.sparkSession), **call}))
            _identifier(parsed[0])
        options = parsed[0]
        query = _query_id(rows)
        batch_id = BatchId(identifier, number)
        if query is not None:
            batch_id = BatchId(f"{identifier}/{query}", number, formerly=identifier)
        retry_after_conflicts(options, partial(_write_once, options, rows, batch_id))

    return write


def _identifier(options: WriteOptions) -> str:
    """Return the name that the query keeps over restarts; refuse options that do not fit."""
    if options.batches_per_commit > 1:
        raise OptionError(
            OperationOptions.batches_per_commit.key,
            options.batches_per_commit,
            "an instant of foreach_batch ends with its batch; leave the option out",
        )
    refuse_number(options)
    if options.checkpoint_identifier is None:
        raise OptionError(
            OperationOptions.checkpoint_identifier.key,
            None,
            "foreach_batch needs a name that this query keeps over restarts",
        )
    return options.checkpoint_identifier


def _write_once(options: WriteOptions, rows: DataFrame, batch_id: BatchId) -> None:
    coordinator = Coordinator.of(options)
    begun = coordinator.begin(arrow_schema(rows.schema), batch_id.query_id, is_stream=True)
    batch = with_known_batches(begun, batch_id)  # refuses here what each task would refuse
    sent = rows.mapInArrow(_task(batch, batch_id), _MESSAGES).collect()
    messages = [pickle.loads(row.message) for row in sent]  # noqa: S301  our own
    # A frame without partitions has no task to answer, and the batch may still do something.
    messages = messages or [write_task(batch, TaskId(), batch_id, [])]
    try:
        coordinator.commit(messages)
    except WriteConflictError:
        coordinator.abort(messages)
        raise


def _query_id(rows: DataFrame) -> str | None:
    """Return the id in the running query's checkpoint; None where Spark hides it."""
    try:
        context = rows.sparkSession.sparkContext
    except AttributeError:  # Spark Connect calls from another process than that of the query
        return None
    return context.getLocalProperty(QUERY_ID)


def _task(
    batch: Batch, batch_id: BatchId
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with in_worker():
            message = write_task(batch, task_id(), batch_id, batches)
        yield pa.RecordBatch.from_pydict({"message": [pickle.dumps(message)]})

    return run
