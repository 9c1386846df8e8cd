"""Filters as people write them, such as ``fare >= 10``."""

from __future__ import annotations

import re
from typing import Final

import pyarrow as pa

from hoodie_ds.errors import OptionError
from hoodie_ds.filters.joined import compared_columns, side_column
from hoodie_ds.filters.predicate import SIGNS, Comparison, IsNull, Predicate

_FORM: Final = re.compile(
    r"\s*(?P<name>[^\s=<>!]+)\s*(?:(?P<null>is\s+(?:not\s+)?null)|"
    r"(?P<sign>!=|<>|<=|>=|==|=|<|>)\s*(?P<value>.*))\s*",
    re.IGNORECASE | re.DOTALL,
)
_REMEDY: Final = (
    "write COLUMN = VALUE, with =, !=, <, <=, > or >=, or COLUMN is [not] null; "
    "in Python also ('COLUMN', 'in', [VALUE, ...])"
)
_QUOTED: Final = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"", re.DOTALL)
_JOINED: Final = re.compile(
    r"\s(?:and|or)\s+[^\s=<>!]+\s*(?:[=<>!]|is\s|in\s|like\s)", re.IGNORECASE | re.DOTALL
)
_NO_VALUE: Final = ("'", '"', "=", "<", ">", "!")
"""What an open quote, or an operator that is none (``=<``), leaves in front of a value."""
_ONE: Final = "is not one value; put it in quotes, and give each condition by itself"


def from_string(text: str, schema: pa.Schema) -> Predicate:
    """Return the rows for which a condition holds; what is none is refused.

    It is a column, an operator and a value of the column's type, which may be in quotes, or of
    joined rows another column; or a column and ``is [not] null``.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise OptionError("filter", text, _REMEDY)
    name = match["name"]
    if name not in schema.names:
        names = ", ".join(schema.names)
        raise OptionError("filter", text, f"{name} is no column; there are {names}")
    if match["null"] is not None:
        return IsNull((name,), negated="not" in match["null"].lower())
    value, kind = match["value"].strip(), schema.field(name).type
    other = side_column(value, schema)
    if other is not None:
        return compared_columns((name,), SIGNS[match["sign"]], other, schema)
    if _QUOTED.fullmatch(value):
        value = value[1:-1].replace(value[0] * 2, value[0])
    elif value.startswith(_NO_VALUE) or _JOINED.search(value):
        raise OptionError("filter", text, f"{value} {_ONE}")
    try:
        scalar = pa.array([value]).cast(kind)[0]
    except (pa.ArrowException, ValueError) as error:
        raise OptionError("filter", text, f"{value!r} is no value of type {kind}") from error
    return Comparison((name,), SIGNS[match["sign"]], scalar)
