"""Whether rows may match a filter, by what is known of their columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

from hoodie_ds.filters.bounds import Known, sortable
from hoodie_ds.filters.guarantees import satisfiable
from hoodie_ds.filters.predicate import (
    And,
    Comparison,
    In,
    IsNull,
    Op,
    Opaque,
    Or,
    Predicate,
    StartsWith,
    Unknown,
)

_REACHES: Final[dict[Op, Callable[[Any, Any, Any], bool]]] = {
    Op.LT: lambda low, _, value: low < value,
    Op.LE: lambda low, _, value: low <= value,
    Op.EQ: lambda low, high, value: low <= value <= high,
    Op.NE: lambda low, high, value: not low == value == high,
    Op.GE: lambda _, high, value: high >= value,
    Op.GT: lambda _, high, value: high > value,
}
_TRUE_OF_NAN: Final = (Op.NE, Op.GE, Op.GT)


def may_match(predicate: Predicate, known: Known) -> bool:
    """Whether a row may match, given what is known of its columns."""
    match predicate:
        case Unknown():
            return True
        case And(parts):
            return all(may_match(part, known) for part in parts)
        case Or(parts):
            return any(may_match(part, known) for part in parts)
        case Opaque(expression, schema, implied):
            if implied is None:
                return satisfiable(expression, schema, known)
            return may_match(implied, known)
    bounds = known(predicate.column[0]) if len(predicate.column) == 1 else None
    if bounds is None:
        return True
    if isinstance(predicate, IsNull):
        return bounds.values if predicate.negated else bounds.nulls
    if not bounds.values or bounds.low is None or bounds.high is None:
        return bounds.values
    return _reaches(bounds.low, bounds.high, predicate)


def _reaches(low: Any, high: Any, leaf: Comparison | In | StartsWith) -> bool:  # noqa: ANN401
    """Whether a value from `low` to `high` may match, or one that is NaN."""
    match leaf:
        case Comparison(_, op, value):
            if pa.types.is_floating(value.type) and (op in _TRUE_OF_NAN or _is_nan(value)):
                return True
            return _REACHES[op](low, high, sortable(value))
        case In(_, values, negated):
            if pa.types.is_floating(values.type) and (negated or any(map(_is_nan, values))):
                return True
            found = map(sortable, values)
            if negated:
                return low != high or low not in found
            return any(low <= value <= high for value in found)
        case StartsWith(_, prefix, negated):
            if negated:
                return not (low.startswith(prefix) and high.startswith(prefix))
            return bool(low[: len(prefix)] <= prefix <= high)


def _is_nan(value: pa.Scalar) -> bool:
    return bool(value.as_py() != value.as_py())
