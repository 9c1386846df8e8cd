"""Filters as users give them, in any language: the one door to the tree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.errors import OptionError
from hoodie_ds.filters.arrow import from_arrow
from hoodie_ds.filters.predicate import ALL, And, Condition, Or, Predicate, Unknown
from hoodie_ds.filters.strings import from_string
from hoodie_ds.filters.tuples import from_tuple

One: TypeAlias = pc.Expression | Predicate | str | Condition
Filter: TypeAlias = One | Iterable[One]
"""An expression of Arrow, a string such as ``city = oslo``, a tuple such as ``("fare", ">=", 10)``,
or an iterable of these, all of which hold for the rows."""

_SOURCES: Final[dict[type, Callable[[Any, pa.Schema], Predicate]]] = {
    pc.Expression: from_arrow,
    str: from_string,
    tuple: from_tuple,
}
_REMEDY: Final = (
    'give a string such as "city = oslo", a tuple such as ("city", "=", "oslo"), '
    'an expression of Arrow such as pyarrow.compute.field("city") == "oslo", or a list of these'
)


def predicate_of(
    given: Filter | None, schema: pa.Schema, key: str = "filter", *, inexact: bool = False
) -> Predicate:
    """Return the rows for which a filter is true, all for None; errors name it `key`.

    Conditions with values that their columns' types do not hold exactly are refused, or `Unknown`
    for a caller that takes `inexact` trees and evaluates the conditions itself.
    """
    try:
        if given is None:
            return ALL
        if _is_one(given):
            return _one(given, schema, inexact)
        if not isinstance(given, Iterable) or isinstance(given, (bytes, Mapping)):
            raise OptionError(key, given, _REMEDY)
        return And(tuple(_one(part, schema, inexact) for part in given))
    except OptionError as error:
        raise OptionError(key, error.value, error.remedy) from error


def _is_one(given: object) -> bool:
    """Whether this is one condition, as a tuple is that begins with a string."""
    if isinstance(given, tuple):
        return isinstance(next(iter(given), None), str)
    return isinstance(given, (Predicate, *_SOURCES))


def _one(given: object, schema: pa.Schema, inexact: bool) -> Predicate:
    if isinstance(given, Predicate):
        return given
    given = tuple(given) if isinstance(given, list) else given
    source = next((found for kind, found in _SOURCES.items() if isinstance(given, kind)), None)
    if source is None:
        raise OptionError("filter", given, _REMEDY)
    predicate = source(given, schema)
    for part in _unknown(predicate):
        if part.given is None or not inexact:
            kinds = ", ".join(f"{field.name} {field.type}" for field in schema)
            remedy = f"give values that the column's type holds exactly; there are {kinds}"
            raise OptionError("filter", given, remedy)
    return predicate


def _unknown(predicate: Predicate) -> Iterator[Unknown]:
    match predicate:
        case Unknown():
            yield predicate
        case And(parts) | Or(parts):
            yield from chain.from_iterable(map(_unknown, parts))
