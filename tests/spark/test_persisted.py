"""Rows of log files that `hoodie_ds.read` asks for again are in Spark's storage, and are right."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from string import ascii_lowercase
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PythonException

import hoodie_ds
from hoodie_ds import HoodieTable
from hoodie_ds.datasource.persisted import MOST_FRAMES, PersistedFrames, TableState
from tests.tables import BUCKETS, TRIPS, TYPE, found, trips

pytestmark = pytest.mark.spark

PLAIN = {"hoodie.parquet.compression.codec": "uncompressed"}
OFF = {"hoodie.py.read.persist.max.size": "0"}


def read_trips(df: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in df.select("id", "city", "ts", "fare").collect())


def is_persisted(df: Any) -> bool:
    plan = str(df._jdf.queryExecution().withCachedData())
    assert ("MapInArrow" in plan) or ("InMemoryRelation" in plan)
    return "InMemoryRelation" in plan


def test_rows_read_again_need_no_log_files(spark: Any, tmp_path: Path) -> None:
    """Whichever columns are asked for; a commit and its rollback are seen, but by no old one.

    Base files of one size are told apart by their names.
    """
    if not hasattr(spark, "_jvm"):
        pytest.skip("nothing is persisted with Spark Connect")
    path = str(tmp_path)
    table = HoodieTable(path, {**TRIPS, **PLAIN, TYPE: "MERGE_ON_READ", BUCKETS: "1"})
    keys = [f"{number:04}" for number in range(500)]
    for city in ascii_lowercase:  # in a commit of its own: in one, files of a bucket share a name
        table.upsert(trips(*((key, city, 5, 1.0) for key in keys)))
        sizes = [file.stat().st_size for file in tmp_path.glob("?/*.parquet")]
        if len(set(sizes)) < len(sizes):  # checksums of pages take four bytes or five
            break
    changed = zip(keys, ascii_lowercase[: len(sizes)], strict=False)
    table.upsert(trips(*((key, city, 6, 2.0) for key, city in changed), ("new", "a", 6, 2.0)))
    before, first = found(table), hoodie_ds.read(spark, path)
    assert not is_persisted(first)
    again = hoodie_ds.read(spark, path)
    assert read_trips(again) == before
    logs = {log: tmp_path / f"{log.parent.name}.log" for log in tmp_path.glob("?/.*.log*")}
    for log, elsewhere in logs.items():
        log.rename(elsewhere)
    assert again.where("fare = 2").count() == len(sizes) + 1
    assert read_trips(first) == before
    for log, elsewhere in logs.items():
        elsewhere.rename(log)
    table.upsert(trips(("0002", "a", 6, 3.0)))
    assert not is_persisted(hoodie_ds.read(spark, path))
    newest = hoodie_ds.read(spark, path)
    assert is_persisted(newest)
    spark.catalog.clearCache()
    assert not is_persisted(hoodie_ds.read(spark, path, OFF))
    assert is_persisted(hoodie_ds.read(spark, path))
    assert read_trips(newest) == found(table) != before
    assert read_trips(first) == before
    table.rollback()
    assert read_trips(hoodie_ds.read(spark, path)) == before


@dataclass
class Frame:
    """A DataFrame of which only this is asked."""

    sparkSession: Any  # noqa: N815 - Spark's name
    is_stored: list[bool] = field(default_factory=list)

    @property
    def storageLevel(self) -> Any:  # noqa: N802 - Spark's name
        from pyspark import StorageLevel

        stored = self.is_stored and self.is_stored[-1]
        return StorageLevel.MEMORY_AND_DISK_DESER if stored else StorageLevel.NONE

    def persist(self, _: object) -> None:
        self.is_stored.append(True)

    def unpersist(self) -> None:
        self.is_stored.append(False)


def session(name: str, context: object) -> Any:
    inner = SimpleNamespace(sessionUUID=lambda: name)
    return SimpleNamespace(_jsparkSession=inner, sparkContext=context)


def test_frames_of_ever_other_filters_are_let_go() -> None:
    """However little their log files hold: each is a plan in the driver, and has its session."""
    frames, spark = PersistedFrames(), session("one", object())
    state = TableState.of(spark, "table", "merge")

    def get(key: int) -> Any:
        return frames.get(state, ("id", "=", key), 1, 1 << 30, lambda: Frame(spark))  # type: ignore[arg-type, return-value]

    first, second, *_, last = [get(key) for key in range(MOST_FRAMES + 1)]
    assert first.is_stored == [False]
    assert second.is_stored == []
    assert get(MOST_FRAMES) is last
    assert get(0) is not first


def test_what_was_not_used_for_longest_is_let_go() -> None:
    frames, spark = PersistedFrames(), session("one", object())

    def get(what: str, size: int, merge: str = "", on: Any = spark, table: str = "") -> Any:
        state = TableState.of(on, table or what, merge)
        return frames.get(state, what, size, 10, lambda: Frame(on))  # type: ignore[arg-type, return-value]

    small, large = get("small", 3), get("large", 7)
    assert small.is_stored == []
    assert get("small", 3) is small
    assert get("small", 3).is_stored == [True]
    assert get("third", 1).is_stored == []
    assert large.is_stored == [False]
    assert small.is_stored == [True]
    assert get("too large", 11) is not get("too large", 11)
    assert get("small", 3, on=session("two", spark.sparkContext)) is not small
    assert get("columns", 1, table="small") is not small
    assert get("small", 1, merge="a commit later").is_stored == []
    assert small.is_stored == [True, False]
    third = get("third", 1)
    assert third.is_stored == [True]
    restarted = session("three", object())
    get("small", 1, on=restarted)
    assert third.is_stored == [True]  # its Spark was stopped
    assert get("third", 1) is not third


@pytest.mark.slow
@pytest.mark.nightly
def test_compaction_and_clean_between_two_queries(spark: Any, tmp_path: Path) -> None:
    """A later read has the newest rows; one of before has its own, while their files are there."""
    path, kept = str(tmp_path), {"hoodie.clean.automatic": "false"}
    table = HoodieTable(path, {**TRIPS, **kept, TYPE: "MERGE_ON_READ", BUCKETS: "1"})
    table.upsert(trips(*((f"{number:04}", "x", 5, 1.0) for number in range(500))))
    table.upsert(trips(("0001", "x", 6, 2.0)))
    before, frames = found(table), [hoodie_ds.read(spark, path) for _ in range(2)]
    assert [read_trips(df) for df in frames] == [before] * 2
    table.compact()
    assert read_trips(hoodie_ds.read(spark, path)) == read_trips(frames[1]) == before
    for number in (2, 3):
        table.upsert(trips((f"{number:04}", "x", 6, 3.0)))
        assert [read_trips(hoodie_ds.read(spark, path)) for _ in range(2)] == [found(table)] * 2
        table.compact()
    table.clean({"hoodie.clean.commits.retained": "1"})
    assert read_trips(hoodie_ds.read(spark, path)) == found(table) != before
    with pytest.raises(PythonException):  # its log files are gone, and what was made of them
        read_trips(frames[1])
