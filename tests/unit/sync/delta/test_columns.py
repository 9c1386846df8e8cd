"""Types of Arrow as Delta's protocol names them."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from hoodie_ds.errors import SchemaError
from hoodie_ds.sync.delta.columns import check_columns, protocol, schema_string


def types(columns: pa.Schema, *, meta: bool = False) -> dict[str, Any]:
    fields = json.loads(schema_string(columns, meta=meta))["fields"]
    assert all(field["nullable"] for field in fields)
    return {field["name"]: field["type"] for field in fields}


def test_types_are_those_of_the_protocol() -> None:
    nested = pa.struct({"a": pa.list_(pa.int32())})
    columns = pa.schema(
        {
            "d": pa.decimal128(9, 2),
            "m": pa.map_(pa.string(), nested),
            "t": pa.timestamp("us", tz="UTC"),
            "b": pa.bool_(),
        }
    )
    element = {"type": "array", "elementType": "integer", "containsNull": True}
    field = {"name": "a", "type": element, "nullable": True, "metadata": {}}
    assert types(columns) == {
        "d": "decimal(9,2)",
        "m": {
            "type": "map",
            "keyType": "string",
            "valueType": {"type": "struct", "fields": [field]},
            "valueContainsNull": True,
        },
        "t": "timestamp",
        "b": "boolean",
    }


def test_meta_columns_are_columns_where_the_files_have_them() -> None:
    columns = pa.schema({"a": pa.int64()})
    assert list(types(columns, meta=True))[-2:] == ["_hoodie_file_name", "a"]
    assert list(types(columns)) == ["a"]


def test_a_timestamp_without_a_zone_requires_a_reader_feature() -> None:
    naive = pa.schema({"t": pa.timestamp("ms")})
    asked = protocol(schema_string(naive, meta=False))
    assert asked["minReaderVersion"] == 3
    assert asked["readerFeatures"] == ["timestampNtz"]
    plain = protocol(schema_string(pa.schema({"t": pa.int32()}), meta=False))
    assert plain["minReaderVersion"] == 1


@pytest.mark.parametrize("kind", [pa.time64("us"), pa.time32("ms")])
def test_a_type_without_a_delta_type_is_refused_with_its_path(kind: pa.DataType) -> None:
    with pytest.raises(SchemaError, match=r"'s\.t\.element' is time"):
        check_columns(pa.schema({"s": pa.struct({"t": pa.list_(kind)})}))
