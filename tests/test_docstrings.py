"""The examples of docstrings run, and print what they say.

Those that need Spark are run by ``tests/spark/test_documented_examples.py``.
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import polars
import pyarrow as pa
import pytest

import hoodie_ds
from tests.documents import docstrings, run_docstring

FOUND = {name: text for name, text in docstrings() if not name.startswith("datasource/")}
OPTIONS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "uuid",
    "hoodie.datasource.write.precombine.field": "ts",
}
ROWS = {"uuid": ["a", "b"], "city": ["oslo", "rome"], "fare": [9.5, 12.0], "note": ["", ""]}
CHANGES = {"uuid": ["a", "b", "c"], "city": ["oslo", "rome", "rome"], "fare": [9.5, 13.0, 7.5]}


@pytest.mark.parametrize("name", FOUND)
def test_the_examples_of_a_docstring(name: str, tmp_path: Path) -> None:
    rows = pa.table({**ROWS, "ts": [1, 1]})
    table = hoodie_ds.HoodieTable(tmp_path / "trips", OPTIONS)
    if not name.endswith(":HoodieTable"):  # which makes the table
        table.upsert(rows)
    names = {
        "hoodie_ds": hoodie_ds,
        "HoodieTable": hoodie_ds.HoodieTable,
        "Path": Path,
        "duckdb": duckdb,
        "pa": pa,
        "polars": polars,
        "table": table,
        "opts": OPTIONS,
        "rows": rows,
        "changes": pa.table({**CHANGES, "note": [""] * 3, "ts": [2] * 3, "op": ["D", "U", "I"]}),
    }
    run_docstring(FOUND[name], names, tmp_path)
