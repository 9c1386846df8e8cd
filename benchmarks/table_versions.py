"""What a write costs in tables of version 9, beside the same write in version 6.

    .venv/bin/python benchmarks/table_versions.py WORK

Without Spark. The tables take turns at each batch, so that a machine that is busy with other work
is busy for all of them. Figures are seconds of processor time: what the storage takes is the same,
as the number of requests shows.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from results import emit

from hoodie_ds import HoodieTable
from hoodie_ds.testing import FaultyStorage, MemoryStorage, Operation

_SKIPPED = 2
"""Batches of a table that is young, which are not measured."""


def rows(count: int, batch: int) -> pa.Table:
    """Return a batch of events of 100,000 keys in two cities."""
    ids = np.random.default_rng(batch).integers(0, 100_000, count)
    return pa.table(
        {
            "id": pa.array(ids).cast(pa.string()),
            "city": np.where(ids % 2, "berlin", "oslo"),
            "ts": np.full(count, batch),
            "value": ids.astype(np.float64),
        }
    )


def options(kind: str, version: str) -> dict[str, str]:
    """Return those of a new table."""
    return {
        "hoodie.table.name": "events",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.bucket.index.num.buckets": "2",
        "hoodie.datasource.write.table.type": kind,
        "hoodie.write.table.version": version,
    }


def requests(kind: str, version: str) -> int:
    """Return how many operations of the storage the fourth batch takes."""
    made: list[Operation] = []
    storage = FaultyStorage(MemoryStorage("memory://t"), before_each=made.append)
    for batch in range(4):
        made.clear()
        table = HoodieTable("memory://t", options(kind, version), storage=storage)
        table.upsert(rows(100, batch))
    return len(made)


def measure(work: Path, kind: str, versions: list[str], count: int, batches: int) -> None:
    """Write the same batches to a table of each version, in turns."""
    shutil.rmtree(work, ignore_errors=True)
    tables = {v: HoodieTable(str(work / v), options(kind, v)) for v in versions}
    taken: dict[str, list[float]] = {version: [] for version in versions}
    for batch in range(batches):
        data = rows(count, batch)
        for version in versions if batch % 2 else versions[::-1]:
            start = time.process_time()
            tables[version].upsert(data)
            taken[version].append(time.process_time() - start)
    name = f"{count} rows, {kind[0]}O{kind.split('_')[2][0]}"
    first = f"version {versions[0]}, {name}"
    for version in versions:
        seconds = statistics.median(taken[version][_SKIPPED:])
        pairs = zip(taken[version][_SKIPPED:], taken[versions[0]][_SKIPPED:], strict=True)
        ratio = round(statistics.median(one / other for one, other in pairs), 3)
        rest = {"requests": requests(kind, version), "median_of_ratios": ratio}
        if version == versions[0]:
            emit(first, seconds, **rest)
        else:
            emit(f"version {version}, {name}", seconds, against=first, goal=1.05, **rest)


def main() -> None:
    """Measure both kinds of table, with small batches and large ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path)
    parser.add_argument("--versions", nargs="+", default=["6", "9"])
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    for _ in range(chosen.rounds):
        for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
            measure(chosen.work, kind, chosen.versions, 100, 40)
            measure(chosen.work, kind, chosen.versions, 200_000, 22)


if __name__ == "__main__":
    main()
