"""Change events of a database, as Debezium writes them, into a table that follows it.

``python -m examples.cdc_debezium [FOLDER]`` needs the extra ``spark``. The events are lines of
files here. From Kafka they are ``spark.readStream.format("kafka")...selectExpr("string(value) AS
value")``; all else stays as it is.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import from_json

import hoodie_ds

OPTIONS = {
    "hoodie.table.name": "customers",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    # the position in the database's log: of two events of a row the later one wins
    "hoodie.datasource.write.precombine.field": "lsn",
}
_ROW = "STRUCT<id: BIGINT, name: STRING, email: STRING>"
EVENT = f"before {_ROW}, after {_ROW}, source STRUCT<lsn: BIGINT>, op STRING"
EVENTS: list[dict[str, Any] | None] = [
    {"after": {"id": 1, "name": "Ada", "email": "ada@a"}, "source": {"lsn": 10}, "op": "c"},
    {"after": {"id": 2, "name": "Bo", "email": "bo@b"}, "source": {"lsn": 11}, "op": "c"},
    {"after": {"id": 1, "name": "Ada", "email": "ada@c"}, "source": {"lsn": 12}, "op": "u"},
    {"before": {"id": 2, "name": "Bo", "email": "bo@b"}, "source": {"lsn": 13}, "op": "d"},
    None,  # the tombstone after a delete
    {"after": {"id": 1, "name": "Ada", "email": "ada@a"}, "source": {"lsn": 10}, "op": "c"},
]


def rows_of(values: DataFrame) -> DataFrame:
    """Return the rows that events leave, those that are deleted marked so."""
    events = values.select(from_json("value", EVENT).alias("event"))
    rows = events.selectExpr(
        "coalesce(event.after, event.before) AS row",
        "event.source.lsn",
        "event.op = 'd' AS _hoodie_is_deleted",
    )
    return rows.where("row IS NOT NULL").select("row.*", "lsn", "_hoodie_is_deleted")


def follow(spark: SparkSession, events: Path, target: Path) -> None:
    """Apply the events of all files since the last call, each exactly once."""
    hoodie_ds.register(spark)
    options = {**OPTIONS, "path": str(target)}
    rows = rows_of(spark.readStream.text(str(events)))
    stream = hoodie_ds.shuffle_by_file_group(rows, options).writeStream.format("hoodie_py")
    stream = stream.options(**options, checkpointLocation=f"{target}-checkpoint")
    stream.trigger(availableNow=True).start().awaitTermination()


def main(spark: SparkSession, folder: Path) -> hoodie_ds.HoodieTable:
    """Write the events in two files, follow them after each, and return the table."""
    events = folder / "events"
    events.mkdir(parents=True, exist_ok=True)
    for number, part in enumerate((EVENTS[:3], EVENTS[3:])):
        lines = "".join(f"{json.dumps(event)}\n" for event in part)
        (events / f"{number}.json").write_text(lines, "utf-8")
        follow(spark, events, folder / "customers")
    return hoodie_ds.HoodieTable(folder / "customers")


if __name__ == "__main__":
    place = Path(sys.argv[1] if len(sys.argv) > 1 else ".work/examples").absolute()
    print(main(SparkSession.builder.getOrCreate(), place).read())
