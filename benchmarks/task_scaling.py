"""Throughput by the number of tasks, and how evenly `shuffle_by_file_group` loads them.

    .venv/bin/python benchmarks/task_scaling.py LINEITEM WORK

``WORK`` must hold the inputs that ``jvm_baseline.py`` prepared. Time is of the first keyed load
with one task and with two, each in a Spark of its own; a task's encoder has a thread of its own,
so one task is more than one core. With more tasks than cores time says nothing, so for 4 to 64
tasks the work is counted: rows and Arrow bytes that each task is sent, the largest over the mean.
The baseline is what no way of sending whole file groups, of the sizes that Hudi's hash makes them,
can be better than.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from results import emit
from spark_side import KEYED, session

import hoodie_ds
from hoodie_ds.index.buckets import Buckets

CORES = (1, 2)
TASKS = (4, 8, 16, 32, 64)
LAYOUTS = {"1 partition of 64 buckets": (1, 64), "10 partitions of 2 buckets": (10, 2)}


def throughput(lineitem: Path, work: Path, rounds: int) -> None:
    """Load with as many tasks as there are cores."""
    for cores in CORES:
        command = [sys.executable, str(Path(__file__).with_name("spark_side.py"))]
        command += [str(lineitem), str(work), "--suite", "load"]
        command += ["--cores", str(cores), "--rounds", str(rounds)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        for text in done.stdout.splitlines():
            line = json.loads(text)
            emit(
                f"{line['work']}, local[{cores}]",
                line["seconds"],
                against=f"{line['work']}, local[1]" if cores > 1 else None,
                round=line["round"],
                warm_up=line["warm_up"],
            )


def received(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Count what a task is sent (executor)."""
    rows = size = 0
    for batch in batches:
        rows, size = rows + batch.num_rows, size + batch.nbytes
    task = TaskContext.get().partitionId()
    yield pa.RecordBatch.from_pydict({"task": [task], "rows": [rows], "bytes": [size]})


def group_sizes(half: Path, layout: str) -> np.ndarray:
    """Rows of each file group, most first."""
    parts, buckets = LAYOUTS[layout]
    rows = pq.read_table(half, columns=["l_orderkey", "l_linenumber"])
    order, line = (pc.cast(column, pa.string()) for column in rows.columns)
    keys = pc.binary_join_element_wise("l_orderkey:", order, ",l_linenumber:", line, "")
    fields = ("l_orderkey", "l_linenumber")
    hashed = Buckets(buckets, fields, fields).ids_by_key(keys)
    groups = rows.column("l_orderkey").to_numpy() % parts * buckets + hashed
    return np.sort(np.bincount(groups, minlength=parts * buckets))[::-1]


def bound(sizes: np.ndarray, tasks: int) -> float:
    """Return what largest over mean is at least.

    Of the `k * tasks + 1` largest groups, `k + 1` share a task, whichever way they are sent.
    """
    shared = [sizes[k * tasks - k : k * tasks + 1].sum() for k in range(-(-len(sizes) // tasks))]
    return max(1.0, max(shared) * tasks / sizes.sum())


def spread(
    spark: SparkSession, rows: DataFrame, layout: str, tasks: int, sizes: np.ndarray
) -> None:
    """Shuffle and count."""
    parts, buckets = LAYOUTS[layout]
    options = {
        **KEYED,
        "path": "/nowhere/lineitem",  # only looked at for a table, of which there is none
        "hoodie.bucket.index.num.buckets": str(buckets),
    }
    if parts > 1:
        options["hoodie.datasource.write.partitionpath.field"] = "part"
        rows = rows.withColumn("part", sf.col("l_orderkey") % parts)
    spark.conf.set("spark.sql.shuffle.partitions", tasks)
    sent = hoodie_ds.shuffle_by_file_group(rows.withColumn("ts", sf.lit(1)), options)
    found = sent.mapInArrow(received, "task long, rows long, bytes long").collect()
    assert sorted(row["task"] for row in found) == list(range(tasks))
    best = f"{layout}, {tasks} tasks, largest over mean: best possible"
    emit(best, bound(sizes, tasks))
    for what in ("rows", "bytes"):
        counts = [row[what] for row in found]
        ratio = max(counts) * tasks / sum(counts)
        emit(f"{layout}, {tasks} tasks, largest over mean: {what}", ratio, against=best)


def main() -> None:
    """Time, then count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lineitem", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--rounds", type=int, default=3, help="timed after the warm-up; 0: count")
    chosen = parser.parse_args()
    if chosen.rounds:
        throughput(chosen.lineitem, chosen.work, chosen.rounds)
    spark = session(2, "4g", {"spark.default.parallelism": str(max(TASKS))})
    half = spark.read.parquet(str(chosen.work / "half"))
    for layout in LAYOUTS:
        sizes = group_sizes(chosen.work / "half", layout)
        for tasks in TASKS:
            spread(spark, half, layout, tasks, sizes)
    spark.stop()


if __name__ == "__main__":
    main()
