"""A column of the table's own marks deletes, in every row of a write and of log files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable, OptionError
from tests.golden.golden_tables import unzip_table
from tests.tables import KEY, ORDERING, PARTITION, TRIPS, TYPE, TYPES

FIELD, MARKER = "hoodie.payload.delete.field", "hoodie.payload.delete.marker"
VERSION, INDEX = "hoodie.write.table.version", "hoodie.index.type"
MARKS = {FIELD: "op", MARKER: "D"}
Row = tuple[str, str, int, str | None]


def rows(*values: Row) -> pa.Table:
    kinds = {"id": pa.string(), "city": pa.string(), "ts": pa.int64(), "op": pa.string()}
    dicts = [dict(zip(kinds, value, strict=True)) for value in values]
    return pa.Table.from_pylist(dicts, schema=pa.schema(kinds))


def content(table: HoodieTable) -> list[tuple[str, str, int]]:
    found = table.read(["id", "city", "ts"]).to_pylist()
    return sorted((row["id"], row["city"], row["ts"]) for row in found)


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("index", ["BUCKET", "BLOOM", "GLOBAL_SIMPLE"])
@pytest.mark.parametrize("kind", TYPES)
def test_rows_with_the_marker_delete_their_keys(
    tmp_path: Path, kind: str, index: str, version: str
) -> None:
    more = {} if index == "BUCKET" else {INDEX: index}
    options = {k: v for k, v in TRIPS.items() if index == "BUCKET" or "bucket" not in k}
    given = {**options, **more, TYPE: kind, VERSION: version}
    table = HoodieTable(str(tmp_path), {**given, **MARKS})
    table.upsert(rows(*((f"k{n}", "x", 2, None) for n in range(6)), ("gone", "x", 1, "D")))
    assert content(table) == [(f"k{n}", "x", 2) for n in range(6)]
    table = HoodieTable(str(tmp_path), given)  # the table says it, whoever writes
    table.upsert(rows(("k0", "x", 3, "D"), ("k1", "x", 1, "D"), ("k2", "x", 3, "d")))
    expected = [("k1", "x", 2), ("k2", "x", 3), ("k3", "x", 2), ("k4", "x", 2), ("k5", "x", 2)]
    assert content(table) == expected
    table.upsert(rows(("k3", "x", 3, "D"), ("k0", "x", 4, "I"), ("k4", "x", 3, "I")))
    table.upsert(rows(("k4", "x", 4, "I"), ("k4", "x", 5, "D")))
    expected = [("k0", "x", 4), ("k1", "x", 2), ("k2", "x", 3), ("k5", "x", 2)]
    assert content(table) == expected
    if kind == "MERGE_ON_READ":
        assert table.compact({"hoodie.compact.inline.max.delta.commits": "1"})
        assert content(table) == expected


def test_an_insert_leaves_out_what_is_marked(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), {**TRIPS, **MARKS})
    table.insert(rows(("a", "x", 1, "I"), ("b", "x", 1, "D")))
    assert content(table) == [("a", "x", 1)]


def test_a_record_that_moves_away_and_is_deleted(tmp_path: Path) -> None:
    options = {key: TRIPS[key] for key in (KEY, PARTITION, ORDERING, "hoodie.table.name")}
    table = HoodieTable(str(tmp_path), {**options, **MARKS, INDEX: "GLOBAL_SIMPLE"})
    table.upsert(rows(("a", "x", 1, "I"), ("b", "x", 1, "I"), ("c", "x", 1, "I")))
    table.upsert(rows(("a", "y", 2, "I"), ("b", "y", 2, "D"), ("c", "y", 0, "D")))
    assert content(table) == [("a", "y", 2), ("c", "x", 1)]


@pytest.mark.parametrize("name", ["v6_mor_bucket", "v9_mor_bucket"])
def test_rows_of_log_files_that_another_engine_marked(name: str, tmp_path: Path) -> None:
    """Such an engine stores the rows themselves; no reader of ours takes them for rows."""
    path = unzip_table(name, tmp_path)
    before = HoodieTable(str(path)).read(["id", "name", "_hoodie_file_name"]).to_pylist()
    marked = next(r for r in before if not r["_hoodie_file_name"].endswith(".parquet"))
    properties = path / ".hoodie" / "hoodie.properties"
    prefix = "hoodie.record.merge.property."
    marks = f"\n{prefix}{FIELD}=name\n{prefix}{MARKER}={marked['name']}\n"
    properties.write_text(properties.read_text() + marks)
    table = HoodieTable(str(path))
    expected = sorted(row["id"] for row in before if row is not marked)
    assert sorted(table.read(["id"])["id"].to_pylist()) == expected
    assert table.compact({"hoodie.compact.inline.max.delta.commits": "1"})
    assert sorted(table.read(["id"])["id"].to_pylist()) == expected


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({FIELD: "op"}, rf"{MARKER}.*needs it"),
        ({MARKER: "D"}, rf"{FIELD}.*needs it"),
    ],
)
def test_half_of_a_marker_makes_no_table(tmp_path: Path, given: dict[str, str], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        HoodieTable(str(tmp_path), {**TRIPS, **given}).upsert(rows(("a", "x", 1, "D")))
    assert not list(tmp_path.iterdir())


def test_a_table_without_keys_has_no_deletes(tmp_path: Path) -> None:
    options = {"hoodie.table.name": "trips", **MARKS}
    with pytest.raises(OptionError, match="record key fields"):
        HoodieTable(str(tmp_path), options).insert(rows(("a", "x", 1, "D")))


@pytest.mark.parametrize(
    ("made", "given", "words"),
    [
        (MARKS, {MARKER: "X"}, "has 'D'"),
        (MARKS, {FIELD: "city"}, "has 'op'"),
        ({}, MARKS, "has none"),
    ],
)
def test_another_marker_than_the_table_has_is_refused(
    tmp_path: Path, made: dict[str, str], given: dict[str, str], words: str
) -> None:
    HoodieTable(str(tmp_path), {**TRIPS, **made}).upsert(rows(("a", "x", 1, "I")))
    with pytest.raises(OptionError, match=words):
        HoodieTable(str(tmp_path), {**TRIPS, **given}).upsert(rows(("a", "x", 2, "I")))
