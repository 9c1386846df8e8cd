"""Deletes, updates and merges without Spark, beside deltalake on the same rows in as many files.

    .venv/bin/python benchmarks/row_changes.py WORK [--rows 3000000] [--megabytes 4000] [--rounds 5]

Each statement changes 1 % of the rows by a predicate on the column that they are sorted by, or
merges a source of a tenth, half of it new, which is made as it is read. Each run has a copy of the
table of its own, and both sides run in turns. Then each statement changes a table of so many bytes,
in files of half a gigabyte, in a process of its own, whose peak is that of the interpreter and all
libraries too.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from results import emit

from hoodie_ds import HoodieTable, expr

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.index.type": "SIMPLE",
    "hoodie.parquet.small.file.limit": "0",  # a file group for each insert
    "hoodie.parquet.max.file.size": str(1 << 30),
}
MEMORY = {"write.task.max.size": "256"}
TYPE = "hoodie.datasource.write.table.type"
TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
FILE_ROWS = 125_000
LARGE_FILE_ROWS = 4_800_000
PIECE_ROWS = 100_000
ROW_BYTES = 105
"""Bytes that a row takes in a file, about: its note does not shrink."""
GOAL_RATIO = 1.0
GOAL_MB = 1_000

Work = Callable[[Path, int], object]
Insert = Callable[[Path, pa.RecordBatchReader], object]


def sorted_rows(first: int, count: int) -> pa.Table:
    """Rows that are sorted by `id` and `at`."""
    draw = np.random.default_rng(first)
    text = draw.integers(0, 256, count * 40, dtype=np.uint8).tobytes().hex()
    return pa.table(
        {
            "id": np.arange(first, first + count),
            "at": np.arange(first, first + count),
            "fare": draw.random(count),
            "note": [text[at * 80 : at * 80 + 80] for at in range(count)],
        }
    )


def reader(first: int, end: int) -> pa.RecordBatchReader:
    """The same from one number to another, made as they are read."""

    def pieces() -> Iterator[pa.RecordBatch]:
        for at in range(first, end, PIECE_ROWS):
            yield from sorted_rows(at, min(PIECE_ROWS, end - at)).to_batches()

    return pa.RecordBatchReader.from_batches(sorted_rows(0, 1).schema, pieces())


def made(path: Path, rows: int, file_rows: int, insert: Insert) -> None:
    """Make a table of so many rows, in files of so many."""
    shutil.rmtree(path, ignore_errors=True)
    for first in range(0, rows, file_rows):
        insert(path, reader(first, min(first + file_rows, rows)))


def source(rows: int) -> pa.RecordBatchReader:
    """A tenth of the rows: half of it the last ones of the table, and half behind them."""
    return reader(rows - rows // 20, rows + rows // 20)


def bounds(rows: int) -> str:
    """A predicate that 1 % of the rows meet, within the first half."""
    return f"at >= {rows // 4} and at < {rows // 4 + rows // 100}"


def in_parts(rows: int) -> list[str]:
    return bounds(rows).split(" and ")


OURS: dict[str, Work] = {
    "delete of 1 %": lambda path, rows: HoodieTable(path, MEMORY).delete(where=in_parts(rows)),
    "update of 1 %": lambda path, rows: HoodieTable(path, MEMORY).update(
        {"fare": expr("fare * 1.1")}, in_parts(rows)
    ),
    "merge of a tenth": lambda path, rows: (
        HoodieTable(path, MEMORY)
        .merge(source(rows), "id")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute()
    ),
}
THEIRS: dict[str, Work] = {
    "delete of 1 %": lambda path, rows: DeltaTable(path).delete(bounds(rows)),
    "update of 1 %": lambda path, rows: DeltaTable(path).update(
        {"fare": "fare * 1.1"}, predicate=bounds(rows)
    ),
    "merge of a tenth": lambda path, rows: (
        DeltaTable(path)
        .merge(source(rows), "t.id = s.id", "s", "t")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute()
    ),
}


def seconds(work: Work, table: Path, rows: int) -> float:
    """Change a copy of a table; the making of a merge's source counts on both sides."""
    copy = table.with_name(f"{table.name}-copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(table, copy)
    begun = time.perf_counter()
    work(copy, rows)
    return time.perf_counter() - begun


def side_by_side(folder: Path, rows: int, rounds: int) -> None:
    """Run each statement on both sides in turns."""
    ours, theirs = folder / "ours", folder / "theirs"
    made(ours, rows, FILE_ROWS, lambda path, some: HoodieTable(path, OPTIONS).insert(some))
    made(theirs, rows, FILE_ROWS, partial(write_deltalake, mode="append"))
    for name, work in OURS.items():
        runs = [
            (seconds(THEIRS[name], theirs, rows), seconds(work, ours, rows))
            for _ in range(rounds + 1)
        ]
        medians = [statistics.median(side) for side in zip(*runs[1:], strict=True)]
        what = f"{name} of {rows:,} rows"
        emit(f"deltalake, {what}", medians[0])
        emit(f"HoodieTable, {what}", medians[1], against=f"deltalake, {what}", goal=GOAL_RATIO)


def peaks(folder: Path, megabytes: int, kind: str) -> None:
    """Run each statement of ours in a process of its own, with a table that shares its files."""
    rows = megabytes * 1_000_000 // ROW_BYTES
    large, copy = folder / kind, folder / f"{kind}-copy"
    options = {**OPTIONS, TYPE: kind}
    made(large, rows, LARGE_FILE_ROWS, lambda path, some: HoodieTable(path, options).insert(some))
    size = sum(file.stat().st_size for file in large.glob("*.parquet")) // 1_000_000
    for name in OURS:
        shutil.copytree(large, copy, copy_function=os.link)
        command = [sys.executable, __file__, str(copy), "--rows", str(rows), "--only", name]
        run = subprocess.run(command, check=True, capture_output=True, text=True)
        what = f"{name}, {kind.lower().replace('_', '-')} table of {size} MB"
        emit(f"peak memory, {what}, MB", int(run.stdout), goal=GOAL_MB)
        shutil.rmtree(copy)
    shutil.rmtree(large)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--megabytes", type=int, default=4_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=OURS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.only:
        OURS[given.only](given.work, given.rows)
        # Not that of getrusage, which counts the process that began this one.
        (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
        sys.stdout.write(f"{int(peak) // 1024}\n")
        return
    given.work.mkdir(parents=True, exist_ok=True)
    side_by_side(given.work, given.rows, given.rounds)
    for kind in TYPES:
        peaks(given.work, given.megabytes, kind)
    shutil.rmtree(given.work)


if __name__ == "__main__":
    main()
