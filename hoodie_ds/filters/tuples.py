"""Filters as tuples, such as ``("fare", ">=", 10)``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyarrow as pa

from hoodie_ds.errors import OptionError
from hoodie_ds.filters.joined import compared_columns, side_column
from hoodie_ds.filters.predicate import SIGNS, UNKNOWN, Predicate, Unknown, among, compared

_AMONG: Final = ("in", "not in")


def from_tuple(given: tuple[object, ...], schema: pa.Schema) -> Predicate:
    """Return the rows for which a condition holds; what is none is refused.

    One whose value its column's type does not hold exactly is `Unknown`.
    """
    if len(given) != 3 or not isinstance(given[0], str):
        remedy = 'give a tuple such as ("city", "=", "oslo"), and several conditions as a list'
        raise OptionError("filter", given, remedy)
    name, sign, value = given[0], str(given[1]).strip().lower(), given[2]
    if name not in schema.names:
        raise OptionError(
            "filter", given, f"{name} is no column; there are {', '.join(schema.names)}"
        )
    if sign not in SIGNS and sign not in _AMONG:
        known = ", ".join([*SIGNS, *_AMONG])
        raise OptionError(
            "filter", given, f'the operators are {known}; of nulls write "{name} is null"'
        )
    if value is None:
        raise OptionError("filter", given, f'nothing is equal to null; give "{name} is null"')
    kind = schema.field(name).type
    other = side_column(value, schema) if sign in SIGNS else None
    if other is not None:
        return compared_columns((name,), SIGNS[sign], other, schema)
    if sign in SIGNS:
        found = compared((name,), SIGNS[sign], value, kind)
    elif isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise OptionError("filter", given, "give a list of values")
    else:
        value = list(value)
        found = among((name,), value, kind, negated=sign == "not in")
    return Unknown((name, sign, value)) if found == UNKNOWN else found
