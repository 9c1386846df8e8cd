"""Streams and a batch writer of one table in one application; each goes on until all is in."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import hoodie_ds
from tests.spark import fail_points
from tests.spark.stream_job import SCHEMA, build

CONFLICT = "WriteConflictError"


class Writers:
    """What the threads of the application do, and how often it was refused."""

    def __init__(self, spark: SparkSession, folder: Path, options: dict[str, str]) -> None:
        self.spark, self.folder, self.options = spark, folder, options
        self.conflicts = 0

    def stream(self, source: Path) -> None:
        rows = (
            self.spark.readStream.format("parquet")
            .schema(SCHEMA)
            .option("maxFilesPerTrigger", "1")
            .load(str(source))
        )
        writer = rows.writeStream.format("hoodie_py").options(**self.options)
        writer = writer.option("checkpointLocation", str(self.folder / "checkpoint"))
        self._until_done(lambda: writer.trigger(availableNow=True).start().awaitTermination())

    def batches(self, source: Path) -> None:
        for file in sorted(source.glob("*.parquet")):
            rows = self.spark.read.schema(SCHEMA).parquet(str(file))
            writer = rows.write.format("hoodie_py").options(**self.options).mode("append")
            self._until_done(writer.save)

    def _until_done(self, work: Callable[[], object]) -> None:
        """Do it again as long as another writer comes first."""
        while True:
            try:
                work()
                return
            except PySparkException as error:
                if CONFLICT not in str(error):
                    raise
                self.conflicts += 1


def activate(spark: SparkSession) -> None:
    """Make a session that of this thread; else Spark does not find what was registered with it."""
    classes = SparkSession._get_j_spark_session_class(spark._jvm)
    classes.setActiveSession(spark._jsparkSession)


def main() -> None:
    job = json.loads(Path(sys.argv[1]).read_text())
    spark = build(job)
    hoodie_ds.register(spark)
    fail_points.register(spark)
    writers = Writers(spark, Path(job["folder"]), job["options"])
    with ThreadPoolExecutor(initializer=activate, initargs=(spark,)) as pool:
        running = [pool.submit(writers.stream, Path(job["stream"]))]
        if "batches" in job:
            running.append(pool.submit(writers.batches, Path(job["batches"])))
        for done in running:
            done.result()
    print("conflicts", writers.conflicts)


if __name__ == "__main__":
    main()
