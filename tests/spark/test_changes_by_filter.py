"""Rows that a filter finds, deleted and updated by tasks on the executors."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

import hoodie_ds
from hoodie_ds import HoodieTable
from hoodie_ds.errors import OptionError
from hoodie_ds.storage.local import LocalStorage
from hoodie_ds.timeline.file_changes import file_changes
from tests.tables import TRIPS, TYPE, found, trips

pytestmark = pytest.mark.spark

INDEX = "hoodie.index.type"
NUMBERED = {
    "hoodie.datasource.write.streaming.checkpoint.identifier": "correction",
    "hoodie.datasource.write.batch.identifier": "0",
}
BUCKETS = {**TRIPS, TYPE: "MERGE_ON_READ", INDEX: "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
TABLES = {
    "bucket, MOR": BUCKETS,
    "bloom, COW": {**TRIPS, TYPE: "COPY_ON_WRITE", INDEX: "BLOOM"},
    "global, MOR": {**TRIPS, TYPE: "MERGE_ON_READ", INDEX: "GLOBAL_SIMPLE"},
    "no keys": {
        "hoodie.table.name": "trips",
        "hoodie.datasource.write.partitionpath.field": "city",
    },
}

IN_EVERY_TABLE = pytest.mark.parametrize(
    "options",
    [
        TABLES["bucket, MOR"],
        *(pytest.param(TABLES[name], marks=pytest.mark.slow) for name in list(TABLES)[1:]),
    ],
    ids=list(TABLES),
)


def filled(path: Path, options: dict[str, str]) -> HoodieTable:
    """A table of 40 rows in 4 partitions, each with a file group or two."""
    table = HoodieTable(str(path), options)
    rows = [(f"k{i}", f"c{i % 4}", 1, float(i)) for i in range(40)]
    table.insert(trips(*rows[:30]))
    table.insert(trips(*rows[30:]))
    return table


@IN_EVERY_TABLE
def test_rows_and_counts_are_those_of_the_library(
    spark: Any, tmp_path: Path, options: dict[str, str]
) -> None:
    path = str(tmp_path / "spark")
    table = filled(tmp_path / "spark", options)
    shutil.copytree(tmp_path / "spark", tmp_path / "library")
    library = HoodieTable(str(tmp_path / "library"), options)

    done = hoodie_ds.delete(spark, path, [("fare", ">=", 8), ("city", "!=", "c3")], options)
    same = library.delete(where=[("fare", ">=", 8), ("city", "!=", "c3")])
    assert (done.deleted, done.updated, done.inserted) == (same.deleted, same.updated, 0)
    assert len(found(table)) == 16
    assert found(table) == found(library)
    storage, commit = LocalStorage(path), table.timeline.commits[-1]
    names = [name.removesuffix(".parquet") for name in file_changes(storage, commit).added]
    # the name of a file has its task: base files before their instant, log files at their end
    tasks = {name.split("_")[-1 if ".log." in name else -2] for name in names}
    assert len(tasks) > 1, "the driver wrote them"

    values = {"fare": pc.field("fare") * 2, "ts": lambda rows: pc.add(rows["ts"], 1)}
    done = hoodie_ds.update(spark, path, values, "city = c3", {**options, **NUMBERED})
    same = library.update(values, "city = c3")
    assert (done.updated, done.deleted) == (same.updated, same.deleted) == (10, 0)
    assert found(table) == found(library)
    again = hoodie_ds.update(spark, path, values, "city = c3", {**options, **NUMBERED})
    assert again.already_committed
    assert found(table) == found(library)


@pytest.mark.slow
def test_what_is_refused_changes_nothing(spark: Any, tmp_path: Path) -> None:
    path, table = str(tmp_path / "t"), filled(tmp_path / "t", BUCKETS)
    before = found(table)
    with pytest.raises(OptionError, match="record keys and partitions do not change"):
        hoodie_ds.update(spark, path, {"city": "c9"}, "fare > 3")
    with pytest.raises(OptionError, match="name a condition"):
        hoodie_ds.delete(spark, path, [])
    with pytest.raises(Exception, match=r"has a greater value there, and would win$"):
        hoodie_ds.update(spark, path, {"ts": 0}, "fare > 3")  # seen by the tasks alone
    assert found(table) == before
    assert hoodie_ds.delete(spark, path, "fare > 1000").instant_time is None
    assert hoodie_ds.delete(spark, path, "fare < 4").deleted == 4
    assert len(found(table)) == 36
