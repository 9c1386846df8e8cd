"""Filters over two joined rows, whose columns are named by side: ``source.fare``, ``target.fare``.

A string that begins so is such a column wherever a filter takes a value. No column of a table has a
dot in its name, so filters over one row are not concerned.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.errors import OptionError
from hoodie_ds.filters.arrow import from_arrow
from hoodie_ds.filters.predicate import And, Op, Opaque, Or, Path, Predicate, Unknown, type_of

SOURCE: Final = "source"
TARGET: Final = "target"
_PREFIXES: Final = (f"{SOURCE}.", f"{TARGET}.")


def of_side(side: str, rows: pa.Table) -> pa.Table:
    """Return rows as a side of joined rows."""
    return rows.rename_columns([f"{side}.{name}" for name in rows.column_names])


def joined(target: pa.Table | None, source: pa.Table | None) -> pa.Table:
    """Return rows of two tables side by side, or those of one alone."""
    given = ((TARGET, target), (SOURCE, source))
    sides = [of_side(side, rows) for side, rows in given if rows is not None]
    return pa.table(
        [column for rows in sides for column in rows.columns],
        schema=pa.schema([field for rows in sides for field in rows.schema]),
    )


def as_structs(rows: pa.Table) -> pa.Table:
    """Return joined rows with a struct for each side; other rows as they are."""
    names = rows.column_names
    if not all(name.startswith(_PREFIXES) for name in names):
        return rows
    sides = {}
    for side in dict.fromkeys(name.partition(".")[0] for name in names):
        of_side = rows.select([name for name in names if name.startswith(f"{side}.")])
        inner = [name.partition(".")[2] for name in of_side.column_names]
        sides[side] = of_side.rename_columns(inner).to_struct_array()
    return pa.table(sides)


def side_column(value: object, schema: pa.Schema) -> str | None:
    """Return the column that a value names, if it is one of joined rows; refuse a missing one."""
    if not isinstance(value, str) or not value.startswith(_PREFIXES):
        return None
    if value in schema.names:
        return value
    if not any(name.startswith(_PREFIXES) for name in schema.names):
        return None
    remedy = f"there is no such column here, but {', '.join(schema.names)}"
    raise OptionError("filter", value, f"{remedy}; write a string that begins so as pa.scalar(...)")


def compared_columns(left: Path, op: Op, right: str, schema: pa.Schema) -> Predicate:
    """Return the rows of which one column compares with another; NaN is the greatest number."""
    one, other = pc.field(*left), pc.field(right)
    kinds = type_of(left, schema), type_of((right,), schema)
    if not any(pa.types.is_floating(kind) for kind in kinds if kind is not None):
        return from_arrow(op(one, other), schema)
    one, other = one.cast(pa.float64()), other.cast(pa.float64())
    if op in (Op.GT, Op.GE):
        one, other, op = other, one, op.flipped
    first, second = pc.is_nan(one), pc.is_nan(other)
    expression = {
        Op.LT: (one < other) | (~first & second),
        Op.LE: (one <= other) | second,
        Op.EQ: (one == other) | (first & second),
        Op.NE: (one != other) & ~(first & second),
    }[op]
    return from_arrow(expression & one.is_valid() & other.is_valid(), schema)


def of_target(predicate: Predicate) -> Predicate:
    """Return what a filter over the target's side says of rows by themselves; it may say less."""
    match predicate:
        case And(parts):
            return And(tuple(map(of_target, parts)))
        case Or(parts):
            return Or(tuple(map(of_target, parts)))
        case Opaque(implied=implied):
            return Unknown() if implied is None else of_target(implied)
        case Unknown():
            return predicate
    first, *within = predicate.column
    return replace(predicate, column=(first.removeprefix(f"{TARGET}."), *within))
