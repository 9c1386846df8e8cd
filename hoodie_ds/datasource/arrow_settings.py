"""The one Spark setting that the speed of every Python writer hangs on."""

from __future__ import annotations

import logging
from typing import Final

from pyspark.sql import SparkSession

_KEY: Final = "spark.sql.execution.arrow.maxBytesPerBatch"
_UNLIMITED: Final = "2147483647"
_UNSET: Final = "1"  # must parse as a size; nobody limits a batch to one byte

_log = logging.getLogger("hoodie_ds")


def prefer_large_arrow_batches(spark: SparkSession) -> None:
    """Lift the byte limit of Arrow batches, unless the user set one.

    While there is a limit, Spark sums the size of the whole batch after every row. Without it a
    batch ends after ``spark.sql.execution.arrow.maxRecordsPerBatch`` rows (10,000) alone: with
    rows of 100 kB that is 1 GB at once, so set either of the two for very wide rows.
    """
    default = spark.conf.get(_KEY)
    if default != _UNLIMITED and spark.conf.get(_KEY, _UNSET) == _UNSET:
        spark.conf.set(_KEY, _UNLIMITED)
        _log.info("%s set to %s (was %s): see conf/README.md", _KEY, _UNLIMITED, default)
