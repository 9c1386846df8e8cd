"""Records that move between partitions, through ``df.write`` and several tasks."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import hoodie_ds
from hoodie_ds import HoodieTable
from hoodie_ds.timeline.bodies.commit_metadata import WriteStat
from hoodie_ds.timeline.loading import read_commit
from tests.integration.test_record_index import FIRST, INDEX, MOVED, ONCE, indexed
from tests.integration.test_record_index_kept import assert_indexed
from tests.tables import BUCKETS, TRIPS, TYPE, TYPES, VERSION, coordinator, found, trips

pytestmark = pytest.mark.spark


@pytest.mark.slow
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(
    ("index", "shuffled"),
    [("GLOBAL_BLOOM", True), ("GLOBAL_BLOOM", False), ("RECORD_INDEX", True)],
)
def test_records_move_and_are_there_once(
    spark: Any, tmp_path: Path, kind: str, index: str, shuffled: bool
) -> None:
    hoodie_ds.register(spark)
    options = {key: value for key, value in TRIPS.items() if key != BUCKETS}
    options |= {TYPE: kind, "path": str(tmp_path / "t"), "hoodie.index.type": index}
    options["hoodie.parquet.small.file.limit"] = "0"
    options["hoodie.record.index.update.partition.path"] = "true"

    def write(*rows: tuple[str, str, int, float]) -> None:
        schema = "id string, city string, ts long, fare double"
        df = spark.createDataFrame(trips(*rows).to_pylist(), schema)
        df = hoodie_ds.shuffle_by_file_group(df, options) if shuffled else df.repartition(3)
        df.write.format("hoodie_py").options(**options).mode("append").save()

    write(*((f"k{i}", f"c{i % 3}", 1, 1.0) for i in range(60)))
    # The rows of a key come to several tasks if they are not shuffled; the newest decides.
    write(*((f"k{i}", f"c{(i + ts) % 3}", ts, 1.0) for i in range(40) for ts in (2, 4, 3, 0)))
    table = HoodieTable(str(tmp_path / "t"))
    expected = [(f"k{i}", f"c{(i + 4) % 3 if i < 40 else i % 3}", 4 if i < 40 else 1, 1.0)
                for i in range(60)]  # fmt: skip
    assert found(table) == sorted(expected)
    # Shuffled rows are placed by the tasks, others by the commit.
    stats = read_commit(coordinator(tmp_path / "t").storage, table.timeline.commits[-1]).stats
    assert {by_task(stat) for stat in stats if stat.prev_commit == "null"} == {shuffled}


def by_task(stat: WriteStat) -> bool:
    """Whether a task has written a base file, and not the commit, whose write tokens are high."""
    return int(stat.path.rpartition("/")[2].split("_")[1].split("-")[0]) < 1_000_000


@pytest.mark.parametrize("version", ["9", pytest.param("6", marks=pytest.mark.slow)])
def test_a_stream_moves_keys_without_the_driver(spark: Any, tmp_path: Path, version: str) -> None:
    """Each base file is written by the task that gets all rows of its keys."""
    hoodie_ds.register(spark)
    options = {key: value for key, value in TRIPS.items() if key != BUCKETS}
    options |= {VERSION: version, "path": str(tmp_path / "t"), "hoodie.index.type": "RECORD_INDEX"}
    options["hoodie.metadata.record.index.min.filegroup.count"] = "2"
    options["hoodie.record.index.update.partition.path"] = "true"
    draw = random.Random(version)
    model: dict[str, tuple[str, str, int, float]] = {}
    (tmp_path / "in").mkdir()
    for number in range(4):
        rows = [
            (f"k{draw.randrange(100)}", f"c{draw.randrange(3)}", 40 * number + 37 * n % 80, 1.0)
            for n in range(80)
        ]
        for row in rows:
            if row[0] not in model or row[2] >= model[row[0]][2]:
                model[row[0]] = row
        path = tmp_path / f"in/{number}.parquet"
        pq.write_table(trips(*rows), path)
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    stream = spark.readStream.schema("id string, city string, ts long, fare double")
    stream = stream.option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    writer = hoodie_ds.shuffle_by_file_group(stream, options).writeStream.format("hoodie_py")
    writer = writer.options(**options).option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    table = HoodieTable(str(tmp_path / "t"))
    assert found(table) == sorted(model.values())
    assert len(table.timeline.commits) == 4
    storage = coordinator(tmp_path / "t").storage
    commits = [read_commit(storage, commit) for commit in table.timeline.commits]
    rewritten = [stat for one in commits for stat in one.stats if stat.prev_commit != "null"]
    assert rewritten
    assert all(by_task(stat) for stat in rewritten)
    assert_indexed(storage)


@pytest.mark.parametrize("way", ["shuffled", "foreach_batch"])
def test_a_stream_keeps_keys_unique_where_hudi_indexes_them(
    spark: Any, tmp_path: Path, way: str
) -> None:
    hoodie_ds.register(spark)
    path = indexed(tmp_path / "t", {INDEX: "BLOOM", TYPE: TYPES[1]}, "table")
    (tmp_path / "in").mkdir()
    options = {
        "path": str(path),
        "hoodie.metadata.enable": "false",
        "hoodie.datasource.write.streaming.checkpoint.identifier": "moves",
    }
    for number, rows in enumerate((FIRST, MOVED)):
        pq.write_table(rows, tmp_path / f"in/{number}.parquet")
        stream = spark.readStream.schema("id string, city string, ts long, fare double")
        df = stream.parquet(str(tmp_path / "in"))
        if way == "shuffled":
            df = hoodie_ds.shuffle_by_file_group(df, options)
            writer = df.writeStream.format("hoodie_py").options(**options)
        else:
            writer = df.writeStream.foreachBatch(hoodie_ds.foreach_batch(options))
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        # What the next start has is no metadata table, and the definition of the index alone.
        options.pop("hoodie.metadata.enable", None)
    assert found(HoodieTable(str(path))) == ONCE
