"""Registers ``hoodie_py`` with a Spark session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.utils import is_remote

from hoodie_ds.datasource.source import HoodieDataSource
from hoodie_ds.datasource.spark_errors import end_with_our_sentence
from hoodie_ds.datasource.triggers import refuse_left_out
from hoodie_ds.log import Log

_REGISTERED: Final = "spark.hoodie_ds.registered"
_PUSHES: Final = "spark.sql.python.filterPushdown.enabled"
_OF_HUDI: Final = ("hoodie.", "spark.hoodie.")
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
    without which Spark refuses data sources that can do it. A warning names settings of the session
    that Hudi on the JVM would obey.
    """
    end_with_our_sentence()
    refuse_left_out(DataStreamWriter, HoodieDataSource.name())
    if is_remote():
        from pyspark.sql.connect.streaming import readwriter

        refuse_left_out(readwriter.DataStreamWriter, HoodieDataSource.name())
    if spark.conf.get(_REGISTERED, "") != HoodieDataSource.name():
        with _active(spark):
            spark.dataSource.register(HoodieDataSource)
        spark.conf.set(_REGISTERED, HoodieDataSource.name())
        _warn_of_session_options(spark)
    prefer_large_arrow_batches(spark)
    if spark.conf.get(_PUSHES, "true") == "true":  # else the user has set it
        spark.conf.set(_PUSHES, "true")


def _warn_of_session_options(spark: SparkSession) -> None:
    """Spark passes only the options of the call to a Python data source."""
    found = sorted(key for key in spark.conf.getAll if key.startswith(_OF_HUDI))
    if found:
        Log().warning(
            "settings of the Spark session have no effect on hoodie_py: %s; give them as options "
            "of the read or write, without 'spark.'",
            ", ".join(found),
        )


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
