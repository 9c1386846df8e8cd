"""A table's schema in Delta, and the table features that readers and writers must support.

See the Delta protocol, "schema serialization format" and "table features". Every column is
nullable, as in the files. Partition columns are ordinary columns: they are in the files, and the
path does not always have their exact value (null and the empty string share a path, keys move,
timestamps are formatted).
"""

from __future__ import annotations

import json
from typing import Final

import pyarrow as pa

from hoodie_ds.columns.meta_columns import META_COLUMNS, with_meta_columns
from hoodie_ds.columns.vectors import is_vector
from hoodie_ds.errors import SchemaError

WRITER_FEATURE: Final = "writtenByHudi"
"""No writer of Delta supports it, so only this library changes the log, and no other vacuums."""

_NO_ZONE: Final = "timestampNtz"
_PRIMITIVE: Final = {
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.bool_(): "boolean",
    pa.int8(): "byte",
    pa.int16(): "short",
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.date32(): "date",
}


def check_columns(columns: pa.Schema) -> None:
    """Refuse columns that Delta cannot hold."""
    for column in columns:
        _type(column.name, column.type)


def schema_string(columns: pa.Schema, *, meta: bool) -> str:
    """Return a table's schema in Delta's JSON."""
    all_columns = with_meta_columns(columns) if meta else columns
    names = () if meta else META_COLUMNS
    fields = [_field(one) for one in all_columns if one.name not in names]
    return json.dumps({"type": "struct", "fields": fields})


def protocol(schema: str) -> dict[str, object]:
    """Return the ``protocol`` action of a table with a schema."""
    if '"timestamp_ntz"' not in schema:
        return {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": [WRITER_FEATURE]}
    return {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": [_NO_ZONE],
        "writerFeatures": [_NO_ZONE, WRITER_FEATURE],
    }


def _field(column: pa.Field, path: str = "") -> dict[str, object]:
    path = f"{path}.{column.name}" if path else column.name
    return {
        "name": column.name,
        "type": _type(path, column.type),
        "nullable": True,
        "metadata": {},
    }


def _type(path: str, kind: pa.DataType) -> object:
    types = pa.types
    if kind in _PRIMITIVE:
        return _PRIMITIVE[kind]
    if types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if types.is_timestamp(kind) and kind.unit in ("ms", "us"):
        return "timestamp_ntz" if kind.tz is None else "timestamp"
    if types.is_struct(kind):
        return {"type": "struct", "fields": [_field(one, path) for one in kind]}
    if types.is_map(kind):
        return {
            "type": "map",
            "keyType": _type(f"{path}.key", kind.key_type),
            "valueType": _type(f"{path}.value", kind.item_type),
            "valueContainsNull": True,
        }
    if is_vector(kind):
        return "binary"  # what files have
    if types.is_list(kind) or types.is_large_list(kind):
        element = _type(f"{path}.element", kind.value_type)
        return {"type": "array", "elementType": element, "containsNull": True}
    raise SchemaError(
        f"column {path!r} is {kind}, for which Delta has no type; omit hoodie.py.delta.sync, or "
        "store the column as another type"
    )
