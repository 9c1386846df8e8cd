"""What the work of ``jvm_baseline.py`` costs here: one JSON line for each run.

    .venv/bin/python benchmarks/spark_side.py LINEITEM WORK [--suite tables|index|records|load]

``WORK`` must hold the inputs that ``jvm_baseline.py`` prepared, so both sides read the same files.
The suites are those of the baseline, and ``load``, which is first keyed loads alone.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import hoodie_ds

KEYED = {
    "hoodie.table.name": "lineitem",
    "hoodie.datasource.write.recordkey.field": "l_orderkey,l_linenumber",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.bucket.index.num.buckets": "8",
}

LOOKED_UP = {key: text for key, text in KEYED.items() if "bucket" not in key}
IN_PARTITIONS = {"hoodie.datasource.write.partitionpath.field": "part"}
PARTITION = "cast(l_orderkey div 4000 % 10 as int)"  # each share of the orders is in all ten
SHARES = {"10 %": "tenth", "0.1 %": "thousandth"}
LAYOUTS: dict[str, dict[str, str]] = {"": {}, ", 10 partitions": IN_PARTITIONS}

Step = tuple[str, Callable[[], None]]


def session(cores: int, memory: str, settings: dict[str, str] | None = None) -> SparkSession:
    """Start Spark as the baseline does."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master(f"local[{cores}]")
        .config(map=settings or {})
        .config("spark.driver.memory", memory)
        .config("spark.driver.host", "localhost")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    hoodie_ds.register(spark)
    return spark


def write(rows: DataFrame, path: Path, options: dict[str, str], ts: int, shuffle: bool) -> None:
    """Upsert rows with this ordering value."""
    options = {**options, "path": str(path)}
    rows = rows.withColumn("ts", sf.lit(ts).cast("bigint"))
    if "hoodie.datasource.write.partitionpath.field" in options:
        rows = rows.withColumn("part", sf.expr(PARTITION))
    if shuffle:
        rows = hoodie_ds.shuffle_by_file_group(rows, options)
    rows.write.format("hoodie_py").options(**options).mode("append").save()


def append(rows: DataFrame, path: Path) -> None:
    """Append rows to a table without keys."""
    options = {"path": str(path), "hoodie.table.name": "lineitem"}
    rows.write.format("hoodie_py").options(**options).mode("append").save()


def scan(spark: SparkSession, path: Path) -> None:
    """Read a whole table and drop the rows."""
    spark.read.format("hoodie_py").load(str(path)).write.format("noop").mode("overwrite").save()


def steps(spark: SparkSession, lineitem: Path, work: Path) -> Iterator[Step]:
    """One round, in order: every step finds what the one before it left."""
    every, half, tenth = (
        spark.read.parquet(str(folder)) for folder in (lineitem, work / "half", work / "tenth")
    )
    tables = work / "tables"
    yield "parquet sink, append", lambda: every.write.mode("overwrite").parquet(str(tables / "p"))
    yield "bulk_insert, no keys", lambda: append(every, tables / "keyless")
    for shuffle, suffix in ((True, ""), (False, ", no shuffle")):
        for kind, name in (("COPY_ON_WRITE", "COW"), ("MERGE_ON_READ", "MOR")):
            path = tables / f"{name}{shuffle}"
            options = {**KEYED, "hoodie.datasource.write.table.type": kind}

            def put(
                rows: DataFrame,
                ts: int,
                path: Path = path,
                options: dict[str, str] = options,
                shuffle: bool = shuffle,
            ) -> None:
                write(rows, path, options, ts, shuffle)

            yield f"first keyed load, {name}{suffix}", lambda put=put: put(half, 1)
            yield f"upsert 10 %, {name}{suffix}", lambda put=put: put(tenth, 2)
        yield f"second upsert 10 %, MOR{suffix}", lambda put=put: put(tenth, 3)
        yield f"snapshot scan, MOR, two log layers{suffix}", lambda path=path: scan(spark, path)


def load_steps(spark: SparkSession, lineitem: Path, work: Path) -> Iterator[Step]:
    """First loads through the shuffle."""
    half = spark.read.parquet(str(work / "half"))
    for kind, name in (("COPY_ON_WRITE", "COW"), ("MERGE_ON_READ", "MOR")):
        options = {**KEYED, "hoodie.datasource.write.table.type": kind}
        put = partial(write, half, work / "tables" / name, options, 1, True)
        yield f"first keyed load, {name}", put


def index_steps(spark: SparkSession, lineitem: Path, work: Path) -> Iterator[Step]:
    """Upserts into copy-on-write tables whose index looks keys up; three batches of each share."""
    inputs = {name: spark.read.parquet(str(work / name)) for name in ("half", *SHARES.values())}
    for index in ("BLOOM", "FLINK_STATE"):
        for suffix, parts in LAYOUTS.items():
            path = work / "tables" / f"{index}{suffix}"
            # Keys are looked up in their own partition, as on the other side.
            options = {**LOOKED_UP, **parts, "hoodie.index.type": index}
            options["index.global.enabled"] = "false"
            put = partial(write, path=path, options=options, shuffle=True)
            yield f"{index}{suffix}, first load", partial(put, inputs["half"], ts=1)
            ts = 1
            for share, name in SHARES.items():
                for which in ("first batch", "later batches", "later batches"):
                    ts += 1
                    work_ = f"{index}{suffix}, upsert {share}, {which}"
                    yield work_, partial(put, inputs[name], ts=ts)


def record_steps(spark: SparkSession, lineitem: Path, work: Path) -> Iterator[Step]:
    """Load a copy-on-write table with a record index; three batches of a thousandth of it."""
    options = {**LOOKED_UP, "hoodie.index.type": "RECORD_INDEX", "hoodie.write.table.version": "9"}
    path = work / "tables" / "RECORD_INDEX"
    put = partial(write, path=path, options=options, shuffle=True)
    yield "record index, first load", partial(put, spark.read.parquet(str(work / "half")), ts=1)
    some = spark.read.parquet(str(work / "thousandth"))
    for ts in (2, 3, 4):
        yield "record index, upsert 0.1 %", partial(put, some, ts=ts)


SUITES = {"tables": steps, "index": index_steps, "records": record_steps, "load": load_steps}


def check(spark: SparkSession, work: Path, suite: str) -> None:
    """A figure counts only if the tables hold what they should."""
    sizes = {
        name: spark.read.parquet(str(work / name)).count()
        for name in ("half", "tenth", "thousandth")
    }
    newest = {
        "tables": {"COWTrue": 2, "MORTrue": 3, "COWFalse": 2, "MORFalse": 3},
        "index": {f"{i}{suffix}": 7 for i in ("BLOOM", "FLINK_STATE") for suffix in LAYOUTS},
        "records": {"RECORD_INDEX": 4},
        "load": {"COW": 1, "MOR": 1},
    }
    updated = {
        "tables": "tenth",
        "index": "thousandth",
        "records": "thousandth",
        "load": "half",
    }
    for name, ts in newest[suite].items():
        rows = spark.read.format("hoodie_py").load(str(work / "tables" / name))
        found = rows.count(), rows.where(sf.col("ts") == ts).count()
        expected = sizes["half"], sizes[updated[suite]]
        assert found == expected, f"{name}: {found} is not {expected}"


def main() -> None:
    """Run the rounds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lineitem", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--suite", choices=SUITES, default="tables")
    parser.add_argument("--rounds", type=int, default=3, help="measured, after the warm-up")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--memory", default="8g", help="of the driver")
    chosen = parser.parse_args()
    spark = session(chosen.cores, chosen.memory)
    for number in range(chosen.rounds + 1):
        shutil.rmtree(chosen.work / "tables", ignore_errors=True)
        for what, step in SUITES[chosen.suite](spark, chosen.lineitem, chosen.work):
            started = time.perf_counter()
            step()
            seconds = round(time.perf_counter() - started, 3)
            line = {"work": what, "seconds": seconds, "round": number, "warm_up": number == 0}
            print(json.dumps({"engine": f"hoodie_ds, spark {spark.version}", **line}), flush=True)
        check(spark, chosen.work, chosen.suite)
        shutil.rmtree(chosen.work / "tables")
    spark.stop()


if __name__ == "__main__":
    main()
