"""`shuffle_by_file_group`: RFC-24's shuffle by file id, before the sink.

A Python sink cannot request a distribution of its input from Spark, so the user does. A hidden
column carries each row's task. The sink compares it with the task it runs in and drops it, so a
shuffle that something undid costs speed and never correctness.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import (
    IntegerType,
    LongType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from hoodie_ds.config.enums import KeyGeneratorType
from hoodie_ds.config.properties.agreement import check_agreement
from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.datasource.append_distribution import distribute
from hoodie_ds.datasource.assigner import assigning_mapper
from hoodie_ds.datasource.builders import write_settings
from hoodie_ds.datasource.compat import arrow_schema
from hoodie_ds.datasource.native_bucket import hive_hash, native_bucket
from hoodie_ds.datasource.python_bucket import task_mapper
from hoodie_ds.index.buckets import Buckets
from hoodie_ds.index.choice import choose_index
from hoodie_ds.index.protocol import LookupIndex
from hoodie_ds.inspection.arguments import options as given_options
from hoodie_ds.record.keys.keygen import KeySpec
from hoodie_ds.record.keys.partition_path import DEFAULT_PARTITION
from hoodie_ds.sink.hidden_columns import (
    LOCATION_COLUMN,
    TASK_COLUMN,
    digest_by_key,
    encode_locations,
)
from hoodie_ds.sink.write_checks import check_fields, resolve_operation
from hoodie_ds.sink.write_plan import key_spec
from hoodie_ds.storage.connect import storage_to_write
from hoodie_ds.table.table import Table, find_table
from hoodie_ds.timeline.timeline import Timeline

_TASKS_MAX_REMOTE = 8


def shuffle_by_file_group(df: DataFrame, opts: Mapping[str, str]) -> DataFrame:
    """Send all rows of a file group to one task, file groups spread evenly over the tasks.

    This is RFC-24's file id assigner, before Spark's own shuffle. With a bucket index it is a pure
    hash. With an index that looks keys up (BLOOM, SIMPLE, FLINK_STATE) keys are looked up here,
    once; the hash of a new key decides its task, where it joins a small file. A row whose key is
    stored in several file groups, after inserts, goes to each, and the sink counts it once.

    With a global index all rows of a key go to one task, and are looked up there. RECORD_INDEX
    looks them up before too, and that task is the one that has the file group of the key; if the
    record index is not of the moment of the table, it is the one that the hash of the key says.

    The file groups of a partition are assigned round-robin, from a task that its path decides: a
    partition of 64 buckets puts 8 on each of 8 tasks. Without this the sink writes the same rows,
    only slower.

    Parameters
    ----------
    df : DataFrame
        Rows for the sink, batch or streaming.
    opts : mapping of str to str
        The options of the write; ``path`` is needed.

    Returns
    -------
    DataFrame
        Write it unchanged. For a table without record keys it is `df`, distributed as options say
        (``hoodie.bulkinsert.sort.mode``, ``hoodie.py.append.tasks.per.partition``).

    Raises
    ------
    HoodieError
        The options do not describe a table, contradict the existing one, or name a column that `df`
        does not have.
    """
    call = given_options(opts)
    options = WriteOptions.parse({**write_settings(df.sparkSession), **call})
    table = _table(options)
    properties = table.properties if table else TableProperties.create(options)
    if not properties.record_key_fields:
        wanted = [*properties.partition_fields, *(options.sort_columns or ())]
        check_fields(arrow_schema(df.schema), wanted)
        return distribute(df, properties, options, _num_tasks(df))
    num_tasks = _num_tasks(df)
    spec = key_spec(properties, options)
    check_fields(arrow_schema(df.schema), [*spec.record_key_fields, *properties.partition_fields])
    view = table.load_timeline() if table else Timeline()
    index = choose_index(properties, options, table, view)
    assigns = isinstance(index, LookupIndex) and index.assigns_rows
    if assigns:
        operation = resolve_operation(options, properties)
        assigns = operation.merges or (operation.fills_small_files and not index.is_global)
    if not assigns or not (df.isStreaming or view.first_commit):
        if isinstance(index, LookupIndex):
            df = _sent_by_key(df, index, num_tasks, properties.partition_fields)
        return _by_bucket(df, index.spread(num_tasks), spec, num_tasks, by_key=index.is_global)
    mapper = assigning_mapper(
        options, arrow_schema(df.schema), num_tasks, None if df.isStreaming else view
    )
    hidden = [StructField(TASK_COLUMN, IntegerType()), StructField(LOCATION_COLUMN, LongType())]
    rows = df.mapInArrow(mapper, StructType([*df.schema.fields, *hidden]))
    return rows.repartitionById(num_tasks, sf.col(TASK_COLUMN))


def _sent_by_key(
    df: DataFrame, index: LookupIndex, num_tasks: int, partition_fields: Sequence[str]
) -> DataFrame:
    """Say of all rows by which fields their keys are spread, and over how many tasks."""
    digest = digest_by_key(index, num_tasks, partition_fields)
    (way,) = encode_locations(digest, np.array([-num_tasks])).to_pylist()
    return df.withColumn(LOCATION_COLUMN, sf.lit(way).cast("bigint"))


def _by_bucket(
    df: DataFrame, buckets: Buckets, spec: KeySpec, num_tasks: int, by_key: bool = False
) -> DataFrame:
    """Send rows to tasks by bucket and partition, or by bucket alone with `by_key`."""
    bucket = native_bucket(df, buckets, spec)
    if bucket is None:
        schema = StructType([*df.schema.fields, StructField(TASK_COLUMN, IntegerType())])
        rows = df.mapInArrow(task_mapper(buckets, spec, num_tasks, by_key), schema)
    else:
        first = sf.lit(0) if by_key else _first_task(df, buckets, spec, num_tasks)
        rows = df.withColumn(TASK_COLUMN, ((first + bucket) % num_tasks).cast("int"))
    return rows.repartitionById(num_tasks, sf.col(TASK_COLUMN))


def _table(options: WriteOptions) -> Table | None:
    table = find_table(storage_to_write(options))
    if table is not None:
        check_agreement(options, table.properties)
    return table


def _first_task(df: DataFrame, buckets: Buckets, spec: KeySpec, num_tasks: int) -> Column:
    """The task of a partition's bucket 0, a function of the path alone; see `first_task`."""
    if spec.kind not in (KeyGeneratorType.SIMPLE, KeyGeneratorType.COMPLEX):
        return sf.lit(0)  # several values may share a path; its buckets are spread all the same
    nothing = sf.lit(DEFAULT_PARTITION)
    strings = [_path_string(df, field, spec) for field in spec.partition_fields]
    values = [sf.when((s == "") | s.isNull(), nothing).otherwise(s) for s in strings]
    hashed = hive_hash(df, sf.concat_ws("/", *values)).bitwiseAND(0x7FFFFFFF)
    return hashed % num_tasks * buckets.num_buckets


def _path_string(df: DataFrame, field: str, spec: KeySpec) -> Column:
    """A string that is equal for values with the same part of the path."""
    column = sf.col(field)
    kind = df.select(column).schema[0].dataType
    if spec.consistent_logical_timestamp and isinstance(kind, (TimestampType, TimestampNTZType)):
        micros = sf.unix_micros(column.cast("timestamp"))
        column = micros - micros % 1000  # the path ends at the millisecond, rounded towards zero
    return column.cast("string")


def _num_tasks(df: DataFrame) -> int:
    """As many tasks as there are cores, but no more than Spark would shuffle into."""
    session = df.sparkSession
    shuffle = int(session.conf.get("spark.sql.shuffle.partitions") or _TASKS_MAX_REMOTE)
    if hasattr(session, "_jvm"):
        return max(1, min(session.sparkContext.defaultParallelism, shuffle))
    return max(1, min(_TASKS_MAX_REMOTE, shuffle))
