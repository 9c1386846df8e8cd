"""A streaming job in a process of its own, which a test may kill: a folder of files to a table."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

import hoodie_ds
from tests.spark import fail_points

SCHEMA = "id bigint, city string, ts bigint, v string, filler string"


def has_fail_points(job: dict[str, Any]) -> bool:
    """Whether the workers import what the driver does: they are its own, and run its Python."""
    return not (job.get("remote") or job.get("python"))


def build(job: dict[str, Any]) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = job.get("python", sys.executable)
    os.environ[fail_points.DRIVER] = str(os.getpgid(0))
    builder = SparkSession.builder
    if job.get("remote"):
        return builder.remote(job["remote"]).getOrCreate()
    names = ("PYTHONPATH", fail_points.FOLDER, fail_points.DRIVER)
    inherited = names if has_fail_points(job) else ()
    conf = {f"spark.executorEnv.{name}": os.environ[name] for name in inherited}
    for key, value in {**conf, **job.get("conf", {})}.items():
        builder = builder.config(key, value)
    return (
        builder.master(job.get("master", "local[2]"))
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )


def run(writer: DataStreamWriter, stop: Path) -> None:
    """Run a query to its end; if a file says so, stop it first, and go on with another one."""
    query = writer.trigger(availableNow=True).start()
    while not query.awaitTermination(0.05):  # type: ignore[arg-type]
        if stop.exists():
            stop.unlink()
            query.stop()
            query = writer.start()


def source(spark: SparkSession, job: dict[str, Any]) -> DataFrame:
    """Open what the job streams: a topic, a table one commit after the other, or a folder."""
    if job.get("kafka"):
        rows = spark.readStream.format("kafka").options(**job["kafka"]).load()
        texts = ["cast(key as string) key", "cast(value as string) value"]
        return rows.selectExpr("topic", "partition", "offset", *texts)
    table = job.get("out_of")
    return (
        spark.readStream.format("hoodie_py" if table else "parquet")
        .schema(SCHEMA)
        .option("read.commits.limit" if table else "maxFilesPerTrigger", "1")
        .load(table or str(Path(job["folder"]) / "source"))
    )


def main() -> None:
    job = json.loads(Path(sys.argv[1]).read_text())
    folder = Path(job["folder"])
    spark = build(job)
    if job.get("log_level"):
        spark.sparkContext.setLogLevel(job["log_level"])
    hoodie_ds.register(spark)
    if has_fail_points(job):
        fail_points.register(spark)
    rows = source(spark, job)
    if job.get("shuffle"):
        rows = hoodie_ds.shuffle_by_file_group(rows, job["options"])
    if job.get("foreach_batch"):
        name = {"hoodie.datasource.write.streaming.checkpoint.identifier": "job"}
        writer = rows.writeStream.foreachBatch(hoodie_ds.foreach_batch({**job["options"], **name}))
    else:
        writer = rows.writeStream.format("hoodie_py").options(**job["options"])
    run(writer.option("checkpointLocation", str(folder / "checkpoint")), folder / "stop")
    if job.get("services"):
        done = hoodie_ds.run_services(spark, {**job["options"], **job["services"]})
        assert not done.failed, done
    reach = {key: value for key, value in job["options"].items() if ".storage.option." in key}
    print(spark.read.format("hoodie_py").options(**reach).load(job["options"]["path"]).count())


if __name__ == "__main__":
    main()
