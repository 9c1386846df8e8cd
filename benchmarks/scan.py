"""What scans cost: ``hoodie_ds.read`` and ``hoodie_py`` beside Spark's own Parquet reader.

    .venv/bin/python benchmarks/scan.py WORK

``WORK`` must hold the inputs that ``jvm_baseline.py`` prepared. The tables are made in
``WORK/scan`` where they are not there yet: half of lineitem in 8 file groups, copy-on-write,
merge-on-read with two log layers of a tenth of the rows, and the latter compacted. The suite
``scan`` of ``jvm_baseline.py`` measures Apache Hudi on the same. One JSON line a run; round 0
warms up.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from spark_side import KEYED, session, write

import hoodie_ds
from hoodie_ds import HoodieTable
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.storage.connect import open_storage

FEW = ["l_orderkey", "l_tax"]
ONE_IN_A_HUNDRED = "l_suppkey < 100"  # of 10,000
TICKS = os.sysconf("SC_CLK_TCK")


def prepare(spark: SparkSession, work: Path) -> None:
    """Make the tables that are not there."""
    half, tenth = (spark.read.parquet(str(work / name)) for name in ("half", "tenth"))
    for name, kind in (("COW", "COPY_ON_WRITE"), ("MOR", "MERGE_ON_READ")):
        path = work / "scan" / name
        if path.exists():
            continue
        options = {**KEYED, "hoodie.datasource.write.table.type": kind}
        write(half, path, options, 1, shuffle=True)
        if name == "MOR":
            write(tenth, path, options, 2, shuffle=True)
            write(tenth, path, options, 3, shuffle=True)
    compacted = work / "scan" / "compacted"
    if not compacted.exists():
        shutil.copytree(work / "scan" / "MOR", compacted)
        HoodieTable(compacted, KEYED).compact()


def parquet(spark: SparkSession, path: Path) -> DataFrame:
    """The base files of a table through Spark's own reader."""
    slices = PinnedTable.latest(open_storage(str(path), for_write=False)).slices()
    return spark.read.parquet(*(f"{path}/{s.base.path}" for s in slices if s.base is not None))


def scans(spark: SparkSession, work: Path) -> Iterator[tuple[str, str, DataFrame]]:
    """What is scanned, by what, and the scan."""
    cow, mor, compacted = (work / "scan" / name for name in ("COW", "MOR", "compacted"))
    readers = {"spark parquet": parquet, "hoodie_ds.read": lambda s, p: hoodie_ds.read(s, str(p))}
    for reader, read in readers.items():
        yield "COW, all columns", reader, read(spark, cow)
        yield "COW, two columns", reader, read(spark, cow).select(FEW)
        yield "COW, filter of 1 %", reader, read(spark, cow).where(ONE_IN_A_HUNDRED)
    mor_scan = "MOR, two log layers"
    yield mor_scan, "spark parquet of the compacted table", parquet(spark, compacted)
    yield mor_scan, "hoodie_ds.read", hoodie_ds.read(spark, str(mor))
    yield mor_scan, "hoodie_py", spark.read.format("hoodie_py").load(str(mor))


def processor_seconds() -> float:
    """Processor time of this process and all below it, which other programs disturb less."""
    parents: dict[int, int] = {}
    used: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(folder.name)] = int(fields[1])
            used[int(folder.name)] = sum(map(int, fields[11:15]))
    ours = {os.getpid()}
    while more := {process for process, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return sum(used[process] for process in ours) / TICKS


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=lambda text: Path(text).resolve())
    parser.add_argument("--rounds", type=int, default=3, help="measured, after the warm-up")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--memory", default="4g", help="of the driver")
    chosen = parser.parse_args()
    spark = session(chosen.cores, chosen.memory)
    prepare(spark, chosen.work)
    for number in range(chosen.rounds + 1):
        for what, reader, frame in scans(spark, chosen.work):
            started, before = time.perf_counter(), processor_seconds()
            frame.write.format("noop").mode("overwrite").save()
            line = {
                "engine": reader,
                "work": what,
                "seconds": round(time.perf_counter() - started, 3),
                "processor_seconds": round(processor_seconds() - before, 2),
                "round": number,
                "warm_up": number == 0,
            }
            print(json.dumps(line), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
