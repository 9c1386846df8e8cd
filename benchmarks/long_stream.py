"""A default stream of 1,000 micro-batches, which looks after its own table.

    .venv/bin/python benchmarks/long_stream.py WORK [--batches 1000] [--kills 10] [--off]

Each batch updates 1,000 of 5,000 rows in 8 buckets, on real Spark. The stream runs in a process of
its own, which is killed as often as is said and started again from its checkpoint. Beside it the
table is measured now and then: its files, what lies under ``.hoodie``, and what a snapshot read
takes. At the end every row must have its newest value. ``WORK/<kind>.jsonl`` holds all figures,
and ``WORK/<kind>.svg`` shows them.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from results import emit
from spark_side import session

import hoodie_ds

ROWS, KEYS, BUCKETS = 1_000, 5_000, 8
TYPES = {"COW": "COPY_ON_WRITE", "MOR": "MERGE_ON_READ"}
EVERY = 10
"""Batches from one measurement to the next."""
SETTLED = 200
"""Batch from which everything has to stay flat."""
OFF = {"hoodie.table.services.enabled": "false"}


def table_options(table: Path, kind: str, more: dict[str, str]) -> dict[str, str]:
    """Return the options of the stream: those of any keyed table, and nothing about services."""
    return {
        "path": str(table),
        "hoodie.table.name": "events",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "value",
        "hoodie.datasource.write.table.type": TYPES[kind],
        "hoodie.bucket.index.num.buckets": str(BUCKETS),
        **more,
    }


def run_stream(work: Path, options: dict[str, str], batches: int) -> None:
    """Run the query in this process, and write down what each batch took."""
    spark = session(2, "2g")
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", "2000")
    spark.conf.set("spark.sql.shuffle.partitions", "4")
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).load()
    events = source.selectExpr(f"value % {KEYS} as id", "value", "cast(value as string) as text")
    rows = hoodie_ds.shuffle_by_file_group(events, options)
    writer = rows.writeStream.format("hoodie_py").options(**options)
    query = writer.option("checkpointLocation", str(work / "checkpoint")).start()
    last = -1
    with (work / "progress.jsonl").open("a") as progress:
        while last < batches - 1:
            if query.exception() is not None:
                raise SystemExit(str(query.exception()))
            for report in query.recentProgress:
                if report.batchId > last and report.numInputRows:
                    last = report.batchId
                    taken = report.durationMs["triggerExecution"]
                    progress.write(json.dumps({"batch": last, "ms": taken}) + "\n")
            progress.flush()
            time.sleep(0.2)
    query.stop()
    spark.stop()


@dataclass(frozen=True)
class Measured:
    """What a table looks like after a batch."""

    batch: int
    data_files: int
    hoodie_files: int
    hoodie_bytes: int
    read_seconds: float


def size_of(path: Path) -> int:
    """Return the size of a file, 0 of one that the stream has deleted meanwhile."""
    with suppress(FileNotFoundError):
        return path.stat().st_size
    return 0


def measure(table: Path, batch: int) -> Measured:
    """Count a table's files, and read it."""
    below, others = [], 0
    for folder, _, names in os.walk(table):
        kept = [Path(folder, name) for name in names if not name.endswith(".crc")]
        if ".hoodie" in Path(folder).parts:
            below += kept
        else:
            others += len(kept)
    size = sum(map(size_of, below))
    started = time.perf_counter()
    assert hoodie_ds.HoodieTable(table).read(columns="id").num_rows <= KEYS
    seconds = time.perf_counter() - started
    return Measured(batch, others, len(below), size, seconds)


def batches_done(work: Path) -> dict[int, int]:
    """Return what each batch took in milliseconds, by its number."""
    found: dict[int, int] = {}
    path = work / "progress.jsonl"
    for line in path.read_text().splitlines() if path.exists() else ():
        if line.endswith("}"):
            batch = json.loads(line)
            found.setdefault(batch["batch"], batch["ms"])
    return found


def follow(work: Path, command: list[str], kills: list[int], batches: int) -> Iterator[Measured]:
    """Run the stream to its end, kill it on the way, and measure its table beside it."""
    table, last = work / "table", 0
    while True:
        with (work / "spark.log").open("a") as log:
            child = subprocess.Popen(command, stderr=log, stdout=log, start_new_session=True)
        while child.poll() is None:
            done = max(batches_done(work), default=0)
            if kills and done >= kills[0]:
                kills.pop(0)
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
            if done >= last + EVERY:
                last = done
                yield measure(table, done)
            time.sleep(0.1)
        if child.returncode == 0:
            yield measure(table, batches)
            return
        if child.returncode != -signal.SIGKILL:
            raise SystemExit(f"the stream failed: see {work}/spark.log")


def check_rows(table: Path, batches: int) -> None:
    """Refuse a table that does not hold each key's newest value."""
    rows = hoodie_ds.HoodieTable(table).read(columns=["id", "value", "text"]).to_pylist()
    found = sorted((row["id"], row["value"], row["text"]) for row in rows)
    # Spark may have begun another batch before it was stopped.
    for ended in range(batches, batches + 3):
        newest = {value % KEYS: value for value in range(max(0, ended * ROWS - KEYS), ended * ROWS)}
        if found == sorted((id_, value, str(value)) for id_, value in newest.items()):
            return
    raise SystemExit(f"{table}: not every row has its newest value")


def report(kind: str, taken: dict[int, int], measured: list[Measured]) -> None:
    """Print the figures from the settled batch on, the last tenth against the first."""
    settled = [one for one in measured if one.batch >= min(SETTLED, measured[-1].batch // 2)]
    part = max(1, len(settled) // 4)
    early, late = settled[:part], settled[-part:]
    for field in ("data_files", "hoodie_files", "hoodie_bytes", "read_seconds"):
        for when, some in (("early", early), ("late", late)):
            emit(f"{kind}, {field}, {when}", statistics.median(getattr(m, field) for m in some))
    for when, some in (("early", early), ("late", late)):
        first = min(some[0].batch, max(taken) - EVERY)
        ms = [taken[n] for n in taken if first <= n <= max(some[-1].batch, first + EVERY)]
        emit(f"{kind}, seconds of a batch, {when}", statistics.median(ms) / 1000)
        emit(f"{kind}, seconds of a batch, p95, {when}", sorted(ms)[len(ms) * 95 // 100] / 1000)


def plot(path: Path, kind: str, taken: dict[int, int], measured: list[Measured]) -> None:
    """Draw each figure over the batches, as an SVG of small panels."""
    panels: list[tuple[str, list[tuple[float, float]]]] = [
        ("seconds of a batch", [(n, ms / 1000) for n, ms in sorted(taken.items())]),
        ("seconds of a read", [(m.batch, m.read_seconds) for m in measured]),
        ("data files", [(m.batch, m.data_files) for m in measured]),
        ("files under .hoodie", [(m.batch, m.hoodie_files) for m in measured]),
        ("KB under .hoodie", [(m.batch, m.hoodie_bytes / 1024) for m in measured]),
    ]
    width, height, parts = 720, 120, []
    for row, (name, points) in enumerate(panels):
        top = row * (height + 30) + 24
        right, most = max(x for x, _ in points) or 1, max(y for _, y in points) or 1
        dots = " ".join(
            f"{60 + x * width / right:.1f},{top + height - y * height / most:.1f}"
            for x, y in points
        )
        parts.append(
            f'<text x="60" y="{top - 6}" font-size="12">{kind}: {name}</text>'
            f'<text x="4" y="{top + 10}" font-size="10">{most:.4g}</text>'
            f'<text x="4" y="{top + height}" font-size="10">0</text>'
            f'<rect x="60" y="{top}" width="{width}" height="{height}" fill="none" stroke="#ccc"/>'
            f'<polyline points="{dots}" fill="none" stroke="#1f5fa8" stroke-width="1"/>'
        )
    size = f'width="{width + 80}" height="{len(panels) * (height + 30) + 10}"'
    style = 'xmlns="http://www.w3.org/2000/svg" font-family="sans-serif"'
    path.write_text(f"<svg {style} {size}>{''.join(parts)}</svg>\n")


def main() -> None:
    """Run the stream of each kind of table, and say what became of its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path)
    parser.add_argument("--batches", type=int, default=1_000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--kinds", nargs="+", choices=TYPES, default=list(TYPES))
    parser.add_argument("--off", action="store_true", help="without table services")
    parser.add_argument("--child", choices=TYPES, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    more = OFF if chosen.off else {}
    if chosen.child:
        options = table_options(chosen.work / "table", chosen.child, more)
        run_stream(chosen.work, options, chosen.batches)
        return
    for kind in chosen.kinds:
        work = chosen.work / kind
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        kills = [n * chosen.batches // (chosen.kills + 1) for n in range(1, chosen.kills + 1)]
        command: list[Any] = [sys.executable, __file__, str(work), "--child", kind]
        command += ["--batches", str(chosen.batches), *(["--off"] if chosen.off else [])]
        measured = list(follow(work, command, kills, chosen.batches))
        taken = batches_done(work)
        check_rows(work / "table", max(taken) + 1)
        name = f"{kind} without services" if chosen.off else kind
        lines = [{"batch": n, "ms": ms} for n, ms in sorted(taken.items())]
        lines += [asdict(one) for one in measured]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (chosen.work / f"{name}.jsonl").write_text(text)
        plot(chosen.work / f"{name}.svg", name, taken, measured)
        report(name, taken, measured)


if __name__ == "__main__":
    main()
