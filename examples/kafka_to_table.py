"""From a topic of Kafka into a table, as a stream: the newest message of each key, exactly once.

``python -m examples.kafka_to_table SERVERS TOPIC [FOLDER]`` needs the extra ``spark``, and Spark
fetches its Kafka source. Messages are JSON such as ``{"id": "a", "city": "oslo", "fare": 9.5}``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import hoodie_ds

RIDES = {
    "hoodie.table.name": "rides",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    # producers send the messages of a key to one partition, whose offsets order them
    "hoodie.datasource.write.precombine.field": "offset",
}
SOURCE = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"


def follow(messages: DataFrame, target: Path) -> hoodie_ds.HoodieTable:
    """Write what has come since the last call; a message that is not JSON is left out."""
    options = {**RIDES, "path": str(target)}
    row = "from_json(string(value), 'id STRING, city STRING, fare DOUBLE') AS row"
    rides = messages.selectExpr(row, "offset").select("row.*", "offset").where("id IS NOT NULL")
    rides = hoodie_ds.shuffle_by_file_group(rides, options)
    stream = rides.writeStream.format("hoodie_py").options(**options)
    stream = stream.option("checkpointLocation", f"{target}-checkpoint")
    stream.trigger(availableNow=True).start().awaitTermination()
    return hoodie_ds.HoodieTable(target)


def main(servers: str, topic: str, folder: Path) -> hoodie_ds.HoodieTable:
    """Write the messages of a topic that are new, and return the table."""
    spark = SparkSession.builder.config("spark.jars.packages", SOURCE).getOrCreate()
    hoodie_ds.register(spark)
    kafka = {"kafka.bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "earliest"}
    messages = spark.readStream.format("kafka").options(**kafka).load()
    return follow(messages, folder / "rides")


if __name__ == "__main__":
    place = Path(sys.argv[3] if len(sys.argv) > 3 else ".work/examples").absolute()
    print(main(sys.argv[1], sys.argv[2], place).read())
