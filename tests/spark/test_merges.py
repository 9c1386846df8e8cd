"""A DataFrame merged into a table by tasks on the executors."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hoodie_ds
from hoodie_ds import HoodieTable, TableMerge, WriteResult
from hoodie_ds.errors import OptionError, ReplayMismatchError, WriteConflictError
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.storage.local import LocalStorage
from hoodie_ds.timeline.file_changes import file_changes
from tests.spark.applications import Application
from tests.spark.test_changes_by_filter import BUCKETS, IN_EVERY_TABLE, NUMBERED, TABLES, filled
from tests.tables import found, trips
from tests.tally import tally
from tests.tiers import by_day

pytestmark = pytest.mark.spark

KILLS = [
    ("bucket, MOR", ("data file whole", "manifest put")),
    ("bloom, COW", ("instant open", "completed file put")),
    # First the turn of the rollback, and then that of the merge.
    ("global, MOR", ("data file in the middle", "turn taken", "turn taken")),
    ("no keys", ("before commit", "committed")),
]
"""Points at which one driver after the other dies."""

CHANGES = trips(
    *((f"k{n}", f"c{n % 4}", 2, None if n % 3 == 0 else n + 0.5) for n in range(0, 60, 2))
)


def clauses(merge: TableMerge) -> TableMerge:
    merge = merge.when_matched_delete("source.fare is null")
    merge.when_matched_update({"fare": pc.field("source.fare") * 2, "ts": "source.ts"})
    merge.when_not_matched_insert_all("source.fare is not null")
    return merge.when_not_matched_by_source_update({"fare": 0.0}, "target.fare > 36")


@pytest.mark.slow
@IN_EVERY_TABLE
def test_rows_and_counts_are_those_of_the_library(
    spark: Any, tmp_path: Path, options: dict[str, str]
) -> None:
    path = str(tmp_path / "spark")
    table = filled(tmp_path / "spark", options)
    shutil.copytree(tmp_path / "spark", tmp_path / "library")
    library = HoodieTable(str(tmp_path / "library"), options)
    rows = spark.createDataFrame(CHANGES)

    merge = clauses(hoodie_ds.merge(spark, path, rows, "id", options))
    same = clauses(library.merge(CHANGES, "id")).execute()
    before = found(table)
    expected = (same.inserted, same.updated, same.deleted)
    for dry in (True, False):
        done = merge.execute(NUMBERED, dry=dry)
        assert (done.inserted, done.updated, done.deleted) == expected
        assert (found(table) == before) is dry
    assert found(table) == found(library)
    storage, commit = LocalStorage(path), table.timeline.commits[-1]
    names = [name.removesuffix(".parquet") for name in file_changes(storage, commit).added]
    tasks = {name.split("_")[-1 if ".log." in name else -2] for name in names}
    assert len(tasks) > 1, "the driver wrote them"
    assert merge.execute(NUMBERED).already_committed
    with pytest.raises(ReplayMismatchError):
        clauses(hoodie_ds.merge(spark, path, rows.limit(3), "id", options)).execute(NUMBERED)
    assert found(table) == found(library)
    assert not table.inspect.verify().findings


@pytest.mark.slow
def test_what_is_refused_changes_nothing(spark: Any, tmp_path: Path) -> None:
    path, table = str(tmp_path / "t"), filled(tmp_path / "t", BUCKETS)
    before = found(table)

    def merge(rows: pa.Table, on: Any) -> TableMerge:
        return hoodie_ds.merge(spark, path, spark.createDataFrame(rows), on)

    twice = pa.concat_tables([CHANGES, CHANGES])
    with pytest.raises(Exception, match=r"2 rows of the source match one row of the table"):
        merge(twice, "id").when_matched_update_all().execute()
    with pytest.raises(Exception, match=r"would be inserted with record key 'k[45]\d'"):
        merge(twice, "id").when_not_matched_insert_all("source.fare > 40").execute()
    with pytest.raises(Exception, match=r"record key 'k2', which a row has that it does not match"):
        merge(trips(("k2", "c2", 2, 2.5)), "fare").when_not_matched_insert_all().execute()
    with pytest.raises(OptionError, match="say what to do"):
        merge(CHANGES, "id").execute()
    assert found(table) == before
    row = trips(("k2", "c2", 2, 2.0))
    assert merge(row, ["fare", "id"]).when_matched_delete().execute().deleted == 1
    every = merge(pa.table({"ts": [1], "fare": [5.0]}), "ts")
    assert every.when_matched_update({"fare": "source.fare"}).execute().updated == 38


@pytest.mark.slow
def test_a_conflict_leaves_nothing_that_looks_alive(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer comes between the tasks and the commit; then the change is made again."""
    options = {**BUCKETS, "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
    table, commit = filled(tmp_path / "t", options), Coordinator.commit
    others = iter((("k2", "c2", 5, 50.0), ("k4", "c0", 5, 60.0)))

    def overtaken(self: Coordinator, messages: Any) -> WriteResult:
        monkeypatch.setattr(Coordinator, "commit", commit)
        table.upsert(trips(next(others)))
        return commit(self, messages)

    path, retries = str(tmp_path / "t"), "hoodie.write.num.retries.on.conflict.failures"
    rows = trips(("k2", "c2", 9, 1.5), ("new", "c2", 9, 2.5))
    merge = hoodie_ds.merge(spark, path, spark.createDataFrame(rows), "id", options)
    monkeypatch.setattr(Coordinator, "commit", overtaken)
    done = merge.when_matched_update_all().when_not_matched_insert_all().execute({retries: "1"})
    assert (done.inserted, done.updated) == (1, 1)
    assert not table.timeline.pending
    monkeypatch.setattr(Coordinator, "commit", overtaken)
    with pytest.raises(WriteConflictError):
        hoodie_ds.delete(spark, path, "fare < 8", options)
    table.upsert(trips(("k1", "c1", 5, 70.0)))
    assert not table.timeline.pending
    assert {row[0]: row[3] for row in found(table)} == {
        **{f"k{n}": float(n) for n in range(40)},
        "k1": 70.0,
        "k2": 1.5,
        "k4": 60.0,
        "new": 2.5,
    }


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize(("kind", "points"), by_day(KILLS, KILLS[:1]))
def test_a_driver_killed_within_a_merge(tmp_path: Path, kind: str, points: tuple[str, ...]) -> None:
    """SIGKILL; the application is started again with the same number."""
    options = TABLES[kind]
    table = filled(tmp_path / "t", options)
    changes = [(f"k{n}", f"c{n % 4}", 9 if n % 3 == 0 else 2, n + 0.5) for n in range(0, 60, 2)]
    pq.write_table(trips(*changes), tmp_path / "source.parquet")
    before = {row[0]: row for row in found(table)}
    after = dict(before)
    for name, city, ts, fare in changes:
        old = after.pop(name, None)
        if old is None:
            after[name] = (name, city, ts, fare)
        elif ts != 9:
            after[name] = (*old[:3], old[3] + fare)
    job = {"path": str(tmp_path / "t"), "options": {**options, **NUMBERED}}
    application = Application(tmp_path, "merge_job", job)
    try:
        for point in points:
            application.run_until_killed(point, after=0)
            assert found(table) in (sorted(before.values()), sorted(after.values()))
        assert application.run().split() == ["True"]
    finally:
        application.end()
    assert found(table) == sorted(after.values())
    assert len(table.timeline.commits) == 3
    assert not table.inspect.verify().findings
    tally("Spark drivers killed", len(points))
