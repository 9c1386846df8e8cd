"""What went wrong with types, names and bytes of columns: rows doubled, or not read again."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import SchemaError
from hoodie_ds.sink import plan

KINDS = ["COPY_ON_WRITE", "MERGE_ON_READ"]


def table(path: Path, kind: str = "COPY_ON_WRITE", **more: str) -> HoodieTable:
    """A table with the key ``id`` in one bucket; further options by their last words."""
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": more.pop("key", "id"),
        "hoodie.datasource.write.table.type": kind,
        "hoodie.bucket.index.num.buckets": "1",
    }
    for name in ("partitionpath", "precombine"):
        if name in more:
            options[f"hoodie.datasource.write.{name}.field"] = more.pop(name)
    return HoodieTable(str(path), {**options, **more})


def one(kind: pa.DataType, value: object) -> pa.Array:
    return pa.array([value], kind)


WIDENED = {
    "int to double": (pa.int32(), 1, pa.float64(), 1.0),
    "float to double": (pa.float32(), 0.1, pa.float64(), 0.1),
    "long to double": (pa.int64(), 2**53 + 1, pa.float64(), 2.0**53),
    "long, found by a double": (pa.float64(), 2.0**53, pa.int64(), 2**53 + 1),
}


@pytest.mark.parametrize("name", WIDENED)
@pytest.mark.parametrize("operation", ["upsert", "delete"])
def test_a_key_column_was_widened_and_every_key_another(
    tmp_path: Path, name: str, operation: str
) -> None:
    stored, value, arriving, same = WIDENED[name]
    there = table(tmp_path)
    there.upsert(pa.table({"id": one(stored, value), "v": ["a"]}))
    before = there.read()
    with pytest.raises(SchemaError, match=f"record key column 'id' is {stored} .* and {arriving} "):
        getattr(there, operation)(pa.table({"id": one(arriving, same), "v": ["b"]}))
    assert there.read().equals(before)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("record key column 's.k'", {"key": "s.k"}),
        ("partition column 'p'", {"partitionpath": "p"}),
        ("ordering column 'ts'", {"precombine": "ts"}),
    ],
)
def test_what_finds_and_orders_rows_was_widened(
    tmp_path: Path, name: str, options: dict[str, str]
) -> None:
    def rows(kind: pa.DataType) -> pa.Table:
        inner = pa.StructArray.from_arrays([one(kind, 1), one(kind, 1)], ["k", "v"])
        return pa.table({"id": ["x"], "s": inner, "p": one(kind, 1), "ts": one(kind, 1)})

    there = table(tmp_path, **options)
    there.upsert(rows(pa.int32()))
    with pytest.raises(SchemaError, match=f"{name} is int32 .* and double .*'Int32'"):
        there.upsert(rows(pa.float64()))
    there.upsert(rows(pa.int64()))  # the text of a whole number is the same in any width
    assert there.read(["_hoodie_record_key"]).num_rows == 1
    assert there.schema.field("s").type == pa.struct([("k", pa.int64()), ("v", pa.int64())])


def test_a_narrower_number_is_a_key_of_a_double_column(tmp_path: Path) -> None:
    there = table(tmp_path)
    for kind, value in ((pa.float64(), 0.5), (pa.float32(), 0.5), (pa.int32(), 2)):
        there.upsert(pa.table({"id": one(kind, value)}))
    keys = there.read(["_hoodie_record_key"]).column(0).to_pylist()
    assert sorted(keys) == ["0.5", "2.0"]


TWINS = {
    "columns of table and batch": ({"name": "a"}, {"Name": "b"}, "'name' and 'Name'"),
    "columns of a batch": ({}, {"name": "a", "NAME": "b"}, "'name' and 'NAME'"),
    "fields of a struct": ({}, {"s": {"a": 1, "A": 2}}, "'s.a' and 's.A'"),
    "fields that come later": ({"s": {"a": 1}}, {"s": {"a": 1, "A": 2}}, "'s.a' and 's.A'"),
    "fields within a list": ({}, {"l": [{"a": 1, "A": 2}]}, r"'l\[\].a' and 'l\[\].A'"),
    "a column of Hudi's": ({}, {"_Hoodie_record_key": "x"}, "'_hoodie_record_key' and"),
}


@pytest.mark.parametrize("name", TWINS)
def test_columns_that_differ_in_case_alone_were_stored(tmp_path: Path, name: str) -> None:
    """Neither Spark nor Hive can read such a table."""
    stored, arriving, message = TWINS[name]
    there = table(tmp_path, **{"hoodie.write.set.null.for.missing.columns": "true"})
    there.upsert(pa.Table.from_pylist([{"id": "1", **stored}]))
    before = there.schema
    with pytest.raises(SchemaError, match=message):
        there.upsert(pa.Table.from_pylist([{"id": "2", **arriving}]))
    assert there.schema == before


def test_a_table_that_has_such_columns_is_read_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that another engine, or an earlier release of this library, has made."""
    there = table(tmp_path)
    rows = pa.table({"id": ["1"], "name": ["a"], "namE": ["b"]})
    with monkeypatch.context() as earlier:
        earlier.setattr(plan, "check_case", lambda *_: None)
        there.upsert(rows)
    there.upsert(rows.set_column(2, "namE", [["c"]]))
    assert there.read(["id", "name", "namE"]).to_pylist() == [{"id": "1", "name": "a", "namE": "c"}]
    with pytest.raises(SchemaError, match="'NAME'"):
        there.upsert(rows.append_column("NAME", [["d"]]))
