"""What a metadata table costs writes and saves queries, by the partitions that it has.

    .venv/bin/python benchmarks/metadata_table.py WORK

Without Spark. Tables without a metadata table, with a list of files and statistics of columns, and
with a record index take turns at each batch, so that a machine that is busy with other work is busy
for all of them. Then a thousandth of the keys of a large table is updated with the record index and
with the index GLOBAL_SIMPLE, and a query asks for one value of a table of many files.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from results import emit

from hoodie_ds import HoodieTable
from hoodie_ds.metadata_table import follower
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.testing import FaultyStorage, Kind

_SKIPPED = 2
"""Batches of a table that is young, which are not measured."""
_LISTED = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
}
_INDEXED = {"hoodie.index.type": "RECORD_INDEX"}
_SCANNED = {"hoodie.index.type": "GLOBAL_SIMPLE"}
_TABLE = {
    "hoodie.table.name": "events",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.write.table.version": "9",
}
_PAIRS = {
    "files and statistics": ({}, _LISTED, 1.25),
    "record index": (_SCANNED, _INDEXED, 1.5),
}
"""Options of a table without some partitions, of one with them, and what they may cost at most."""


def rows(ids: np.ndarray, batch: int, cities: int) -> pa.Table:
    """Return events of some keys."""
    return pa.table(
        {
            "id": pa.array(ids).cast(pa.string()),
            "city": pa.array(ids % cities).cast(pa.string()),
            "ts": np.full(len(ids), batch),
            "value": ids,
        }
    )


@contextmanager
def delta_commits_timed() -> Iterator[list[float]]:
    """Yield the processor seconds of each delta commit of a metadata table until the end."""
    put, taken = follower.put_delta_commit, list[float]()

    def timed(*given: Any) -> None:  # noqa: ANN401
        start = time.process_time()
        put(*given)
        taken.append(time.process_time() - start)

    with patch.object(follower, "put_delta_commit", timed):
        yield taken


def batches(work: Path, name: str, count: int, number: int) -> None:
    """Write the same batches to a table without and one with some partitions, in turns.

    What cannot be saved is the delta commit alone: records that are known are encoded and put.
    """
    *options, goal = _PAIRS[name]
    sides = zip(("without", "with"), options, strict=True)
    tables = {side: HoodieTable(str(work / side), {**_TABLE, **more}) for side, more in sides}
    taken: dict[str, list[float]] = {side: [] for side in tables}
    put: list[float] = []
    for batch in range(number):
        data = rows(np.random.default_rng(batch).integers(0, 100_000, count), batch, 2)
        for side in sorted(tables, reverse=bool(batch % 2)):
            with delta_commits_timed() as puts:
                start = time.process_time()
                tables[side].upsert(data)
                taken[side].append(time.process_time() - start)
            if puts:
                put.append(sum(puts))
    without, having = (f"upsert of {count:,} rows, {side} {name}" for side in tables)
    emit(without, statistics.median(taken["without"][_SKIPPED:]))
    emit(having, statistics.median(taken["with"][_SKIPPED:]), against=without, goal=goal)
    bound = statistics.median(taken["without"][_SKIPPED:]) + statistics.median(put[_SKIPPED:])
    emit(f"{without}, and the delta commit alone", bound, against=without)


def look_up(work: Path, count: int) -> None:
    """Load a table, and update a thousandth of its keys."""
    for name, index in (("record index", _INDEXED), ("all files", _SCANNED)):
        table = HoodieTable(str(work / name), {**_TABLE, **index})
        for what, ids in (
            ("first load", np.arange(count)),
            ("upsert of 0.1 %", np.arange(0, count, 1_000)),
        ):
            start = time.perf_counter()
            table.upsert(rows(ids, 1, 10))
            emit(f"{what} of {count:,} keys, {name}", time.perf_counter() - start)


def query(work: Path, files: int) -> None:
    """Read one row of a table of many files by a column that is no key."""
    path = str(work / "files")
    HoodieTable(path, {**_TABLE, **_LISTED}).upsert(rows(np.arange(files), 1, files))
    for name, options in (("metadata table", {}), ("folders", {"hoodie.metadata.enable": "false"})):
        storage = FaultyStorage(open_storage(path))
        start = time.perf_counter()
        found = HoodieTable(path, options, storage=storage).read(filter=f"value = {files // 2}")
        seconds = time.perf_counter() - start
        if found.num_rows != 1:
            raise SystemExit(f"{found.num_rows} rows")
        opened = {o.path for o in storage.recorder.operations if o.kind in (Kind.OPEN, Kind.READ)}
        data = sum(path.endswith(".parquet") for path in opened)
        emit(f"query of one of {files:,} files, {name}", seconds, data_files=data)


def main() -> None:
    """Measure all, each in a folder of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path)
    parser.add_argument("--keys", type=int, default=3_000_000)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--rows", type=int, nargs="+", default=[100, 200_000])
    parser.add_argument("--batches", type=int, default=9)
    chosen = parser.parse_args()
    shutil.rmtree(chosen.work, ignore_errors=True)
    for name in _PAIRS:
        for count in chosen.rows:
            batches(chosen.work / f"{name} {count}", name, count, chosen.batches)
    look_up(chosen.work / "keys", chosen.keys)
    query(chosen.work / "query", chosen.files)


if __name__ == "__main__":
    main()
