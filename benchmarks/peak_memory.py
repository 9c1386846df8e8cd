"""Peak resident memory of one task whose input is four times its memory cap.

    .venv/bin/python benchmarks/peak_memory.py WORK

Every case runs in a process of its own, which makes its rows as it goes; the peak is that of the
whole process, interpreter and libraries included.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.messages import TaskId
from hoodie_ds.sink.task_writer import write_task

MB = 1 << 20
KEYED = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.bucket.index.num.buckets": "8",
}
CASES = {
    "append, 50 partitions": {"hoodie.datasource.write.partitionpath.field": "city"},
    "upsert, MOR, 8 buckets": {**KEYED, "hoodie.datasource.write.table.type": "MERGE_ON_READ"},
    "upsert, COW, 8 buckets": {**KEYED, "hoodie.datasource.write.table.type": "COPY_ON_WRITE"},
}
ROWS = 20_000
GOALS = {256: 606}  # by the cap, MB


def batches(total_bytes: int) -> Iterator[pa.RecordBatch]:
    """Rows of about 200 bytes, every key twice, until there are enough bytes."""
    draw = np.random.default_rng(7)
    made = number = 0
    while made < total_bytes:
        first = number // 2 * ROWS
        text = draw.integers(0, 256, ROWS * 20, dtype=np.uint8).tobytes().hex()
        batch = pa.RecordBatch.from_pydict(
            {
                "id": pa.array([f"key-{i:012}" for i in range(first, first + ROWS)]),
                "city": pa.array([f"city-{i % 50}" for i in range(ROWS)]),
                "ts": pa.array(np.full(ROWS, number)),
                "fares": pa.array(draw.random(ROWS)),
                **{
                    name: pa.array([text[i * 40 : i * 40 + 40] for i in range(ROWS)])
                    for name in ("one", "two", "three")
                },
            }
        )
        made, number = made + batch.nbytes, number + 1
        yield batch


def run(case: str, cap_mb: int, folder: Path) -> dict[str, object]:
    """Write one table in this process."""
    shutil.rmtree(folder, ignore_errors=True)
    options = {
        "path": str(folder),
        "hoodie.table.name": "t",
        "write.task.max.size": str(cap_mb),
        **CASES[case],
    }
    coordinator = Coordinator.of(WriteOptions.parse(options))
    batch = coordinator.begin(next(batches(1)).schema)
    message = write_task(batch, TaskId(), None, batches(4 * cap_mb * MB), sole_writer=True)
    coordinator.commit([message])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return {
        "work": f"peak memory, {case}, MB",
        "cap": cap_mb,
        "seconds": peak,
        "goal": GOALS.get(cap_mb),
        "buffered at most, MB": message.metrics.max_buffered_bytes // MB,
        "flushes": message.metrics.num_flushes,
        "rows": message.num_rows,
    }


def main() -> None:
    """Run each case in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path)
    parser.add_argument("--cap", type=int, default=256, help="MB")
    parser.add_argument("--case", choices=CASES)
    chosen = parser.parse_args()
    if chosen.case:
        print(json.dumps(run(chosen.case, chosen.cap, chosen.work)))
        return
    for case in CASES:
        command = [sys.executable, __file__, str(chosen.work), "--cap", str(chosen.cap)]
        subprocess.run([*command, "--case", case], check=True)


if __name__ == "__main__":
    main()
