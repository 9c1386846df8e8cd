"""``hoodie_ds.merge``: a DataFrame merged into a table by tasks on the executors.

Spark joins the source with the values that file groups have in the columns by which rows match, and
sends each row to the tasks of those file groups (`MergeTasks`). All tasks write into one instant,
by the protocol of any other batch.
"""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import add
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from hoodie_ds.api.table_merge import TableMerge, with_columns
from hoodie_ds.columns.arrow_columns import Numbers, as_numpy
from hoodie_ds.config.enums import Operation
from hoodie_ds.config.known_options import overridden
from hoodie_ds.config.write_options import WriteOptions, of_call
from hoodie_ds.datasource.builders import change_settings
from hoodie_ds.datasource.compat import arrow_schema
from hoodie_ds.datasource.packing import in_tasks, packed, parallelism
from hoodie_ds.datasource.registration import register
from hoodie_ds.datasource.task import in_worker, of_this_task, task_id
from hoodie_ds.filters.predicate import ALL
from hoodie_ds.formats.avro.schema import normalise_schema
from hoodie_ds.formats.schema_conversion import conform
from hoodie_ds.inspection.arguments import options as given_options
from hoodie_ds.reader.scan_plan import ScanPlan, ScanTask
from hoodie_ds.reader.snapshot import SnapshotQuery
from hoodie_ds.sink.batch import Batch
from hoodie_ds.sink.commit.conflicts import retry_after_conflicts
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.digest.input_digest import InputDigest
from hoodie_ds.sink.hidden_columns import TASK_COLUMN
from hoodie_ds.sink.locate.matched_rows import pinned
from hoodie_ds.sink.locate.merge_tasks import MergeTasks, Role
from hoodie_ds.sink.locate.merged_rows import (
    MergeCounts,
    merge_in,
    merge_of,
    scan_for_merge,
    stored_keys,
)
from hoodie_ds.sink.messages import TaskCommitMessage, WriteResult
from hoodie_ds.sink.numbered_rows import NumberedRows
from hoodie_ds.sink.records import split
from hoodie_ds.sink.row_merge import GivenClause, GivenMerge, On, RowMerge
from hoodie_ds.sink.source_summary import SourceSummary
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.sink.write_plan import WritePlan

_ROLE: Final = "_hoodie_ds_role"
_VALUE: Final = "_hoodie_ds_value_"
"""Begins the names of the columns that have the values by which rows match."""
_KEY: Final = "_hoodie_ds_key_"
"""Begins the names of the columns that have keys of stored rows."""


def merge(
    spark: SparkSession,
    path: str,
    source: DataFrame,
    on: On,
    options: Mapping[str, str] | None = None,
) -> TableMerge:
    """Merge a DataFrame into a table by clauses, by tasks on the executors.

    Nothing is done before `TableMerge.execute`. Clauses, results and errors are those of
    `HoodieTable.merge`, and the commit is one instant. The source is persisted while the merge
    runs, as it is read several times; of the table, the columns of `on` are read once more, in file
    groups that may have rows which match. If new rows do not have the columns of `on` as their
    record keys, keys of the whole table are read, too, and compared with theirs.

    Parameters
    ----------
    spark : SparkSession
        Where to run, also through Spark Connect.
    path : str
        The table's base path. This process and the workers must have access to it.
    source : DataFrame
        It may have other columns than the table, for conditions and new values.
    on : str, iterable of str, or mapping of str to str
        By which columns rows match, as for `HoodieTable.merge`.
    options : mapping of str to str, optional
        Options of the write. One that is numbered (``hoodie.datasource.write.batch.identifier``) is
        made once, however often it is repeated.

    Returns
    -------
    TableMerge
        What takes the clauses, such as `TableMerge.when_matched_update_all`. Functions among their
        new values are sent to the workers; one that makes keys or partitions of new rows is called
        twice.

    Examples
    --------
    >>> merge = hoodie_ds.merge(spark, "/tmp/trips", changes, on="uuid")
    >>> merge = merge.when_matched_update_all().when_not_matched_insert_all()
    >>> merge.execute()
    WriteResult(instant_time='...', inserted=1, updated=1, deleted=0, ...)
    """
    register(spark)
    return TableMerge(partial(_execute, spark, path, source, on, given_options(options)))


def _execute(
    spark: SparkSession,
    path: str,
    source: DataFrame,
    on: On,
    given: Mapping[str, str],
    clauses: tuple[GivenClause, ...],
    call: Mapping[str, str] | None,
    dry: bool,
) -> WriteResult:
    options = overridden({**given, "path": path}, given_options(call))
    parsed = of_call(WriteOptions.parse({**change_settings(spark), **options}), Operation.UPSERT)
    once = partial(_execute_once, spark, Coordinator.of(parsed), source, on, clauses, dry)
    return retry_after_conflicts(parsed, once)


def _execute_once(
    spark: SparkSession,
    coordinator: Coordinator,
    source: DataFrame,
    on: On,
    clauses: tuple[GivenClause, ...],
    dry: bool,
) -> WriteResult:
    found: list[DataFrame] = []

    def change_of(plan: WritePlan) -> RowMerge:
        schema = normalise_schema(arrow_schema(source.schema), plan.schema)
        merge = merge_of(GivenMerge(NumberedRows(schema, ()), on, clauses), plan)
        found.append(_with_values(source, merge).persist())
        numbered = plan.options.batch_identifier is not None
        return replace(merge, whole=_summary(found[0], merge, numbered))

    try:
        if dry:
            plan = with_columns(coordinator.preview_change(change_of))
            return _total(_in_tasks(spark, found[0], plan, None)[1]).of(WriteResult())
        batch = with_columns(coordinator.begin_change(change_of))
        messages, counts = _in_tasks(spark, found[0], batch.plan, batch)
        return _total(counts).of(coordinator.commit_or_abort(messages))
    finally:
        for rows in found:
            rows.unpersist()


def _total(counts: list[MergeCounts]) -> MergeCounts:
    parts = [(part.inserted, part.updated, part.deleted) for part in counts]
    return MergeCounts(*map(sum, zip(*parts, strict=True)))


def _with_values(source: DataFrame, merge: RowMerge) -> DataFrame:
    """The source with the values by which its rows match, in the types of the table."""
    schema = StructType([*source.schema.fields, *_value_fields(merge)])
    return source.mapInArrow(partial(_valued, merge), schema)


def _value_fields(merge: RowMerge) -> list[StructField]:
    kinds = from_arrow_schema(merge.columns)
    return [StructField(f"{_VALUE}{n}", field.dataType) for n, field in enumerate(kinds)]


def _valued(merge: RowMerge, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = pa.Table.from_batches([batch])
        values = _to_spark(
            merge, merge.matched_by(conform(rows, merge.source.schema), merge.pairs.values())
        )
        for name in values.column_names:
            rows = rows.append_column(name, values.column(name))
        yield from rows.to_batches()


def _to_spark(merge: RowMerge, values: pa.Table) -> pa.Table:
    schema = arrow_schema(StructType(_value_fields(merge)))
    return conform(values.rename_columns(schema.names), schema)


def _summary(rows: DataFrame, merge: RowMerge, numbered: bool) -> SourceSummary:
    """What is known of the whole source; its digest only for a merge that may come again."""
    if not numbered:
        rows = rows.select([field.name for field in _value_fields(merge)])
    parts = rows.mapInArrow(partial(_summarised, merge, numbered), "summary binary").collect()
    nothing = SourceSummary.of(merge.columns.empty_table())
    return reduce(add, (pickle.loads(part.summary) for part in parts), nothing)  # noqa: S301  ours


def _summarised(
    merge: RowMerge, numbered: bool, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    total = SourceSummary.of(merge.columns.empty_table())
    for batch in batches:
        rows = pa.Table.from_batches([batch])
        values = rows.select([name for name in rows.column_names if name.startswith(_VALUE)])
        values = conform(values.rename_columns(merge.columns.names), merge.columns)
        digest = InputDigest.of(conform(rows, merge.source.schema)) if numbered else None
        total += SourceSummary.of(values, digest)
    yield pa.RecordBatch.from_pydict({"summary": [pickle.dumps(total)]})


@dataclass(frozen=True)
class _Merge:
    """What the workers know of a merge: `scan` is without slices."""

    tasks: MergeTasks
    scan: ScanPlan
    parts: tuple[bytes, ...]  # the slices of each task, pickled
    batch: Batch | None  # None for a dry run


def _in_tasks(
    spark: SparkSession, source: DataFrame, plan: WritePlan, batch: Batch | None
) -> tuple[list[TaskCommitMessage], list[MergeCounts]]:
    """Merge in tasks, or count the rows alone; returns their messages and counts."""
    scan = scan_for_merge(plan)
    slices, cores = [*scan.tasks], parallelism(spark)
    tasks = MergeTasks(plan, max(cores, len(packed(slices, cores))))
    parts = tasks.parts(slices)
    merge = _Merge(tasks, replace(scan, tasks=()), tuple(map(pickle.dumps, parts)), batch)
    rows = _distributed(spark, source, merge, parts)
    rows = rows.repartitionById(tasks.number, sf.col(TASK_COLUMN)).sortWithinPartitions(_ROLE)
    answers = rows.mapInArrow(partial(_merged, merge), "answer binary").collect()
    found = [pickle.loads(answer.answer) for answer in answers]  # noqa: S301  ours
    messages, counts = zip(*found, strict=True)
    return [*messages], [*counts]


def _distributed(
    spark: SparkSession, source: DataFrame, merge: _Merge, parts: list[tuple[ScanTask, ...]]
) -> DataFrame:
    """The rows that the tasks of a merge get; see `Role`."""
    tasks = merge.tasks
    fields = _value_fields(merge_in(tasks.plan))
    task = StructField(TASK_COLUMN, IntegerType())
    role = StructField(_ROLE, IntegerType())
    here = [part for part in enumerate(parts) if part[1]]
    values = in_tasks(spark, here, partial(_matched_values, merge), StructType([*fields, task]))
    names = [field.name for field in fields]
    stored = values.groupBy(*names).agg(sf.collect_set(TASK_COLUMN).alias(TASK_COLUMN))
    each = sf.explode_outer(TASK_COLUMN)
    joined = source.join(stored, names, "left").withColumn(TASK_COLUMN, each)
    schema = StructType([*joined.schema.fields, role])
    rows = joined.mapInArrow(partial(_with_roles, tasks), schema)
    nothing = spark.range(tasks.number).select(
        sf.col("id").cast("int").alias(TASK_COLUMN), sf.lit(int(Role.NONE)).alias(_ROLE)
    )
    rows = rows.unionByName(nothing, allowMissingColumns=True)
    if tasks.compares_keys:
        scan = SnapshotQuery(pinned(tasks.plan)).plan(ALL)
        packs = packed([*scan.tasks], parallelism(spark))
        read = partial(_stored_keys, tasks, replace(scan, tasks=()))
        keys = in_tasks(spark, packs, read, StructType([*_key_fields(tasks), task, role]))
        rows = rows.unionByName(keys, allowMissingColumns=True)
    return rows


def _key_fields(tasks: MergeTasks) -> list[StructField]:
    return [StructField(f"{_KEY}{n}", StringType()) for n in range(len(tasks.unique_names))]


def _matched_values(
    merge: _Merge, part: tuple[int, tuple[ScanTask, ...]]
) -> Iterator[pa.RecordBatch]:
    """The values of a task's slices, each with the task."""
    number, slices = part
    change = merge_in(merge.tasks.plan)
    for values in merge.tasks.matched_values(replace(merge.scan, tasks=slices)):
        rows = _to_spark(change, values)
        yield from _with(rows, TASK_COLUMN, np.full(rows.num_rows, number)).to_batches()


def _stored_keys(
    tasks: MergeTasks, scan: ScanPlan, pack: tuple[ScanTask, ...]
) -> Iterator[pa.RecordBatch]:
    """The keys of slices, each with its task."""
    for keys in stored_keys(tasks.plan, replace(scan, tasks=pack)):
        rows = keys.rename_columns([field.name for field in _key_fields(tasks)])
        rows = _with(rows, TASK_COLUMN, tasks.of_keys(keys))
        yield from _with(rows, _ROLE, np.full(rows.num_rows, Role.STORED)).to_batches()


def _with_roles(tasks: MergeTasks, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of the source with their tasks and roles, without those of no task."""
    for batch in batches:
        rows = pa.Table.from_batches([batch])
        to = as_numpy(pc.fill_null(rows.column(TASK_COLUMN), -1)).astype(np.int64)
        left = to < 0
        to[left] = tasks.of_new(_typed(tasks, rows.filter(pa.array(left))))
        rows = _with(rows.drop_columns([TASK_COLUMN]), TASK_COLUMN, to)
        rows = _with(rows, _ROLE, np.where(left, Role.INSERTED, Role.MATCHED))
        rows = rows.select([*batch.schema.names, _ROLE])
        yield from rows.filter(pa.array(to >= 0)).to_batches()


def _merged(merge: _Merge, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write what becomes of the rows of a task; yield its message, and how many rows changed."""
    with in_worker():
        here, counts, batch = task_id(), MergeCounts(), merge.batch
        scan = replace(merge.scan, tasks=pickle.loads(merge.parts[here.partition]))  # noqa: S301  ours
        rows = merge.tasks.merged(here.partition, scan, _given(merge.tasks, batches), counts)
        message = None
        if batch is None:
            deque(rows, maxlen=0)
        else:
            message = write_task(batch, here, batch.given_id, of_this_task(rows))
        # it has the batch, with functions of the user that only this pickler takes
        answer = cloudpickle.dumps((message, counts))  # type: ignore[no-untyped-call]
        yield pa.RecordBatch.from_pydict({"answer": [answer]})


def _given(tasks: MergeTasks, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[Role, pa.Table]]:
    """Rows by their roles, in which they are ordered."""
    keys = [field.name for field in _key_fields(tasks)]
    for batch in batches:
        rows = pa.Table.from_batches([batch])
        for role, part in split(rows, as_numpy(rows.column(_ROLE)).astype(np.int64)):
            if role == Role.STORED:
                yield Role.STORED, part.select(keys).rename_columns(tasks.unique_names)
            elif role != Role.NONE:
                yield Role(role), _typed(tasks, part)


def _typed(tasks: MergeTasks, rows: pa.Table) -> pa.Table:
    return conform(rows, merge_in(tasks.plan).source.schema)


def _with(rows: pa.Table, name: str, values: Numbers) -> pa.Table:
    return rows.append_column(name, pa.array(values, pa.int32()))
