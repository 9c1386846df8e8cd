"""A streaming job in a process of its own, which a test may kill: a folder of files to a table."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import hoodie_ds

SCHEMA = "id bigint, city string, ts bigint, v string, filler string"


def build(job: dict[str, str]) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder
    if job.get("remote"):
        return builder.remote(job["remote"]).getOrCreate()
    return (
        builder.master(job.get("master", "local[2]"))
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )


def main() -> None:
    job = json.loads(Path(sys.argv[1]).read_text())
    spark = build(job)
    hoodie_ds.register(spark)
    rows = (
        spark.readStream.format("parquet")
        .schema(SCHEMA)
        .option("maxFilesPerTrigger", "1")
        .load(job["source"])
    )
    if job.get("shuffle"):
        rows = hoodie_ds.shuffle_by_file_group(rows, job["options"])
    if job.get("foreach_batch"):
        name = {"hoodie.datasource.write.streaming.checkpoint.identifier": "job"}
        writer = rows.writeStream.foreachBatch(hoodie_ds.foreach_batch({**job["options"], **name}))
    else:
        writer = rows.writeStream.format("hoodie_py").options(**job["options"])
    writer = writer.option("checkpointLocation", job["checkpoint"])
    writer.trigger(availableNow=True).start().awaitTermination()
    print(spark.read.format("hoodie_py").load(job["options"]["path"]).count())


if __name__ == "__main__":
    main()
