"""Every query of the golden tables answers as Apache Hudi's own reader does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_ds.config.read_options import ReadOptions
from hoodie_ds.errors import HoodieError
from hoodie_ds.reader.query import open_query
from hoodie_ds.reader.scanner import Scanner
from hoodie_ds.storage.connect import storage_to_read
from tests.golden.golden_tables import (
    CDC_QUERY,
    Query,
    assert_rows_equal,
    golden_names,
    queries,
    unzip_table,
)

ANSWERED = {"v6_mor_cdc": "InvalidAvroMagicException"}
"""Tables of which we answer what Apache Hudi 1.2 fails on: it takes its own JSON for Avro."""


def _asked(name: str) -> list[Query]:
    """Queries of a table, but for the latest snapshot, which others ask."""
    return [query for query in queries(name) if query.options]


DECIMALS = {"amount", "price"}
ASKED = {name: found for name in golden_names() if (found := _asked(name))}


@pytest.mark.parametrize("name", ASKED)
def test_every_query_answers_as_hudi_does(name: str, tmp_path: Path) -> None:
    path = unzip_table(name, tmp_path)
    for query in ASKED[name]:
        if query.error is not None:
            if name in ANSWERED and ANSWERED[name] in query.error:
                _check_without_hudi(name, path, query)
                continue
            with pytest.raises(HoodieError):
                _answer(path, query.options)
            continue
        try:
            answer = _answer(path, query.options)
            if CDC_QUERY.items() <= query.options.items():
                assert _changes(answer.to_pylist()) == _changes(query.rows)
            else:
                assert_rows_equal(answer, query.rows)
        except (HoodieError, AssertionError) as error:
            raise AssertionError(f"{dict(query.options)}: {error}") from error


def _check_without_hudi(name: str, path: Path, query: Query) -> None:
    """The changes lead from no row to Hudi's snapshot, and those of a range are a part of them."""
    begin = query.options["hoodie.datasource.read.begin.instanttime"]
    end = query.options.get("hoodie.datasource.read.end.instanttime", "9")
    every = _answer(path, {**CDC_QUERY, "hoodie.datasource.read.begin.instanttime": "000"})
    every_row = sorted(every.to_pylist(), key=lambda row: (row["ts_ms"], row["op"]))
    told = _answer(path, query.options).to_pylist()
    assert _changes(told) == _changes([r for r in every_row if begin < r["ts_ms"] <= end])
    rows: dict[str, dict[str, Any]] = {}
    for change in every_row:
        before, after = (_columns(change[side]) for side in ("before", "after"))
        assert rows.pop(before["id"], None) == before if before else after["id"] not in rows
        if after:
            rows[after["id"]] = after
    (snapshot,) = (found.rows for found in queries(name) if not found.options)
    kept = [{c: v for c, v in row.items() if v is not None} for row in snapshot]
    assert rows == {row["id"]: _columns(json.dumps(row)) for row in kept}


def _columns(text: str | None) -> dict[str, Any]:
    """An image, without the columns in which a log file differs from what it is merged into."""
    found = json.loads(text or "{}") or {}
    return {column: value for column, value in found.items() if not column.startswith("_hoodie_")}


def _changes(rows: list[dict[str, Any]]) -> list[str]:
    """Changes in one notation: Hudi loses decimals, and its objects have no order."""
    return sorted(json.dumps({k: _image(text) for k, text in sorted(row.items())}) for row in rows)


def _image(text: str | None) -> Any:
    if text is None or not text.startswith("{"):
        return text
    found = json.loads(text)
    decimals = {k for k, v in found.items() if k in DECIMALS and v is not None}
    return sorted((k, "decimal" if k in decimals else v) for k, v in found.items())


def _answer(path: Path, options: Mapping[str, str]) -> pa.Table:
    parsed = ReadOptions.parse({**options, "path": str(path)})
    return Scanner(open_query(storage_to_read(parsed), parsed)).to_table()
