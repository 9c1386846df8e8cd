"""``hoodie_ds.delete`` and ``update``: rows that a filter finds, changed on the executors.

Spark's SQL cannot delete or update rows of a Python data source, so these are functions. Each task
reads some of the file slices that may hold such rows, and writes what becomes of them; no other
task has rows of their file groups, so nothing is shuffled. All tasks write into one instant, by the
protocol of any other batch.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from hoodie_ds.config.enums import Operation
from hoodie_ds.config.write_options import WriteOptions, of_call
from hoodie_ds.datasource.builders import change_settings
from hoodie_ds.datasource.packing import Pack, in_tasks, packed, parallelism
from hoodie_ds.datasource.registration import register
from hoodie_ds.datasource.task import of_this_task, task_id
from hoodie_ds.filters.given import Filter
from hoodie_ds.inspection.arguments import options as given_options
from hoodie_ds.sink.batch import Batch
from hoodie_ds.sink.commit.conflicts import retry_after_conflicts
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.locate.matched_rows import change_by_filter, matched_rows, scan_for_matches
from hoodie_ds.sink.messages import WriteResult
from hoodie_ds.sink.row_change import NewValue, RowChange
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.sink.write_plan import WritePlan


def delete(
    spark: SparkSession,
    path: str,
    where: Filter,
    options: Mapping[str, str] | None = None,
) -> WriteResult:
    """Delete the rows of a table that match a filter, by tasks on the executors.

    The rows are those that `HoodieTable.delete` deletes, and the commit is one instant. This
    process finds the file slices that may hold such rows, and commits.

    Parameters
    ----------
    spark : SparkSession
        Where to run, also through Spark Connect.
    path : str
        The table's base path. This process and the workers must have access to it.
    where : Filter
        Which rows to delete, as for `hoodie_ds.read`; a row of which it is neither true nor false,
        as that of a null, stays.
    options : mapping of str to str, optional
        Options of the write. One that is numbered (``hoodie.datasource.write.batch.identifier``) is
        made once, however often it is repeated.

    Returns
    -------
    WriteResult
        The commit, and how many rows it deleted.

    Raises
    ------
    OptionError
        An option or the filter is refused, or the filter has no conditions.
    TableNotFoundError
        There is no table.
    WriteConflictError
        Another writer changed a partition that may have such rows.
    HoodieError
        The write was refused; the table is as before.
    pyspark.errors.PySparkException, py4j.protocol.Py4JJavaError
        A task failed; the last line is the error of this library. The next write rolls back what
        the tasks wrote.

    Examples
    --------
    >>> hoodie_ds.delete(spark, "/tmp/trips", "city = oslo").deleted
    1
    """
    return _change(spark, path, Operation.DELETE, where, None, options)


def update(
    spark: SparkSession,
    path: str,
    set: Mapping[str, NewValue],
    where: Filter | None = None,
    options: Mapping[str, str] | None = None,
) -> WriteResult:
    """Set columns of the rows that match a filter to new values, by tasks on the executors.

    Parameters
    ----------
    spark : SparkSession
        Where to run, also through Spark Connect.
    path : str
        The table's base path. This process and the workers must have access to it.
    set : mapping of str to value, expression or function
        What each column becomes, as for `HoodieTable.update`. Functions are sent to the workers,
        and called with some of the rows at a time.
    where : Filter, optional
        Which rows to update, as for `delete`; all by default.
    options : mapping of str to str, optional
        Options of the write, as for `delete`.

    Returns
    -------
    WriteResult
        The commit, and how many rows it updated.

    Raises
    ------
    OptionError
        A column or value is refused, or the filter is.
    TableNotFoundError
        There is no table.
    WriteConflictError
        Another writer changed a partition that may have such rows.
    HoodieError
        The write was refused; the table is as before.
    pyspark.errors.PySparkException, py4j.protocol.Py4JJavaError
        A task failed; see `delete`.
    """
    return _change(spark, path, Operation.UPSERT, where, set, options)


def _change(
    spark: SparkSession,
    path: str,
    operation: Operation,
    where: Filter | None,
    values: Mapping[str, NewValue] | None,
    options: Mapping[str, str] | None,
) -> WriteResult:
    register(spark)
    call = given_options(options)
    parsed = WriteOptions.parse({**change_settings(spark), **call, "path": path})
    parsed = of_call(parsed, operation)
    coordinator = Coordinator.of(parsed)
    change_of = partial(change_by_filter, where, values)
    return retry_after_conflicts(parsed, partial(_change_once, spark, coordinator, change_of))


def _change_once(
    spark: SparkSession, coordinator: Coordinator, change_of: Callable[[WritePlan], RowChange]
) -> WriteResult:
    batch = coordinator.begin_change(change_of)
    if batch is None:
        return WriteResult()
    # Without slices there is one task nevertheless, as a numbered write without rows is one too.
    packs = packed([*scan_for_matches(batch.plan).tasks], parallelism(spark)) or [()]
    answers = in_tasks(spark, packs, partial(_written, batch), "message binary").collect()
    messages = [pickle.loads(answer.message) for answer in answers]  # noqa: S301  ours
    return coordinator.commit_or_abort(messages)


def _written(batch: Batch, pack: Pack) -> Iterator[pa.RecordBatch]:
    """Write what becomes of the rows of a pack; yield the task's message."""
    rows = of_this_task(matched_rows(batch.plan, pack))
    message = write_task(batch, task_id(), batch.given_id, rows)
    # it has the batch, with functions of the user that only this pickler takes
    answer = cloudpickle.dumps(message)  # type: ignore[no-untyped-call]
    yield pa.RecordBatch.from_pydict({"message": [answer]})
