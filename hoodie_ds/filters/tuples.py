"""Filters as tuples, such as ``("fare", ">=", 10)``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import pyarrow as pa

from hoodie_ds.errors import OptionError
from hoodie_ds.filters.predicate import SIGNS, And, Predicate, among, compared

Condition = tuple[str, str, object]
"""Column, operator, and the value that it is compared with."""

_AMONG: Final = ("in", "not in")


def checked(conditions: Iterable[Condition], names: Sequence[str]) -> list[Condition]:
    """Return conditions that a user gives, their operators in small letters; refuse any others."""
    found: list[Condition] = []
    for one in conditions:
        if not (isinstance(one, (tuple, list)) and len(one) == 3 and isinstance(one[0], str)):
            raise OptionError("filters", one, 'give conditions such as ("city", "=", "oslo")')
        name, sign, value = one[0], str(one[1]).strip().lower(), one[2]
        if name not in names:
            raise OptionError("filters", one, f"the columns are {', '.join(names)}")
        if sign not in SIGNS and sign not in _AMONG:
            known = ", ".join([*SIGNS, *_AMONG])
            raise OptionError("filters", one, f"the operators are {known}")
        if value is None:
            raise OptionError("filters", one, "nothing is equal to null; filter the DataFrame")
        if sign in _AMONG:
            if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
                raise OptionError("filters", one, "give a list of values")
            value = list(value)
        found.append((name, sign, value))
    return found


def from_tuples(conditions: Iterable[Condition], schema: pa.Schema) -> Predicate:
    """Return the rows for which all of some conditions hold, which have been `checked`.

    A value that its column's type does not hold exactly rules nothing out.
    """
    return And(tuple(_predicate(*condition, schema) for condition in conditions))


def _predicate(name: str, sign: str, value: object, schema: pa.Schema) -> Predicate:
    kind = schema.field(name).type
    if sign in SIGNS:
        return compared((name,), SIGNS[sign], value, kind)
    assert isinstance(value, list)
    return among((name,), value, kind, negated=sign == "not in")
