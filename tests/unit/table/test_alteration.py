"""What a table's schema says of columns that are altered stays said."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from hoodie_ds.columns.meta_columns import without_meta_columns
from hoodie_ds.errors import SchemaError
from hoodie_ds.formats.avro.evolution import evolved_avro
from hoodie_ds.formats.avro.schema import avro_to_arrow
from hoodie_ds.table.alteration import AlteredColumns
from hoodie_ds.table.schema_on_read import NumberedColumns

VECTOR = {
    "type": "fixed", "name": "v", "size": 12, "logicalType": "vector",
    "dimension": 3, "elementType": "FLOAT", "storageBacking": "FIXED_BYTES",
}  # fmt: skip
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
    ("kind", "numbered"),
    [
        ({"type": "fixed", "name": "f", "size": 4}, "fixed[4]"),
        ({"type": "string", "logicalType": "uuid"}, "uuid"),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
            "decimal_bytes(4, 2)",
        ),
        (
            {"type": "array", "items": ["null", {"type": "fixed", "name": "f", "size": 4}]},
            {"type": "array", "element_id": 7, "element": "fixed[4]", "element_optional": True},
        ),
    ],
)
def test_types_that_arrow_does_not_tell_have_hudis_names(
    kind: dict[str, Any], numbered: object
) -> None:
    """As Hudi's ``SerDeHelper`` writes them."""
    columns = altered({"name": "id", "type": "string"}, {"name": "n", "type": ["null", kind]})
    columns.rename("n", "m")
    assert columns.numbered["fields"][-1]["type"] == numbered
    assert said(columns, "m")["type"] == ["null", kind]


@pytest.mark.parametrize(
    "kind",
    [
        {"type": "long", "logicalType": "timestamp-millis"},
        {"type": "map", "values": {"type": "long", "logicalType": "local-timestamp-micros"}},
        {"type": "record", "name": "r", "fields": [{"name": "v", "type": VECTOR}]},
    ],
)
def test_types_that_hudi_does_not_read_back_are_not_numbered(kind: dict[str, Any]) -> None:
    with pytest.raises(SchemaError, match=r"column 'n.*, which Hudi 1.2 does not read"):
        altered({"name": "id", "type": "string"}, {"name": "n", "type": kind})


VARIANT = {
    "type": "record", "name": "variant", "logicalType": "variant", "fields": [
        {"name": "metadata", "type": "bytes"}, {"name": "value", "type": "bytes"}],
}  # fmt: skip
IN_HUDI = (
    '[{"id":-2,"name":"metadata","optional":false,"type":"binary",'
    '"doc":"Variant metadata component"},'
    '{"id":-1,"name":"value","optional":false,"type":"binary","doc":"Variant value component"}]'
)
"""Its fields as Hudi 1.2.0's ``SerDeHelper`` prints them."""


def test_a_variant_is_one_value_in_each_column() -> None:
    columns = altered(
        {"name": "id", "type": "string"},
        {"name": "a", "type": ["null", VARIANT], "default": None},
        {"name": "b", "type": ["null", "variant"], "default": None},
    )
    columns.rename("a", "c")
    for name in "bc":
        (field,) = (one for one in columns.numbered["fields"] if one["name"] == name)
        assert field["type"] == {"type": "record", "fields": json.loads(IN_HUDI)}
    assert columns.numbered["max_column_id"] == 7  # those of Hudi's own columns and of the table's
    assert said(columns, "c")["type"] == ["null", VARIANT]
    assert said(columns, "b")["type"] == ["null", "variant"]
    for change in (
        partial(columns.rename, "c.value", "x"),
        partial(columns.drop, "c.value"),
        partial(columns.add, "c.x", pa.int32(), "", first=False, after=None),
    ):
        with pytest.raises(SchemaError, match="'c' is a BLOB or VARIANT, whose fields"):
            change()
    numbered = NumberedColumns(columns.numbered, (columns.before,))
    assert numbered.changes() == "'a' is 'c'"


DECIMAL = {
    "type": "fixed", "name": "d", "size": 3, "logicalType": "decimal", "precision": 5, "scale": 2,
}  # fmt: skip
ITEM = {
    "type": "record",
    "name": "item",
    "fields": [{"name": "n", "type": "int", "doc": "how many"}, {"name": "price", "type": DECIMAL}],
}


def test_a_decimal_becomes_one_that_holds_its_values() -> None:
    columns = altered({"name": "v", "type": ITEM})
    columns.retype("v.price", pa.decimal128(6, 3))
    for kind in (pa.decimal128(9, 1), pa.decimal128(5, 3)):
        with pytest.raises(SchemaError, match="cannot become decimal"):
            columns.retype("v.price", kind)
    assert columns.columns.field("v").type.field("price").type == pa.decimal128(6, 3)


def test_what_is_said_within_a_type_in_a_type_stays() -> None:
    wrapped = {"type": {"type": "array", "items": ITEM}}
    columns = altered({"name": "v", "type": wrapped})
    columns.rename("v.element.n", "count")
    (field,) = json.loads(columns.avro)["fields"]
    (first, _) = field["type"]["type"]["items"]["fields"]
    assert first == {"name": "count", "type": "int", "doc": "how many"}


def test_a_struct_that_has_a_type_without_counterpart_is_left_as_it_is() -> None:
    inner = [
        {"id": number, "name": name, "optional": True, "type": kind}
        for number, name, kind in ((7, "a", "int"), (8, "key", "uuid"))
    ]
    struct = {"type": "record", "fields": inner}
    fields = [{"id": 6, "name": "v", "optional": True, "type": struct}]
    numbered = {"max_column_id": 8, "version_id": 0, "type": "record", "fields": fields}
    avro = json.dumps({"type": "record", "name": "t", "fields": [{"name": "v", "type": ITEM}]})
    columns = AlteredColumns(numbered, avro, avro_to_arrow(avro), [])
    columns.rename("v.a", "b")
    with pytest.raises(SchemaError, match="beside one of type uuid cannot be changed"):
        columns.columns  # noqa: B018
