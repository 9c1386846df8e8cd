"""A filter as a small tree, of which only so much is taken as can rule rows out.

Every node says of rows, about whose columns something is known, whether one of them may match.
What is not understood may always match, so a tree is never stricter than the filter it is made of.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import reduce
from typing import Any, Final, Protocol, TypeAlias

import pyarrow as pa

from hoodie_ds.formats.parquet.statistics import Bounds, sortable

Known: TypeAlias = Callable[[str], Bounds | None]
"""What is known of a column."""


class Op(Enum):
    """How a value of a column compares with another."""

    LESS = "<"
    LESS_EQUAL = "<="
    EQUAL = "=="
    GREATER_EQUAL = ">="
    GREATER = ">"

    @property
    def flipped(self) -> Op:
        """The same with its sides changed."""
        return _FLIPPED[self]

    @property
    def opposite(self) -> Op | None:
        """What holds of values where this does not; None if that is no `Op`."""
        return _OPPOSITE.get(self)


_FLIPPED: Final = {
    Op.LESS: Op.GREATER,
    Op.LESS_EQUAL: Op.GREATER_EQUAL,
    Op.EQUAL: Op.EQUAL,
    Op.GREATER_EQUAL: Op.LESS_EQUAL,
    Op.GREATER: Op.LESS,
}
_OPPOSITE: Final = {
    Op.LESS: Op.GREATER_EQUAL,
    Op.LESS_EQUAL: Op.GREATER,
    Op.GREATER_EQUAL: Op.LESS,
    Op.GREATER: Op.LESS_EQUAL,
}


class Predicate(Protocol):
    """A node of the tree."""

    def may_match(self, known: Known) -> bool:
        """Whether a row may match, given what is known of its columns."""
        ...

    def values_of(self, column: str) -> frozenset[pa.Scalar] | None:
        """The values that a column has in rows that match; None if there is no such limit."""
        ...


@dataclass(frozen=True, slots=True)
class Anything:
    """What is not understood: any row may match."""

    def may_match(self, known: Known) -> bool:
        """Return True."""
        return True

    def values_of(self, column: str) -> frozenset[pa.Scalar] | None:
        """Return None."""
        return None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Rows whose column compares with a value; never nulls.

    Parameters
    ----------
    column : str
        A column at the top of the table.
    op : Op
        How.
    value : pyarrow.Scalar
        Not null, in the type of the column, which has a kind (`kind_of`).
    """

    column: str
    op: Op
    value: pa.Scalar

    def may_match(self, known: Known) -> bool:
        """Whether the value is not beyond the bounds."""
        bounds = known(self.column)
        if bounds is None:
            return True
        if not bounds.values:
            return False
        low: Any = bounds.low
        high: Any = bounds.high
        value: Any = sortable(self.value)
        if low is None or high is None:
            return True
        if self.op in (Op.LESS, Op.LESS_EQUAL):
            return bool(low < value or (low == value and self.op is Op.LESS_EQUAL))
        if self.op is Op.EQUAL:
            return bool(low <= value <= high)
        # What is no number is the greatest for Spark, and no bound tells of it.
        if pa.types.is_floating(self.value.type):
            return True
        return bool(high > value or (high == value and self.op is Op.GREATER_EQUAL))

    def values_of(self, column: str) -> frozenset[pa.Scalar] | None:
        """Return the value if it is to be equal."""
        return frozenset([self.value]) if (self.column, self.op) == (column, Op.EQUAL) else None


@dataclass(frozen=True, slots=True)
class IsNull:
    """Rows whose column is null, or is not.

    Parameters
    ----------
    column : str
        A column at the top of the table.
    negated : bool
        Whether it is not.
    """

    column: str
    negated: bool = False

    def may_match(self, known: Known) -> bool:
        """Whether there may be nulls, or values."""
        bounds = known(self.column)
        return bounds is None or (bounds.values if self.negated else bounds.nulls)

    def values_of(self, column: str) -> frozenset[pa.Scalar] | None:
        """Return None."""
        return None


@dataclass(frozen=True, slots=True)
class StartsWith:
    """Rows whose text begins with another.

    Parameters
    ----------
    column : str
        A column of text at the top of the table.
    prefix : str
        How it begins.
    """

    column: str
    prefix: str

    def may_match(self, known: Known) -> bool:
        """Whether a text between the bounds may begin so."""
        bounds = known(self.column)
        if bounds is None:
            return True
        if not (isinstance(bounds.low, str) and isinstance(bounds.high, str)):
            return bounds.values
        return bounds.low[: len(self.prefix)] <= self.prefix <= bounds.high

    def values_of(self, column: str) -> frozenset[pa.Scalar] | None:
        """Return None."""
        return None


@dataclass(frozen=True, slots=True)
class And:
    """Rows that match all parts."""

    parts: tuple[Predicate, ...]

    def may_match(self, known: Known) -> bool:
        """Whether all may match."""
        return all(part.may_match(known) for part in self.parts)

    def values_of(self, column: str) -> frozenset[pa.Scalar] | None:
        """Return what all parts leave."""
        given = [part.values_of(column) for part in self.parts]
        limits = [values for values in given if values is not None]
        return reduce(frozenset.intersection, limits) if limits else None


@dataclass(frozen=True, slots=True)
class Or:
    """Rows that match one of the parts; none where there is no part."""

    parts: tuple[Predicate, ...]

    def may_match(self, known: Known) -> bool:
        """Whether one may match."""
        return any(part.may_match(known) for part in self.parts)

    def values_of(self, column: str) -> frozenset[pa.Scalar] | None:
        """Return what the parts allow together."""
        found: set[pa.Scalar] = set()
        for part in self.parts:
            values = part.values_of(column)
            if values is None:
                return None
            found |= values
        return frozenset(found)


ANYTHING: Final = Anything()
NOTHING: Final = Or(())


def one_of(column: str, values: list[pa.Scalar]) -> Predicate:
    """Rows whose column has one of some values, nulls among them if one is null."""
    return Or(
        tuple(
            Comparison(column, Op.EQUAL, value) if value.is_valid else IsNull(column)
            for value in values
        )
    )
