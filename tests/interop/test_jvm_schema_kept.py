"""Hudi's own types, which Arrow has none for, in tables that it goes on writing after us."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.storage.local import LocalStorage
from hoodie_ds.timeline.loading import read_commit
from tests.avro_columns import BARE, FULL, KEPT, SCHEMA, events, made
from tests.interop.jvm_hudi import JvmHudi
from tests.tables import TYPE, TYPES, VERSION
from tests.tiers import by_day

pytestmark = pytest.mark.jvm

COW, MOR = TYPES
REFERENCE = "struct<external_path: string, offset: bigint, length: bigint, managed: boolean>"
VALUES: dict[str, tuple[str, Any]] = {
    "vector(3)": ("array(float(0.5), float(1.5), float(2.5))", [0.5, 1.5, 2.5]),
    "vector(2, double)": ("array(0.5d, 1.5d)", [0.5, 1.5]),
    "blob": (
        "named_struct('type', 'INLINE', 'data', cast('hi' as binary), "
        f"'reference', cast(null as {REFERENCE}))",
        {"type": "INLINE", "data": b"hi", "reference": None},
    ),
}
MERGER = {
    "hoodie.write.record.merge.custom.implementation.classes": (
        "org.apache.hudi.common.model.HoodieAvroRecordMerger"
    )
}
SETTINGS = {"hoodie.metadata.enable": "false", "hoodie.write.auto.upgrade": "false"}


def said(path: Path) -> Any:
    """The schema that the newest commit of a table says."""
    newest = HoodieTable(str(path)).timeline.completed[-1]
    return json.loads(read_commit(LocalStorage(str(path)), newest).extra["schema"])


@pytest.mark.parametrize(
    ("kind", "version", "given"),
    by_day(
        product(TYPES, "69", VALUES),
        {(COW, "9", "vector(3)"), (MOR, "6", "vector(2, double)"), (MOR, "9", "blob")},
    ),
)
def test_hudi_goes_on_with_its_types(
    jvm_hudi: JvmHudi, tmp_path: Path, kind: str, version: str, given: str
) -> None:
    name = f"kept_{abs(hash(tmp_path))}"
    value, read = VALUES[given]

    def seen_by_hudi() -> list[tuple[Any, ...]]:
        rows = jvm_hudi.sql(f"select id, v, ts from {name} order by id").to_pylist()
        return [tuple(row.values()) for row in rows]

    for key, text in {**SETTINGS, VERSION: version}.items():
        jvm_hudi.sql(f"set {key}={text}")
    try:
        jvm_hudi.sql(
            f"create table {name} (id int, v {given}, ts bigint) using hudi tblproperties "
            f"(type = '{'cow' if kind == COW else 'mor'}', primaryKey = 'id', "
            f"orderingFields = 'ts', '{VERSION}' = '{version}') location '{tmp_path}'"
        )
        jvm_hudi.sql(f"insert into {name} values (1, {value}, 1), (2, {value}, 1)")
        before = said(tmp_path)
        table = HoodieTable(str(tmp_path), {"hoodie.index.type": "SIMPLE"})
        rows = table.read(columns=["id", "v", "ts"])
        table.upsert(rows.set_column(2, "ts", pa.array([5, 5], pa.int64())))
        assert said(tmp_path) == before
        assert seen_by_hudi() == [(1, read, 5), (2, read, 5)]
        jvm_hudi.sql(f"update {name} set ts = 7 where id = 2")
        jvm_hudi.sql(f"insert into {name} values (3, {value}, 1)")
        if kind == MOR:
            table.compact({"hoodie.compact.inline.max.delta.commits": "1"})
        else:
            table.upsert(rows.slice(0, 1))  # an older one: nothing changes but the file
        assert said(tmp_path) == before
        jvm_hudi.sql(f"update {name} set ts = 8 where id = 1")
        assert seen_by_hudi() == [(1, read, 8), (2, read, 7), (3, read, 1)]
        assert table.read(columns=["v"]).column("v").to_pylist() == [read] * 3
    finally:
        jvm_hudi.sql(f"drop table if exists {name}")
        for key in (*SETTINGS, VERSION):
            jvm_hudi.sql(f"reset {key}")


def without_references() -> Any:
    """`SCHEMA` without what Hudi 1.2 itself stumbles over: names that are used again, a union
    whose default is not null."""
    again = ("other", "places", "named")
    fields = [dict(field) for field in SCHEMA["fields"] if field["name"] not in again]
    by_name = {field["name"]: field for field in fields}
    del by_name["ts"]["default"]
    by_name["states"]["type"] = {"type": "array", "items": "string"}
    place = dict(by_name["place"]["type"][1])
    place["fields"] = [field for field in place["fields"] if field["name"] != "more"]
    by_name["place"]["type"] = ["null", place]
    return {**SCHEMA, "fields": fields}


@pytest.mark.parametrize(
    ("version", "block", "merger"),
    by_day(
        product("69", ["avro", "parquet"], ["", "avro"]),
        {("6", "parquet", "avro"), ("9", "avro", "")},
    ),
)
def test_hudi_compacts_what_was_written_by_avro_schema(
    jvm_hudi: JvmHudi, tmp_path: Path, version: str, block: str, merger: str
) -> None:
    avro, path = without_references(), tmp_path / "kept"
    path.mkdir()
    names = [field["name"] for field in avro["fields"]]
    options = {**KEPT, TYPE: MOR, VERSION: version, "hoodie.index.type": "SIMPLE"}
    options["hoodie.logfile.data.block.format"] = block
    made(LocalStorage(str(path)), options, json.dumps(avro))
    table = HoodieTable(str(path), options)

    def batch(*rows: dict[str, Any]) -> pa.Table:
        given = events(*rows).select(names)
        place = given["place"].to_pylist()
        kept = [one and {key: one[key] for key in one if key != "more"} for one in place]
        kind = table.schema.field("place").type
        return given.set_column(names.index("place"), "place", pa.array(kept, kind))

    table.upsert(batch({"id": "1", "ts": 1, **BARE}, {"id": "2", "ts": 1, **FULL}))
    table.upsert(batch({"id": "1", "ts": 4, **FULL}))
    due = {"hoodie.compact.inline.max.delta.commits": "1", "hoodie.metadata.enable": "false"}
    due |= MERGER if merger else {}
    jvm_hudi.call("run_compaction", path, due, op="scheduleAndExecute")
    assert said(path) == avro
    expected = batch({"id": "1", "ts": 4, **FULL}, {"id": "2", "ts": 1, **FULL}).to_pylist()
    assert table.read(columns=names).sort_by("id").to_pylist() == expected
    seen = jvm_hudi.read(path).select(names).sort_by("id")
    assert seen.cast(table.read(columns=names).schema).to_pylist() == expected
