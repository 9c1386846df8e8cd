"""Filters of a query on ``hoodie_py``: fewer rows come through Python, and never too few."""

from __future__ import annotations

import datetime as dt
import shutil
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

import hoodie_ds
from hoodie_ds import HoodieTable
from hoodie_ds.datasource.reader import HoodieReader, PackedSplit
from hoodie_ds.errors import CorruptFileError
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.reader.snapshot import SnapshotQuery
from hoodie_ds.storage.connect import open_storage

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.bucket.index.num.buckets": "2",
}
CONDITIONS = {
    "id = 3": 1,
    "id <=> 3": 1,
    "n > 5 and n < 9": 3,
    "n >= 5 and n <= 9": 5,
    "n in (1, 2, 99)": 2,
    "not n in (1, 2)": 17,
    "n is null": 1,
    "n is not null": 19,
    "n != 4": 18,
    "city = 'oslo'": 10,
    "city like 'os%'": 10,
    "f > 5.0": 14,  # what is no number is greater than any number
    "f = double('nan')": 1,
    "d = 1.50": 1,
    "day < date'2024-01-03'": 2,
    "at >= timestamp'2024-01-01 05:00:00'": 15,
    "ntz < timestamp_ntz'2024-01-01 05:00:00'": 5,
    "s.a = 3": 1,
    "n = 3 or city = 'oslo'": 11,
    "length(city) = 4": 20,
}
"""Conditions, and how many rows they leave of twenty."""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    numbers = list(range(20))
    midnight = dt.datetime(2024, 1, 1)
    hours = [midnight + dt.timedelta(hours=number) for number in numbers]
    rows = {
        "id": numbers,
        "city": [("oslo", "rome")[number % 2] for number in numbers],
        "n": [None, *numbers[1:]],
        "f": [*map(float, numbers[:19]), float("nan")],
        "d": pa.array([Decimal(number) + Decimal("0.50") for number in numbers]),
        "day": [dt.date(2024, 1, 1) + dt.timedelta(days=number) for number in numbers],
        "at": pa.array(hours, pa.timestamp("us", "UTC")),
        "ntz": pa.array(hours, pa.timestamp("us")),
        "s": [{"a": number} for number in numbers],
    }
    folder = tmp_path_factory.mktemp("table")
    HoodieTable(str(folder), OPTIONS).upsert(pa.table(rows))
    return str(folder)


@pytest.mark.spark
def test_filters_leave_the_rows_that_they_should(spark: Any, path: str) -> None:
    hoodie_ds.register(spark)
    assert spark.conf.get("spark.sql.python.filterPushdown.enabled") == "true"
    for read in (spark.read.format("hoodie_py").load(path), hoodie_ds.read(spark, path)):
        counts = [sf.sum(sf.expr(f"if({text}, 1, 0)")) for text in CONDITIONS]
        assert list(read.agg(*counts).collect()[0]) == list(CONDITIONS.values())
    read = spark.read.format("hoodie_py").load(path)
    parts = [read.where(text).select(sf.lit(text).alias("text")) for text in CONDITIONS]
    rows = reduce(DataFrame.unionAll, parts).groupBy("text").count().collect()
    assert {row["text"]: row["count"] for row in rows} == CONDITIONS


def handed_over(path: str, *filters: Any) -> int:
    """How many rows come through Python."""
    query = SnapshotQuery(PinnedTable.latest(open_storage(path)))
    reader = HoodieReader(query, query.schema)
    assert reader.pushFilters(list(filters)) == list(filters)
    splits = reader.partitions()
    return sum(batch.num_rows for split in splits for batch in reader.read(split))


def test_rows_that_filters_rule_out_stay_behind(path: str) -> None:
    from pyspark.sql.datasource import EqualTo, GreaterThan, In, Not, StringContains

    assert handed_over(path) == 20
    assert handed_over(path, EqualTo(("id",), 3)) == 1
    assert handed_over(path, GreaterThan(("n",), 17), In(("city",), ("oslo",))) == 1
    assert handed_over(path, Not(EqualTo(("city",), "oslo"))) == 10
    # Not understood, or not compared as Spark does: all rows come, and Spark decides.
    assert handed_over(path, GreaterThan(("f",), 5.0)) == 20
    assert handed_over(path, StringContains(("city",), "os"), EqualTo(("s", "a"), 3)) == 20
    assert handed_over(path, Not(GreaterThan(("n",), 17)), EqualTo(("gone",), 1)) == 20
    assert handed_over(path, EqualTo(("d",), Decimal("1.555"))) == 20
    assert handed_over(path, In(("n",), (1, None))) == 20
    assert handed_over(path, EqualTo(("at",), dt.datetime(2024, 1, 1))) == 20


def test_files_that_filters_rule_out_are_not_opened(path: str, tmp_path: Path) -> None:
    from pyspark.sql.datasource import EqualTo

    table = tmp_path / "table"
    shutil.copytree(path, table)
    for file in table.glob("rome/*.parquet"):
        file.write_bytes(b"x" * file.stat().st_size)
    assert handed_over(str(table), EqualTo(("city",), "oslo")) == 10
    with pytest.raises(CorruptFileError):
        handed_over(str(table))


def test_an_empty_table_is_one_split(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), OPTIONS)
    table.upsert(pa.table({"id": [1], "city": ["oslo"]}))
    table.delete_partitions(["oslo"])
    query = SnapshotQuery(PinnedTable.latest(open_storage(str(tmp_path))))
    reader = HoodieReader(query, query.schema)
    (split,) = reader.partitions()
    assert isinstance(split, PackedSplit)
    assert list(reader.read(split)) == []
