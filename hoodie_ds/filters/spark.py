"""Filters that Spark pushes down; it evaluates all of them again.

Their classes are known by name, as no room but `datasource` imports PySpark.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import pyarrow as pa

from hoodie_ds.filters.predicate import (
    UNKNOWN,
    And,
    IsNull,
    Op,
    Or,
    Path,
    Predicate,
    StartsWith,
    among,
    compared,
    type_of,
)

_COMPARISONS: Final = {
    "EqualTo": Op.EQ,
    "GreaterThan": Op.GT,
    "GreaterThanOrEqual": Op.GE,
    "LessThan": Op.LT,
    "LessThanOrEqual": Op.LE,
}


def from_spark(filters: Iterable[object], schema: pa.Schema) -> Predicate:
    """Return the rows for which all filters are true that Spark gives to ``pushFilters``."""
    return And(tuple(_predicate(filter_, schema) for filter_ in filters))


def _predicate(filter_: Any, schema: pa.Schema, negated: bool = False) -> Predicate:  # noqa: ANN401
    name = type(filter_).__name__
    if name == "Not":
        return _predicate(filter_.child, schema, not negated)
    column: Path = tuple(getattr(filter_, "attribute", ()))
    kind = type_of(column, schema)
    if kind is None:
        return UNKNOWN
    if name in ("IsNull", "IsNotNull"):
        return IsNull(column, (name == "IsNotNull") is not negated)
    if name == "EqualNullSafe":
        if filter_.value is None:
            return IsNull(column, negated)
        equal = compared(column, Op.EQ, filter_.value, kind, negated)
        return Or((equal, IsNull(column))) if negated else equal
    if name == "In":
        return among(column, filter_.value, kind, negated)
    if name == "StringStartsWith" and pa.types.is_string(kind):
        return StartsWith(column, filter_.value, negated)
    if name in _COMPARISONS:
        return compared(column, _COMPARISONS[name], filter_.value, kind, negated)
    return UNKNOWN
