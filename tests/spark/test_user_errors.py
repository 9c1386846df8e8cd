"""What a user of Spark sees: our sentence is the last line, and what cannot work is refused."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hoodie_ds
from hoodie_ds import HoodieTable
from tests.tables import BUCKETS, TRIPS, trips

pytestmark = pytest.mark.spark

ROWS = trips(("a", "x", 1, 1.5), ("b", "y", 2, 2.5))


def last_line(call: Callable[[], Any]) -> str:
    """What Python prints last of the error that a call ends with."""
    with pytest.raises(Exception) as caught:  # noqa: PT011  each test says which line
        call()
    return "".join(traceback.format_exception(caught.value)).rstrip().splitlines()[-1]


def test_the_last_line_of_a_failed_stream_is_our_sentence(spark: Any, tmp_path: Path) -> None:
    hoodie_ds.register(spark)
    HoodieTable(str(tmp_path / "t"), TRIPS).upsert(ROWS)
    spark.createDataFrame(ROWS.to_pylist()).coalesce(1).write.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema("id string, city string, ts long, fare double")
    query = (
        stream.parquet(str(tmp_path / "in"))
        .writeStream.format("hoodie_py")
        .options(**TRIPS, path=str(tmp_path / "t"), checkpointLocation=str(tmp_path / "ck"))
        .option(BUCKETS, "7")
        .trigger(availableNow=True)
        .start()
    )
    sentence = (
        "hoodie_ds.errors.OptionError: option 'hoodie.bucket.index.num.buckets' = '7' is refused: "
        "table 'trips' has '2'; leave the option out or write to another table"
    )
    assert last_line(query.awaitTermination) == sentence
    assert str(query.exception()).splitlines()[-1] == sentence
    assert "PicklingError" not in str(query.exception())


def test_the_last_line_of_a_failed_task_and_of_a_failed_read(spark: Any, tmp_path: Path) -> None:
    hoodie_ds.register(spark)
    rows = spark.createDataFrame([(None, "x", 1, 1.0)], "id string, city string, ts long, f double")
    writer = rows.write.format("hoodie_py").options(**TRIPS).mode("append")
    task = last_line(lambda: writer.save(str(tmp_path / "t")))
    assert task.startswith("hoodie_ds.errors.RecordKeyError: 1 of 1 rows have no record key")
    reader = spark.read.format("hoodie_py")
    nothing = last_line(lambda: reader.load(str(tmp_path / "none")))
    assert nothing.startswith("hoodie_ds.errors.TableNotFoundError: ")


def test_what_spark_leaves_out_is_refused(spark: Any, tmp_path: Path) -> None:
    hoodie_ds.register(spark)
    rates = spark.readStream.format("rate").load().writeStream.format("hoodie_py")
    writer = rates.options(path=str(tmp_path / "t"), checkpointLocation=str(tmp_path / "ck"))
    line = last_line(lambda: writer.trigger(continuous="1 second").start())
    assert line.startswith("hoodie_ds.errors.OptionError: option 'trigger(continuous=...)'")
    folders = rates.trigger(availableNow=True).partitionBy("value")
    assert "option 'partitionBy(...)' = 'value' is refused" in last_line(folders.start)
    assert not spark.streams.active


@pytest.mark.slow
def test_tables_that_spark_reads(spark: Any, tmp_path: Path) -> None:
    hoodie_ds.register(spark)
    path = str(tmp_path / "t")
    table = HoodieTable(path, TRIPS)
    table.upsert(ROWS)
    read = spark.read.format("hoodie_py")
    declared = read.schema("fare double, id string").load(path)
    assert sorted(map(tuple, declared.collect())) == [(1.5, "a"), (2.5, "b")]
    spark.sql(f"CREATE TEMPORARY VIEW seen USING hoodie_py OPTIONS (path '{path}')")
    assert spark.sql("SELECT count(*) n FROM seen").collect()[0].n == 2
    assert last_line(lambda: spark.sql(f"SELECT * FROM hoodie_py.`{path}`"))  # Spark refuses it
    refused = last_line(lambda: spark.sql(f"CREATE TABLE t USING hoodie_py LOCATION '{path}'"))
    assert "what works is load(path)" in refused
    lost = last_line(lambda: declared.write.format("hoodie_py").options(**TRIPS).saveAsTable("t"))
    assert "option 'path' is not set" in lost
    assert not spark.catalog.tableExists("t")
    spark.sql("CREATE TABLE named (fare double, id string) USING hoodie_py")
    named = spark.sql(f"SELECT id FROM named WITH (path = '{path}') ORDER BY id").collect()
    assert [row.id for row in named] == ["a", "b"]
    assert "option 'path' is not set" in last_line(lambda: spark.table("named").collect())
    spark.sql("DROP TABLE named")
    table.delete_partitions(["x", "y"])
    empty = spark.read.format("hoodie_py").load(path)
    assert empty.columns[5:] == ["id", "city", "ts", "fare"]
    assert empty.collect() == []
