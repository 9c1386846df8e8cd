"""Avro schemas from untrusted bytes, parsed into a tree that is safe to walk and to decode with.

Invariant: every value of a type returned by `parse_avro` takes at least one byte, no type contains
itself, and depth and size are bounded. Hence a decoder of such a type makes no more objects than
there are bytes, and never recurses deeper than the type.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import Any, Final

from hoodie_ds.errors import CorruptFileError

VECTOR: Final = "vector"
"""The logical type of Hudi's VECTOR, on a ``fixed``."""
VECTOR_BACKING: Final = "FIXED_BYTES"
"""How its values are stored; Hudi 1.2 has no other way."""
_DEPTH_MAX: Final = 100
_NODES_MAX: Final = 100_000
_FIXED_BYTES_MAX: Final = 1 << 20
_NOT_HUDIS: Final = "the file is damaged or was not written by Hudi"
_REMEMBERED_MAX: Final = 1 << 17
"""Characters of the longest schema whose tree is cached."""


class Kind(str, Enum):
    """The kinds of Avro type (Avro specification 1.11)."""

    NULL = "null"
    BOOLEAN = "boolean"
    INT = "int"
    LONG = "long"
    FLOAT = "float"
    DOUBLE = "double"
    BYTES = "bytes"
    STRING = "string"
    FIXED = "fixed"
    ENUM = "enum"
    RECORD = "record"
    ARRAY = "array"
    MAP = "map"
    UNION = "union"


_NOT_PRIMITIVE: Final = (Kind.FIXED, Kind.ENUM, Kind.RECORD, Kind.ARRAY, Kind.MAP, Kind.UNION)
_PRIMITIVES: Final = {kind.value: kind for kind in Kind if kind not in _NOT_PRIMITIVE}


@dataclass(frozen=True, slots=True, eq=False)
class AvroType:
    """A node of a parsed schema; references to named types are resolved to the type itself."""

    kind: Kind
    logical: str = ""  # ``logicalType``
    precision: int = 0  # of a valid decimal
    scale: int = 0
    size: int = 0  # bytes of a ``fixed``
    dimension: int = 0  # of Hudi's VECTOR
    element: str = ""  # Hudi's name of the type of its elements
    names: tuple[str, ...] = ()  # field names of a record, symbols of an enum
    children: tuple[AvroType, ...] = ()  # types of fields, branches, items or values
    weight: int = 1  # number of nodes of the tree

    @property
    def optional(self) -> AvroType | None:
        """The type T of a union of null and T, in either order; None for any other type."""
        others = [child for child in self.children if child.kind is not Kind.NULL]
        if self.kind is Kind.UNION and len(others) == 1 and len(self.children) == 2:
            return others[0]
        return None

    def with_fields(self, names: Collection[str]) -> AvroType:
        """Return a record with some of its fields only."""
        kept = [(n, c) for n, c in zip(self.names, self.children, strict=True) if n in names]
        return replace(self, names=tuple(n for n, _ in kept), children=tuple(c for _, c in kept))


def parse_avro(text: str | bytes, name: str) -> AvroType:
    """Parse an Avro schema found in the file `name`.

    A `CorruptFileError` means that it is not valid Avro, contains itself, is nested more than 100
    deep or too large.
    """
    parse = _parsed_once if len(text) <= _REMEMBERED_MAX else _parsed
    try:
        return parse(text)
    except _UnusableError as error:
        raise CorruptFileError(
            f"{name}: its Avro schema is not usable: {str(error)[:300]}",
            _NOT_HUDIS,
        ) from error
    except (ValueError, RecursionError) as error:
        raise CorruptFileError(
            f"{name}: its Avro schema is not JSON or is nested too deep", _NOT_HUDIS
        ) from error


def full_name(json_type: dict[str, Any], namespace: str) -> str:
    """Return the full name of a record, enum or ``fixed`` defined within a namespace."""
    name = json_type.get("name")
    if not isinstance(name, str) or not name:
        raise _UnusableError("a record, enum or fixed has no name")
    space = json_type.get("namespace", namespace)
    return name if "." in name or not space else f"{space}.{name}"


def _parsed(text: str | bytes) -> AvroType:
    return _Parser().parse(json.loads(text), "", 0)


# A table's blocks have few schemas, and parsing one takes a fifth of the time of a small block.
_parsed_once = lru_cache(maxsize=64)(_parsed)


class _UnusableError(Exception):
    """A schema is JSON, but not one that is safe to decode with."""


class _Parser:
    def __init__(self) -> None:
        self._named: dict[str, AvroType | None] = {}  # None while the type is being defined

    def parse(self, json_type: object, namespace: str, depth: int) -> AvroType:
        if depth > _DEPTH_MAX:
            raise _UnusableError(f"it is nested more than {_DEPTH_MAX} deep")
        if isinstance(json_type, str):
            return self._reference(json_type, namespace)
        if isinstance(json_type, list):
            return self._union(json_type, namespace, depth)
        if not isinstance(json_type, dict) or "type" not in json_type:
            raise _UnusableError(f"{str(json_type)!r} is no type")
        kind = json_type["type"]
        match kind:
            case "record" | "error":
                return self._record(json_type, namespace, depth)
            case "fixed" | "enum":
                return self._define(json_type, namespace, self._leaf(json_type))
            case "array":
                item = self.parse(json_type.get("items"), namespace, depth + 1)
                return self._node(Kind.ARRAY, (self._sized(item),))
            case "map":
                value = self.parse(json_type.get("values"), namespace, depth + 1)
                return self._node(Kind.MAP, (self._sized(value),))
            case str() if kind in _PRIMITIVES:
                return self._with_logical(AvroType(_PRIMITIVES[kind]), json_type)
            case _:  # {"type": <a whole type>} is legal, and written by some tools
                return self.parse(kind, namespace, depth + 1)

    def _reference(self, name: str, namespace: str) -> AvroType:
        if name in _PRIMITIVES:
            return AvroType(_PRIMITIVES[name])
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        for candidate in (full, name):
            if candidate in self._named:
                found = self._named[candidate]
                if found is None:
                    raise _UnusableError(f"type {candidate!r} contains itself")
                return found
        raise _UnusableError(f"type {name!r} is not defined")

    def _union(self, branches: list[Any], namespace: str, depth: int) -> AvroType:
        children = tuple(self.parse(branch, namespace, depth + 1) for branch in branches)
        if not children or any(child.kind is Kind.UNION for child in children):
            raise _UnusableError("a union is empty or holds a union")
        return self._node(Kind.UNION, children)

    def _record(self, json_type: dict[str, Any], namespace: str, depth: int) -> AvroType:
        full = full_name(json_type, namespace)
        self._named[full] = None
        inner = full.rpartition(".")[0]
        fields = json_type.get("fields")
        if not isinstance(fields, list) or not fields:
            raise _UnusableError(f"record {full!r} has no fields")
        names = []
        children = []
        for field in fields:
            if not isinstance(field, dict) or not isinstance(field.get("name"), str):
                raise _UnusableError(f"a field of record {full!r} has no name")
            names.append(field["name"])
            children.append(self._sized(self.parse(field.get("type"), inner, depth + 1)))
        if len(set(names)) != len(names):
            raise _UnusableError(f"record {full!r} has two fields of one name")
        node = self._node(Kind.RECORD, tuple(children), tuple(names))
        return self._define(json_type, namespace, self._with_logical(node, json_type))

    def _leaf(self, json_type: dict[str, Any]) -> AvroType:
        if json_type["type"] == "enum":
            symbols = json_type.get("symbols")
            if not isinstance(symbols, list) or not all(isinstance(s, str) for s in symbols):
                raise _UnusableError("an enum has no symbols")
            return AvroType(Kind.ENUM, names=tuple(symbols))
        size = json_type.get("size")
        if not isinstance(size, int) or not 0 < size <= _FIXED_BYTES_MAX:
            raise _UnusableError(f"a fixed has size {size!r}")
        return self._with_logical(AvroType(Kind.FIXED, size=size), json_type)

    def _define(self, json_type: dict[str, Any], namespace: str, node: AvroType) -> AvroType:
        self._named[full_name(json_type, namespace)] = node
        return node

    def _sized(self, node: AvroType) -> AvroType:
        if node.kind is Kind.NULL:
            raise _UnusableError("null stands outside of a union")
        return node

    def _node(
        self, kind: Kind, children: tuple[AvroType, ...], names: tuple[str, ...] = ()
    ) -> AvroType:
        weight = 1 + sum(child.weight for child in children)
        if weight > _NODES_MAX:
            raise _UnusableError(f"it has more than {_NODES_MAX} parts")
        return AvroType(kind, names=names, children=children, weight=weight)

    @staticmethod
    def _with_logical(node: AvroType, json_type: dict[str, Any]) -> AvroType:
        logical = json_type.get("logicalType", "")
        if not isinstance(logical, str):
            return node
        if logical == VECTOR and node.kind is Kind.FIXED:
            return _Parser._vector(node, json_type)
        if logical != "decimal":
            return replace(node, logical=logical)
        precision, scale = json_type.get("precision"), json_type.get("scale", 0)
        # A logical type that is not valid is ignored (Avro specification, "Logical Types").
        if node.kind not in (Kind.BYTES, Kind.FIXED):
            return node
        if type(precision) is not int or type(scale) is not int:
            return node
        if precision < 1 or not 0 <= scale <= precision:
            return node
        return replace(node, logical=logical, precision=precision, scale=scale)

    @staticmethod
    def _vector(node: AvroType, json_type: dict[str, Any]) -> AvroType:
        dimension, element = json_type.get("dimension"), json_type.get("elementType", "FLOAT")
        is_known = json_type.get("storageBacking", VECTOR_BACKING) == VECTOR_BACKING
        if type(dimension) is not int or not isinstance(element, str) or not is_known:
            return replace(node, logical=VECTOR)
        return replace(node, logical=VECTOR, dimension=dimension, element=element)
