"""Numbers of columns, as Hudi's schema on read gives them.

A new column, at whatever depth, gets a number that no other has had, so that what files have under
its name is not taken for it. See `hoodie_ds.table.schema_on_read`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from itertools import chain, count
from typing import Any, Final

import pyarrow as pa

from hoodie_ds.errors import SchemaError

TYPES: Final = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us", "UTC"),
}
"""Types by Hudi's names, of those that it also reads back: none of local timestamps."""

_NAMES: Final = {kind: name for name, kind in TYPES.items()}

_NO_TYPES: Final[Mapping[str, Any]] = {}

VARIANT: Final = {
    "type": "record",
    "fields": [
        {"id": -2, "name": "metadata", "optional": False, "type": "binary"}
        | {"doc": "Variant metadata component"},
        {"id": -1, "name": "value", "optional": False, "type": "binary"}
        | {"doc": "Variant value component"},
    ],
}
"""Hudi's VARIANT, whose fields have the same numbers in each column, and in each table."""


def is_one_value(kind: object) -> bool:
    """Whether a numbered type is a BLOB or a VARIANT, whose fields are not columns."""
    match kind:
        case {"type": "record", "fields": [{"id": int(first)}, *_]}:
            return first < 0
    return False


def numbered_anew(schema: pa.Schema, types: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a table that have no numbers yet, meta columns first, as Hudi does.

    `types` are those that Arrow does not have, as Hudi's JSON, by path.
    """
    numbers = count()
    kind = kind_of(pa.struct(list(schema)), numbers, "", types)
    return {"max_column_id": next(numbers) - 1, "version_id": 0, **kind}


def with_numbers(
    numbered: Mapping[str, Any], stored: pa.Schema, columns: pa.Schema
) -> dict[str, Any]:
    """Return numbered columns, as Hudi's JSON, with what a batch has added and widened.

    `stored` are the user columns that they are, and `columns` those that they become; both are
    normalised. A `SchemaError` names a column whose type Hudi cannot number.
    """
    numbers = count(numbered["max_column_id"] + 1)
    others = [field for field in numbered["fields"] if field["name"] not in stored.names]
    fields = [*others, *_fields(numbered["fields"], stored, columns, numbers, "")]
    return {**numbered, "max_column_id": next(numbers) - 1, "fields": fields}


def _fields(
    numbered: Iterable[dict[str, Any]],
    stored: Iterable[pa.Field],
    fields: Iterable[pa.Field],
    numbers: Iterator[int],
    parent: str,
) -> Iterator[dict[str, Any]]:
    known, types = {f["name"]: f for f in numbered}, {f.name: f.type for f in stored}
    for field in fields:
        name, path = field.name, f"{parent}{field.name}"
        if name in known:
            kind = _changed(known[name]["type"], types[name], field.type, numbers, path)
            yield {**known[name], "type": kind}
        else:
            yield new_field(field, numbers, path)


def _changed(
    numbered: Any,  # noqa: ANN401
    stored: pa.DataType,
    kind: pa.DataType,
    numbers: Iterator[int],
    path: str,
) -> object:
    if stored == kind:
        return numbered
    match numbered:
        case {"type": "record", "fields": [*fields]}:
            return {**numbered, "fields": [*_fields(fields, stored, kind, numbers, f"{path}.")]}
        case {"type": "array", "element": inner}:
            below = _changed(inner, stored.value_type, kind.value_type, numbers, f"{path}.element")
            return {**numbered, "element": below}
        case {"type": "map", "value": inner}:
            below = _changed(inner, stored.item_type, kind.item_type, numbers, f"{path}.value")
            return {**numbered, "value": below}
    return kind_of(kind, numbers, path)


def new_field(
    field: pa.Field, numbers: Iterator[int], path: str, types: Mapping[str, Any] = _NO_TYPES
) -> dict[str, Any]:
    """Return a new column or field at a path; its number comes before those within it."""
    number = next(numbers)
    kind = kind_of(field.type, numbers, path, types)
    return {"id": number, "name": field.name, "optional": True, "type": kind}


def kind_of(
    kind: pa.DataType, numbers: Iterator[int], path: str, types: Mapping[str, Any] = _NO_TYPES
) -> Any:  # noqa: ANN401
    """Return a type as Hudi's JSON; the fields of a struct are numbered before those in them.

    At the paths in `types` it is the one there.
    """
    if path in types:
        return deepcopy(types[path])
    if pa.types.is_struct(kind):
        own = [next(numbers) for _ in kind]
        parent = f"{path}." if path else ""
        fields = [
            new_field(field, chain([number], numbers), f"{parent}{field.name}", types)
            for number, field in zip(own, kind, strict=True)
        ]
        return {"type": "record", "fields": fields}
    if pa.types.is_list(kind):
        number = next(numbers)
        element = kind_of(kind.value_type, numbers, f"{path}.element", types)
        return {"type": "array", "element_id": number, "element": element, "element_optional": True}
    if pa.types.is_map(kind):
        key, number = next(numbers), next(numbers)
        value = kind_of(kind.item_type, numbers, f"{path}.value", types)
        keys = {"key_id": key, "key": "string", "value_id": number}
        return {"type": "map", **keys, "value": value, "value_optional": True}
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision}, {kind.scale})"
    if kind not in _NAMES:
        raise SchemaError(
            f"column {path!r} is {kind}, a type that Hudi 1.2 does not read back from the numbers "
            "of a table's columns; cast it, timestamps to those with a zone"
        )
    return _NAMES[kind]
