"""What table services cost: a compaction, and a stream that brings its services along.

    .venv/bin/python benchmarks/service_cost.py LINEITEM WORK [--parts PART ...]

- ``rewrite``: one file group with 30 % of its rows in three log files is compacted, against reading
  and rewriting its base file raw with pyarrow, by the same codec and with one thread.
- ``engines``: 3.0 M rows in 8 buckets with 30 % in logs. The table with its plan is left in
  ``WORK/planned``; ``jvm_baseline.py --suite compaction`` carries out the same plan of a copy.
- ``memory``: peak of a process that compacts a file group of 1 GB with small logs, and one that has
  nothing but log files.
- ``stream``: micro-batches of 1,000 rows on Spark into 8 buckets, with the services that a stream
  has by default and without any.

Variants take turns in short rounds, so that a machine that is busy with other work is so for all.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from results import emit, lineitem_rows
from spark_side import session

import hoodie_ds
from hoodie_ds import HoodieTable
from hoodie_ds.services.compaction.compactor import Compactor
from hoodie_ds.sink.messages import METRICS_KEY
from hoodie_ds.timeline.bodies.commit_metadata import CHECKPOINT_KEY

LINEITEM = {
    "hoodie.table.name": "lineitem",
    "hoodie.datasource.write.recordkey.field": "l_orderkey,l_linenumber",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
}
BUCKETS = "hoodie.bucket.index.num.buckets"
LOGS, SHARE = 3, 10
"""Log files of a group, each with updates of a tenth of its orders."""
MB = 1 << 20


def table_at(path: Path, options: dict[str, str], buckets: int) -> HoodieTable:
    """Return a merge-on-read table with this many buckets."""
    return HoodieTable(str(path), {**options, BUCKETS: str(buckets)})


def load_logged(table: HoodieTable, rows: pa.Table) -> None:
    """Write rows, and then updates of 30 % of them as three log files of each file group."""
    orders = rows["l_orderkey"].to_numpy() % SHARE
    table.upsert(rows.append_column("ts", pa.repeat(1, rows.num_rows)))
    for number in range(LOGS):
        some = rows.filter(pa.array(orders == number))
        table.upsert(some.append_column("ts", pa.repeat(number + 2, some.num_rows)))


def rewrite(lineitem: Path, work: Path, rounds: int) -> None:
    """Compact one file group, and rewrite its base file raw, in turns."""
    made, copy = work / "made", work / "copy"
    shutil.rmtree(made, ignore_errors=True)
    load_logged(table_at(made, LINEITEM, 1), lineitem_rows(lineitem, 1_000_000))
    (base,) = made.glob("*.parquet")
    logs = sum(path.stat().st_size for path in made.glob(".*.log.*"))
    emit("logs of the file group, of its base file", logs / base.stat().st_size)

    def raw() -> None:
        rows = pq.ParquetFile(base).read(use_threads=False)
        pq.write_table(rows, work / "raw.parquet", compression="snappy")

    def compact() -> None:
        assert table_at(copy, LINEITEM, 1).compact()

    baseline = "raw read and rewrite of a base file, 1.0 M rows"
    cases: list[tuple[str, Callable[[], None]]] = [(baseline, raw), ("compaction, 30 %", compact)]
    pa.set_cpu_count(1)
    for number in range(rounds + 1):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(made, copy)
        for name, work_of in cases if number % 2 else cases[::-1]:
            started = time.perf_counter()
            work_of()
            seconds = time.perf_counter() - started
            if number:
                told = {} if name == baseline else {"against": baseline, "goal": 1.3}
                emit(name, seconds, **told)
    left = table_at(copy, LINEITEM, 1).read(columns=["ts"]).num_rows
    assert left == 1_000_000, left
    shutil.rmtree(work)


def engines(lineitem: Path, work: Path, rounds: int) -> None:
    """Compact copies of the table that the JVM compacts as well."""
    planned, copy = work / "planned", work / "copy"
    if not (work / "planned.done").exists():
        shutil.rmtree(planned, ignore_errors=True)
        table = table_at(planned, LINEITEM, 8)
        load_logged(table, lineitem_rows(lineitem, 3_000_000))
        assert Compactor(table._services()).schedule() is not None
        (work / "planned.done").touch()
    for number in range(rounds + 1):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(planned, copy)
        started = time.perf_counter()
        assert table_at(copy, LINEITEM, 8).compact()
        seconds = time.perf_counter() - started
        emit("compaction of 8 file groups, 30 % in logs", seconds, warm_up=number == 0)
    shutil.rmtree(copy)


def wide_rows(first: int, count: int, ts: int) -> pa.Table:
    """Rows of about 250 bytes that hardly compress."""
    draw = np.random.default_rng(first)
    text = draw.integers(0, 256, count * 100, dtype=np.uint8).tobytes().hex()
    offsets = pa.array(np.arange(count + 1, dtype=np.int32) * 200)
    texts = pa.StringArray.from_buffers(count, offsets.buffers()[1], pa.py_buffer(text.encode()))
    keys = pc.utf8_lpad(pc.cast(pa.array(np.arange(first, first + count)), pa.string()), 16, "0")
    return pa.table({"id": keys, "ts": pa.repeat(ts, count), "text": texts})


WIDE = {
    "hoodie.table.name": "wide",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
}
PIECE = 200_000


def make_wide(path: Path, base_rows: int, log_rows: int) -> None:
    """Make a file group: a base file, and then a log file, or ten log files alone."""
    table = table_at(path, {**WIDE, "write.task.max.size": "16000" if base_rows else "256"}, 1)
    if not base_rows:
        for at in range(0, log_rows, PIECE):
            table.upsert(wide_rows(at, PIECE, 1))
        return
    pieces = (wide_rows(at, PIECE, 1).to_batches()[0] for at in range(0, base_rows, PIECE))
    table.upsert(pa.RecordBatchReader.from_batches(wide_rows(0, 1, 1).schema, pieces))
    every = np.arange(0, PIECE, base_rows // log_rows)
    parts = (wide_rows(at, PIECE, 2).take(every) for at in range(0, base_rows, PIECE))
    table.upsert(pa.concat_tables(parts))


def compact_wide(path: Path, _: int, __: int) -> None:
    """Compact it and print what this process took."""
    started = time.perf_counter()
    assert table_at(path, WIDE, 1).compact()
    seconds = time.perf_counter() - started
    # Not `ru_maxrss`, which begins with what the parent had.
    status = Path("/proc/self/status").read_text()
    peak = int(status.partition("VmHWM:")[2].split()[0]) * 1024 // MB
    sys.stdout.write(json.dumps({"peak": peak, "seconds": seconds}))


CHILDREN = {"make": make_wide, "compact": compact_wide}


GROUPS = {"1 % in logs": (5_000_000, 50_000), "all of it in logs": (0, 2_000_000)}


def memory(_: Path, work: Path, rounds: int) -> None:
    """Measure the peak of a process that compacts a large file group."""
    path = work / "wide"
    for name, (base_rows, log_rows) in GROUPS.items():
        shutil.rmtree(path, ignore_errors=True)
        numbers = [str(base_rows * rounds), str(log_rows * rounds)]
        command = [sys.executable, __file__, ".", str(path), "--rows", *numbers]
        subprocess.run([*command, "--child", "make"], check=True)
        base = sum(p.stat().st_size for p in path.glob("*.parquet"))
        logs = sum(p.stat().st_size for p in path.glob(".*.log.*"))
        done = subprocess.run([*command, "--child", "compact"], check=True, capture_output=True)
        found = json.loads(done.stdout)
        group = f"file group of {(base + logs) / MB:,.0f} MB, {name}"
        more = {"base, MB": base // MB, "logs, MB": logs // MB, "took, s": found["seconds"]}
        emit(f"peak memory of its compaction, {group}, MB", found["peak"], **more)
        shutil.rmtree(path)


KEYS, ROWS = 5_000, 1_000
KINDS = {"MOR": "MERGE_ON_READ", "COW": "COPY_ON_WRITE"}
SERVICES = {"off": {"hoodie.table.services.enabled": "false"}, "on": {}}
SLICE, WARM_UP = 25, 4


@dataclass(frozen=True)
class Taken:
    """What a micro-batch took, and whether it compacted."""

    seconds: float
    compacted: bool


def compacting(table: Path) -> set[int]:
    """Return the batches beside which file groups were compacted, of those still in sight."""
    found = set()
    for path in (*table.glob(".hoodie/*.deltacommit"), *table.glob(".hoodie/*.commit")):
        extra = json.loads(path.read_bytes())["extraMetadata"]
        metrics = json.loads(extra.get(METRICS_KEY, "{}"))
        if metrics.get("num_compacted"):
            found.update(map(int, json.loads(extra[CHECKPOINT_KEY]).values()))
    return found


def run_slice(spark: SparkSession, work: Path, kind: str, more: dict[str, str]) -> list[Taken]:
    """Go on with a stream for a slice; return what its batches took, without the first ones."""
    options = {
        "path": str(work / "table"),
        "hoodie.table.name": "events",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "value",
        "hoodie.datasource.write.table.type": KINDS[kind],
        BUCKETS: "8",
        **more,
    }
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).load()
    events = source.selectExpr(f"value % {KEYS} as id", "value", "cast(value as string) as text")
    rows = hoodie_ds.shuffle_by_file_group(events, options)
    writer = rows.writeStream.format("hoodie_py").options(**options)
    query = writer.option("checkpointLocation", str(work / "checkpoint")).start()
    while len(query.recentProgress) < SLICE:
        if query.exception() is not None:
            raise SystemExit(str(query.exception()))
        time.sleep(0.1)
    query.stop()
    compacted = compacting(work / "table")
    return [
        Taken(batch.durationMs["triggerExecution"] / 1000, batch.batchId in compacted)
        for batch in query.recentProgress[WARM_UP:SLICE]
    ]


def stream(_: Path, work: Path, rounds: int) -> None:
    """Run streams with and without services in turns, a slice of each at a time."""
    spark = session(2, "2g", {"spark.sql.shuffle.partitions": "4"})
    shutil.rmtree(work, ignore_errors=True)
    taken: dict[tuple[str, str], list[Taken]] = {}
    cases = [(kind, name, more) for kind in KINDS for name, more in SERVICES.items()]
    for kind, name, more in cases:  # warms the JVM up, and fills the tables
        run_slice(spark, work / f"{kind} {name}", kind, more)
    for number in range(rounds):
        for kind, name, more in cases if number % 2 else cases[::-1]:
            some = run_slice(spark, work / f"{kind} {name}", kind, more)
            taken.setdefault((kind, name), []).extend(some)
    spark.stop()
    for kind in KINDS:
        off, on = (taken[kind, name] for name in SERVICES)
        median, tail = (f"micro-batch, {kind}, services off, {what}" for what in ("median", "p95"))
        emit(median, statistics.median(one.seconds for one in off))
        emit(tail, p95(off))
        name = f"micro-batch, {kind}, services on"
        seconds = statistics.median(one.seconds for one in on)
        emit(f"{name}, median", seconds, against=median, goal=1.15)
        emit(f"{name}, p95", p95(on), against=tail)
        if busy := [one for one in on if one.compacted]:
            emit(f"{name}, p95 of the {len(busy)} that compact", p95(busy), against=tail, goal=2)
    shutil.rmtree(work)


def p95(taken: list[Taken]) -> float:
    """Return what 95 of 100 batches do not exceed."""
    return sorted(one.seconds for one in taken)[len(taken) * 95 // 100]


PARTS = {"rewrite": rewrite, "engines": engines, "memory": memory, "stream": stream}
ROUNDS = {"rewrite": 5, "engines": 2, "memory": 1, "stream": 4}


def main() -> None:
    """Run the parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lineitem", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--rounds", type=int, help="of each part; of `memory`, GB")
    parser.add_argument("--rows", nargs=2, type=int, help=argparse.SUPPRESS)
    parser.add_argument("--child", choices=CHILDREN, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        CHILDREN[chosen.child](chosen.work, *chosen.rows)
        return
    for part in chosen.parts:
        folder = chosen.work if part == "engines" else chosen.work / part
        folder.mkdir(parents=True, exist_ok=True)
        PARTS[part](chosen.lineitem, folder, chosen.rounds or ROUNDS[part])


if __name__ == "__main__":
    main()
