"""A table's Avro schema after a commit that changes columns.

Arrow has fewer types than Avro: an enum is a string there, ``fixed`` is binary, Hudi's BLOB and
VARIANT are structs, and it has no place for defaults and documentation. So the JSON of unchanged
columns is kept, and only changed ones are made from Arrow.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, Final, TypeAlias

import pyarrow as pa

from hoodie_ds.formats.avro.schema import arrow_to_avro, arrow_type, avro_field, avro_type
from hoodie_ds.formats.avro.tree import AvroType, Kind, full_name, parse_avro
from hoodie_ds.formats.renaming import Renaming

_Json: TypeAlias = str | list[Any] | dict[str, Any]
_NAMED: Final = ("record", "error", "enum", "fixed")


@lru_cache(maxsize=64)
def evolved_avro(schema: pa.Schema, table_name: str, held: str | None) -> str:
    """Return the Avro JSON of a normalised schema, with what the table's JSON says of its columns.

    `held` is the table's Avro JSON so far, with or without meta columns, if it has any. Columns of
    an unchanged type keep name, type, default, documentation and all other attributes.
    """
    return arrow_to_avro(schema, table_name) if held is None else renamed_avro(schema, held, None)


def renamed_avro(schema: pa.Schema, held: str, renaming: Renaming | None) -> str:
    """Return the same where columns of `held` may have other names now."""
    given = json.loads(held)
    merger = _Merger()
    node = parse_avro(held, "table schema")
    merger.find_definitions(given, node, "")
    merger.find_names(node, renaming, "")
    merged = merger.type_of(given, node, pa.struct(list(schema)), "", "")
    return held if merged == given else json.dumps(merged, separators=(",", ":"))


class _Merger:
    """Walks a type as JSON and as parsed, in step with the Arrow type that it must have.

    Arguments of the methods: ``given`` and ``node`` are the type so far, as JSON and parsed,
    ``kind`` is the new type, ``space`` the namespace around it, and ``path`` the column.
    """

    def __init__(self) -> None:
        self._definitions: dict[int, tuple[dict[str, Any], str]] = {}
        """JSON and full name of each named type, by the identity of the parsed type."""
        self._names: dict[str, list[str | None]] = {}
        """Names that the fields of records have now, None for those that are gone, by column."""
        self._written: dict[tuple[int, pa.DataType], str] = {}
        """Full names that the new schema has defined so far, by parsed and Arrow type."""

    def find_definitions(self, given: _Json, node: AvroType, space: str) -> None:
        """Find the definitions that names refer to, also in columns that the new schema lacks."""
        if isinstance(given, list):
            for branch, child in zip(given, node.children, strict=True):
                self.find_definitions(branch, child, space)
        if not isinstance(given, dict):
            return
        match given:
            case {"type": "array", "items": inner} | {"type": "map", "values": inner}:
                self.find_definitions(inner, node.children[0], space)
            case {"type": dict() | list() as inner}:
                self.find_definitions(inner, node, space)
            case {"type": kind} if kind in _NAMED:
                full = full_name(given, space)
                self._definitions[id(node)] = (given, full)
                for field, child in zip(given.get("fields", ()), node.children, strict=True):
                    self.find_definitions(field["type"], child, full.rpartition(".")[0])

    def find_names(self, node: AvroType, renaming: Renaming | None, path: str) -> None:
        """Find the names that fields have now, at whatever depth."""
        if renaming is None:
            return
        if node.kind is not Kind.RECORD:
            below = {Kind.ARRAY: f"{path}.element", Kind.MAP: f"{path}.value"}.get(node.kind, path)
            for child in node.children:
                self.find_names(child, renaming, below)
            return
        found = [renaming.fields.get(name, (None, None)) for name in node.names]
        self._names[path] = [now for now, _ in found]
        parent = f"{path}." if path else ""
        for child, (now, within) in zip(node.children, found, strict=True):
            self.find_names(child, within, f"{parent}{now}")

    def type_of(
        self, given: _Json, node: AvroType, kind: pa.DataType, space: str, path: str
    ) -> _Json:
        """Return the JSON of the new type."""
        if isinstance(given, list):
            return [
                one if child.kind is Kind.NULL else self.type_of(one, child, kind, space, path)
                for one, child in zip(given, node.children, strict=True)
            ]
        if isinstance(given, dict):
            match given:
                case {"type": "array", "items": items}:
                    below = f"{path}.element"
                    inner = self.type_of(items, node.children[0], kind.value_type, space, below)
                    return {**given, "items": inner}
                case {"type": "map", "values": values}:
                    below = f"{path}.value"
                    inner = self.type_of(values, node.children[0], kind.item_type, space, below)
                    return {**given, "values": inner}
                case {"type": dict() | list() as wrapped}:
                    return {**given, "type": self.type_of(wrapped, node, kind, space, path)}
        is_struct = node.kind is Kind.RECORD and pa.types.is_struct(kind)
        if not is_struct and arrow_type(node, path) != kind:
            return avro_type(kind, path, space, path)
        return self._named(given, node, kind, path) if id(node) in self._definitions else given

    def _named(self, given: _Json, node: AvroType, kind: pa.DataType, path: str) -> _Json:
        """The same for a record, enum or ``fixed``, defined here or referred to."""
        definition, full = self._definitions[id(node)]
        mine = id(node), kind
        if mine in self._written:
            is_known = self._written[mine] == full and given is not definition
            return given if is_known else self._written[mine]
        space, _, name = full.rpartition(".")
        new = definition
        if given is not definition:  # its definition is gone, or has become another type
            new = {**new, "name": name, "namespace": space}
        while full in self._written.values():
            full, name = f"{full}_", f"{name}_"
            new = {**new, "name": name, "namespace": space}
        self._written[mine] = full
        if node.kind is not Kind.RECORD:
            return new
        parent = f"{path}." if path else ""
        fields = (kind.field(i) for i in range(kind.num_fields))
        names = self._names.get(path, node.names)
        held = dict(zip(names, zip(new["fields"], node.children, strict=True), strict=True))
        return {**new, "fields": [self._field(f, held.get(f.name), full, parent) for f in fields]}

    def _field(
        self,
        field: pa.Field,
        held: tuple[dict[str, Any], AvroType] | None,
        record: str,
        parent: str,
    ) -> dict[str, Any]:
        """The JSON of a record's field, with all that it says so far."""
        if held is None:
            return avro_field(field, record, parent)
        said, node = held
        space, path = record.rpartition(".")[0], parent + field.name
        kind = self.type_of(said["type"], node, field.type, space, path)
        return {**said, "name": field.name, "type": kind}
