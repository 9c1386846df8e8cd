"""Tables that Apache Hudi wrote, with what its own reader answers.

They are in the folder ``tables``: ``NAME.zip`` holds the files of one table, ``NAME.json.gz`` what
the table shows, and queries with their answers. `tests.golden.make` makes both. In answers dates
and timestamps are ISO text, decimals text, binary base64 and maps lists of pairs.
"""

from __future__ import annotations

import base64
import datetime as dt
import gzip
import json
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

FOLDER = Path(__file__).resolve().parent / "tables"
NEW_TABLES = FOLDER.with_name("new_tables.json.gz")
"""Properties of new tables, and the options that make them."""

QUERY = "hoodie.datasource.query.type"
READ_OPTIMIZED_QUERY = {QUERY: "read_optimized"}
INCREMENTAL_QUERY = {QUERY: "incremental"}
CDC_QUERY = {**INCREMENTAL_QUERY, "hoodie.datasource.query.incremental.format": "cdc"}


@dataclass(frozen=True)
class Query:
    """A query, and what Apache Hudi answered.

    Parameters
    ----------
    options : mapping of str to str
        Options of the read; none for the latest snapshot.
    rows : list of dict
        The answer, in the notation of the files.
    error : str, optional
        What Hudi's reader failed with instead.
    """

    options: Mapping[str, str]
    rows: list[dict[str, Any]]
    error: str | None = None


def golden_names(start: str = "") -> list[str]:
    """Names of the golden tables that begin with ``start``."""
    return sorted(path.stem for path in FOLDER.glob(f"{start}*.zip"))


def queries(name: str) -> list[Query]:
    """Queries of a golden table, with what Hudi answered."""
    with gzip.open(FOLDER / f"{name}.json.gz", "rt", encoding="utf-8") as file:
        found = json.load(file)["queries"]
    return [Query(q["options"], q.get("rows", []), q.get("error")) for q in found]


def golden_file(name: str, pattern: str) -> bytes:
    """Content of a golden table's first file whose path the regular expression is found in."""
    with zipfile.ZipFile(FOLDER / f"{name}.zip") as archive:
        return archive.read(next(p for p in archive.namelist() if re.search(pattern, p)))


def unzip_table(name: str, folder: Path) -> Path:
    """Unzip a golden table into ``folder`` and return its base path."""
    with zipfile.ZipFile(FOLDER / f"{name}.zip") as archive:
        archive.extractall(folder / name)
    return folder / name


def expected_rows(name: str) -> list[dict[str, Any]]:
    """Rows of a golden table's latest snapshot, in the notation of the files."""
    (snapshot,) = (query for query in queries(name) if not query.options)
    assert snapshot.error is None, snapshot.error
    return snapshot.rows


def assert_rows_equal(actual: pa.Table, expected: list[dict[str, Any]]) -> None:
    """Fail with the first difference unless the table holds the expected rows, metas included.

    Parameters
    ----------
    actual : pyarrow.Table
        A snapshot, in any order of rows and columns.
    expected : list of dict
        From `expected_rows`.
    """
    # As JSON text 1 differs from 1.0 and from true, and NaN equals NaN.
    ours = sorted(map(_comparable, map(notation, actual.to_pylist())))
    theirs = sorted(map(_comparable, expected))
    assert len(ours) == len(theirs)
    for (*_, found), (partition, key, wanted) in zip(ours, theirs, strict=True):
        assert found == wanted, f"row {key!r} of partition {partition!r}"


def notation(value: Any) -> Any:
    """Turn an Arrow value's Python form into the notation of the expected files."""
    match value:
        case dict():
            return {key: notation(item) for key, item in value.items()}
        case list() | tuple():
            return [notation(item) for item in value]
        case bytes():
            return base64.b64encode(value).decode()
        case Decimal():
            return str(value)
        case dt.date() | dt.datetime():
            return value.isoformat()
        case _:
            return value


def _comparable(row: dict[str, Any]) -> tuple[str, str, str]:
    text = json.dumps(row, sort_keys=True, indent=1)
    # A table may be without meta columns.
    return row.get("_hoodie_partition_path", ""), row.get("_hoodie_record_key", ""), text
