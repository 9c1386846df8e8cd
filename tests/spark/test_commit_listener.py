"""Metrics of the sink, batch by batch, as a stream goes on."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import hoodie_ds

pytestmark = pytest.mark.spark


def test_each_batch_is_reported_by_name(spark: Any, tmp_path: Path) -> None:
    hoodie_ds.register(spark)
    for number in range(3):
        spark.range(100 * number, 100 * number + 100).write.mode("append").parquet(
            str(tmp_path / "in")
        )
    options = {"path": str(tmp_path / "t"), "hoodie.table.name": "t"}
    seen: list[Mapping[str, str | int]] = []
    listener = hoodie_ds.CommitListener(options, seen.append)
    spark.streams.addListener(listener)
    try:
        stream = spark.readStream.schema("id long").option("maxFilesPerTrigger", "2")
        writer = stream.parquet(str(tmp_path / "in")).writeStream.format("hoodie_py")
        query = (
            writer.options(**options)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        deadline = time.monotonic() + 30
        while len(seen) < 3 and time.monotonic() < deadline:
            time.sleep(0.05)
    finally:
        spark.streams.removeListener(listener)
    times = [
        instant.time for instant in hoodie_ds.HoodieTable(str(tmp_path / "t")).timeline.commits
    ]
    assert [entry["instant"] for entry in seen] == times
    assert [entry["batch_id"] for entry in seen] == list(range(len(times)))
    for entry in seen:
        assert int(entry["num_flushes"]) >= 1
        assert int(entry["flushed_bytes"]) >= 8
        assert {"max_buffered_bytes", "write_ms", "flush_ms", "close_ms"} <= set(entry)


PROGRAM = """
import sys
import hoodie_ds
from pyspark.sql import SparkSession

folder = sys.argv[1]
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
spark = builder.config("spark.driver.host", "localhost").getOrCreate()
for _ in range(2):
    hoodie_ds.register(spark)
options = {"path": folder + "/t", "hoodie.table.name": "t"}
spark.range(10).write.parquet(folder + "/in")
spark.streams.addListener(hoodie_ds.CommitListener(options))
stream = spark.readStream.schema("id long").parquet(folder + "/in").writeStream
writer = stream.format("hoodie_py").options(**options, checkpointLocation=folder + "/ck")
writer.trigger(availableNow=True).start().awaitTermination()
"""


@pytest.mark.slow
@pytest.mark.nightly
def test_a_program_with_a_listener_ends_with_its_reports(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        env={key: value for key, value in os.environ.items() if not key.startswith("PYSPARK")}
        | {"PYSPARK_PYTHON": sys.executable},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert ran.stderr.count("batch_id 0, ") == 1, ran.stderr
    for word in ("py4j", "Py4J", "Traceback", "previously registered"):
        assert word not in ran.stderr
