"""What a checkpoint costs as the batch grows: append handles and buckets, and the state index.

    .venv/bin/python benchmarks/checkpoint_cost.py WORK

The claim of HUDI-2450: where rows are written as they come, into one log file for each file group
and batch, a checkpoint has only the rest to flush. It was made against the state index with
``upsert(List<HoodieRecord>)``, which holds a batch until its end. Both indexes are measured both
ways. A checkpoint is the task's last flush (``close_ms`` among the commit's metrics) and the
commit. All tables are merge-on-read and have 8 file groups: 8 partitions of one bucket, or of one
file group. Nine tenths of a batch are updates, the rest are inserts. Rows arrive at a steady pace,
as a stream's do, so a larger batch is a longer one.
"""

from __future__ import annotations

import argparse
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from results import emit

from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.messages import TaskId
from hoodie_ds.sink.replay_guard import BatchId
from hoodie_ds.sink.task_writer import write_task

TABLE = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
}
BUCKET = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
STATE = {"hoodie.index.type": "FLINK_STATE", "index.global.enabled": "false"}
AS_THEY_COME = {"write.batch.size": "1"}  # MB that a file group holds before it is flushed
BASELINE = "state index, batch held"
CASES = {
    BASELINE: STATE,
    "state index, flushed as rows come": {**STATE, **AS_THEY_COME},
    "buckets, batch held": BUCKET,
    "buckets, flushed as rows come": {**BUCKET, **AS_THEY_COME},
}
GROWTH = (1, 4, 16)
COMMIT_GOAL = 1.2


class Source:
    """Makes batches of rows of about 200 bytes."""

    def __init__(self, loaded: int) -> None:
        self._draw = np.random.default_rng(7)
        text = self._draw.integers(0, 256, 1000 * 20, dtype=np.uint8).tobytes().hex()
        self._texts = pa.array([text[i * 40 : i * 40 + 40] for i in range(1000)])
        self._loaded, self._next = loaded, loaded

    def load(self) -> list[pa.RecordBatch]:
        """Return the rows that the table begins with."""
        return self._rows(np.arange(self._loaded), 0)

    def batch(self, count: int, ts: int) -> list[pa.RecordBatch]:
        """Return updates and inserts, mixed."""
        inserts = np.arange(self._next, self._next + count // 10)
        self._next += len(inserts)
        updates = self._draw.choice(self._loaded, count - len(inserts), replace=False)
        return self._rows(self._draw.permutation(np.concatenate([updates, inserts])), ts)

    def _rows(self, ids: np.ndarray, ts: int) -> list[pa.RecordBatch]:
        count = len(ids)
        texts = {
            name: self._texts.take(pa.array(self._draw.integers(0, 1000, count)))
            for name in ("one", "two", "three")
        }
        columns = {
            "id": pc.utf8_lpad(pc.cast(pa.array(ids), pa.string()), 16, "0"),
            "city": pa.array([f"city-{i}" for i in range(8)]).take(pa.array(ids % 8)),
            "ts": pa.array(np.full(count, ts)),
            "fares": pa.array(self._draw.random(count)),
            **texts,
        }
        return pa.table(columns).to_batches(max_chunksize=10_000)


def paced(rows: list[pa.RecordBatch], rows_per_second: int) -> Iterator[pa.RecordBatch]:
    """Hand rows over no faster than they arrive."""
    started, arrived = time.perf_counter(), 0
    for batch in rows:
        arrived += batch.num_rows
        time.sleep(max(0, started + arrived / rows_per_second - time.perf_counter()))
        yield batch


def write(
    options: dict[str, str], rows: list[pa.RecordBatch], number: int, rate: int
) -> dict[str, float]:
    """Write a micro-batch and return the seconds that its parts took."""
    coordinator = Coordinator.of(WriteOptions.parse(options))
    started = time.perf_counter()
    batch = coordinator.begin(rows[0].schema)
    arriving = paced(rows, rate)
    message = write_task(batch, TaskId(), BatchId("bench", number), arriving, sole_writer=True)
    written = time.perf_counter()
    coordinator.commit([message])
    ended = time.perf_counter()
    last_flush = message.metrics.close_ms / 1000
    return {
        "commit": ended - written,
        "last flush": last_flush,
        "checkpoint": last_flush + ended - written,
        "whole batch": ended - started,
    }


def main() -> None:
    """Load the tables, then write the same batches to all of them; round 0 is the warm-up."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path)
    parser.add_argument("--smallest", type=int, default=50_000, help="rows")
    parser.add_argument("--loaded", type=int, default=1_000_000, help="rows")
    parser.add_argument("--rate", type=int, default=200_000, help="rows that arrive in a second")
    parser.add_argument("--rounds", type=int, default=7)
    chosen = parser.parse_args()
    shutil.rmtree(chosen.work, ignore_errors=True)
    tables = {
        name: {**TABLE, **options, "path": str(chosen.work / name.replace(" ", "-"))}
        for name, options in CASES.items()
    }
    source, number = Source(chosen.loaded), 0
    for options in tables.values():
        write(options, source.load(), number, 1 << 40)
    for round_ in range(chosen.rounds + 1):
        for growth in GROWTH:
            number += 1
            rows = source.batch(growth * chosen.smallest, number)
            for name, options in tables.items():
                taken = write(options, rows, number, chosen.rate)
                report(name, growth, chosen.smallest, taken, round_)
    shutil.rmtree(chosen.work)


def report(name: str, growth: int, smallest: int, taken: dict[str, float], round_: int) -> None:
    """Print times: the commit's against that of the smallest batch, the others' to the baseline."""
    for part, seconds in taken.items():
        against, goal = f"{BASELINE}, {growth * smallest:,} rows, {part}", None
        if part == "commit":
            against, goal = f"{name}, {smallest:,} rows, {part}", COMMIT_GOAL
        work = f"{name}, {growth * smallest:,} rows, {part}"
        if against == work:
            against, goal = None, None
        emit(work, seconds, against=against, goal=goal, round=round_, warm_up=round_ == 0)


if __name__ == "__main__":
    main()
