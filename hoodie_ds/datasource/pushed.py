"""Filters that Spark pushes down, as far as they are understood.

Spark evaluates all of them again, so they only have to rule out too little rather than too much.
What Spark compares otherwise than Arrow does is left to it: what is no number is greater than any
number there.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from hoodie_ds.errors import OptionError

_EXACT: Final = (
    pa.types.is_signed_integer,
    pa.types.is_boolean,
    pa.types.is_string,
    pa.types.is_date32,
    pa.types.is_decimal128,
    pa.types.is_timestamp,
)
"""Types whose values Arrow compares as Spark does."""


Condition = tuple[str, str, object]
"""Column, operator, and the value that it is compared with."""

COMPARED: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_PUSHED: Final = {
    "=": EqualTo,
    "==": EqualTo,
    "<": LessThan,
    "<=": LessThanOrEqual,
    ">": GreaterThan,
    ">=": GreaterThanOrEqual,
}
_AMONG: Final = ("in", "not in")


def checked(conditions: Iterable[Condition], names: Sequence[str]) -> list[Condition]:
    """Return conditions that a user gives, their operators in small letters.

    Parameters
    ----------
    conditions : iterable of (str, str, object)
        See ``hoodie_ds.read``.
    names : sequence of str
        Columns that there are.

    Raises
    ------
    OptionError
        One is no condition, or names no column or operator.
    """
    found: list[Condition] = []
    for one in conditions:
        if not (isinstance(one, (tuple, list)) and len(one) == 3 and isinstance(one[0], str)):
            raise OptionError("filters", one, 'give conditions such as ("city", "=", "oslo")')
        name, sign, value = one[0], str(one[1]).strip().lower(), one[2]
        if name not in names:
            raise OptionError("filters", one, f"the columns are {', '.join(names)}")
        if sign not in COMPARED and sign not in _AMONG:
            known = ", ".join([*COMPARED, *_AMONG])
            raise OptionError("filters", one, f"the operators are {known}")
        if value is None:
            raise OptionError("filters", one, "nothing is equal to null; filter the DataFrame")
        if sign in _AMONG:
            if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
                raise OptionError("filters", one, "give a list of values")
            value = list(value)
        found.append((name, sign, value))
    return found


def pushed_filters(conditions: Iterable[Condition]) -> list[Filter]:
    """Return conditions as Spark would push them down; what it would not is left out."""
    found: list[Filter] = []
    for name, sign, value in conditions:
        if sign in _PUSHED:
            found.append(_PUSHED[sign]((name,), value))
        elif sign == "in":
            assert isinstance(value, list)
            found.append(In((name,), tuple(value)))
    return found


def row_filter(filters: Iterable[Filter], schema: pa.Schema) -> pc.Expression | None:
    """Return a filter that lets every row pass for which all of Spark's filters hold.

    Parameters
    ----------
    filters : iterable of Filter
        As Spark hands them to ``pushFilters``.
    schema : pyarrow.Schema
        Columns of the table.

    Returns
    -------
    pyarrow.compute.Expression or None
        None if it would let all rows pass.
    """
    found = [_expression(filter_, schema) for filter_ in filters]
    understood = [expression for expression in found if expression is not None]
    return reduce(and_, understood) if understood else None


def _expression(filter_: Filter, schema: pa.Schema) -> pc.Expression | None:
    if isinstance(filter_, Not):
        inner = filter_.child
        if isinstance(inner, (EqualTo, In)):
            found = _expression(inner, schema)
            return None if found is None else ~found
        return None
    path: Sequence[str] = getattr(filter_, "attribute", ())
    if len(path) != 1 or path[0] not in schema.names:
        return None
    column = _Column(pc.field(path[0]), schema.field(path[0]).type)
    if isinstance(filter_, (IsNull, IsNotNull)):
        nulls = column.field.is_null()
        return nulls if isinstance(filter_, IsNull) else ~nulls
    if isinstance(filter_, In):
        return column.among(filter_.value)
    return column.compared(filter_)


@dataclass(frozen=True, slots=True)
class _Column:
    field: pc.Expression
    kind: pa.DataType

    def compared(self, filter_: Any) -> pc.Expression | None:  # noqa: ANN401  of many classes
        """A comparison with one value; None if it is not understood."""
        value = self._value(getattr(filter_, "value", None))
        if value is None:
            return None
        if isinstance(filter_, (EqualTo, EqualNullSafe)):
            return self.field == value
        if isinstance(filter_, GreaterThan):
            return self.field > value
        if isinstance(filter_, GreaterThanOrEqual):
            return self.field >= value
        if isinstance(filter_, LessThan):
            return self.field < value
        if isinstance(filter_, LessThanOrEqual):
            return self.field <= value
        if isinstance(filter_, StringStartsWith) and pa.types.is_string(self.kind):
            return pc.starts_with(self.field, value.as_py())
        return None

    def among(self, given: Iterable[object]) -> pc.Expression | None:
        """Whether the value is one of some, none of which is null."""
        values = [self._value(value) for value in given]
        known = [value.as_py() for value in values if value is not None]
        if len(known) < len(values):
            return None
        return self.field.isin(pa.array(known, self.kind))

    def _value(self, given: object) -> pa.Scalar | None:
        """A value of Spark's in the column's type; None if it is none or not surely the same."""
        if given is None or not any(test(self.kind) for test in _EXACT):
            return None
        if pa.types.is_timestamp(self.kind) and (
            (getattr(given, "tzinfo", None) is None) != (self.kind.tz is None)
        ):
            return None
        try:
            found = pa.scalar(given, self.kind)
            # Arrow cuts 2.5 to 2 and a moment to its day, which would rule rows out.
            return found if found.as_py() == given else None
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            return None
