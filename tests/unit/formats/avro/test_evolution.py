"""Which Avro JSON a schema keeps, name by name."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from hoodie_ds.columns.meta_columns import META_COLUMNS, with_meta_columns
from hoodie_ds.formats.avro.evolution import evolved_avro
from hoodie_ds.formats.avro.schema import arrow_to_avro, avro_to_arrow
from tests.avro_columns import AVRO, COLUMNS, SCHEMA

FIELDS = SCHEMA["fields"]
POINT = {"type": "record", "name": "Point", "fields": [{"name": "x", "type": "int"}]}


def record(*fields: tuple[str, Any]) -> dict[str, Any]:
    listed = [{"name": name, "type": kind} for name, kind in fields]
    return {"type": "record", "name": "R", "namespace": "n", "fields": listed}


def changed(held: dict[str, Any], fields: list[pa.Field]) -> Any:
    text = evolved_avro(pa.schema(fields), "t", json.dumps(held))
    assert avro_to_arrow(text) == pa.schema(fields)
    return json.loads(text)


def test_unchanged_columns_keep_their_json() -> None:
    assert evolved_avro(COLUMNS, "t", AVRO) is AVRO


def test_a_table_without_a_schema_gets_that_of_arrow() -> None:
    assert evolved_avro(COLUMNS, "t", None) == arrow_to_avro(COLUMNS, "t")


def test_meta_columns_come_and_go_as_hudi_writes_them() -> None:
    text = evolved_avro(with_meta_columns(COLUMNS), "t", AVRO)
    meta = [
        {"name": name, "type": ["null", "string"], "doc": "", "default": None}
        for name in META_COLUMNS
    ]
    assert json.loads(text) == {**SCHEMA, "fields": [*meta, *FIELDS]}
    assert json.loads(evolved_avro(COLUMNS, "t", text)) == SCHEMA


@pytest.mark.parametrize("number", range(len(FIELDS)))
def test_each_column_alone_stays_complete_when_others_are_dropped(number: int) -> None:
    """What it refers to by name may have been defined in another."""
    text = evolved_avro(pa.schema([COLUMNS.field(number)]), "t", AVRO)
    assert avro_to_arrow(text) == pa.schema([COLUMNS.field(number)])
    (field,) = json.loads(text)["fields"]
    assert {**field, "type": None} == {**FIELDS[number], "type": None}


def test_a_type_that_only_one_of_its_columns_changes_gets_a_second_name() -> None:
    held = record(("a", POINT), ("b", ["null", "Point"]), ("c", {"type": "Point"}))
    narrow, wide = pa.struct([("x", pa.int32())]), pa.struct([("x", pa.int64())])
    new = changed(held, [pa.field("a", wide), pa.field("b", narrow), pa.field("c", narrow)])
    first, second, third = (field["type"] for field in new["fields"])
    assert first == {**POINT, "fields": [{"name": "x", "type": "long"}]}
    assert second == ["null", {**POINT, "name": "Point_", "namespace": "n"}]
    assert third == "n.Point_"


def test_an_inner_field_joins_its_record() -> None:
    held = record(("a", {"type": "array", "items": POINT}), ("m", {"type": "map", "values": "int"}))
    wide = pa.struct([("x", pa.int32()), ("y", pa.string())])
    new = changed(
        held, [pa.field("a", pa.list_(wide)), pa.field("m", pa.map_(pa.string(), pa.int64()))]
    )
    added = {"name": "y", "type": ["null", "string"], "default": None}
    items = {**POINT, "fields": [*POINT["fields"], added]}
    assert new == record(
        ("a", {"type": "array", "items": items}), ("m", {"type": "map", "values": "long"})
    )


def test_a_named_type_that_becomes_another_is_gone() -> None:
    decimal = {"type": "fixed", "name": "D", "size": 4, "logicalType": "decimal"}
    held = record(("a", ["null", {**decimal, "precision": 9, "scale": 2}]), ("b", "D"))
    same = pa.decimal128(9, 2)
    new = changed(held, [pa.field("a", pa.string()), pa.field("b", same)])
    moved = {**decimal, "namespace": "n", "precision": 9, "scale": 2}
    assert new == record(("a", ["null", "string"]), ("b", moved))
