"""A filter as a small tree, which every source makes and every use takes.

Sources push negations down to the leaves, by three-valued logic: ``NOT a < 3`` is ``a >= 3``, and
neither is true of null. So in a tree null and false are the same, and a leaf that is not understood
can be `Unknown`, which lets too many rows pass rather than too few wherever it stands. What changes
or deletes rows has to refuse a tree that holds it.

Values compare as in Spark: NaN equals itself and is greater than any other number.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from functools import reduce
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.filters.literals import as_array, as_type

Path: TypeAlias = tuple[str, ...]
"""A column at the top of the table, and the fields within it that lead to the values."""


class Op(Enum):
    """How a value of a column compares with another; calling it compares anything that can."""

    LT = "<"
    LE = "<="
    EQ = "="
    NE = "!="
    GE = ">="
    GT = ">"

    def __call__(self, left: Any, right: Any) -> Any:  # noqa: ANN401  expressions, columns, values
        """Compare."""
        return getattr(operator, self.name.lower())(left, right)

    @property
    def flipped(self) -> Op:
        """The same with its sides changed."""
        return Op(self.value.translate(_TURNED))

    @property
    def opposite(self) -> Op:
        """What holds of values where this does not."""
        return _OPPOSITES[self]


_TURNED: Final = str.maketrans("<>", "><")
_PAIRS: Final = ((Op.LT, Op.GE), (Op.LE, Op.GT), (Op.EQ, Op.NE))
_OPPOSITES: Final = dict(_PAIRS) | {second: first for first, second in _PAIRS}
SIGNS: Final = {"=": Op.EQ, "==": Op.EQ} | {op.value: op for op in Op} | {"<>": Op.NE}
"""Operators as people write them."""


Condition: TypeAlias = tuple[str, str, object]
"""Column, operator (a sign, ``in`` or ``not in``), and the value or values to compare with."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A part of a filter that is not understood: any row may match.

    `given` is the condition, for an engine that has comparisons of its own for it.
    """

    given: Condition | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Rows whose column compares with a value, which is not null and has the column's type."""

    column: Path
    op: Op
    value: pa.Scalar


@dataclass(frozen=True, slots=True)
class In:
    """Rows whose column has one of some values, or another than all of them; never null."""

    column: Path
    values: pa.Array
    negated: bool = False


@dataclass(frozen=True, slots=True)
class IsNull:
    """Rows whose column is null, or is not."""

    column: Path
    negated: bool = False


@dataclass(frozen=True, slots=True)
class StartsWith:
    """Rows whose string begins with a prefix, or does not; never null."""

    column: Path
    prefix: str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class And:
    """Rows that match all parts; all where there is no part."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Rows that match one of the parts; none where there is no part."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Opaque:
    """Rows for which an expression of Arrow is true, as Arrow evaluates it.

    `implied` holds of the rows that match, and `columns` are those that the expression looks at;
    both are None if it could not be taken apart.
    """

    expression: pc.Expression = field(compare=False)
    schema: pa.Schema
    implied: Predicate | None
    columns: frozenset[str] | None


Predicate: TypeAlias = Unknown | Comparison | In | IsNull | StartsWith | And | Or | Opaque

UNKNOWN: Final = Unknown()
ALL: Final = And(())
NOTHING: Final = Or(())


def type_of(column: Path, schema: pa.Schema) -> pa.DataType | None:
    """Return the type of a column, or of a field within it; None if there is none."""
    kind: pa.DataType = pa.struct(schema)
    for name in column:
        at = kind.get_field_index(name) if pa.types.is_struct(kind) else -1
        if at < 0:
            return None
        kind = kind.field(at).type
    return kind if column else None


def compared(
    column: Path, op: Op, value: object, kind: pa.DataType, negated: bool = False
) -> Predicate:
    """Return the rows whose column, of some type, compares with a value."""
    typed = as_type(value, kind)
    if typed is None:
        return UNKNOWN
    return Comparison(column, op.opposite if negated else op, typed) if typed.is_valid else NOTHING


def among(
    column: Path, values: Iterable[object], kind: pa.DataType, negated: bool = False
) -> Predicate:
    """Return the rows for which SQL's IN, or NOT IN, is true: the latter of none beside a null."""
    typed = as_array(values, kind)
    if typed is None:
        return UNKNOWN
    if typed.null_count and negated:
        return NOTHING
    known = typed.drop_null()
    return In(column, known, negated) if len(known) else ALL if negated else NOTHING


def columns_used(predicate: Predicate) -> frozenset[str] | None:
    """Return the columns at the top of the table that a filter looks at; None if not known."""
    match predicate:
        case Opaque():
            return predicate.columns
        case And(parts) | Or(parts):
            found = [columns_used(part) for part in parts]
            known = [columns for columns in found if columns is not None]
            return frozenset[str]().union(*known) if len(known) == len(found) else None
        case Unknown(given):
            return frozenset(() if given is None else given[:1])
    return frozenset(predicate.column[:1])


def allowed_values(predicate: Predicate, column: str) -> frozenset[pa.Scalar] | None:
    """Return the values that a column has in rows that match; None if there is no such limit."""
    match predicate:
        case Comparison(path, Op.EQ, value) if path == (column,):
            return frozenset([value])
        case In(path, values, False) if path == (column,):
            return frozenset(values)
        case Opaque(implied=implied) if implied is not None:
            return allowed_values(implied, column)
        case And(parts) | Or(parts):
            found = [allowed_values(part, column) for part in parts]
            limits = [values for values in found if values is not None]
            if isinstance(predicate, And):
                return reduce(frozenset.intersection, limits) if limits else None
            return frozenset().union(*limits) if len(limits) == len(parts) else None
    return None
