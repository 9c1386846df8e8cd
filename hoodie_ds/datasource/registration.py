"""Registers ``hoodie_py`` with a Spark session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql.readwriter import DataFrameReader, DataFrameWriter
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter
from pyspark.sql.utils import is_remote

from hoodie_ds.datasource.builders import (
    watch_reader,
    watch_sql,
    watch_stream_reader,
    watch_stream_writer,
    watch_writer,
)
from hoodie_ds.datasource.source import HoodieDataSource
from hoodie_ds.datasource.spark_errors import end_with_our_sentence
from hoodie_ds.log import Log

_REGISTERED: Final = "spark.hoodie_ds.registered"
_PUSHES: Final = "spark.sql.python.filterPushdown.enabled"
_ARROW_BYTES: Final = "spark.sql.execution.arrow.maxBytesPerBatch"
_UNLIMITED: Final = "2147483647"
_UNSET: Final = "1"  # must parse as a size; no user limits a batch to one byte


def register(spark: SparkSession) -> None:
    """Register the data source ``hoodie_py`` with a session; a second time does nothing.

    Also lifts Spark's byte limit on Arrow batches unless the user has set one: with a limit, Spark
    sums the size of the whole batch after every row, which dominates the cost of passing rows to
    Python. PySpark's exceptions then end with the error of this library that they report, which
    Spark itself buries. A stream into the data source with ``trigger(continuous=...)``, of which
    Spark would write nothing, or with ``partitionBy``, which it would leave out, is refused when it
    starts. Unless the user has set it, filter pushdown to Python data sources is switched on,
    without which Spark refuses data sources that can do it.

    Reads, writes and streams take the session's settings ``spark.hoodie.*`` for options that the
    call does not give, and queries also ``hoodie.*``; a reader or writer that starts a second time
    keeps those of the first. Statements of SQL do not: a warning names such settings.
    """
    end_with_our_sentence()
    _watch_builders()
    if spark.conf.get(_REGISTERED, "") != HoodieDataSource.name():
        with _active(spark):
            spark.dataSource.register(HoodieDataSource)
        spark.conf.set(_REGISTERED, HoodieDataSource.name())
    prefer_large_arrow_batches(spark)
    if spark.conf.get(_PUSHES, "true") == "true":  # else the user has set it
        spark.conf.set(_PUSHES, "true")


def _watch_builders() -> None:
    """Let PySpark's readers and writers take the session's settings, and refuse what is lost."""
    name = HoodieDataSource.name()
    watch_reader(DataFrameReader, name)
    watch_stream_reader(DataStreamReader, name)
    watch_writer(DataFrameWriter, name)
    watch_stream_writer(DataStreamWriter, name)
    watch_sql(SparkSession, name)
    if is_remote():
        from pyspark.sql.connect import readwriter
        from pyspark.sql.connect.session import SparkSession as RemoteSession
        from pyspark.sql.connect.streaming import readwriter as streams

        watch_reader(readwriter.DataFrameReader, name)
        watch_stream_reader(streams.DataStreamReader, name)
        watch_writer(readwriter.DataFrameWriter, name)
        watch_stream_writer(streams.DataStreamWriter, name)
        watch_sql(RemoteSession, name)


@contextmanager
def _active(spark: SparkSession) -> Iterator[None]:
    """Make a session the active one, in which Spark checks whether the data source is registered.

    Otherwise a second session, from ``newSession``, is refused what the first one has.
    """
    if not hasattr(spark, "_jvm"):  # Connect, whose server looks into the right session
        yield
        return
    sessions = SparkSession._get_j_spark_session_class(spark._jvm)
    before = sessions.getActiveSession()
    sessions.setActiveSession(spark._jsparkSession)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def prefer_large_arrow_batches(spark: SparkSession) -> None:
    """Lift the byte limit of Arrow batches, unless the user set one.

    With a limit, Spark sums the size of the whole batch after every row. Without it only
    ``spark.sql.execution.arrow.maxRecordsPerBatch`` (10,000 rows) ends a batch: with rows of 100 kB
    that is 1 GB at once, so set either of the two for very wide rows.
    """
    default = spark.conf.get(_ARROW_BYTES)
    if default != _UNLIMITED and spark.conf.get(_ARROW_BYTES, _UNSET) == _UNSET:
        spark.conf.set(_ARROW_BYTES, _UNLIMITED)
        where = "docs/guides/tuning.md"
        Log().info("%s set to %s (was %s): see %s", _ARROW_BYTES, _UNLIMITED, default, where)
