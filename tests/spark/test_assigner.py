"""The file id assigner upstream of Spark's shuffle: the same rows as without it."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie_ds
from hoodie_ds import HoodieTable
from hoodie_ds.datasource.shuffle import shuffle_by_file_group
from hoodie_ds.sink.hidden_columns import LOCATION_COLUMN, TASK_COLUMN
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.timeline.loading import load_timeline
from hoodie_ds.timeline.paths import PINNED_TIMELINES
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.rows import assert_same_rows
from tests.tables import BUCKETS, TRIPS, TYPE, TYPES, coordinator, found, trips

pytestmark = pytest.mark.spark

LOOKUP = {k: v for k, v in TRIPS.items() if k != BUCKETS}
SCHEMA = "id string, city string, ts long, fare double"


def batches(count: int) -> list[pa.Table]:
    """Inserts and updates; no two rows of a key in a batch have the same ordering value."""
    draw = random.Random(count)
    made = []
    for number in range(count):
        ids = draw.sample(range(300), 150)
        made.append(trips(*((f"k{i}", f"c{i % 3}", number, float(i + number)) for i in ids)))
    return made


def folded(made: list[pa.Table]) -> list[tuple[str, str, int, float]]:
    rows = {row["id"]: tuple(row.values()) for batch in made for row in batch.to_pylist()}
    return sorted(rows.values())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("index", ["BLOOM", "FLINK_STATE"])
def test_a_stream_through_the_assigner(spark: Any, tmp_path: Path, kind: str, index: str) -> None:
    hoodie_ds.register(spark)
    made = batches(3)
    for number, rows in enumerate(made):
        path = tmp_path / "source" / f"{number}.parquet"
        path.parent.mkdir(exist_ok=True)
        pq.write_table(rows, path)
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    options = {**LOOKUP, TYPE: kind, "hoodie.index.type": index, "path": str(tmp_path / "t")}
    options["index.global.enabled"] = "false"
    stream = (
        spark.readStream.schema(SCHEMA)
        .option("maxFilesPerTrigger", 1)
        .parquet(str(tmp_path / "source"))
    )
    rows = shuffle_by_file_group(stream, options)
    assert LOCATION_COLUMN in rows.columns
    query = (
        rows.writeStream.format("hoodie_py")
        .options(**options)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    table = HoodieTable(str(tmp_path / "t"))
    assert len(table.timeline.commits) == 3
    assert found(table) == folded(made)
    assert_same_rows(read_with_hudi_rs(tmp_path / "t"), table.read())
    storage = coordinator(tmp_path / "t").storage
    view = FileSystemView(storage, load_timeline(storage, 1))
    # Two tasks, each of which goes on filling its own file group of a partition.
    if kind == "COPY_ON_WRITE":
        assert {len(view.latest_slices(f"c{city}")) for city in range(3)} <= {1, 2}
    pinned = tmp_path / "t" / PINNED_TIMELINES
    assert len(list(pinned.iterdir())) == 1  # that of the last batch, until the next begins


@pytest.mark.slow
@pytest.mark.parametrize("kind", TYPES)
def test_batches_through_the_assigner_and_without_it(spark: Any, tmp_path: Path, kind: str) -> None:
    """Upserts, one of them of keys that an insert has put into further file groups."""
    hoodie_ds.register(spark)
    made = batches(3)
    results = []
    for name in ("shuffled", "plain"):
        options = {**LOOKUP, TYPE: kind, "path": str(tmp_path / name)}
        options["hoodie.index.type"] = "SIMPLE"
        for number, rows in enumerate([*made[:2], made[0], made[2]]):
            operation = {"hoodie.parquet.small.file.limit": "0"} if number == 2 else {}
            operation["hoodie.datasource.write.operation"] = "insert" if number == 2 else "upsert"
            df = spark.createDataFrame(rows.to_pylist(), SCHEMA).repartition(3)
            if name == "shuffled":
                df = shuffle_by_file_group(df, options | operation)
                # Of an empty table nothing can be looked up: the JVM spreads the keys.
                assert {TASK_COLUMN, LOCATION_COLUMN} < {*df.columns}
                assert (df.columns[-1] == LOCATION_COLUMN) == (number > 0)
            df.write.format("hoodie_py").options(**options, **operation).mode("append").save()
        results.append(found(HoodieTable(str(tmp_path / name))))
    inserted = set(made[0]["id"].to_pylist())
    copies = [row for row in folded([made[0], made[2]]) if row[0] in inserted]
    assert results[0] == results[1] == sorted(folded(made) + copies)
