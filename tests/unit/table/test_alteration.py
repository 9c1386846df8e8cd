"""What a table's schema says of columns that are altered stays said."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from hoodie_ds.columns.meta_columns import without_meta_columns
from hoodie_ds.errors import SchemaError
from hoodie_ds.formats.avro.evolution import evolved_avro
from hoodie_ds.formats.avro.schema import avro_to_arrow
from hoodie_ds.table.alteration import AlteredColumns

KIND = {"type": "enum", "name": "kind", "symbols": ["A", "B"]}


def altered(*fields: dict[str, Any]) -> AlteredColumns:
    avro = json.dumps({"type": "record", "name": "t", "fields": [*fields]})
    return AlteredColumns(None, avro, without_meta_columns(avro_to_arrow(avro)), ["id"])


def said(columns: AlteredColumns, name: str) -> dict[str, Any]:
    avro = columns.avro
    assert evolved_avro(columns.columns, "t", avro) == avro  # as its commit makes it
    fields = json.loads(avro)["fields"]
    return next(field for field in fields if field["name"] == name)


def test_a_renamed_column_keeps_its_type_and_its_comment() -> None:
    columns = altered({"name": "id", "type": "string"}, {"name": "k", "type": KIND, "doc": "which"})
    columns.rename("k", "kind")
    assert said(columns, "kind") == {"name": "kind", "type": KIND, "doc": "which"}
    (kind,) = (one for one in columns.numbered["fields"] if one["name"] == "kind")
    assert kind == {"id": 6, "name": "kind", "optional": False, "type": "string", "doc": "which"}


def test_a_required_column_becomes_nullable() -> None:
    columns = altered({"name": "id", "type": "string"}, {"name": "n", "type": "int"})
    columns.make_nullable("n")
    assert said(columns, "n") == {"name": "n", "type": ["null", "int"], "default": None}
    assert [one["optional"] for one in columns.numbered["fields"][5:]] == [False, True]
    assert said(columns, "id") == {"name": "id", "type": "string"}


def test_fields_of_structs_keep_what_is_said_of_them() -> None:
    """By their numbers: names that were swapped, or are another field's now, say nothing."""
    at = {"type": "record", "name": "at", "fields": [
        {"name": "x", "type": KIND, "doc": "which"},
        {"name": "y", "type": {"type": "map", "values": "int"}},
        {"name": "z", "type": "long", "doc": "gone"},
    ]}  # fmt: skip
    items = {"type": "array", "items": ["null", at]}
    columns = altered({"name": "id", "type": "string"}, {"name": "items", "type": items})
    columns.rename("items.element.x", "w")
    columns.rename("items.element.y", "x")
    columns.rename("items.element.w", "y")
    columns.drop("items.element.z")
    columns.add("items.element.z", pa.int64(), "", first=False, after=None)
    columns.make_nullable("items.element.x")
    columns.comment("items.element.x", "what")
    null, changed = said(columns, "items")["type"]["items"]
    assert (null, {**changed, "fields": None}) == ("null", {**at, "fields": None})
    assert changed["fields"] == [
        {"name": "y", "type": KIND, "doc": "which"},
        {"name": "x", "type": ["null", {"type": "map", "values": "int"}], "default": None}
        | {"doc": "what"},
        {"name": "z", "type": ["null", "long"], "default": None},
    ]


def test_columns_of_one_definition_are_altered_one_by_one() -> None:
    fields: list[dict[str, Any]] = [
        {"name": "x", "type": "string", "doc": "which"},
        {"name": "y", "type": {"type": "array", "items": "int"}},
    ]
    at = {"type": "record", "name": "at", "fields": fields}
    columns = altered({"name": "a", "type": at}, {"name": "b", "type": ["null", "at"]})
    for name, other in (("x", "z"), ("y", "x"), ("z", "y")):
        columns.rename(f"a.{name}", other)
    assert said(columns, "a")["type"]["fields"] == [
        {**field, "name": name} for field, name in zip(fields, "yx", strict=True)
    ]
    assert [field["name"] for field in said(columns, "b")["type"][1]["fields"]] == ["x", "y"]


def test_a_definition_outlives_its_column() -> None:
    columns = altered({"name": "a", "type": KIND}, {"name": "b", "type": ["null", "kind"]})
    columns.drop("a")
    assert said(columns, "b")["type"] == ["null", {**KIND, "namespace": ""}]


def test_a_comment_goes() -> None:
    columns = altered({"name": "id", "type": "string"}, {"name": "n", "type": "int", "doc": "what"})
    columns.comment("n", "")
    assert said(columns, "n") == {"name": "n", "type": "int"}


@pytest.mark.parametrize(
    "kind",
    [
        {"type": "fixed", "name": "f", "size": 4},
        {"type": "string", "logicalType": "uuid"},
        {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
        {"type": "array", "items": {"type": "fixed", "name": "f", "size": 4}},
    ],
)
def test_types_that_arrow_does_not_tell_are_not_numbered(kind: dict[str, Any]) -> None:
    with pytest.raises(SchemaError, match="alter it with Hudi on the JVM"):
        altered({"name": "id", "type": "string"}, {"name": "n", "type": kind})
