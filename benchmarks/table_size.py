"""What a batch that touches 10 file groups costs in tables of 10, 1,000 and 10,000 of them.

    .venv/bin/python benchmarks/table_size.py WORK

Bucket index, one row in each file group to begin with; every batch has the same 1,000 keys, 100 in
each of 10 file groups. The groups lie over partitions of 10 buckets, of which the batch touches
one, or all in one partition. Tables are loaded in one commit, without syncing, which is not
measured.
"""

from __future__ import annotations

import argparse
import os
import shutil
import time
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from results import emit

from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.index.bucket import KeyParsing
from hoodie_ds.index.bucket_layout import BucketLayout
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.messages import TaskId
from hoodie_ds.sink.replay_guard import BatchId
from hoodie_ds.sink.task_writer import write_task

TABLE = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
}
TOUCHED = 10
ROWS = 100  # in each touched group
WARM_UP = 2


def keys_of(num_buckets: int) -> tuple[pa.Array, pa.Array]:
    """Return keys, one for each bucket, and `ROWS` for each of the first `TOUCHED` buckets."""
    keys = pc.cast(pa.array(np.arange(4 * ROWS * num_buckets)), pa.string())
    layout = BucketLayout(num_buckets, ("id",), ("id",), KeyParsing.LAST_COMMA_BEFORE_COLON)
    buckets = layout.buckets(pa.chunked_array([keys]))
    every, first = np.unique(buckets, return_index=True)
    assert len(every) == num_buckets
    chosen = [np.flatnonzero(buckets == bucket)[:ROWS] for bucket in range(TOUCHED)]
    return keys.take(pa.array(first)), keys.take(pa.array(np.concatenate(chosen)))


def rows_of(keys: pa.Array, parts: int, ts: int) -> list[pa.RecordBatch]:
    """Return rows of these keys in each partition."""
    numbers = pa.array(np.repeat(np.arange(parts), len(keys)))
    part = pc.binary_join_element_wise("part", pc.cast(numbers, pa.string()), "-")
    ids = pa.chunked_array([keys] * parts).combine_chunks()
    columns = {
        "id": ids,
        "part": part,
        "ts": pa.array(np.full(len(ids), ts)),
        "fares": pa.array(np.random.default_rng(ts).random(len(ids))),
    }
    return pa.table(columns).to_batches(max_chunksize=10_000)


def write(options: dict[str, str], rows: list[pa.RecordBatch], number: int) -> dict[str, float]:
    """Write a micro-batch and return the seconds that its parts took."""
    times = [time.perf_counter()]
    coordinator = Coordinator.of(WriteOptions.parse(options))
    batch = coordinator.begin(rows[0].schema)
    times.append(time.perf_counter())
    message = write_task(batch, TaskId(), BatchId("bench", number), rows, sole_writer=True)
    times.append(time.perf_counter())
    coordinator.commit([message])
    times.append(time.perf_counter())
    taken = dict(zip(("begin", "tasks", "commit"), np.diff(times).tolist(), strict=True))
    touched = {status.stat.file_id for status in message.statuses}
    return {**taken, "batch": times[-1] - times[0], "touched": len(touched)}


def measure(table_type: str, parts: int, buckets: int, work: Path, rounds: int) -> None:
    """Load a table and write batches to it."""
    shutil.rmtree(work, ignore_errors=True)
    options = {
        **TABLE,
        "path": str(work),
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.bucket.index.num.buckets": str(buckets),
    }
    one_each, some = keys_of(buckets)
    with patch.object(os, "fsync"):
        write(options, rows_of(one_each, parts, 0), 0)
    os.sync()
    kind = "COW" if table_type == "COPY_ON_WRITE" else "MOR"
    for number in range(1, WARM_UP + rounds + 1):
        taken = write(options, rows_of(some, 1, number), number)
        assert taken.pop("touched") == TOUCHED
        for part, seconds in taken.items():
            against = f"{kind}, {TOUCHED} file groups in 1 partition(s), {part}"
            work_ = f"{kind}, {parts * buckets:,} file groups in {parts:,} partition(s), {part}"
            emit(
                work_,
                seconds,
                against=None if work_ == against else against,
                goal=1.2 if part == "batch" and work_ != against else None,
                round=number,
                warm_up=number <= WARM_UP,
            )
    shutil.rmtree(work)


def main() -> None:
    """Measure each kind and layout of table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path)
    parser.add_argument("--groups", type=int, nargs="+", default=[10, 1_000, 10_000])
    parser.add_argument("--rounds", type=int, default=7)
    chosen = parser.parse_args()
    for table_type in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        for groups in chosen.groups:
            measure(table_type, groups // TOUCHED, TOUCHED, chosen.work, chosen.rounds)
        for groups in chosen.groups[1:]:
            measure(table_type, 1, groups, chosen.work, chosen.rounds)


if __name__ == "__main__":
    main()
