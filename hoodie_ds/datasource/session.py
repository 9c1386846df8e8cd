"""What a job needs of Spark: a session, a running stream and its progress, a read.

Everything here takes and returns plain values, so a job above needs no PySpark; errors of Spark
become a `HoodieError` of one line.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Generator, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from hoodie_ds.datasource.registration import register
from hoodie_ds.datasource.scan import read
from hoodie_ds.datasource.shuffle import shuffle_by_file_group
from hoodie_ds.datasource.spark_errors import our_sentence
from hoodie_ds.errors import HoodieError, OptionError

AVAILABLE_NOW: Final = "available-now"
"""Trigger that reads what the source has now, in its own batches, and ends."""

_JAVA: Final = re.compile(r"^: (?:[\w.$]+: )?(.+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class StreamJob:
    """A stream into a table."""

    source_format: str
    table_options: Mapping[str, str]
    checkpoint: str  # folder
    source_options: Mapping[str, str] = field(default_factory=dict)
    source_schema: str | None = None  # Spark DDL, for a source that needs it
    source_path: str | None = None  # for a source that reads a path
    trigger: str = AVAILABLE_NOW  # or the interval between batches, such as "10 seconds"
    shuffle: bool = True  # whether each row goes to the task of its file group


@dataclass(frozen=True, slots=True)
class BatchProgress:
    """A finished micro-batch: its number, its rows and how long it took."""

    batch_id: int
    rows: int
    seconds: float


@dataclass(frozen=True, slots=True)
class SparkJob:
    """A Spark session that knows ``hoodie_py``; end it with `stop`."""

    spark: SparkSession

    @classmethod
    def open(
        cls,
        name: str,
        environ: MutableMapping[str, str],
        master: str | None = None,
        remote: str | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> SparkJob:
        """Start or find the session.

        If Spark is started here, `environ` makes workers run this Python; under ``spark-submit``
        nothing is changed. `master` is ``local[*]`` by default, and `remote` the address of a Spark
        Connect server, such as ``sc://host:15002``; `OptionError` if two of the three choose where
        to run.
        """
        submitted = "PYSPARK_GATEWAY_PORT" in environ
        if master is not None and (submitted or remote is not None):
            raise OptionError("--master", master, "spark-submit or --remote says where to run")
        builder = SparkSession.builder.appName(name)
        if not submitted:
            environ.setdefault("PYSPARK_PYTHON", sys.executable)
            environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        if remote is not None:
            builder = builder.remote(remote)
        elif not submitted:
            builder = builder.master(master or "local[*]")
        for key, value in (settings or {}).items():
            builder = builder.config(key, value)
        with _one_line():
            spark = builder.getOrCreate()
            if remote is None:
                spark.sparkContext.setLogLevel("ERROR")
            register(spark)
        return cls(spark)

    def run(self, job: StreamJob, poll_seconds: int) -> Generator[list[BatchProgress], None, None]:
        """Run a stream until it ends; stop it when the iterator is closed.

        About every `poll_seconds` it yields the batches with rows that finished since the last
        time.
        """
        with _one_line():
            query = self._start(job)
            try:
                yield from _follow(query, poll_seconds)
            finally:
                if query.isActive:
                    query.stop()

    def read(self, path: str) -> pa.Table:
        """Return the latest rows of a table, through `hoodie_ds.read`."""
        with _one_line():
            return read(self.spark, path).toArrow()

    def stop(self) -> None:
        """End the session."""
        self.spark.stop()

    def _start(self, job: StreamJob) -> StreamingQuery:
        options = dict(job.table_options)
        rows = self._source(job)
        if job.shuffle:
            rows = shuffle_by_file_group(rows, options)
        writer = rows.writeStream.format("hoodie_py").options(**options)
        writer = writer.option("checkpointLocation", job.checkpoint)
        if job.trigger == AVAILABLE_NOW:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=job.trigger)
        return writer.start()

    def _source(self, job: StreamJob) -> DataFrame:
        reader = self.spark.readStream.format(job.source_format).options(**job.source_options)
        if job.source_schema is not None:
            reader = reader.schema(job.source_schema)
        return reader.load(job.source_path)


def _follow(query: StreamingQuery, poll_seconds: int) -> Iterator[list[BatchProgress]]:
    last = -1
    ended = False
    while not ended:
        ended = bool(query.awaitTermination(poll_seconds))
        # An idle query reports batches without rows, under the number of the batch to come.
        fresh = [
            BatchProgress(report.batchId, report.numInputRows, report.batchDuration / 1000)
            for report in query.recentProgress
            if report.batchId > last and report.numInputRows > 0
        ]
        last = max([last, *(batch.batch_id for batch in fresh)])
        yield fresh


@contextmanager
def _one_line() -> Iterator[None]:
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        raise HoodieError(summary(str(error))) from error


_PACKAGE: Final = (
    "; add a source that is a package of its own by --spark-conf spark.jars.packages=..., as "
    "in conf/kafka.properties"
)


def summary(text: str) -> str:
    """Return the one line of a Spark error that a user needs: ours, if it wraps one of ours."""
    found = our_sentence(text)
    if found is None:
        found = (_JAVA.findall(text) or text.strip().splitlines()[:1] or [""])[-1]
    missing = any(name in found for name in ("DATA_SOURCE_NOT_ENABLED", "DATA_SOURCE_NOT_FOUND"))
    return str(found).strip() + (_PACKAGE if missing else "")
