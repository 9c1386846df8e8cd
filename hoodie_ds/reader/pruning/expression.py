"""From a filter of `pyarrow.compute` to a `Predicate`.

An `Expression` shows its parts only in the form in which it is pickled: an Arrow file whose columns
are the literals and the options, in their own types, and whose metadata is the tree, in prefix
order: ``call``, ``field_ref``, ``nested_field_ref``, ``literal``, ``options``, ``end``.
Keys repeat, so the metadata is read by Arrow's C data interface. Whatever has another form than
is expected is not understood, and rules nothing out.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.formats.parquet.statistics import kind_of
from hoodie_ds.reader.pruning.predicate import (
    ANYTHING,
    NOTHING,
    And,
    Comparison,
    IsNull,
    Op,
    Or,
    Predicate,
    StartsWith,
    one_of,
)

_COMPARISONS: Final = {
    "less": Op.LESS,
    "less_equal": Op.LESS_EQUAL,
    "equal": Op.EQUAL,
    "greater_equal": Op.GREATER_EQUAL,
    "greater": Op.GREATER,
}
_ANDS: Final = ("and", "and_kleene")
_ORS: Final = ("or", "or_kleene")
_INT: Final = struct.Struct("=i")


@dataclass(frozen=True, slots=True)
class Filter:
    """What is known of a filter.

    Parameters
    ----------
    predicate : Predicate
        What it rules out.
    columns : frozenset of str or None
        The columns at the top of the table that it looks at; None if that is not known.
    """

    predicate: Predicate
    columns: frozenset[str] | None


def understood(expression: pc.Expression, schema: pa.Schema) -> Filter:
    """Take a filter apart, as far as it is understood.

    Parameters
    ----------
    expression : pyarrow.compute.Expression
        The filter.
    schema : pyarrow.Schema
        Columns of the table.
    """
    try:
        tree, columns = _tree(expression)
        return Filter(_predicate(tree, schema, negated=False), frozenset(columns))
    except (pa.ArrowException, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return Filter(ANYTHING, None)


@dataclass(slots=True)
class _Node:
    """A call, a column (`path`) or a literal (`value`)."""

    function: str = ""
    arguments: list[_Node] = field(default_factory=list)
    options: pa.StructScalar | None = None
    path: tuple[str, ...] = ()
    value: pa.Scalar | None = None


def _tree(expression: pc.Expression) -> tuple[_Node, set[str]]:
    _, (buffer,) = expression.__reduce__()
    with pa.ipc.open_file(buffer) as file:
        batch = file.get_batch(0)
    entries = iter(_entries(batch.schema))
    columns: set[str] = set()
    root = _node(next(entries), entries, batch, columns)
    if next(entries, None) is not None:
        raise ValueError("there is more than one expression")
    return root, columns


def _node(
    entry: tuple[str, str],
    entries: Iterator[tuple[str, str]],
    batch: pa.RecordBatch,
    columns: set[str],
) -> _Node:
    kind, text = entry
    if kind == "literal":
        return _Node(value=batch.column(int(text))[0])
    if kind in ("field_ref", "nested_field_ref"):
        path = [text] if kind == "field_ref" else [next(entries)[1] for _ in range(int(text))]
        columns.add(path[0])
        return _Node(path=tuple(path))
    if kind != "call":
        raise ValueError(f"{kind} is not known")
    node = _Node(text)
    while (entry := next(entries, ("", "")))[0] != "end":
        if entry[0] == "options":
            node.options = batch.column(int(entry[1]))[0]
        else:
            node.arguments.append(_node(entry, entries, batch, columns))
    return node


class _ArrowSchema(ctypes.Structure):
    """The beginning of an ``ArrowSchema`` of the C data interface."""

    _fields_ = (
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_void_p),
    )


_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def _entries(schema: pa.Schema) -> Iterator[tuple[str, str]]:
    """The metadata of a schema, in order and with repeated keys."""
    capsule = schema.__arrow_c_schema__()
    at = _ArrowSchema.from_address(_pointer(capsule, b"arrow_schema")).metadata

    def integer() -> int:
        nonlocal at
        (number,) = _INT.unpack(ctypes.string_at(at, _INT.size))
        at += _INT.size
        return int(number)

    def text() -> str:
        nonlocal at
        size = integer()
        content = ctypes.string_at(at, size)
        at += size
        return content.decode()

    found = [(text(), text()) for _ in range(integer())] if at else []
    del capsule  # what it held is copied
    return iter(found)


def _predicate(node: _Node, schema: pa.Schema, negated: bool) -> Predicate:
    name, arguments = node.function, node.arguments
    if name == "invert":
        return _predicate(arguments[0], schema, not negated)
    if name in _ANDS + _ORS:
        parts = tuple(_predicate(part, schema, negated) for part in arguments)
        return And(parts) if (name in _ANDS) is not negated else Or(parts)
    if name in ("is_null", "is_valid"):
        return _null_test(node, schema, (name == "is_valid") is not negated)
    if name in _COMPARISONS:
        return _comparison(node, schema, negated)
    if name == "is_in" and not negated:
        return _membership(node, schema)
    if name == "starts_with" and not negated:
        return _prefix(node, schema)
    if node.path:
        column = _column(node, schema)
        if column is not None and pa.types.is_boolean(column.type):
            return Comparison(column.name, Op.EQUAL, pa.scalar(not negated))
    if node.value is not None and pa.types.is_boolean(node.value.type):
        return ANYTHING if node.value.as_py() is (not negated) else NOTHING
    return ANYTHING


def _column(node: _Node, schema: pa.Schema) -> pa.Field | None:
    if len(node.path) != 1 or schema.get_field_index(node.path[0]) < 0:
        return None
    return schema.field(node.path[0])


def _null_test(node: _Node, schema: pa.Schema, negated: bool) -> Predicate:
    column = _column(node.arguments[0], schema)
    if column is None or _option(node, "nan_is_null", False):
        return ANYTHING
    return IsNull(column.name, negated)


def _comparison(node: _Node, schema: pa.Schema, negated: bool) -> Predicate:
    op: Op | None = _COMPARISONS[node.function]
    left, right = node.arguments
    if left.value is not None and op is not None:
        left, right, op = right, left, op.flipped
    column = _column(left, schema)
    if column is None or right.value is None:
        return ANYTHING
    if not right.value.is_valid:
        return NOTHING
    value = _as_type(right.value, column.type)
    if negated:
        # What is no number is neither less nor greater.
        op = None if pa.types.is_floating(column.type) or op is None else op.opposite
    if value is None or op is None:
        return ANYTHING
    return Comparison(column.name, op, value)


def _membership(node: _Node, schema: pa.Schema) -> Predicate:
    column = _column(node.arguments[0], schema)
    if column is None:
        return ANYTHING
    given = [*node.options["value_set"].values] if node.options is not None else []
    values = [_as_type(value, column.type) for value in given if value.is_valid]
    if any(value is None for value in values):
        return ANYTHING
    nulls = [pa.scalar(None, column.type)] if len(values) < len(given) else []
    return one_of(column.name, [*values, *nulls])


def _prefix(node: _Node, schema: pa.Schema) -> Predicate:
    column = _column(node.arguments[0], schema)
    if column is None or not pa.types.is_string(column.type) or _option(node, "ignore_case", True):
        return ANYTHING
    return StartsWith(column.name, str(_option(node, "pattern", "")))


def _option(node: _Node, name: str, default: object) -> object:
    return default if node.options is None else node.options[name].as_py()


def _as_type(value: pa.Scalar, kind: pa.DataType) -> pa.Scalar | None:
    """A value in the type of a column, if it is the same there and compares the same."""
    number = kind_of(kind)
    if number is None or kind_of(value.type) != number:
        return None
    try:
        cast = value.cast(kind)
        same = bool(pc.equal(cast.cast(value.type), value).as_py())
    except pa.ArrowException:
        return None
    return cast if same else None
