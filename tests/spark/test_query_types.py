"""Queries of a table's past and of its changes, by Spark: each answer is what was written."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import hoodie_ds
from hoodie_ds import HoodieTable
from tests.spark.applications import ROOT
from tests.spark.conftest import REMOTE
from tests.tables import BUCKETS, TRIPS, TYPE, VERSION, trips

pytestmark = pytest.mark.spark

KIND = "hoodie.datasource.query.type"
BEGIN = "hoodie.datasource.read.begin.instanttime"
END = "hoodie.datasource.read.end.instanttime"
CHANGES = {KIND: "incremental", "hoodie.datasource.query.incremental.format": "cdc"}


@dataclass(frozen=True)
class Written:
    """A merge-on-read table of four commits, and a compaction after the second."""

    path: str
    times: list[str]
    bounds: list[str]

    @classmethod
    def at(cls, path: Path, version: str) -> Written:
        options = {**TRIPS, TYPE: "MERGE_ON_READ", VERSION: version, BUCKETS: "1"}
        table = HoodieTable(str(path), {**options, "hoodie.table.cdc.enabled": "true"})
        table.upsert(trips(("a", "x", 1, 1.0), ("b", "x", 1, 1.0)))
        table.upsert(trips(("b", "x", 2, 2.0), ("c", "x", 2, 2.0)))
        table.compact()
        table.upsert(trips(("a", "x", 3, 3.0), ("d", "x", 3, 3.0)))
        table.delete(trips(("c", "x", 4, None)).select(["id", "city"]))
        commits = table.timeline.commits
        return cls(
            str(path),
            [commit.time for commit in commits],
            [commit.time if version == "6" else commit.ended for commit in commits],
        )


@pytest.mark.slow
@pytest.mark.parametrize("version", ["9", "6"])
def test_every_kind_of_query(spark: Any, version: str, tmp_path: Path) -> None:
    written = Written.at(tmp_path / "t", version)
    times, bounds = written.times, written.bounds
    day = f"{times[1][:4]}-{times[1][4:6]}-{times[1][6:8]}"
    clock = f"{times[1][8:10]}:{times[1][10:12]}:{times[1][12:14]}"
    second = {"a": 1.0, "b": 2.0, "c": 2.0}
    now = {"a": 3.0, "b": 2.0, "d": 3.0}
    answers: list[tuple[Mapping[str, str], dict[str, float]]] = [
        ({}, now),
        ({KIND: "snapshot"}, now),
        ({KIND: "read_optimized"}, second),
        ({"as.of.instant": times[0]}, {"a": 1.0, "b": 1.0}),
        ({"as.of.instant": times[1]}, second),
        ({"as.of.instant": f"{day} {clock}.{times[1][14:]}"}, second),
        ({"timestampAsOf": times[3]}, {**second, "a": 3.0, "d": 3.0}),
        ({"versionAsOf": times[3]}, {**second, "a": 3.0, "d": 3.0}),
        ({KIND: "incremental", BEGIN: "000"}, now),
        ({KIND: "incremental", BEGIN: "earliest"}, {}),  # Hudi compares the text
        ({KIND: "incremental", BEGIN: bounds[1]}, {"a": 3.0, "d": 3.0}),
        ({KIND: "incremental", BEGIN: bounds[0], END: bounds[1]}, {"b": 2.0, "c": 2.0}),
        ({KIND: "incremental", BEGIN: bounds[4]}, {}),
    ]
    hoodie_ds.register(spark)
    for options, rows in answers:
        declared = spark.read.format("hoodie_py").schema("fare double, id string")
        by_format = declared.options(**options).load(written.path)
        assert by_format.columns == ["fare", "id"]
        assert {id_: fare for fare, id_ in by_format.collect()} == rows, options
        native = hoodie_ds.read(spark, written.path, options)
        assert {r.id: r.fare for r in native.select("id", "fare").collect()} == rows, options
    since = {KIND: "incremental", BEGIN: bounds[1]}
    for frame in (
        spark.read.format("hoodie_py").options(**since).load(written.path),
        hoodie_ds.read(spark, written.path, since),
    ):
        assert frame.count() == 2
        assert len(frame.limit(1).collect()) == 1
        assert [row.id for row in frame.where("id > 'c'").collect()] == ["d"]


@pytest.mark.slow
@pytest.mark.parametrize("version", ["9", "6"])
def test_changes_and_a_view_of_the_past(spark: Any, version: str, tmp_path: Path) -> None:
    written = Written.at(tmp_path / "t", version)
    hoodie_ds.register(spark)
    asked = {**CHANGES, BEGIN: written.bounds[0]}
    for frame in (
        spark.read.format("hoodie_py").options(**asked).load(written.path),
        hoodie_ds.read(spark, written.path, asked),
    ):
        fares = "get_json_object(before, '$.fare') old", "get_json_object(after, '$.fare') new"
        told = frame.selectExpr("op", *fares).collect()
        assert sorted(map(tuple, told), key=str) == sorted(
            [
                *[("u", "1.0", "2.0"), ("i", None, "2.0"), ("u", "1.0", "3.0")],
                *[("i", None, "3.0"), ("d", "2.0", None)],
            ],
            key=str,
        )
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW then USING hoodie_py "
        f"OPTIONS (path '{written.path}', 'as.of.instant' '{written.times[0]}')"
    )
    rows = spark.sql("SELECT id, fare FROM then WHERE fare < 1.5 ORDER BY id").collect()
    assert [tuple(row) for row in rows] == [("a", 1.0), ("b", 1.0)]


@pytest.mark.slow
@pytest.mark.parametrize("what", ["rows", "operations", "news"])
def test_a_table_is_followed(spark: Any, tmp_path: Path, what: str) -> None:
    """As documented: rows, or with one option what happened to them."""
    written = Written.at(tmp_path / "t", "9")
    hoodie_ds.register(spark)
    wanted: dict[str, tuple[dict[str, str], str, list[tuple[Any, ...]]]] = {
        "rows": ({}, "id, fare", [("a", 3.0), ("b", 2.0), ("d", 3.0)]),
        "news": (
            {"hoodie.datasource.streaming.startOffset": written.bounds[1]},
            "id, fare",
            [("a", 3.0), ("d", 3.0)],
        ),
        "operations": (
            {"hoodie.datasource.query.incremental.format": "cdc", "read.commits.limit": "1"},
            "op, get_json_object(coalesce(after, before), '$.id')",
            [("d", "c"), *(("i", key) for key in "abcd"), ("u", "a"), ("u", "b")],
        ),
    }
    options, columns, rows = wanted[what]
    source = spark.readStream.format("hoodie_py").options(**options).load(written.path)
    query = source.writeStream.format("memory").queryName(what)
    query = query.option("checkpointLocation", str(tmp_path / what))
    started = query.trigger(availableNow=True).start()
    started.awaitTermination()
    (followed,) = started.lastProgress["sources"]
    newest = followed["endOffset" if spark.version < "4.2" else "latestOffset"]
    assert written.bounds[-1] in str(newest)
    found = spark.sql(f"SELECT {columns} FROM {what}").collect()
    assert sorted(map(tuple, found)) == rows


MERGES = "(of_the_library and bucket)"
SETTINGS = "settings"
ALL = f"every_kind or changes or filters_rule_out or older_schemas or {MERGES} or {SETTINGS}"


@pytest.mark.slow
@pytest.mark.nightly
def test_over_spark_connect() -> None:
    """A session of Connect has a process of its own, and other tests run in it."""
    names = "query_types", "read", "merges", "session"
    files = [f"tests/spark/test_{name}.py" for name in names]
    chosen = ["-q", "-p", "no:cacheprovider", "-m", "spark", "-k", f"({ALL}) and not connect"]
    told = subprocess.run(
        [sys.executable, "-m", "pytest", *chosen, *files],
        cwd=ROOT,
        env={**os.environ, REMOTE: "local[2]"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stdout[-4000:]
    assert "11 passed" in told.stdout
