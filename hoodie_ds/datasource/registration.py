"""Making ``hoodie_py`` known to a Spark session."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.utils import is_remote

from hoodie_ds.datasource.arrow_settings import prefer_large_arrow_batches
from hoodie_ds.datasource.source import HoodieDataSource
from hoodie_ds.datasource.spark_errors import end_with_our_sentence
from hoodie_ds.datasource.triggers import refuse_continuous

_REGISTERED: Final = "spark.hoodie_ds.registered"
_PUSHES: Final = "spark.sql.python.filterPushdown.enabled"
_OF_HUDI: Final = ("hoodie.", "spark.hoodie.")
_log = logging.getLogger("hoodie_ds")


def register(spark: SparkSession) -> None:
    """Register the data source ``hoodie_py`` with a session; a second time does nothing.

    Also lifts Spark's byte limit on Arrow batches where the user has not chosen one: with the
    limit on, Spark adds up the size of the whole batch after every row, which dominates the cost
    of handing rows to Python. See `prefer_large_arrow_batches`. And PySpark's exceptions end with
    the error of this library that they tell of, which Spark itself buries; see
    `end_with_our_sentence`. A stream into the data source with ``trigger(continuous=...)``, of
    which Spark would write nothing, is refused when it starts. Unless the user has set it, Spark is
    told that Python data sources may take the filters of queries, without which it refuses those
    that can. A warning names settings of the session by which Hudi on the JVM would go.
    """
    end_with_our_sentence()
    refuse_continuous(DataStreamWriter, HoodieDataSource.name())
    if is_remote():
        from pyspark.sql.connect.streaming import readwriter

        refuse_continuous(readwriter.DataStreamWriter, HoodieDataSource.name())
    if spark.conf.get(_REGISTERED, "") != HoodieDataSource.name():
        with _active(spark):
            spark.dataSource.register(HoodieDataSource)
        spark.conf.set(_REGISTERED, HoodieDataSource.name())
        _warn_of_session_options(spark)
    prefer_large_arrow_batches(spark)
    if spark.conf.get(_PUSHES, "true") == "true":  # else the user has set it
        spark.conf.set(_PUSHES, "true")


def _warn_of_session_options(spark: SparkSession) -> None:
    """Spark hands a Python data source the options of the call alone."""
    found = sorted(key for key in spark.conf.getAll if key.startswith(_OF_HUDI))
    if found:
        _log.warning(
            "settings of the Spark session have no effect on hoodie_py: %s; give them as options "
            "of the read or write, without 'spark.'",
            ", ".join(found),
        )


@contextmanager
def _active(spark: SparkSession) -> Iterator[None]:
    """Make a session the active one, where Spark looks whether it has the data source already.

    Without that a second session, as ``newSession`` makes it, is refused what the first one has.
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
