"""Time of a micro-batch, trigger to trigger, on a young table and after many commits.

    .venv/bin/python benchmarks/micro_batch.py WORK

The source is Spark's own ``rate-micro-batch``: 1,000 rows in each batch, so every trigger has
work. The same stream into ``noop`` is what Spark takes by itself.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from results import emit
from spark_side import session

import hoodie_ds


def stream(spark: SparkSession, rows: int) -> DataFrame:
    """Return a stream of events in four cities."""
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", rows)
    return source.load().selectExpr(
        "value % 5000 as id", "concat('city', value % 4) as city", "timestamp as ts", "value"
    )


def durations(
    spark: SparkSession, work: Path, table_type: str | None, rows: int, batches: int
) -> list[int]:
    """Milliseconds of each batch's whole trigger; without a table type, into ``noop``."""
    shutil.rmtree(work, ignore_errors=True)
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", str(batches + 10))
    events = stream(spark, rows)
    writer = events.writeStream.format("noop")
    if table_type is not None:
        options = {
            "path": str(work / "table"),
            "hoodie.table.name": "events",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "city",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.table.type": table_type,
        }
        shuffled = hoodie_ds.shuffle_by_file_group(events, options)
        writer = shuffled.writeStream.format("hoodie_py").options(**options)
    query = writer.option("checkpointLocation", str(work / "checkpoint")).start()
    while not query.recentProgress or query.recentProgress[-1]["batchId"] < batches:
        if query.exception() is not None:
            raise SystemExit(str(query.exception()))
        time.sleep(0.1)
    query.stop()
    return [progress["durationMs"]["triggerExecution"] for progress in query.recentProgress]


def main() -> None:
    """Measure each kind of table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path)
    parser.add_argument("--batches", type=int, default=220)
    chosen = parser.parse_args()
    spark = session(2, "4g")
    durations(spark, chosen.work, "MERGE_ON_READ", 1000, 40)  # warms the JVM up
    for name, kind in (("noop", None), ("COW", "COPY_ON_WRITE"), ("MOR", "MERGE_ON_READ")):
        taken = durations(spark, chosen.work, kind, 1000, chosen.batches if kind else 40)
        early, late = taken[5:25], taken[-20:]
        for when, part in (("after 5 commits", early), (f"after {len(taken) - 20}", late)):
            seconds = statistics.median(part) / 1000
            emit(f"micro-batch, {name}, {when}", seconds, goal=0.4 if kind else None)
    spark.stop()


if __name__ == "__main__":
    main()
