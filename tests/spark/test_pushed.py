"""Filters of a query on ``hoodie_py``: fewer rows come through Python, and never too few."""

from __future__ import annotations

import datetime as dt
import pickle
import shutil
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

import hoodie_ds
from hoodie_ds import HoodieTable
from hoodie_ds.datasource import packing
from hoodie_ds.datasource.reader import FilteringReader, HoodieReader, PackedSplit
from hoodie_ds.errors import CorruptFileError
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.reader.snapshot import SnapshotQuery
from hoodie_ds.storage.connect import open_storage
from tests.tables import TYPE

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.bucket.index.num.buckets": "2",
}
PUSHDOWN = "hoodie.py.read.filter.pushdown"
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


@pytest.mark.slow
@pytest.mark.spark
def test_filters_leave_the_rows_that_they_should(spark: Any, path: str) -> None:
    hoodie_ds.register(spark)
    for read in (spark.read.format("hoodie_py").load(path), hoodie_ds.read(spark, path)):
        counts = [sf.sum(sf.expr(f"if({text}, 1, 0)")) for text in CONDITIONS]
        assert list(read.agg(*counts).collect()[0]) == list(CONDITIONS.values())
    read = spark.read.format("hoodie_py").load(path)
    assert [read.where("id = 3").count(), read.count()] == [1, 20]  # of one DataFrame
    pushing = spark.read.format("hoodie_py").option(PUSHDOWN, "true")
    parts = [
        pushing.load(path).where(text).select(sf.lit(text).alias("text")) for text in CONDITIONS
    ]
    rows = reduce(DataFrame.unionAll, parts).groupBy("text").count().collect()
    assert {row["text"]: row["count"] for row in rows} == CONDITIONS


@pytest.mark.spark
def test_spark_hands_filters_over_where_it_is_asked_to(
    spark: Any, path: str, tmp_path: Path
) -> None:
    hoodie_ds.register(spark)
    table = damaged(path, tmp_path)
    read = spark.read.format("hoodie_py").option(PUSHDOWN, "true").load(str(table))
    assert read.where("city = 'oslo' and n > 5").count() == 7
    with pytest.raises(Exception, match=CorruptFileError.__name__):
        spark.read.format("hoodie_py").load(str(table)).where("city = 'oslo' and n > 5").count()


def damaged(path: str, folder: Path) -> Path:
    """A copy of the table without what the files of a partition hold."""
    table = folder / "table"
    shutil.copytree(path, table)
    for file in table.glob("rome/*.parquet"):
        file.write_bytes(b"x" * file.stat().st_size)
    return table


def handed_over(path: str, *filters: Any) -> int:
    """How many rows come through Python."""
    query = SnapshotQuery(PinnedTable.latest(open_storage(path)))
    reader = FilteringReader(query, query.schema)
    assert reader.pushFilters(list(filters)) == list(filters)  # Spark filters too
    splits = reader.partitions()
    return sum(batch.num_rows for split in splits for batch in reader.read(split))


def test_rows_that_filters_rule_out_stay_behind(path: str) -> None:
    from pyspark.sql.datasource import EqualTo, GreaterThan, In, Not, StringContains

    assert handed_over(path) == 20
    assert handed_over(path, EqualTo(("id",), 3)) == 1
    assert handed_over(path, GreaterThan(("n",), 17), In(("city",), ("oslo",))) == 1
    assert handed_over(path, Not(EqualTo(("city",), "oslo"))) == 10
    assert handed_over(path, Not(GreaterThan(("n",), 17))) == 17
    assert handed_over(path, GreaterThan(("f",), 5.0)) == 14  # NaN is greater than any number
    assert handed_over(path, EqualTo(("s", "a"), 3)) == 1
    assert handed_over(path, In(("n",), (1, None))) == 1
    assert handed_over(path, Not(In(("n",), (1, None)))) == 0
    # Not understood: all rows come, and Spark decides.
    assert handed_over(path, StringContains(("city",), "os"), EqualTo(("gone",), 1)) == 20
    assert handed_over(path, EqualTo(("d",), Decimal("1.555"))) == 20
    assert handed_over(path, EqualTo(("at",), dt.datetime(2024, 1, 1))) == 20


def test_files_that_filters_rule_out_are_not_opened(path: str, tmp_path: Path) -> None:
    from pyspark.sql.datasource import EqualTo

    table = damaged(path, tmp_path)
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


def large_file(path: Path) -> HoodieTable:
    """A table of one base file of several row groups."""
    sizes = {"hoodie.parquet.block.size": "20000", "hoodie.bucket.index.num.buckets": "1"}
    table = HoodieTable(str(path), {**OPTIONS, **sizes})
    ids = list(range(20_000))
    table.upsert(pa.table({"id": ids, "city": ["oslo"] * 20_000, "n": ids[::-1]}))
    (file,) = path.glob("oslo/*.parquet")
    assert pq.ParquetFile(file).num_row_groups > 4
    return table


def splits_of(path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[HoodieReader, list[Any]]:
    """Splits of a table, where some KB are worth one."""
    monkeypatch.setattr(packing, "PART_BYTES", 10_000)
    query = SnapshotQuery(PinnedTable.latest(open_storage(str(path))))
    reader = HoodieReader(query, query.schema)
    return reader, reader.partitions()


def test_a_large_base_file_is_several_splits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = large_file(tmp_path)
    reader, splits = splits_of(tmp_path, monkeypatch)
    assert len(splits) > 3
    parts = [list(reader.read(pickle.loads(pickle.dumps(split)))) for split in splits]
    counts = [sum(batch.num_rows for batch in part) for part in parts]
    assert sum(counts) == 20_000
    assert max(counts) < 20_000 // 2
    rows = pa.Table.from_batches([batch for part in parts for batch in part])
    assert rows.sort_by("id").equals(table.read().sort_by("id"))
    table.upsert(pa.table({"id": [1], "city": ["oslo"], "n": [1]}), {TYPE: "COPY_ON_WRITE"})
    assert len(splits_of(tmp_path, monkeypatch)[1]) > 3


def test_slices_with_log_files_are_not_divided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = HoodieTable(str(tmp_path), {**OPTIONS, TYPE: "MERGE_ON_READ"})
    table.upsert(pa.table({"id": list(range(9_000)), "city": ["oslo"] * 9_000}))
    table.upsert(pa.table({"id": list(range(9_000)), "city": ["oslo"] * 9_000}))
    reader, splits = splits_of(tmp_path, monkeypatch)
    assert sum(len(split.tasks) for split in splits) == len(list(tmp_path.glob("oslo/*.parquet")))
    rows = sum(batch.num_rows for split in splits for batch in reader.read(split))
    assert rows == 9_000


def test_damage_of_a_divided_file_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    large_file(tmp_path)
    reader, splits = splits_of(tmp_path, monkeypatch)
    (file,) = tmp_path.glob("oslo/*.parquet")
    body = bytearray(file.read_bytes())
    body[len(body) // 2] ^= 1
    file.write_bytes(body)
    assert len(splits) > 1
    with pytest.raises(CorruptFileError):
        _ = [list(reader.read(split)) for split in splits]
