"""A copy-on-write merge of one file group against reading and rewriting its file raw.

.venv/bin/python benchmarks/merge_cost.py LINEITEM WORK
"""

from __future__ import annotations

import argparse
import resource
import shutil
import statistics
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from results import emit

from hoodie_ds import HoodieTable
from hoodie_ds.formats.avro.schema import normalise_schema

ROWS = 1_000_000


def main() -> None:
    """Time both, several rounds, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lineitem", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    pa.set_cpu_count(1)
    rows = next(pq.ParquetFile(_file(chosen.lineitem)).iter_batches(ROWS))
    table = pa.Table.from_batches([rows]).append_column("ts", pa.repeat(1, rows.num_rows))
    table = table.cast(normalise_schema(table.schema))  # no string views, which have no kernels
    changed = table.filter(pc.equal(pc.bit_wise_and(table["l_orderkey"], 7), 1))
    raw, merged = [], []
    for number in range(chosen.rounds + 1):
        shutil.rmtree(chosen.work, ignore_errors=True)
        hudi = HoodieTable(
            str(chosen.work / "table"),
            {
                "hoodie.table.name": "lineitem",
                "hoodie.datasource.write.recordkey.field": "l_orderkey,l_linenumber",
                "hoodie.datasource.write.precombine.field": "ts",
                "hoodie.bucket.index.num.buckets": "1",
            },
        )
        hudi.upsert(table)
        (base,) = (chosen.work / "table").glob("*.parquet")
        started = time.perf_counter()
        copy = pq.ParquetFile(base).read(use_threads=False)
        pq.write_table(copy, chosen.work / "raw.parquet", compression="snappy")
        middle = time.perf_counter()
        del copy
        hudi.upsert(changed.set_column(changed.num_columns - 1, "ts", pa.repeat(2, len(changed))))
        ended = time.perf_counter()
        if number:
            raw.append(middle - started)
            merged.append(ended - middle)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    baseline = "raw read and rewrite, 1.0 M rows"
    emit(baseline, statistics.median(raw))
    emit("COW merge of 1/8", statistics.median(merged), against=baseline, goal=1.3)
    emit("peak memory of the merge process, MB", peak)


def _file(folder: Path) -> Path:
    return folder if folder.is_file() else next(folder.glob("*.parquet"))


if __name__ == "__main__":
    main()
