"""Changes of a table's columns, as ``ALTER TABLE`` of Hudi's schema on read makes them.

No file is rewritten: a column keeps its number, by which files are read that have it under another
name or type. See `hoodie_ds.table.schema_on_read`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from copy import deepcopy
from itertools import count
from typing import Any, Final

import pyarrow as pa

from hoodie_ds.columns.meta_columns import META_COLUMNS, with_meta_columns
from hoodie_ds.errors import SchemaError
from hoodie_ds.formats.avro.evolution import renamed_avro
from hoodie_ds.formats.avro.schema import normalise_schema
from hoodie_ds.formats.avro.tree import AvroType, Kind, parse_avro
from hoodie_ds.record.schema import check_case
from hoodie_ds.table.numbering import (
    TYPES,
    VARIANT,
    is_one_value,
    kind_of,
    new_field,
    numbered_anew,
)
from hoodie_ds.table.schema_on_read import as_json, renaming_of

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN: Final = (
    (Kind.INT, "date"),
    (Kind.LONG, "time-micros"),
    (Kind.LONG, "timestamp-micros"),
    (Kind.FIXED, "decimal"),
)
_DECIMAL: Final = re.compile(r"decimal\w*\((\d+), *(\d+)\).*")
_WIDER: Final = {
    "int": ("long", "float", "double", "string", "decimal"),
    "long": ("float", "double", "string", "decimal"),
    "float": ("double", "string", "decimal"),
    "double": ("string", "decimal"),
    "date": ("string",),
    "decimal": ("string",),
    "string": ("date", "decimal"),
}
"""Which types a column of a type may get, as in Hudi."""


class AlteredColumns:
    """The columns of a table, and what becomes of them, change by change.

    `numbered` are the columns as Hudi's JSON, None if they have no numbers yet; `avro` is the
    table's schema, and `columns` its user columns. Columns whose names are in `fixed` make keys,
    paths and the order of rows: as in Hudi they keep name and type. Each change raises a
    `SchemaError` if it cannot be made. Fields of structs have paths, such as ``at.x``,
    ``items.element.x`` and ``prices.value.x``.
    """

    def __init__(
        self,
        numbered: Mapping[str, Any] | None,
        avro: str,
        columns: pa.Schema,
        fixed: Collection[str],
    ) -> None:
        self.before = dict(numbered or _first(columns, avro))
        self._columns, self._avro, self._fixed = columns, avro, fixed
        self._fields: list[dict[str, Any]] = deepcopy(self.before["fields"])
        self._numbers = count(self.before["max_column_id"] + 1)

    def add(
        self, path: str, kind: pa.DataType, comment: str, *, first: bool, after: str | None
    ) -> None:
        """Add a column or a field, which is null in all rows so far."""
        parent, _, name = path.rpartition(".")
        siblings = self._within(parent)
        _check_name(path, name)
        if name in [field["name"] for field in siblings]:
            raise SchemaError(f"column {path!r} is there already")
        (field,) = normalise_schema(pa.schema([(name, kind)]))
        added = new_field(field, self._numbers, path)
        siblings.append(added if not comment else {**added, "doc": comment})
        if first or after:
            self.move(path, first=first, after=after)

    def rename(self, path: str, name: str) -> None:
        """Give a column or a field another name, without its parent's."""
        siblings, at = self._found(path, "renamed")
        _check_name(path, name)
        if name in [field["name"] for field in siblings]:
            raise SchemaError(f"column {path!r} cannot be renamed: {name!r} is there already")
        siblings[at]["name"] = name

    def drop(self, path: str) -> None:
        """Take a column or a field away, for ever: another one of its name is another one."""
        siblings, at = self._found(path, "dropped")
        if all(field["name"] in META_COLUMNS for field in siblings[:at] + siblings[at + 1 :]):
            raise SchemaError(f"column {path!r} cannot be dropped: it is the last one there")
        del siblings[at]

    def move(self, path: str, *, first: bool = False, after: str | None = None) -> None:
        """Put a column or a field before all others, or after the one of a name."""
        if first == (after is not None):
            raise SchemaError(f"column {path!r} moves either to the first place or after another")
        siblings, at = self._found(path)
        field = siblings.pop(at)
        own = [n for n, one in enumerate(siblings) if one["name"] in META_COLUMNS]
        place = len(own)
        if after is not None:
            names = [one["name"] for one in siblings]
            if after not in names[len(own) :]:
                siblings.insert(at, field)
                raise SchemaError(
                    f"column {path!r} cannot come after {after!r}, which is not there"
                )
            place = names.index(after) + 1
        siblings.insert(place, field)

    def retype(self, path: str, kind: pa.DataType) -> None:
        """Give a column or a field another type, one of those that Hudi allows."""
        siblings, at = self._found(path, "retyped")
        (field,) = normalise_schema(pa.schema([("x", kind)]))
        was, now = siblings[at]["type"], kind_of(field.type, count(), path)
        if was != now and not _fits(was, now):
            raise SchemaError(f"column {path!r} is {_named(was)} and cannot become {_named(now)}")
        siblings[at]["type"] = now

    def comment(self, path: str, text: str) -> None:
        """Say what a column is, or nothing if the text is empty."""
        siblings, at = self._found(path)
        siblings[at].pop("doc", None)
        if text:
            siblings[at]["doc"] = text

    def make_nullable(self, path: str) -> None:
        """Let a column be null."""
        siblings, at = self._found(path)
        siblings[at]["optional"] = True

    @property
    def numbered(self) -> dict[str, Any]:
        """The columns as they are now, as Hudi's JSON, of no version yet."""
        unused = next(self._numbers)
        self._numbers = count(unused)
        return {**self.before, "max_column_id": unused - 1, "fields": self._fields}

    @property
    def columns(self) -> pa.Schema:
        """The user columns as they are now; a `SchemaError` if two differ only by case."""
        users = [field for field in self._fields if field["name"] not in META_COLUMNS]
        held = {field["id"]: field for field in self.before["fields"]}
        fields = []
        for field in users:
            was = held.get(field["id"])
            same = was is not None and was["type"] == field["type"]
            kind = self._columns.field(was["name"]).type if same and was else _arrow(field["type"])
            fields.append(pa.field(field["name"], kind))
        check_case(pa.schema([]), pa.schema(fields))
        return pa.schema(fields)

    @property
    def same(self) -> pa.Schema:
        """Those of `columns` that are there before under their names."""
        before = {(field["id"], field["name"]) for field in self.before["fields"]}
        names = {field["name"] for field in self._fields if (field["id"], field["name"]) in before}
        return pa.schema([field for field in self.columns if field.name in names])

    @property
    def avro(self) -> str:
        """The table's schema as it is now, with all that it says of columns that it had."""
        renaming = renaming_of(self.before, self.numbered)
        evolved = json.loads(renamed_avro(self.columns, self._avro, renaming))
        return as_json(_said(evolved, self.numbered))

    def renamed(self, names: Collection[str]) -> tuple[str, ...]:
        """Return the columns that had some names, and those that are new, by their names now."""
        was = {field["id"]: field["name"] for field in self.before["fields"]}
        kept = (one for one in self._fields if was.get(one["id"]) in {None, *names})
        return tuple(field["name"] for field in kept)

    def _within(self, parent: str) -> list[dict[str, Any]]:
        """The fields of the table, or of the struct at a path."""
        if not parent:
            return self._fields
        node: Any = {"type": "record", "fields": self._fields}
        for part in parent.split("."):
            match node:
                case {"type": "record", "fields": [*fields]}:
                    node = next((one["type"] for one in fields if one["name"] == part), None)
                case {"type": "array", "element": inner} if part == "element":
                    node = inner
                case {"type": "map", "value": inner} if part == "value":
                    node = inner
                case _:
                    node = None
        if not isinstance(node, dict) or node["type"] != "record":
            raise SchemaError(f"{parent!r} is no struct of the table")
        if is_one_value(node):
            raise SchemaError(f"{parent!r} is a BLOB or VARIANT, whose fields do not change")
        below: list[dict[str, Any]] = node["fields"]
        return below

    def _found(self, path: str, change: str = "") -> tuple[list[dict[str, Any]], int]:
        """The fields among which a column is, and its place; refused if its change is."""
        parent, _, name = path.rpartition(".")
        siblings = self._within(parent)
        places = [n for n, field in enumerate(siblings) if field["name"] == name]
        if not places or path in META_COLUMNS:
            raise SchemaError(f"the table has no column {path!r}")
        named = [one for one in self._fixed if f"{one}.".startswith(f"{path}.")]
        if change and named:
            raise SchemaError(
                f"column {path!r} cannot be {change}: keys, partitions and the order of rows are "
                f"made of {', '.join(sorted(self._fixed))}"
            )
        return siblings, places[0]


def _first(columns: pa.Schema, avro: str) -> dict[str, Any]:
    """The columns of a table that have no numbers yet, with what its schema says of them."""
    types = dict(_logical_types(parse_avro(avro, "table schema"), ""))
    first = numbered_anew(with_meta_columns(columns), types)
    _say(first, json.loads(avro))
    return first


def _say(numbered: Any, kind: Any) -> None:  # noqa: ANN401
    """Say of numbered fields what a type of Avro, as JSON, says of them."""
    if is_one_value(numbered):
        return
    match numbered, kind:
        case _, [*branches]:
            for branch in branches:
                _say(numbered, branch)
        case {"fields": [*fields]}, {"type": "record", "fields": [*held]}:
            named = {field["name"]: field for field in held}
            for field in fields:
                if said := named.get(field["name"]):
                    field["optional"] = _is_nullable(said["type"])
                    field |= {"doc": said["doc"]} if "doc" in said else {}
                    _say(field["type"], said["type"])
        case {"element": inner}, {"items": within}:
            _say(inner, within)
        case {"value": inner}, {"values": within}:
            _say(inner, within)
        case _, {"type": dict() | list() as wrapped}:
            _say(numbered, wrapped)


def _logical_types(node: AvroType, path: str) -> Iterator[tuple[str, Any]]:
    """Numbered types that Arrow does not have, by path; a `SchemaError` if Hudi has none."""
    parent = f"{path}." if path else ""
    match node.optional or node:
        case AvroType(Kind.RECORD, logical="variant"):
            yield path, VARIANT
        case AvroType(Kind.FIXED, logical="", size=size):
            yield path, f"fixed[{size}]"
        case AvroType(Kind.STRING, logical="uuid"):
            yield path, "uuid"
        case AvroType(Kind.BYTES, logical="decimal", precision=precision, scale=scale):
            yield path, f"decimal_bytes({precision}, {scale})"
        case AvroType(kind, logical) if logical and (kind, logical) not in _PLAIN:
            raise SchemaError(
                f"column {path!r} is {logical} of {kind.value}, which Hudi 1.2 does not read "
                "where columns have numbers; write the rows into a table without it"
            )
        case AvroType(Kind.RECORD, names=names, children=children):
            for name, child in zip(names, children, strict=True):
                yield from _logical_types(child, f"{parent}{name}")
        case AvroType(Kind.ARRAY, children=(child,)):
            yield from _logical_types(child, f"{parent}element")
        case AvroType(Kind.MAP, children=(child,)):
            yield from _logical_types(child, f"{parent}value")


def _check_name(path: str, name: str) -> None:
    if not _NAME.fullmatch(name) or name.startswith("_hoodie_"):
        raise SchemaError(
            f"column {path!r}: {name!r} is no name for it; names are of letters, digits and _, do "
            "not begin with a digit, and those of Hudi's own columns are taken"
        )


def _named(kind: object) -> str:
    return kind if isinstance(kind, str) else "a struct, list or map"


def _fits(was: object, now: object) -> bool:
    if not isinstance(was, str) or not isinstance(now, str):
        return False
    one, other = _DECIMAL.fullmatch(was), _DECIMAL.fullmatch(now)
    if one and other:
        (precision, scale), (wider, finer) = (tuple(map(int, m.groups())) for m in (one, other))
        return finer >= scale and wider - finer >= precision - scale
    return ("decimal" if other else now) in _WIDER.get("decimal" if one else was, ())


def _arrow(kind: Any) -> pa.DataType:  # noqa: ANN401
    match kind:
        case {"type": "record", "fields": [*fields]}:
            return pa.struct([(one["name"], _arrow(one["type"])) for one in fields])
        case {"type": "array", "element": inner}:
            return pa.list_(_arrow(inner))
        case {"type": "map", "value": inner}:
            return pa.map_(pa.string(), _arrow(inner))
    if found := _DECIMAL.fullmatch(kind):
        return pa.decimal128(*map(int, found.groups()))
    if kind not in TYPES:
        raise SchemaError(f"a column beside one of type {kind} cannot be changed")
    return TYPES[kind]


def _said(kind: Any, numbered: Any) -> Any:  # noqa: ANN401
    """A type of Avro, as JSON, with the nullable fields and comments of numbered ones."""
    if is_one_value(numbered):
        return kind
    match numbered, kind:
        case _, [*branches]:
            return [_said(branch, numbered) for branch in branches]
        case {"fields": [*fields]}, {"type": "record", "fields": [*held]}:
            named = {field["name"]: field for field in fields}
            return {**kind, "fields": [_said_of(said, named[said["name"]]) for said in held]}
        case {"element": inner}, {"items": within}:
            return {**kind, "items": _said(within, inner)}
        case {"value": inner}, {"values": within}:
            return {**kind, "values": _said(within, inner)}
        case _, {"type": dict() | list() as wrapped}:
            return {**kind, "type": _said(wrapped, numbered)}
    return kind


def _said_of(said: dict[str, Any], field: dict[str, Any]) -> dict[str, Any]:
    kind = _said(said["type"], field["type"])
    if field["optional"] and not _is_nullable(kind):
        said, kind = {**said, "default": None}, ["null", kind]
    doc = {"doc": field["doc"]} if "doc" in field else {}
    others = {key: value for key, value in said.items() if key != "doc" or doc}
    return {**others, "type": kind, **doc}


def _is_nullable(kind: object) -> bool:
    return isinstance(kind, list) and "null" in kind
