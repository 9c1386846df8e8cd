"""Arrow schemas to Hudi's Avro schemas and back, and the Arrow types that a table holds.

Invariant: `avro_to_arrow` of `arrow_to_avro` gives what `normalise_schema` gave, and an
unsupported type is refused by the path of its column, never approximated.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from hoodie_ds.columns.meta_columns import META_COLUMNS
from hoodie_ds.columns.vectors import bytes_type, element_name, is_bytes, is_vector, vector_type
from hoodie_ds.errors import CorruptFileError, SchemaError
from hoodie_ds.formats.avro.tree import VECTOR, VECTOR_BACKING, AvroType, Kind, parse_avro

UTC_MICROS: Final = pa.timestamp("us", tz="UTC")
_NAIVE_MICROS: Final = pa.timestamp("us")
_UTC_MILLIS: Final = pa.timestamp("ms", tz="UTC")
_NAIVE_MILLIS: Final = pa.timestamp("ms")
_TIMES: Final = (pa.time32("ms"), pa.time64("us"))
_KEPT: Final = (_UTC_MILLIS, _NAIVE_MILLIS, *_TIMES)
"""Types that existing columns of other engines' tables keep, and that no new column gets."""
_DECIMAL_DIGITS_MAX: Final = 38
_JSON_DEPTH_MAX: Final = 120
"""Levels of JSON in a table's Avro schema; hudi-rs reads 127."""
_JSON_OF_COLUMNS: Final = 5
_JSON_OF_STRUCT: Final = 4
_JSON_OF_LIST: Final = 3
_AVRO_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_NORMAL: Final = {
    pa.bool_(): pa.bool_(),
    pa.int8(): pa.int32(),
    pa.int16(): pa.int32(),
    pa.int32(): pa.int32(),
    pa.int64(): pa.int64(),
    pa.uint8(): pa.int32(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.float16(): pa.float32(),
    pa.float32(): pa.float32(),
    pa.float64(): pa.float64(),
    pa.string(): pa.string(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.binary(): pa.binary(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.date32(): pa.date32(),
    pa.date64(): pa.date32(),
}
_AVRO_PRIMITIVES: Final[dict[pa.DataType, str | dict[str, Any]]] = {
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
    pa.date32(): {"type": "int", "logicalType": "date"},
    UTC_MICROS: {"type": "long", "logicalType": "timestamp-micros"},
    _NAIVE_MICROS: {"type": "long", "logicalType": "local-timestamp-micros"},
    _UTC_MILLIS: {"type": "long", "logicalType": "timestamp-millis"},
    _NAIVE_MILLIS: {"type": "long", "logicalType": "local-timestamp-millis"},
    pa.time32("ms"): {"type": "int", "logicalType": "time-millis"},
    pa.time64("us"): {"type": "long", "logicalType": "time-micros"},
}
_ARROW_LEAVES: Final = {
    (Kind.INT, "date"): pa.date32(),
    (Kind.INT, "time-millis"): pa.time32("ms"),
    (Kind.LONG, "time-micros"): pa.time64("us"),
    (Kind.LONG, "timestamp-millis"): _UTC_MILLIS,
    (Kind.LONG, "timestamp-micros"): UTC_MICROS,
    (Kind.LONG, "local-timestamp-millis"): _NAIVE_MILLIS,
    (Kind.LONG, "local-timestamp-micros"): _NAIVE_MICROS,
    (Kind.BOOLEAN, ""): pa.bool_(),
    (Kind.INT, ""): pa.int32(),
    (Kind.LONG, ""): pa.int64(),
    (Kind.FLOAT, ""): pa.float32(),
    (Kind.DOUBLE, ""): pa.float64(),
    (Kind.BYTES, ""): pa.binary(),
    (Kind.FIXED, ""): pa.binary(),
    (Kind.STRING, ""): pa.string(),
    (Kind.ENUM, ""): pa.string(),
}
_REFUSED_LOGICAL: Final = ("duration", "timestamp-nanos", "local-timestamp-nanos", VECTOR)


def normalise_schema(schema: pa.Schema, table: pa.Schema | None = None) -> pa.Schema:
    """Return the schema in the types in which a table stores its columns.

    Small integers become int32, timestamps microseconds (in UTC if they have a zone), large, view
    and fixed-size variants the plain type, a dictionary its values; every field nullable, metadata
    dropped. Recursive. Timestamps and times of `table`, the existing columns, keep their unit:
    tables of other engines have milliseconds, which keys are made of and rows ordered by. Lists and
    bytes become vectors where `table` has these. A column of Arrow's type null, as one of pandas
    that has no values, has the type that it has in `table`.

    A `SchemaError` names a column whose type a Hudi table cannot hold, whose name is not unique, or
    that is nested deeper than readers support.
    """
    _check_depth(schema)
    return pa.schema(_normal_fields(list(schema), "", list(table or ())))


@lru_cache(maxsize=64)
def arrow_to_avro(schema: pa.Schema, table_name: str) -> str:
    """Return the Avro JSON that Hudi stores for a schema, which is normalised but keeps its units.

    The record is ``hoodie.<table>.<table>_record``; every field is a union of null and its type,
    default null; decimals are ``fixed``; each named type is defined inline under a namespace made
    of the path to it, so that names are unique (as Spark's Avro converter does for Hudi).

    A column name that Avro does not allow is a `SchemaError`: Hudi refuses it too, and a renamed
    column would be hidden from its writer.
    """
    stem = re.sub(r"[^A-Za-z0-9_]", "_", table_name)
    if not _AVRO_NAME.match(stem):
        stem = f"_{stem[1:]}"
    fields = list(normalise_schema(schema, schema))
    record = _avro_record(f"{stem}_record", f"hoodie.{stem}", fields, "")
    return json.dumps(record, separators=(",", ":"))


@lru_cache(maxsize=64)
def avro_to_arrow(avro: str, name: str = "table schema") -> pa.Schema:
    """Return the Arrow schema of an Avro record.

    Unions with null may have either order; named types may be referred to; timestamps and times
    keep their unit; enums become strings, ``fixed`` binary, and VECTOR, alone of all types, a list
    of a fixed size. Text that is no Avro schema is a `CorruptFileError` of `name`; Avro that a Hudi
    table cannot hold a `SchemaError`.
    """
    return arrow_schema_of(parse_avro(avro, name), name)


def arrow_schema_of(record: AvroType, name: str) -> pa.Schema:
    """Return the Arrow schema of a parsed record; `name` is its file, for errors."""
    if record.kind is not Kind.RECORD:
        raise CorruptFileError(f"{name}: its Avro schema is no record", "the file is damaged")
    return pa.schema(_arrow_fields(record, ""))


def is_list_like(kind: pa.DataType) -> bool:
    """Whether a type is a list of any layout: plain, large, fixed-size or view."""
    types = pa.types
    plain = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return bool(plain or types.is_list_view(kind) or types.is_large_list_view(kind))


def _check_depth(schema: pa.Schema) -> None:
    """Refuse schemas too deep for hudi-rs to parse; not recursive, so that any depth is safe."""
    left = [(field.type, field.name, _JSON_OF_COLUMNS) for field in schema]
    while left:
        kind, name, depth = left.pop()
        if depth > _JSON_DEPTH_MAX:
            raise SchemaError(
                f"column {name!r} is nested deeper than readers of the table follow; flatten it, "
                "or write its inner part as JSON text"
            )
        step = _JSON_OF_STRUCT if pa.types.is_struct(kind) else _JSON_OF_LIST
        left += [(kind.field(i).type, name, depth + step) for i in range(kind.num_fields)]


def _normal_fields(fields: list[pa.Field], parent: str, held: list[pa.Field]) -> list[pa.Field]:
    kinds = {field.name: field.type for field in held}
    seen = set()
    for field in fields:
        if field.name in seen:
            raise SchemaError(
                f"column {parent + field.name!r} occurs twice in the schema; rename one of the two"
            )
        seen.add(field.name)
    return [
        pa.field(f.name, _normal_type(f.type, parent + f.name, kinds.get(f.name))) for f in fields
    ]


def _normal_type(kind: pa.DataType, path: str, held: pa.DataType | None) -> pa.DataType:
    types = pa.types
    if types.is_null(kind) and held not in (None, kind):
        return held
    if held in _KEPT and _is_same_clock(kind, held):
        return held
    if held is not None and is_vector(held) and (is_list_like(kind) or is_bytes(kind)):
        return held
    if kind in _NORMAL:
        return _NORMAL[kind]
    if types.is_dictionary(kind):
        return _normal_type(kind.value_type, path, held)
    if types.is_timestamp(kind):
        return UTC_MICROS if kind.tz is not None else _NAIVE_MICROS
    if types.is_fixed_size_binary(kind):
        return pa.binary()
    if types.is_decimal(kind) and kind.precision <= _DECIMAL_DIGITS_MAX:
        if 0 <= kind.scale <= kind.precision:
            return pa.decimal128(kind.precision, kind.scale)
    elif is_list_like(kind):
        inner = held.value_type if held is not None and types.is_list(held) else None
        return pa.list_(_normal_type(kind.value_type, f"{path}.element", inner))
    elif types.is_map(kind):
        inner = held.item_type if held is not None and types.is_map(held) else None
        if _normal_type(kind.key_type, f"{path}.key", None) == pa.string():
            return pa.map_(pa.string(), _normal_type(kind.item_type, f"{path}.value", inner))
    elif types.is_struct(kind) and kind.num_fields and not _is_tagged_struct(kind):
        within = _struct_fields(held) if held is not None and types.is_struct(held) else []
        return pa.struct(_normal_fields(_struct_fields(kind), f"{path}.", within))
    raise unsupported_type(path, kind)


def unsupported_type(path: str, kind: object) -> SchemaError:
    """Return the error for a column of an Arrow or Spark type that a Hudi table cannot hold."""
    return SchemaError(
        f"column {path!r} is of type {kind}, which a Hudi table cannot hold; cast it to a boolean, "
        "number, decimal of at most 38 digits, string, binary, date, timestamp, list, struct, or "
        "map with string keys, or leave it out"
    )


def _is_same_clock(kind: pa.DataType, held: pa.DataType) -> bool:
    """Whether both are times of day, or both timestamps with a zone, or without one."""
    if pa.types.is_timestamp(kind) and pa.types.is_timestamp(held):
        return (kind.tz is None) == (held.tz is None)
    return bool(pa.types.is_time(kind) and pa.types.is_time(held))


def _is_tagged_struct(kind: pa.DataType) -> bool:
    """Whether it is Spark's encoding of a variant, geometry or geography, marked by a tag."""
    tags = {tag for field in _struct_fields(kind) for tag in field.metadata or ()}
    return bool(tags & {b"variant", b"geometry", b"geography"})


def _struct_fields(kind: pa.DataType) -> list[pa.Field]:
    return [kind.field(i) for i in range(kind.num_fields)]


def _avro_record(name: str, namespace: str, fields: list[pa.Field], parent: str) -> dict[str, Any]:
    avro_fields = [avro_field(field, f"{namespace}.{name}", parent) for field in fields]
    return {"type": "record", "name": name, "namespace": namespace, "fields": avro_fields}


def avro_field(field: pa.Field, record: str, parent: str) -> dict[str, Any]:
    """Return the JSON of a normalised column in the record of that full name.

    `parent` is the path of the record with a dot, empty for a table's columns.
    """
    path = parent + field.name
    if not _AVRO_NAME.fullmatch(field.name):
        raise SchemaError(
            f"column {path!r} has a name that Avro, and so Hudi, does not allow; rename it to "
            "ASCII letters, digits and '_', not beginning with a digit"
        )
    kind = avro_type(field.type, field.name, record, path)
    # Hudi documents meta columns with an empty string.
    doc = {"doc": ""} if not parent and field.name in META_COLUMNS else {}
    return {"name": field.name, "type": ["null", kind], **doc, "default": None}


def avro_type(kind: pa.DataType, name: str, namespace: str, path: str) -> str | dict[str, Any]:
    """Return the JSON of a type; named types are put below ``<namespace>.<name>``."""
    if kind in _AVRO_PRIMITIVES:
        return _AVRO_PRIMITIVES[kind]
    if pa.types.is_decimal(kind):
        return {
            "type": "fixed",
            "name": "fixed",
            "namespace": f"{namespace}.{name}",
            "size": decimal_bytes(kind.precision),
            "logicalType": "decimal",
            "precision": kind.precision,
            "scale": kind.scale,
        }
    if is_vector(kind):
        return {
            "type": "fixed",
            "name": VECTOR,
            "namespace": f"{namespace}.{name}",
            "size": bytes_type(kind).byte_width,
            "logicalType": VECTOR,
            "dimension": kind.list_size,
            "elementType": element_name(kind),
            "storageBacking": VECTOR_BACKING,
        }
    if pa.types.is_list(kind):
        item = avro_type(kind.value_type, name, namespace, f"{path}.element")
        return {"type": "array", "items": ["null", item]}
    if pa.types.is_map(kind):
        value = avro_type(kind.item_type, name, namespace, f"{path}.value")
        return {"type": "map", "values": ["null", value]}
    return _avro_record(name, namespace, _struct_fields(kind), f"{path}.")


def decimal_bytes(precision: int) -> int:
    """Return the fewest bytes that hold every signed number of `precision` decimal digits."""
    return int(10**precision - 1).bit_length() // 8 + 1


def _arrow_fields(record: AvroType, parent: str) -> list[pa.Field]:
    pairs = zip(record.names, record.children, strict=True)
    return [pa.field(name, arrow_type(child, parent + name)) for name, child in pairs]


def arrow_type(node: AvroType, path: str) -> pa.DataType:
    """Return the Arrow type of a parsed type; `path` is the column, for errors."""
    match node.kind:
        case Kind.UNION if len(node.children) == 1:
            return arrow_type(node.children[0], path)
        case Kind.UNION if node.optional is not None:
            return arrow_type(node.optional, path)
        case Kind.ARRAY:
            return pa.list_(arrow_type(node.children[0], f"{path}.element"))
        case Kind.MAP:
            return pa.map_(pa.string(), arrow_type(node.children[0], f"{path}.value"))
        case Kind.RECORD:
            return pa.struct(_arrow_fields(node, f"{path}."))
        case Kind.FIXED if node.logical == VECTOR:
            kind = vector_type(node.element, node.dimension, node.size)
            if kind is not None:
                return kind
    if node.precision:
        if node.precision <= _DECIMAL_DIGITS_MAX:
            return pa.decimal128(node.precision, node.scale)
    elif node.logical not in _REFUSED_LOGICAL and node.kind not in (Kind.UNION, Kind.NULL):
        # A logical type unknown here (uuid among them) leaves the type that it annotates.
        return _ARROW_LEAVES.get((node.kind, node.logical)) or _ARROW_LEAVES[(node.kind, "")]
    logical = f" ({node.logical})" if node.logical else ""
    raise SchemaError(
        f"column {path!r} has the Avro type {node.kind.value}{logical}, which this library does "
        "not read; leave the column out of the table"
    )
