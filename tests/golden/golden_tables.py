"""Tables that Apache Hudi wrote, with the rows they must read as.

They are in the folder ``tables``: ``NAME.zip`` holds one table, ``NAME.expected.json`` its latest
snapshot, where dates and timestamps are ISO text, decimals text, binary base64 and maps lists of
pairs.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import zipfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

FOLDER = Path(__file__).resolve().parent / "tables"


def golden_names(part: str = "") -> list[str]:
    """Names of the golden tables that contain ``part``."""
    return sorted(path.stem for path in FOLDER.glob("*.zip") if part in path.stem)


def unzip_table(name: str, folder: Path) -> Path:
    """Unzip a golden table into ``folder`` and return its base path."""
    with zipfile.ZipFile(FOLDER / f"{name}.zip") as archive:
        members = [item for item in archive.namelist() if not item.startswith("__MACOSX")]
        archive.extractall(folder, members)
    tops = {member.split("/")[0] for member in members}
    assert len(tops) == 1, f"{name}.zip must hold one table, found {sorted(tops)}"
    return folder / tops.pop()


def expected_rows(name: str) -> list[dict[str, Any]]:
    """Rows of a golden table's latest snapshot, in the notation of the expected file."""
    rows: list[dict[str, Any]] = json.loads((FOLDER / f"{name}.expected.json").read_text())["rows"]
    return rows


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
    return row["_hoodie_partition_path"], row["_hoodie_record_key"], text
