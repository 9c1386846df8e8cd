"""What scans cost: ``hoodie_ds.read`` and ``hoodie_py`` beside Spark's own Parquet reader.

    .venv/bin/python benchmarks/scan.py WORK [--rounds 6] [--only WORD...]

``WORK`` must hold the inputs that ``jvm_baseline.py`` prepared. The tables are made in
``WORK/scan`` where they are not there yet: half of lineitem in 8 file groups, copy-on-write,
merge-on-read with two log layers of a tenth of the rows, and the latter compacted. The suite
``scan`` of ``jvm_baseline.py`` measures Apache Hudi on the same. One JSON line a run, each beside
that of its baseline; round 0 warms up. In the last, medians of both and their ratios.

Planning counts on both sides: the time is that from the path of a table, or the paths of its files,
to the last row. "First" is a table that no process has read before: its files under another path.
Of merge-on-read, `handed over` is what no scan that hands rows over from Python can beat: Spark
scans the base files, and takes as many rows as the logs have from a file of Arrow in memory. With
`keys` tasks of Python look the keys of the base files up among as many as the logs have, beside
that, which a first scan cannot do without. `positions` is a count of rows by their positions in
the base files, none of which is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from scanned import base_files, fresh
from spark_side import KEYED, session, write

import hoodie_ds
from hoodie_ds import HoodieTable

FEW = ["l_orderkey", "l_tax"]
KEY = "_hoodie_record_key"
ONE_IN_A_HUNDRED = ("l_suppkey", "<", 100)  # of 10,000
Scan = Callable[[], DataFrame]
Taken = dict[tuple[str, str], list[tuple[float, float]]]
"""Seconds of the clock and of the processor of the runs of a work by an engine."""

BASELINE = "spark parquet"
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


@dataclass(frozen=True)
class Tables:
    """The tables of one round, and what reads them."""

    spark: SparkSession
    work: Path

    def parquet(self, name: str, columns: list[str] | None, filtered: bool) -> Scan:
        """Spark's own reader of the base files."""
        paths = base_files(self.work / "scan" / name)

        def frame() -> DataFrame:
            rows = self.spark.read.parquet(*paths)
            if filtered:
                column, _, value = ONE_IN_A_HUNDRED
                rows = rows.where(sf.col(column) < value)
            return rows if columns is None else rows.select(columns)

        return frame

    def ours(self, path: Path, columns: list[str] | None, filtered: bool) -> Scan:
        """``hoodie_ds.read``."""
        filters = [ONE_IN_A_HUNDRED] if filtered else None
        return lambda: hoodie_ds.read(self.spark, str(path), columns=columns, filter=filters)

    def handed_over(self, columns: list[str] | None, filtered: bool) -> Scan:
        """Spark's reader, and the rows of the logs from a file of Arrow."""
        base = self.parquet("MOR", columns, filtered)
        filters = [("ts", ">", 1), *([ONE_IN_A_HUNDRED] if filtered else [])]
        name = f"logged-{len(columns or ())}-{filtered}.arrow"
        source = self.work / "scan" / name
        if not source.exists():
            rows = HoodieTable(self.work / "scan" / "MOR").read(columns, filter=filters)
            with pa.OSFile(str(source), "wb") as file, pa.ipc.new_file(file, rows.schema) as out:
                out.write_table(rows, 10_000)
        path = str(source)

        def from_memory(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            with pa.memory_map(path) as file:
                found = pa.ipc.open_file(file)
                for batch in batches:
                    for number in batch.column(0).to_pylist():
                        for at in range(number, found.num_record_batches, 2):
                            yield found.get_batch(at)

        def frame() -> DataFrame:
            rows = base()
            schema = rows.schema
            numbers = self.spark.range(0, 2, 1, 2)
            return rows.unionAll(numbers.mapInArrow(from_memory, schema))

        return frame

    def with_keys(self, columns: list[str] | None) -> Scan:
        """The same, and the keys of the base files, of which the logs have one in ten."""
        others = self.handed_over(columns, False)
        paths = base_files(self.work / "scan" / "MOR")

        def looked_up(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    for path in paths[number::2]:
                        keys = pq.read_table(path, columns=[KEY]).column(KEY)
                        pc.is_in(keys, value_set=keys.slice(0, len(keys) // 10))
            yield from ()

        def frame() -> DataFrame:
            rows = others()
            return rows.unionAll(self.spark.range(0, 2, 1, 2).mapInArrow(looked_up, rows.schema))

        return frame

    def positions(self) -> DataFrame:
        """The rows of the base files, whose positions are asked for."""
        rows = self.spark.read.parquet(*base_files(self.work / "scan" / "MOR"))
        return rows.where("_metadata.row_index + _metadata.file_size > 0")


@dataclass(frozen=True)
class Case:
    """Scans of one kind beside their baseline, which runs first and last in turns."""

    work: str
    baseline: Scan
    ours: dict[str, Scan]
    goals: dict[str, float]
    counts: bool = False


def cases(tables: Tables) -> Iterator[Case]:
    """What is scanned."""
    scan = tables.work / "scan"
    cow, mor = scan / "COW", scan / "MOR"
    shapes = {"all columns": (None, False), "two columns": (FEW, False)}
    shapes["filter of 1 %"] = (None, True)
    for (what, shape), goal in zip(shapes.items(), (1.1, 1.15, 1.2), strict=True):
        yield Case(
            f"COW, {what}",
            tables.parquet("COW", *shape),
            {"hoodie_ds.read": tables.ours(cow, *shape)},
            {"hoodie_ds.read": goal},
        )
    again = {"all columns": 1.8, "two columns": 1.5, "filter of 1 %": 1.5}
    first = {"two columns": 4.0, "filter of 1 %": 3.0}
    for what, shape in shapes.items():
        ours = {"hoodie_ds.read, again": tables.ours(mor, *shape)}
        goals = {"hoodie_ds.read, again": again[what]}
        if what in first:
            ours["hoodie_ds.read, first"] = tables.ours(fresh(mor), *shape)
            goals["hoodie_ds.read, first"] = first[what]
        if what == "two columns":
            ours["handed over, with keys"] = tables.with_keys(FEW)
        ours["handed over"] = tables.handed_over(*shape)
        yield Case(f"MOR, {what}", tables.parquet("compacted", *shape), ours, goals)
    name = "hoodie_ds.read, again"
    counted = {name: tables.ours(mor, None, False), "positions": tables.positions}
    yield Case("MOR, count()", tables.parquet("compacted", None, False), counted, {name: 2.0}, True)
    rows = {"hoodie_py": lambda: tables.spark.read.format("hoodie_py").load(str(mor))}
    yield Case("MOR, by hoodie_py", tables.parquet("compacted", None, False), rows, {})


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


def timed(scan: Scan, counts: bool) -> tuple[float, float]:
    """Seconds of the clock and of the processor, from the plan to the last row."""
    started, before = time.perf_counter(), processor_seconds()
    frame = scan()
    if counts:
        frame.count()
    else:
        frame.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - started, processor_seconds() - before


def report(taken: Taken, goals: dict[tuple[str, str], float]) -> None:
    """Print medians, and their ratios to those of the baselines."""
    for (work, engine), runs in taken.items():
        clock, processor = (statistics.median(run[at] for run in runs) for at in (0, 1))
        beside = taken[work, BASELINE]
        line = {
            "work": work,
            "engine": engine,
            "runs": len(runs),
            "goal": goals.get((work, engine)),
        }
        line |= {"seconds": round(clock, 3), "processor_seconds": round(processor, 3)}
        for at, name in ((0, "ratio"), (1, "processor_ratio")):
            theirs = statistics.median(run[at] for run in beside)
            line[name] = round((clock, processor)[at] / theirs, 2)
        print(json.dumps(line), flush=True)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=lambda text: Path(text).resolve())
    parser.add_argument("--rounds", type=int, default=6, help="measured, after the warm-up")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--memory", default="4g", help="of the driver")
    parser.add_argument("--only", nargs="*", default=[""], help="works whose name has such a word")
    chosen = parser.parse_args()
    spark = session(chosen.cores, chosen.memory)
    prepare(spark, chosen.work)
    tables = Tables(spark, chosen.work)
    taken: Taken = defaultdict(list)
    goals: dict[tuple[str, str], float] = {}
    try:
        for number in range(chosen.rounds + 1):
            for case in cases(tables):
                if not any(word in case.work for word in chosen.only):
                    continue
                goals |= {(case.work, engine): goal for engine, goal in case.goals.items()}
                engines = [(BASELINE, case.baseline), *case.ours.items()]
                for engine, scan in engines if number % 2 else reversed(engines):
                    seconds, processor = timed(scan, case.counts)
                    line = {"engine": engine, "work": case.work, "round": number}
                    line |= {"seconds": round(seconds, 3), "warm_up": number == 0}
                    line["processor_seconds"] = round(processor, 2)
                    print(json.dumps(line), flush=True)
                    if number:
                        taken[case.work, engine].append((seconds, processor))
    finally:
        for path in (chosen.work / "scan").glob("fresh-*"):
            shutil.rmtree(path)
    report(taken, goals)
    spark.stop()


if __name__ == "__main__":
    main()
