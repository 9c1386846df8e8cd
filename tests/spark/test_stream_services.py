"""Table services of a stream on real Spark, and as a job of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hoodie_ds
from hoodie_ds import HoodieTable
from hoodie_ds.timeline.instant import Action
from hoodie_ds.timeline.timeline import Timeline

pytestmark = pytest.mark.spark

ROWS, KEYS = 40, 100
STAY_OUT = {"hoodie.datasource.write.streaming.disable.compaction": "true"}


def _options(path: Path, **more: str) -> dict[str, str]:
    return {
        "path": str(path / "table"),
        "hoodie.table.name": "events",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "value",
        "hoodie.bucket.index.num.buckets": "4",
        "hoodie.compact.inline.max.delta.commits": "2",
        "hoodie.clean.commits.retained": "3",
        **more,
    }


def _stream(spark: Any, path: Path, options: dict[str, str], batches: int) -> None:
    """Run a stream for some batches of 40 rows each, of 100 keys in all."""
    hoodie_ds.register(spark)
    source = path / "source"
    source.mkdir()
    for number in range(batches):
        values = spark.range(number * ROWS, (number + 1) * ROWS, 1, 1)
        rows = values.selectExpr(f"id % {KEYS} as id", "id as value")
        rows.toPandas().to_parquet(source / f"{number:03}.parquet", index=False)
    reader = spark.readStream.format("parquet").schema("id bigint, value bigint")
    rows = reader.option("maxFilesPerTrigger", "1").load(str(source))
    shuffled = hoodie_ds.shuffle_by_file_group(rows, options)
    writer = shuffled.writeStream.format("hoodie_py").options(**options)
    writer = writer.option("checkpointLocation", str(path / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    assert query.exception() is None


def _found(options: dict[str, str]) -> list[tuple[int, int]]:
    rows = HoodieTable(options["path"]).read(columns=["id", "value"]).to_pylist()
    return sorted((row["id"], row["value"]) for row in rows)


def _newest(batches: int) -> list[tuple[int, int]]:
    return sorted({value % KEYS: value for value in range(batches * ROWS)}.items())


def _timeline(options: dict[str, str]) -> Timeline:
    return HoodieTable(options["path"]).timeline


def _done(options: dict[str, str], action: Action) -> int:
    return sum(i.action is action for i in _timeline(options).completed)


@pytest.mark.slow
def test_a_stream_compacts_and_cleans_its_table_by_itself(spark: Any, tmp_path: Path) -> None:
    options = _options(tmp_path)
    _stream(spark, tmp_path, options, 12)
    assert _found(options) == _newest(12)
    assert _done(options, Action.COMMIT) >= 4
    assert _done(options, Action.CLEAN) >= 1
    assert len(_timeline(options).pending_compactions) <= 1


@pytest.mark.slow
def test_a_job_on_the_executors_does_what_a_stream_leaves_to_it(spark: Any, tmp_path: Path) -> None:
    options = _options(tmp_path, **STAY_OUT)
    _stream(spark, tmp_path, options, 5)
    assert _done(options, Action.COMMIT) == 0
    few = {"hoodie.keep.min.commits": "4", "hoodie.keep.max.commits": "5"}
    oldest = [i.time for i in _timeline(options).completed]
    result = hoodie_ds.run_services(spark, {**options, **few})
    assert (result.cleans, result.failed) == ((), ())
    assert result.archived == tuple(oldest[:2])
    (compaction,) = result.compactions
    assert [i.time for i in _timeline(options).completed if i.action is Action.COMMIT] == [
        compaction
    ]
    assert _found(options) == _newest(5)
    assert hoodie_ds.run_services(spark, options).compactions == ()  # nothing is due
