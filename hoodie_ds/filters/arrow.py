"""Filters of `pyarrow.compute`."""

from __future__ import annotations

from itertools import chain
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.filters.arrow_form import Node, taken_apart
from hoodie_ds.filters.predicate import (
    ALL,
    NOTHING,
    UNKNOWN,
    And,
    IsNull,
    Op,
    Opaque,
    Or,
    Predicate,
    StartsWith,
    among,
    compared,
    type_of,
)
from hoodie_ds.filters.rows import matching

_COMPARISONS: Final = {
    "less": Op.LT,
    "less_equal": Op.LE,
    "equal": Op.EQ,
    "not_equal": Op.NE,
    "greater_equal": Op.GE,
    "greater": Op.GT,
}
_ANDS: Final = ("and", "and_kleene")
_ORS: Final = ("or", "or_kleene")


def from_arrow(given: pc.Expression, schema: pa.Schema) -> Predicate:
    """Return the rows for which an expression is true; one that fits no columns is refused."""
    try:
        root = taken_apart(given)
        predicate = Opaque(given, schema, _implied(root, schema), root.columns())
    except (pa.ArrowException, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        predicate = Opaque(given, schema, None, None)
    matching(schema.empty_table(), predicate)  # refused before anything is read
    return predicate


def _implied(node: Node, schema: pa.Schema, negated: bool = False) -> Predicate:
    """What holds of rows for which an expression is true, or false.

    A predicate says of NaN what Spark does, so of floating-point numbers it may let more pass.
    """
    name, arguments = node.function, node.arguments
    if name == "invert":
        return _implied(arguments[0], schema, not negated)
    if name in _ANDS + _ORS:
        joined = And if (name in _ANDS) is not negated else Or
        parts = [_implied(part, schema, negated) for part in arguments]
        # a chain of hundreds is no tree of hundreds of floors
        return joined(tuple(chain(*(p.parts if isinstance(p, joined) else (p,) for p in parts))))
    if name in _COMPARISONS:
        return _comparison(node, schema, negated)
    if node.value is not None and pa.types.is_boolean(node.value.type):
        return ALL if node.value.as_py() is (not negated) else NOTHING
    column = arguments[0].path if arguments else node.path
    kind = type_of(column, schema)
    if kind is None:
        return UNKNOWN
    if node.path and pa.types.is_boolean(kind):
        return compared(column, Op.EQ, not negated, kind)
    if name in ("is_null", "is_valid") and not node.option("nan_is_null", False):
        return IsNull(column, (name == "is_valid") is not negated)
    if name == "is_in" and node.options is not None:
        return _membership(column, node.options["value_set"].values, kind, negated)
    if name == "starts_with" and pa.types.is_string(kind) and not node.option("ignore_case", True):
        return StartsWith(column, str(node.option("pattern", "")), negated)
    return UNKNOWN


def _comparison(node: Node, schema: pa.Schema, negated: bool) -> Predicate:
    op = _COMPARISONS[node.function]
    left, right = node.arguments
    if left.value is not None:
        left, right, op = right, left, op.flipped
    kind = type_of(left.path, schema)
    if kind is None or right.value is None:
        return UNKNOWN
    if pa.types.is_floating(kind) and (negated or op is Op.NE):
        return IsNull(left.path, negated=True)  # which is true of NaN, whatever the value is
    return compared(left.path, op, right.value, kind, negated)


def _membership(
    column: tuple[str, ...], values: pa.Array, kind: pa.DataType, negated: bool
) -> Predicate:
    if negated and pa.types.is_floating(kind):
        return UNKNOWN
    found = among(column, values.drop_null(), kind, negated)
    # Unlike SQL's, Arrow's finds null where it is among the values, and not where it is not.
    return Or((found, IsNull(column))) if negated or values.null_count else found
