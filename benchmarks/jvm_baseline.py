"""What the same work costs Apache Hudi 1.2 on the JVM: one JSON line for each run.

Runs under the Python of ``.venv-jvm`` (``.ci/setup test --jvm``), as PySpark 3.5 cannot share an
environment with PySpark 4:

    .venv-jvm/bin/python benchmarks/jvm_baseline.py LINEITEM WORK --bundle JAR \
        [--suite tables|index|records|compaction|scan]

``LINEITEM`` is a folder of TPC-H lineitem as parquet; ``WORK`` gets the inputs (kept) and the
tables (removed). Round 0 warms the JVM up and is marked so.
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
from typing import TextIO

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

SETTINGS = {
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    "spark.driver.host": "localhost",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
}
TABLE = {
    "hoodie.table.name": "lineitem",
    "hoodie.write.table.version": "6",
    "hoodie.write.auto.upgrade": "false",
    "hoodie.metadata.enable": "false",
    "hoodie.compact.inline": "false",
}
KEYLESS = {
    **TABLE,
    "hoodie.datasource.write.operation": "bulk_insert",
    "hoodie.bulkinsert.sort.mode": "NONE",
}
# An ordering field of type DATE (l_shipdate) makes its COW upsert fail, hence a bigint.
KEYED = {
    **TABLE,
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.write.recordkey.field": "l_orderkey,l_linenumber",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.keygenerator.class": (
        "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
    ),
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "8",
}
LOOKED_UP = {key: text for key, text in KEYED.items() if "bucket" not in key} | {
    "hoodie.index.type": "BLOOM"
}
RECORDS = LOOKED_UP | {
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.write.table.version": "9",
}
IN_PARTITIONS = {
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
}
PARTITION = "cast(l_orderkey div 4000 % 10 as int)"  # each share of the orders is in all ten
SHARES = {"10 %": "tenth", "0.1 %": "thousandth"}
LAYOUTS = {"": {}, ", 10 partitions": IN_PARTITIONS}

Step = tuple[str, Callable[[], None]]


def session(bundle: Path, cores: int, memory: str) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.appName("jvm-baseline").master(f"local[{cores}]")
    builder = builder.config("spark.jars", str(bundle)).config("spark.driver.memory", memory)
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def prepare(spark: SparkSession, lineitem: Path, work: Path) -> None:
    """Lay down the keyed inputs: the first half by order key, every 10th and 1000th order of it."""
    rows = spark.read.parquet(str(lineitem))
    middle = rows.agg(F.max("l_orderkey")).first()[0] // 2
    half = rows.where(F.col("l_orderkey") <= middle)
    changed = half.withColumn("l_comment", F.concat("l_comment", F.lit("!")))
    parts = {
        "half": half,
        "tenth": changed.where(F.col("l_orderkey") % 10 == 0),
        "thousandth": changed.where(F.col("l_orderkey") % 1000 == 0),
    }
    for name, part in parts.items():
        if not (work / name / "_SUCCESS").exists():
            part.write.mode("overwrite").parquet(str(work / name))


def write_hudi(rows: DataFrame, path: Path, options: dict[str, str], ts: int | None) -> None:
    if ts is not None:
        rows = rows.withColumn("ts", F.lit(ts).cast("bigint"))
    if "hoodie.datasource.write.partitionpath.field" in options:
        rows = rows.withColumn("part", F.expr(PARTITION))
    rows.write.format("hudi").options(**options).mode("append").save(str(path))


def scan(spark: SparkSession, path: Path) -> None:
    spark.read.format("hudi").load(str(path)).write.format("noop").mode("overwrite").save()


def steps(spark: SparkSession, lineitem: Path, work: Path) -> Iterator[Step]:
    """One round, in order: every step finds what the one before it left."""
    every, half, tenth = (
        spark.read.parquet(str(folder)) for folder in (lineitem, work / "half", work / "tenth")
    )
    tables = work / "tables"
    sink = every.write.mode("overwrite")
    yield "parquet sink, append", lambda: sink.parquet(str(tables / "parquet"))
    yield "bulk_insert, no keys", lambda: write_hudi(every, tables / "keyless", KEYLESS, None)
    for kind, name in (("COPY_ON_WRITE", "COW"), ("MERGE_ON_READ", "MOR")):
        path = tables / name
        options = {**KEYED, "hoodie.datasource.write.table.type": kind}
        yield f"first keyed load, {name}", lambda: write_hudi(half, path, options, 1)  # noqa: B023
        yield f"upsert 10 %, {name}", lambda: write_hudi(tenth, path, options, 2)  # noqa: B023
    yield "second upsert 10 %, MOR", lambda: write_hudi(tenth, path, options, 3)
    yield "snapshot scan, MOR, two log layers", lambda: scan(spark, path)


def index_steps(spark: SparkSession, lineitem: Path, work: Path) -> Iterator[Step]:
    """Upserts into copy-on-write tables with a bloom index; three batches of each share."""
    inputs = {name: spark.read.parquet(str(work / name)) for name in ("half", *SHARES.values())}
    for suffix, parts in LAYOUTS.items():
        path = work / "tables" / f"BLOOM{suffix}"
        put = partial(write_hudi, path=path, options={**LOOKED_UP, **parts})
        yield f"BLOOM{suffix}, first load", partial(put, inputs["half"], ts=1)
        ts = 1
        for share, name in SHARES.items():
            for which in ("first batch", "later batches", "later batches"):
                ts += 1
                yield (
                    f"BLOOM{suffix}, upsert {share}, {which}",
                    partial(put, inputs[name], ts=ts),
                )


def record_steps(spark: SparkSession, lineitem: Path, work: Path) -> Iterator[Step]:
    """Load a copy-on-write table with a record index; three batches of a thousandth of it."""
    put = partial(write_hudi, path=work / "tables" / "RECORD_INDEX", options=RECORDS)
    yield "record index, first load", partial(put, spark.read.parquet(str(work / "half")), ts=1)
    some = spark.read.parquet(str(work / "thousandth"))
    for ts in (2, 3, 4):
        yield "record index, upsert 0.1 %", partial(put, some, ts=ts)


def compaction_steps(spark: SparkSession, lineitem: Path, work: Path) -> Iterator[Step]:
    """Carry out the plan that ``service_cost.py`` left in ``WORK/planned``, of a copy."""
    path = work / "tables" / "planned"
    shutil.copytree(work / "planned", path)
    # The procedure's own options are split at commas, which the record key fields have.
    settings = {key: text for key, text in KEYED.items() if key != "hoodie.table.name"}
    for key, text in settings.items():
        spark.conf.set(key, text)
    given = ",".join(f"{key}={text}" for key, text in settings.items() if "," not in text)
    call = f"call run_compaction(op => 'run', path => '{path}', options => '{given}')"
    yield "compaction of 8 file groups, 30 % in logs", lambda: print(spark.sql(call).collect())
    assert list((path / ".hoodie").glob("*.commit")), "nothing was compacted"


def scan_steps(spark: SparkSession, lineitem: Path, work: Path) -> Iterator[Step]:
    """Scan the table that ``scan.py`` left in ``WORK/scan``."""
    path = work / "scan" / "MOR"
    yield "MOR, two log layers", lambda: scan(spark, path)
    rows = spark.read.format("hudi").load(str(path))
    few, some = rows.select("l_orderkey", "l_tax"), rows.where("l_suppkey < 100")
    yield "MOR, two columns", lambda: few.write.format("noop").mode("overwrite").save()
    yield "MOR, filter of 1 %", lambda: some.write.format("noop").mode("overwrite").save()
    yield "MOR, count()", lambda: print(rows.count())


SUITES = {
    "tables": steps,
    "index": index_steps,
    "records": record_steps,
    "compaction": compaction_steps,
    "scan": scan_steps,
}
PREPARED = ("compaction", "scan")
"""Suites over tables that another program made."""


def run_round(
    spark: SparkSession, number: int, lineitem: Path, work: Path, suite: str, results: TextIO
) -> None:
    shutil.rmtree(work / "tables", ignore_errors=True)
    for what, step in SUITES[suite](spark, lineitem, work):
        started = time.perf_counter()
        step()
        seconds = round(time.perf_counter() - started, 3)
        line = {"work": what, "seconds": seconds, "round": number, "warm_up": number == 0}
        results.write(
            json.dumps({"engine": f"jvm hudi 1.2.0, spark {spark.version}", **line}) + "\n"
        )
        results.flush()
    check(spark, work, suite)
    shutil.rmtree(work / "tables", ignore_errors=True)


def check(spark: SparkSession, work: Path, suite: str) -> None:
    """A figure counts only if the tables hold what they should."""
    if suite == "scan":
        rows = spark.read.format("hudi").load(str(work / "scan" / "MOR"))
        assert rows.count() == spark.read.parquet(str(work / "half")).count(), rows.count()
        return
    if suite == "compaction":
        rows = spark.read.format("hudi").load(str(work / "tables" / "planned"))
        assert rows.count() == 3_000_000, rows.count()
        return
    updated = "tenth" if suite == "tables" else "thousandth"
    expected = tuple(spark.read.parquet(str(work / name)).count() for name in ("half", updated))
    newest = {
        "tables": {"COW": 2, "MOR": 3},
        "index": {f"BLOOM{suffix}": 7 for suffix in LAYOUTS},
        "records": {"RECORD_INDEX": 4},
    }
    for name, ts in newest[suite].items():
        rows = spark.read.format("hudi").load(str(work / "tables" / name))
        found = rows.count(), rows.where(F.col("ts") == ts).count()
        assert found == expected, f"{name}: {found} is not {expected}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lineitem", type=lambda text: Path(text).resolve())
    parser.add_argument("work", type=lambda text: Path(text).resolve())
    parser.add_argument("--bundle", type=Path, required=True, help="jar of the Hudi bundle")
    parser.add_argument("--suite", choices=SUITES, default="tables")
    parser.add_argument("--rounds", type=int, default=3, help="measured, after the warm-up")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--memory", default="8g", help="of the driver")
    chosen = parser.parse_args()
    # The JVM and its libraries chat on stdout: that goes to stderr, the results alone to stdout.
    results = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    spark = session(chosen.bundle, chosen.cores, chosen.memory)
    if chosen.suite not in PREPARED:
        prepare(spark, chosen.lineitem, chosen.work)
    for number in range(chosen.rounds + 1):
        run_round(spark, number, chosen.lineitem, chosen.work, chosen.suite, results)
    spark.stop()


if __name__ == "__main__":
    main()
