"""From one table into another, as a stream: what each commit wrote is there once.

``python -m examples.table_to_table [FOLDER]`` needs the extra ``spark``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

import hoodie_ds

TRIPS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
}
PAID = {**TRIPS, "hoodie.table.name": "paid", "hoodie.datasource.write.partitionpath.field": "city"}


def follow(spark: SparkSession, source: Path, target: Path) -> None:
    """Write paid trips, in cents, into another table: those of all commits since the last call."""
    hoodie_ds.register(spark)
    options = {**PAID, "path": str(target)}
    trips = spark.readStream.format("hoodie_py").load(str(source)).where("fare > 0")
    paid = trips.selectExpr("id", "city", "int(round(100 * fare)) AS cents", "ts")
    paid = hoodie_ds.shuffle_by_file_group(paid, options)
    stream = paid.writeStream.format("hoodie_py").options(**options)
    stream = stream.option("checkpointLocation", f"{target}-checkpoint")
    stream.trigger(availableNow=True).start().awaitTermination()


def main(spark: SparkSession, folder: Path) -> hoodie_ds.HoodieTable:
    """Write trips in two commits, follow them after each, and return the other table."""
    trips = hoodie_ds.HoodieTable(folder / "trips", TRIPS)
    for rows in (
        {"id": ["a", "b"], "city": ["oslo", "rome"], "fare": [9.5, 0.0], "ts": [1, 1]},
        {"id": ["b", "c"], "city": ["rome", "rome"], "fare": [12.25, 7.0], "ts": [2, 2]},
    ):
        trips.upsert(pa.table(rows))
        follow(spark, folder / "trips", folder / "paid")
    return hoodie_ds.HoodieTable(folder / "paid")


if __name__ == "__main__":
    place = Path(sys.argv[1] if len(sys.argv) > 1 else ".work/examples").absolute()
    print(main(SparkSession.builder.getOrCreate(), place).read())
