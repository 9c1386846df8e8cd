"""What checking a table costs beside reading it.

    .venv/bin/python benchmarks/verify.py WORK [--rounds 3]

``WORK/scan`` must hold the tables of ``scan.py``: 3.0 million rows in 8 file groups,
copy-on-write, and merge-on-read with two log layers. `Inspector.verify` and `HoodieTable.read` of
all columns take turns.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

from results import emit

from hoodie_ds import HoodieTable

GOAL_RATIO = 3


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("work", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    for name in ("COW", "MOR"):
        table = HoodieTable(given.work / "scan" / name)
        read, verified = [], []
        for _ in range(given.rounds + 1):
            started = time.perf_counter()
            rows = table.read().num_rows
            between = time.perf_counter()
            found = table.inspect.verify()
            read.append(between - started)
            verified.append(time.perf_counter() - between)
            assert found
            assert found.rows == rows
        theirs = f"HoodieTable.read, {name}, {rows} rows"
        emit(theirs, statistics.median(read[1:]))
        emit(f"verify, {name}", statistics.median(verified[1:]), against=theirs, goal=GOAL_RATIO)


if __name__ == "__main__":
    main()
