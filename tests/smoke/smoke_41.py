"""Streams into both kinds of table and out of them, on whatever PySpark runs this.

It needs no pytest.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.version import __version__ as version

import hoodie_ds

ROWS = 1000
KEYS = 700


def start() -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("smoke")
    builder = builder.config("spark.ui.enabled", "false").config("spark.driver.host", "localhost")
    return builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()


def stream(spark: SparkSession, folder: Path, opts: dict[str, str], shuffle: bool) -> DataFrame:
    """Stream two files of the same keys, the second of newer rows, and return the table."""
    source = folder / "source"
    for number in range(2):
        ids = spark.range(ROWS).selectExpr(
            f"id % {KEYS} AS id", f"{number} AS ts", "cast(id % 3 AS string) AS part",
            "cast(id AS decimal(12, 2)) AS amount", "timestamp_seconds(id) AS at",
        )  # fmt: skip
        ids.coalesce(1).write.mode("append").parquet(str(source))
    reader = spark.readStream.schema(spark.read.parquet(str(source)).schema)
    rows = reader.option("maxFilesPerTrigger", 1).parquet(str(source))
    if shuffle:
        rows = hoodie_ds.shuffle_by_file_group(rows, opts)
    writer = rows.writeStream.format("hoodie_py").options(**opts)
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    return spark.read.format("hoodie_py").load(opts["path"])


def stream_out(spark: SparkSession, folder: Path, path: str) -> DataFrame:
    """Stream a table, commit by commit, into Parquet files and return these."""
    writer = spark.readStream.format("hoodie_py").load(path).writeStream.format("parquet")
    writer = writer.option("checkpointLocation", str(folder / "checkpoint-out"))
    writer.trigger(availableNow=True).start(str(folder / "out")).awaitTermination()
    return spark.read.parquet(str(folder / "out"))


def main() -> None:
    spark = start()
    hoodie_ds.register(spark)
    keys = {
        "hoodie.datasource.write.recordkey.field": "id,part",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "part",
    }
    pairs = len({(i % KEYS, i % 3) for i in range(ROWS)})
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        with tempfile.TemporaryDirectory() as name:
            own = {"path": f"{name}/t", "hoodie.table.name": "t", "hoodie.table.type": kind}
            table = stream(spark, Path(name), {**own, **keys}, shuffle=True)
            assert table.count() == pairs, table.count()
            assert table.where("ts = 1").count() == pairs
            streamed = stream_out(spark, Path(name), own["path"])
            assert streamed.exceptAll(table).isEmpty()
            assert table.exceptAll(streamed).isEmpty()
    with tempfile.TemporaryDirectory() as name:
        opts = {"path": f"{name}/t", "hoodie.table.name": "t"}
        table = stream(spark, Path(name), opts, shuffle=False)
        assert table.count() == 2 * ROWS, table.count()
    spark.stop()
    print(f"smoke run on PySpark {version}: passed")


if __name__ == "__main__":
    main()
