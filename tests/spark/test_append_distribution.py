"""Sorted and scattered rows of a table without record keys."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as sf

import hoodie_ds
from hoodie_ds import HoodieTable
from hoodie_ds.errors import OptionError, SchemaError

pytestmark = pytest.mark.spark

SORT = "hoodie.bulkinsert.sort.mode"
COLUMNS = "hoodie.bulkinsert.user.defined.partitioner.sort.columns"
SCATTER = "hoodie.py.append.tasks.per.partition"


def options(path: Path, **more: str) -> dict[str, str]:
    return {
        "path": str(path / "t"),
        "hoodie.table.name": "t",
        "hoodie.datasource.write.partitionpath.field": "city",
        **more,
    }


def rows(spark: Any) -> Any:
    """Nine of ten rows are of one city."""
    return spark.range(0, 4000, 1, 4).select(
        "id",
        sf.when(sf.col("id") % 10 == 0, "cold").otherwise("hot").alias("city"),
        (sf.hash("id") % 1000).alias("v"),
    )


def written(spark: Any, df: Any, opts: dict[str, str]) -> list[list[int]]:
    """The values of each file of the hot city, in their order."""
    hoodie_ds.register(spark)
    laid_out = hoodie_ds.shuffle_by_file_group(df, opts)
    laid_out.write.format("hoodie_py").options(**opts).mode("append").save()
    table = HoodieTable(opts["path"]).read()
    assert table.num_rows == 4000
    files: dict[str, list[int]] = {}
    for row in table.to_pylist():
        if row["city"] == "hot":
            files.setdefault(row["_hoodie_file_name"], []).append(row["v"])
    return list(files.values())


@pytest.mark.slow
def test_rows_are_sorted_as_a_whole(spark: Any, tmp_path: Path) -> None:
    files = written(spark, rows(spark), options(tmp_path, **{SORT: "GLOBAL_SORT", COLUMNS: "v"}))
    assert all(values == sorted(values) for values in files)
    ranges = sorted((values[0], values[-1]) for values in files)
    assert len(ranges) > 1
    assert all(one[1] <= other[0] for one, other in itertools.pairwise(ranges))


def test_rows_are_sorted_within_each_task(spark: Any, tmp_path: Path) -> None:
    files = written(spark, rows(spark), options(tmp_path, **{SORT: "PARTITION_SORT", COLUMNS: "v"}))
    assert len(files) == 4
    assert all(values == sorted(values) for values in files)


def test_a_hot_partition_is_scattered_over_tasks(spark: Any, tmp_path: Path) -> None:
    one = written(spark, rows(spark).coalesce(1), options(tmp_path / "one", **{SCATTER: "1"}))
    two = written(spark, rows(spark).coalesce(1), options(tmp_path / "two", **{SCATTER: "16"}))
    assert len(one) == 1
    assert len(two) == 2
    assert min(map(len, two)) > 3600 / 2 / 1.5


def test_what_cannot_be_sorted_is_refused(spark: Any, tmp_path: Path) -> None:
    stream = spark.readStream.format("rate").load().selectExpr("value as id", "'x' as city")
    for mode in ("GLOBAL_SORT", "PARTITION_SORT"):
        with pytest.raises(OptionError, match=rf"{mode}.*does not sort streams"):
            hoodie_ds.shuffle_by_file_group(stream, options(tmp_path, **{SORT: mode}))
    unpartitioned = options(tmp_path, **{SORT: "GLOBAL_SORT"})
    del unpartitioned["hoodie.datasource.write.partitionpath.field"]
    with pytest.raises(OptionError, match="name the columns to sort by"):
        hoodie_ds.shuffle_by_file_group(rows(spark), unpartitioned)
    with pytest.raises(SchemaError, match="'w' does not exist"):
        hoodie_ds.shuffle_by_file_group(rows(spark), options(tmp_path, **{COLUMNS: "w"}))
