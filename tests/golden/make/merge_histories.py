"""The files of ``tests/golden/histories``: batches for a hundred keys, and what Hudi makes of them.

The batches follow from the name of the history alone.
"""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.golden.histories import FOLDER, KINDS, OPTIONS, TABLES, rows_of, steps
from tests.golden.make.recipe import zip_table
from tests.interop.jvm_hudi import JvmHudi, JvmHudiError

NAMES = [*KINDS, "long_nulls", "string_nulls"]
"""Histories: the type of the ordering column, and whether it has nulls."""

NUM_KEYS, NUM_STEPS = 100, 6
DELETES = (2, 4)
"""Steps that delete; the others upsert."""

VALUES: dict[str, list[Any]] = {
    "int": [-7, -1, 0, 3, 3, 8, 2**31 - 1],
    "long": [-7, 0, 3, 3, 8, 2**40],
    "double": ["-inf", "-1.5", "-0.0", "0.0", "2.25", "2.25", "1e12", "nan"],
    "string": ["", "a", "b", "b", "ä", "zz"],
    "decimal": ["-3.10", "0.00", "0.50", "2.00", "2.00", "99.99"],
    "date": ["1955-03-04", "1969-12-31", "1970-01-01", "2020-03-04", "2020-03-04", "2030-01-01"],
    "timestamp": [
        f"{year}-03-04T05:06:07.891000+00:00" for year in (1955, 1969, 1990, 2020, 2020, 2030)
    ],
}
"""Ordering values; one of each comes twice as often, for ties."""

WRITES = {
    "hoodie.datasource.write.keygenerator.class": (
        "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
    ),
    "hoodie.write.record.merge.mode": "EVENT_TIME_ORDERING",
    "hoodie.upsert.shuffle.parallelism": "1",
    "hoodie.delete.shuffle.parallelism": "1",
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.markers.type": "DIRECT",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
}
COMPACTION = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
SPARK_MERGER = {
    "hoodie.write.record.merge.custom.implementation.classes": (
        "org.apache.hudi.DefaultSparkRecordMerger"
    )
}
"""Without it Hudi writes Avro blocks whatever the block format says."""


def batches(name: str) -> list[tuple[str, list[list[Any]]]]:
    """Operations and rows of a history, each row a list of its values."""
    chance = random.Random(name)
    kind, _, nulls = name.partition("_")

    def value() -> Any:
        return None if nulls and chance.random() < 0.3 else chance.choice(VALUES[kind])

    found = []
    for number in range(NUM_STEPS):
        operation = "delete" if number in DELETES else "upsert"
        rows = []
        for key in range(NUM_KEYS):
            if number and chance.random() > (0.3 if operation == "delete" else 0.6):
                continue
            times = chance.choice([1] if number == 0 else [1, 1, 1, 1, 1, 2, 3])
            for turn in range(times):
                gone = number > 0 and operation == "upsert" and chance.random() < 0.2
                rows.append([f"k{key:03d}", value(), f"{number}.{turn}", gone])
        found.append((operation, rows))
    # One more row: with it merge-on-read tables are compacted.
    return [*found, ("upsert", [["compacted", VALUES[kind][-1], "c", False]])]


def ask(oracle: JvmHudi, name: str, table: str, folder: Path) -> list[tuple[str, dict[str, str]]]:
    """Write a history; after each batch why it was refused, if it was, and what the table holds."""
    options = {**OPTIONS, **WRITES, **TABLES[table]}
    if table == "mor_parquet":
        options |= SPARK_MERGER
    path, found = folder / f"{name}-{table}", []
    todo = batches(name)
    for number, (operation, rows) in enumerate(todo):
        more = {"hoodie.datasource.write.operation": operation}
        if table != "cow" and number == len(todo) - 1:
            more |= COMPACTION
        refused = ""
        try:
            oracle.write(path, rows_of(name, rows), {**options, **more})
        except JvmHudiError as error:
            refused = str(error).split(" <- ")[-1][:200]
        snapshot: pa.Table = oracle.read(path).select(["id", "v"])
        found.append((refused, {row["id"]: row["v"] for row in snapshot.to_pylist()}))
    return found


def made(oracle: JvmHudi, name: str, folder: Path) -> list[dict[str, Any]]:
    """The content of a history's file."""
    answers = {table: ask(oracle, name, table, folder) for table in TABLES}
    return [
        {
            "operation": operation,
            "rows": rows,
            "refused": {table: answers[table][n][0] for table in TABLES if answers[table][n][0]},
            "answers": {table: dict(sorted(answers[table][n][1].items())) for table in TABLES},
        }
        for n, (operation, rows) in enumerate(batches(name))
    ]


def write_history(oracle: JvmHudi, name: str, folder: Path) -> None:
    """Make the file of a history, and where nothing was refused the zipped tables with logs."""
    text = json.dumps(made(oracle, name, folder), ensure_ascii=False, separators=(",", ":"))
    (FOLDER / f"{name}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    if not name.endswith("_nulls"):
        zip_table(folder / f"{name}-mor_parquet", FOLDER / f"{name}.mor_parquet.zip")


def differences(oracle: JvmHudi, name: str, folder: Path) -> list[str]:
    """Where Hudi answers other than the file says."""
    stored = steps(name)
    found = []
    for number, step in enumerate(made(oracle, name, folder)):
        for table in TABLES:
            ours, theirs = stored[number].answers[table], step["answers"][table]
            keys = [key for key in {*ours, *theirs} if ours.get(key) != theirs.get(key)]
            if keys:
                found.append(f"{name}, {table}, step {number}: {sorted(keys)}")
    return found
