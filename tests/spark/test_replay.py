"""Batches that Spark brings again: their rows are compared with what was committed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_ds import HoodieTable, foreach_batch, register
from hoodie_ds.errors import ReplayMismatchError
from tests.spark.test_exactly_once import delete_newest_commit_log_entry

pytestmark = pytest.mark.spark

ACCEPT = "hoodie.py.replay.accept.different"
WRITER = "hoodie.datasource.write.streaming.checkpoint.identifier"
NUMBER = "hoodie.datasource.write.batch.identifier"
TABLES = {"keyed": {"hoodie.datasource.write.recordkey.field": "id"}, "append": {}}


@pytest.fixture(params=["append", pytest.param("keyed", marks=pytest.mark.slow)])
def options(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    path = str(tmp_path / "table")
    return {"path": path, "hoodie.table.name": "t", **TABLES[request.param]}


def ids(options: dict[str, str]) -> list[int]:
    return sorted(HoodieTable(options["path"]).read()["id"].to_pylist())


def put(folder: Path, name: str, first: int) -> None:
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.table({"id": range(first, first + 50)}), folder / f"{name}.parquet")


Run = Callable[[dict[str, str]], None]


@pytest.fixture(params=["data source", pytest.param("foreachBatch", marks=pytest.mark.slow)])
def run(request: pytest.FixtureRequest, spark: Any, tmp_path: Path) -> Run:
    """Stream what is in the folder ``source`` and not in the table yet."""
    register(spark)

    def stream(options: dict[str, str]) -> None:
        rows = spark.readStream.schema("id bigint").parquet(str(tmp_path / "source"))
        if request.param == "foreachBatch":
            writer = rows.writeStream.foreachBatch(foreach_batch({**options, WRITER: "me"}))
        else:
            writer = rows.writeStream.format("hoodie_py").options(**options)
        checkpoint = str(tmp_path / "checkpoint")
        query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        query.awaitTermination()

    return stream


@pytest.mark.slow
def test_a_replayed_batch_with_other_rows_stops_the_query(
    run: Run, options: dict[str, str], tmp_path: Path
) -> None:
    put(tmp_path / "source", "a", 0)
    run(options)
    delete_newest_commit_log_entry(tmp_path / "checkpoint")
    run(options)
    assert ids(options) == list(range(50))
    put(tmp_path / "source", "a", 1000)  # the file of batch 0 is another one now
    delete_newest_commit_log_entry(tmp_path / "checkpoint")
    with pytest.raises(Exception, match="came again with 50 rows") as raised:
        run(options)
    assert ReplayMismatchError.__name__ in str(raised.value)
    assert ids(options) == list(range(50))
    put(tmp_path / "source", "b", 2000)
    run({**options, ACCEPT: "true"})
    assert ids(options) == [*range(50), *range(2000, 2050)]


def test_foreach_batch_knows_its_checkpoint_and_the_batches_that_a_table_missed(
    spark: Any, tmp_path: Path
) -> None:
    path = str(tmp_path / "table")
    writer = foreach_batch({"path": path, "hoodie.table.name": "t", WRITER: "me"})

    def stream() -> None:
        rows = spark.readStream.schema("id bigint").parquet(str(tmp_path / "source"))
        query = rows.writeStream.foreachBatch(writer).trigger(availableNow=True)
        query.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()

    put(tmp_path / "source", "a", 0)
    stream()
    delete_newest_commit_log_entry(tmp_path / "checkpoint")
    stream()
    assert ids({"path": path}) == list(range(50))
    shutil.rmtree(tmp_path / "checkpoint")  # begun anew: all of its batches are written
    stream()
    assert ids({"path": path}) == sorted([*range(50)] * 2)
    shutil.rmtree(path)
    put(tmp_path / "source", "b", 50)
    with pytest.raises(Exception, match="has not seen batch 0 of the query"):
        stream()
    assert not Path(path).exists()


def test_a_numbered_write_is_in_the_table_once(spark: Any, options: dict[str, str]) -> None:
    register(spark)

    def write(first: int, number: int, mode: str = "append", operation: str = "insert") -> None:
        more = {WRITER: "load", NUMBER: str(number), "hoodie.datasource.write.operation": operation}
        rows = spark.range(first, first + 20).repartition(1 + first % 3)
        rows.write.format("hoodie_py").options(**{**options, **more}).mode(mode).save()

    write(0, 1)
    write(20, 2, operation="bulk_insert")
    for number in (1, 2):
        write(20 * (number - 1), number)
    assert ids(options) == list(range(40))
    with pytest.raises(Exception, match="batch 2 of writer load"):
        write(0, 2)
    write(40, 3, mode="overwrite")
    write(60, 4)
    write(40, 3, mode="overwrite")
    assert ids(options) == list(range(40, 80))
    assert len(HoodieTable(options["path"]).timeline.commits) == 4
