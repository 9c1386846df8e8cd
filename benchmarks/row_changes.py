"""Deletes, updates and merges without Spark, beside deltalake on the same rows in as many files.

    .venv/bin/python benchmarks/row_changes.py WORK [--rows 3000000] [--megabytes 4000] [--rounds 5]

Each statement changes 1 % of the rows by a predicate on the column that they are sorted by, or
merges a source of a tenth, half of it new. Each run has a copy of the table of its own, and both
sides run in turns. Then each statement changes a table of so many bytes in a process of its own,
whose peak is that of the interpreter and all libraries too.
"""

from __future__ import annotations

import argparse
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
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
}
FILE_ROWS = 125_000
ROW_BYTES = 105
"""Bytes that a row takes in a file, about: its note does not shrink."""
GOAL_RATIO = 1.0
GOAL_MB = 1_000

Work = Callable[[Path, int], object]


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


def made(path: Path, rows: int, theirs: bool) -> None:
    """Make a table of so many rows."""
    shutil.rmtree(path, ignore_errors=True)
    for first in range(0, rows, FILE_ROWS):
        some = sorted_rows(first, min(FILE_ROWS, rows - first))
        if theirs:
            write_deltalake(path, some, mode="append")
        else:
            HoodieTable(path, OPTIONS).insert(some)


def source(rows: int) -> pa.Table:
    """A tenth of the rows: half of it the last ones of the table, and half behind them."""
    return sorted_rows(rows - rows // 20, rows // 10)


def bounds(rows: int) -> str:
    """A predicate that 1 % of the rows meet, within the first half."""
    return f"at >= {rows // 4} and at < {rows // 4 + rows // 100}"


def in_parts(rows: int) -> list[str]:
    return bounds(rows).split(" and ")


OURS: dict[str, Work] = {
    "delete of 1 %": lambda path, rows: HoodieTable(path).delete(where=in_parts(rows)),
    "update of 1 %": lambda path, rows: HoodieTable(path).update(
        {"fare": expr("fare * 1.1")}, in_parts(rows)
    ),
    "merge of a tenth": lambda path, rows: (
        HoodieTable(path)
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
    made(folder / "ours", rows, theirs=False)
    made(folder / "theirs", rows, theirs=True)
    for name, work in OURS.items():
        runs: list[tuple[float, float]] = []
        for _ in range(rounds + 1):
            theirs = seconds(THEIRS[name], folder / "theirs", rows)
            runs.append((theirs, seconds(work, folder / "ours", rows)))
        medians = [statistics.median(side) for side in zip(*runs[1:], strict=True)]
        what = f"{name} of {rows:,} rows"
        emit(f"deltalake, {what}", medians[0])
        emit(f"HoodieTable, {what}", medians[1], against=f"deltalake, {what}", goal=GOAL_RATIO)


def peaks(folder: Path, megabytes: int) -> None:
    """Run each statement of ours in a process of its own."""
    rows = megabytes * 1_000_000 // ROW_BYTES
    made(folder / "large", rows, theirs=False)
    size = sum(file.stat().st_size for file in (folder / "large").glob("*.parquet")) // 1_000_000
    for name in OURS:
        command = [sys.executable, __file__, str(folder / "large"), "--rows", str(rows)]
        run = subprocess.run([*command, "--only", name], check=True, capture_output=True, text=True)
        emit(f"peak memory, {name}, table of {size} MB, MB", int(run.stdout), goal=GOAL_MB)


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
    peaks(given.work, given.megabytes)
    shutil.rmtree(given.work)


if __name__ == "__main__":
    main()
