"""Making ``hoodie_py`` known to a Spark session."""

from __future__ import annotations

from pyspark.sql import SparkSession

from hoodie_ds.datasource.arrow_settings import prefer_large_arrow_batches
from hoodie_ds.datasource.source import HoodieDataSource


def register(spark: SparkSession) -> None:
    """Register the data source ``hoodie_py`` with a session, once per session.

    Also lifts Spark's byte limit on Arrow batches where the user has not chosen one: with the
    limit on, Spark adds up the size of the whole batch after every row, which dominates the cost
    of handing rows to Python. See `prefer_large_arrow_batches`.
    """
    spark.dataSource.register(HoodieDataSource)
    prefer_large_arrow_batches(spark)
