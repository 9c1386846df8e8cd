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
from hoodie_ds.index.buckets import Buckets
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
GOAL = 1.2


def keys_of(num_buckets: int) -> tuple[pa.Array, pa.Array]:
    """Return keys, one for each bucket, and `ROWS` for each of the first `TOUCHED` buckets."""
    keys = pc.cast(pa.array(np.arange(4 * ROWS * num_buckets)), pa.string())
    hashed = Buckets(num_buckets, ("id",), ("id",))
    buckets = hashed.ids_by_key(pa.chunked_array([keys]))
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


def load(table_type: str, parts: int, buckets: int, path: Path) -> dict[str, str]:
    """Make a table of one row in each bucket; returns the options of its writes."""
    options = {
        **TABLE,
        "path": str(path),
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.bucket.index.num.buckets": str(buckets),
    }
    with patch.object(os, "fsync"):
        write(options, rows_of(keys_of(buckets)[0], parts, 0), 0)
    return options


def report(name: str, baseline: str, taken: dict[str, float], number: int) -> None:
    """Print times, against those of the smallest table."""
    for part, seconds in taken.items():
        against = None if name == baseline else f"{baseline}, {part}"
        goal = GOAL if against and part == "batch" else None
        warm_up = number <= WARM_UP
        emit(f"{name}, {part}", seconds, against=against, goal=goal, round=number, warm_up=warm_up)


def main() -> None:
    """Load the tables, then take turns in writing to them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path)
    parser.add_argument("--groups", type=int, nargs="+", default=[10, 1_000, 10_000])
    parser.add_argument("--rounds", type=int, default=7)
    chosen = parser.parse_args()
    layouts = [(groups // TOUCHED, TOUCHED) for groups in chosen.groups]
    layouts += [(1, groups) for groups in chosen.groups[1:]]
    rows = {buckets: keys_of(buckets)[1] for _, buckets in layouts}
    for table_type, kind in (("COPY_ON_WRITE", "COW"), ("MERGE_ON_READ", "MOR")):
        shutil.rmtree(chosen.work, ignore_errors=True)
        tables = {
            f"{kind}, {parts * buckets:,} file groups, partitions: {parts:,}": (
                load(table_type, parts, buckets, chosen.work / f"{parts}-{buckets}"),
                buckets,
            )
            for parts, buckets in layouts
        }
        os.sync()
        for number in range(1, WARM_UP + chosen.rounds + 1):
            for name, (options, buckets) in tables.items():
                taken = write(options, rows_of(rows[buckets], 1, number), number)
                assert taken.pop("touched") == TOUCHED
                report(name, next(iter(tables)), taken, number)
    shutil.rmtree(chosen.work)


if __name__ == "__main__":
    main()
