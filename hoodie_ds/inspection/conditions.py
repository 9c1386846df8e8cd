"""Conditions on rows as people write them, such as ``fare >= 10``, to Arrow's expressions."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.errors import OptionError

_FORM: Final = re.compile(
    r"\s*(?P<name>[^\s=<>!]+)\s*(?:(?P<null>is\s+(?:not\s+)?null)|"
    r"(?P<sign>!=|<=|>=|==|=|<|>)\s*(?P<value>.*))\s*",
    re.IGNORECASE | re.DOTALL,
)
_SIGNS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_REMEDY: Final = "write COLUMN = VALUE, with =, !=, <, <=, > or >=, or COLUMN is [not] null"
_QUOTED: Final = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"", re.DOTALL)
_JOINED: Final = re.compile(
    r"\s(?:and|or)\s+[^\s=<>!]+\s*(?:[=<>!]|is\s|in\s|like\s)", re.IGNORECASE | re.DOTALL
)
_ONE: Final = "is not one value; put it in quotes, and give --where once for each condition"


def conditions(schema: pa.Schema, texts: Iterable[str]) -> pc.Expression | None:
    """Return the expression that all of some conditions hold; None if there are none.

    Parameters
    ----------
    schema : pyarrow.Schema
        Columns of the rows; a value is read as its column's type.
    texts : iterable of str
        Each a column, a sign and a value, which may stand in quotes; or ``is null``.

    Raises
    ------
    OptionError
        A text is no condition, names no column, or has a value of another type.
    """
    found = [_condition(schema, text) for text in texts]
    return reduce(operator.and_, found) if found else None


def _condition(schema: pa.Schema, text: str) -> pc.Expression:
    match = _FORM.fullmatch(text)
    if match is None:
        raise OptionError("--where", text, _REMEDY)
    name = match["name"]
    if name not in schema.names:
        names = ", ".join(schema.names)
        raise OptionError("--where", text, f"{name} is no column; there are {names}")
    field = pc.field(name)
    if match["null"] is not None:
        return field.is_valid() if "not" in match["null"].lower() else field.is_null()
    value, kind = match["value"].strip(), schema.field(name).type
    if _QUOTED.fullmatch(value):
        value = value[1:-1].replace(value[0] * 2, value[0])
    elif value[:1] in ("'", '"') or _JOINED.search(value):
        raise OptionError("--where", text, f"{value} {_ONE}")
    try:
        scalar = pa.array([value]).cast(kind)[0]
    except (pa.ArrowException, ValueError) as error:
        raise OptionError("--where", text, f"{value!r} is no value of type {kind}") from error
    return _SIGNS[match["sign"]](field, scalar)
