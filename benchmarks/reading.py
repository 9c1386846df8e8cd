"""Reads without Spark: against `pyarrow.dataset`, peak memory of a stream, a key, one commit.

    .venv/bin/python benchmarks/reading.py WORK [--megabytes 4000] [--groups 1000] [--rounds 5] \
        [--tables SCAN]

``SCAN`` is the folder of the merge-on-read table that ``scan.py`` made, and of the same compacted;
without it merge-on-read is left out. Seconds of a whole read are those of the clock; beside them
stand those of the processor, which tell more on a busy machine. The stream is read in a process of
its own, whose peak is that of the interpreter and all libraries too. The look-up counts the data
files that are opened. The incremental query is that of the last commit, of ten and of as many as
there are file groups.
"""

from __future__ import annotations

import argparse
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from results import emit
from scanned import base_files, fresh

from hoodie_ds import HoodieTable
from hoodie_ds.storage.local import LocalStorage
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.testing.fault import Kind
from hoodie_ds.testing.faulty_storage import FaultyStorage

KEYED = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.index.type": "BUCKET",
}
BATCH_ROWS = 200_000
WIDE_BYTES = 125
"""Bytes that a row of `wide` takes in a file, about: its text does not shrink."""
GOAL_RATIO = 1.2
GOAL_MB = 600


def wide(rows: int, first: int = 0) -> pa.Table:
    """Rows of numbers and of text that does not repeat."""
    draw = np.random.default_rng(first)
    text = draw.integers(0, 256, rows * 48, dtype=np.uint8).tobytes().hex()
    return pa.table(
        {
            "id": [f"key-{number:012}" for number in range(first, first + rows)],
            "ts": np.arange(rows),
            "fare": draw.random(rows),
            "note": [text[at * 96 : at * 96 + 96] for at in range(rows)],
            "kind": pa.array(draw.integers(0, 20, rows).astype(str)),
        }
    )


def made(path: Path, megabytes: int, buckets: int) -> HoodieTable:
    """A table of about so many bytes, written in batches."""
    shutil.rmtree(path, ignore_errors=True)
    table = HoodieTable(path, {**KEYED, "hoodie.bucket.index.num.buckets": str(buckets)})
    rows = megabytes * 1_000_000 // WIDE_BYTES

    def batches() -> Iterator[pa.RecordBatch]:
        for first in range(0, rows, BATCH_ROWS):
            yield from wide(min(BATCH_ROWS, rows - first), first).to_batches()

    table.insert(pa.RecordBatchReader.from_batches(wide(1).schema, batches()))
    return table


def timed(work: Callable[[], int]) -> tuple[float, float, int]:
    """Seconds of the clock and of the processor, and what the work returns."""
    clock, processor = time.perf_counter(), time.process_time()
    found = work()
    return time.perf_counter() - clock, time.process_time() - processor, found


def against_arrow(path: Path, megabytes: int, rounds: int) -> None:
    """Read a whole table, and the same files by `pyarrow.dataset`."""
    table = made(path, megabytes, buckets=8)
    files = sorted(map(str, path.glob("*.parquet")))
    cases: dict[str, tuple[list[str] | None, pc.Expression | None]] = {
        "all columns": (None, None),
        "two columns": (["id", "fare"], None),
        "two columns, filter of 1 %": (["id", "fare"], pc.field("fare") < 0.01),
    }
    for name, (columns, expression) in cases.items():
        ours, arrows, checks = [], [], []
        checked = ds.ParquetFileFormat(
            default_fragment_scan_options=ds.ParquetFragmentScanOptions(
                page_checksum_verification=True
            )
        )
        for _ in range(rounds + 1):
            for runs, kind in ((arrows, "parquet"), (checks, checked)):
                runs.append(
                    timed(
                        lambda: (
                            ds.dataset(files, format=kind)  # noqa: B023
                            .to_table(columns, filter=expression)  # noqa: B023
                            .num_rows
                        )
                    )
                )
            ours.append(timed(lambda: table.read(columns, expression).num_rows))  # noqa: B023
            assert ours[-1][2] == arrows[-1][2]
        for label, at in (("clock", 0), ("processor", 1)):
            theirs = f"pyarrow.dataset, {name}, {label}"
            emit(theirs, statistics.median(run[at] for run in arrows[1:]))
            emit(
                f"pyarrow.dataset with checksums of pages, {name}, {label}",
                statistics.median(run[at] for run in checks[1:]),
                against=theirs,
            )
            emit(
                f"HoodieTable.read, {name}, {label}",
                statistics.median(run[at] for run in ours[1:]),
                against=theirs,
                goal=GOAL_RATIO,
            )


def merge_on_read(tables: Path, rounds: int) -> None:
    """Read a table with log files, first and again, and by `pyarrow.dataset` the same compacted."""
    files = base_files(tables / "compacted")
    cases: dict[str, tuple[list[str] | None, pc.Expression | None, float]] = {
        "all columns": (None, None, 1.5),
        "two columns": (["l_orderkey", "l_tax"], None, 2.0),
        "filter of 1 %": (None, pc.field("l_suppkey") < 100, 2.0),
    }
    for name, (columns, expression, goal) in cases.items():
        work = f"merge-on-read, {name}"
        taken: dict[str, list[tuple[float, float, int]]] = defaultdict(list)
        for _ in range(rounds + 1):
            new = fresh(tables / "MOR")
            for engine, path in (("first", new), ("again", new), ("pyarrow.dataset", None)):

                def found(path: Path | None = path) -> int:
                    if path is None:
                        rows = ds.dataset(files).to_table(columns, filter=expression)  # noqa: B023
                    else:
                        rows = HoodieTable(path).read(columns, expression)  # noqa: B023
                    return rows.num_rows

                taken[engine].append(timed(found))
            shutil.rmtree(new)
            assert len({runs[-1][2] for runs in taken.values()}) == 1, taken
        for label, at in (("clock", 0), ("processor", 1)):
            theirs = f"pyarrow.dataset of the compacted table, {work}, {label}"
            emit(theirs, statistics.median(run[at] for run in taken["pyarrow.dataset"][1:]))
            for engine in ("first", "again"):
                seconds = statistics.median(run[at] for run in taken[engine][1:])
                ours = f"HoodieTable.read, {work}, {engine}, {label}"
                emit(ours, seconds, against=theirs, goal=goal)


def stream(path: Path) -> None:
    """Print the rows of a stream of a table, and the peak memory of this process in MB."""
    rows = sum(batch.num_rows for batch in HoodieTable(path).scan().to_batches())
    # Not that of getrusage, which counts the process that began this one.
    (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    sys.stdout.write(f"{rows} {int(peak) // 1024}\n")


def peak_of_stream(path: Path, megabytes: int) -> None:
    """Stream a table of so many bytes in another process."""
    made(path, megabytes, buckets=max(1, megabytes // 120))
    size = sum(file.stat().st_size for file in path.glob("*.parquet")) // 1_000_000
    command = [sys.executable, __file__, str(path), "--stream"]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rows, peak = map(int, out.split())
    emit(f"peak of to_batches(), table of {size} MB, MB", peak, goal=GOAL_MB, rows=rows)


def look_up(path: Path, groups: int, rounds: int) -> None:
    """Read one key of a table of many file groups."""
    shutil.rmtree(path, ignore_errors=True)
    options = {**KEYED, "hoodie.bucket.index.num.buckets": str(groups)}
    HoodieTable(path, options).insert(wide(groups * 50))
    seen = FaultyStorage(LocalStorage(str(path)))
    table = HoodieTable(path, storage=cast(Storage, seen))
    seconds = []
    for number in range(rounds):
        key = f"key-{number * 7:012}"
        begun = len(seen.recorder.operations)
        seconds.append(timed(lambda: table.read(filter=pc.field("id") == key).num_rows))  # noqa: B023
        assert seconds[-1][2] == 1
        done = seen.recorder.operations[begun:]
        files = [o for o in done if o.kind is Kind.OPEN and o.path.endswith(".parquet")]
        emit(f"files opened for a key of {groups} file groups", len(files), goal=1)
    emit(f"look-up of a key of {groups} file groups", statistics.median(s[0] for s in seconds))


def last_commit(path: Path, commits: int, rounds: int) -> None:
    """Query what the last of some commits wrote; each of them makes a partition of 1,000 rows."""
    few = min(10, commits)
    shutil.rmtree(path, ignore_errors=True)
    options = {**KEYED, "hoodie.datasource.write.partitionpath.field": "day"}
    table = HoodieTable(path, {**options, "hoodie.bucket.index.num.buckets": "1"})
    for number in range(1, commits + 1):
        rows = wide(1_000, number * 1_000)
        table.upsert(rows.append_column("day", pa.repeat(str(number), rows.num_rows)))
        if number not in (few, commits):
            continue
        begin = table.timeline.completed[-2].ended
        found = [timed(lambda: table.read_incremental(begin).num_rows) for _ in range(rounds + 1)]  # noqa: B023
        assert {run[2] for run in found} == {1_000}
        work = "incremental query of the last of {} commits"
        seconds = statistics.median(run[0] for run in found[1:])
        if number == few:
            emit(work.format(number), seconds)
        else:
            emit(work.format(number), seconds, against=work.format(few), goal=GOAL_RATIO)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path)
    parser.add_argument("--megabytes", type=int, default=4_000)
    parser.add_argument("--groups", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tables", type=Path)
    parser.add_argument("--stream", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.stream:
        stream(given.work)
        return
    given.work.mkdir(parents=True, exist_ok=True)
    if given.tables is not None:
        merge_on_read(given.tables, given.rounds)
    against_arrow(given.work / "whole", min(given.megabytes, 400), given.rounds)
    look_up(given.work / "keys", given.groups, given.rounds)
    last_commit(given.work / "commits", given.groups, given.rounds)
    peak_of_stream(given.work / "stream", given.megabytes)
    shutil.rmtree(given.work)


if __name__ == "__main__":
    main()
