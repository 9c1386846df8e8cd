"""Histories of record keys, with what Apache Hudi on the JVM made of them.

``histories/KIND.json.gz`` holds batches of rows that are ordered by a column of one type, and for
each kind of table what Hudi answered after each batch. A hundred keys are a hundred histories.
`tests.golden.make.merge_histories` makes the files.
"""

from __future__ import annotations

import datetime as dt
import gzip
import json
import zipfile
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.tables import BUCKETS, KEY, ORDERING, PARTITION, TYPE

FOLDER = Path(__file__).resolve().parent / "histories"
BLOCKS = "hoodie.logfile.data.block.format"

TABLES: dict[str, dict[str, str]] = {
    "cow": {TYPE: "COPY_ON_WRITE"},
    "mor_avro": {TYPE: "MERGE_ON_READ", BLOCKS: "avro"},
    "mor_parquet": {TYPE: "MERGE_ON_READ", BLOCKS: "parquet"},
}
"""Options of the kinds of tables, by name."""

OPTIONS = {
    "hoodie.table.name": "t",
    KEY: "id",
    PARTITION: "",
    ORDERING: "ts",
    "hoodie.index.type": "BUCKET",
    BUCKETS: "1",
}
"""Options of every table; of one bucket, so that the slice of all keys begins with a base file."""

KINDS: dict[str, pa.DataType] = {
    "int": pa.int32(),
    "long": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
    "decimal": pa.decimal128(10, 2),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
}
"""Types of the ordering column, by the first part of a history's name."""

_PARSE: dict[str, Any] = {
    "double": float,
    "decimal": Decimal,
    "date": dt.date.fromisoformat,
    "timestamp": dt.datetime.fromisoformat,
}


@dataclass(frozen=True)
class Step:
    """A batch: the operation, its rows, and what Hudi answered.

    Parameters
    ----------
    operation : str
        ``upsert`` or ``delete``.
    rows : pyarrow.Table
        ``id``, ``ts``, ``v`` and ``_hoodie_is_deleted``.
    answers : dict
        For each kind of table the value ``v`` of each key that is there after the batch.
    refused : dict
        Why Hudi did not take the batch, by kind of table.
    """

    operation: str
    rows: pa.Table
    answers: dict[str, dict[str, str]]
    refused: dict[str, str]


def schema(kind: str) -> pa.Schema:
    """Schema of the rows of a history."""
    columns = {"id": pa.string(), "ts": KINDS[kind.partition("_")[0]], "v": pa.string()}
    return pa.schema({**columns, "_hoodie_is_deleted": pa.bool_()})


def rows_of(kind: str, values: list[list[Any]]) -> pa.Table:
    """Rows from the notation of the files."""
    parse = _PARSE.get(kind.partition("_")[0], lambda value: value)
    columns = [list(column) for column in zip(*values, strict=True)]
    columns[1] = [None if value is None else parse(value) for value in columns[1]]
    return pa.table(columns, schema=schema(kind))


def names() -> list[str]:
    """Names of the histories."""
    return sorted(path.name.removesuffix(".json.gz") for path in FOLDER.glob("*.json.gz"))


def steps(name: str) -> list[Step]:
    """The batches of a history."""
    with gzip.open(FOLDER / f"{name}.json.gz", "rt", encoding="utf-8") as file:
        found = json.load(file)
    return [
        Step(step["operation"], rows_of(name, step["rows"]), step["answers"], step["refused"])
        for step in found
    ]


def unzip_table(name: str, table: str, folder: Path, num_steps: int) -> Path:
    """Unzip the table that Hudi made of a history, as it was after some of its steps.

    Whatever a later step left lies in the folder beside it, as if it were not committed.
    """
    with zipfile.ZipFile(FOLDER / f"{name}.{table}.zip") as archive:
        archive.extractall(folder)
    taken = [step for step in steps(name)[:num_steps] if table not in step.refused]
    times = sorted({path.name.partition(".")[0] for path in (folder / ".hoodie").glob("*.*commit")})
    assert len(times) >= len(taken)
    last = times[-1] if num_steps == len(steps(name)) else times[len(taken) - 1]
    for path in (folder / ".hoodie").iterdir():
        if path.name[0].isdigit() and path.name.partition(".")[0] > last:
            path.unlink()
    return folder
