"""What a merge knows of its whole source: which files may have rows that match, and what repeats.

The summaries of parts add up to that of the whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import add
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.filters.bounds import kind_of
from hoodie_ds.filters.predicate import ALL, And, Op, Or, Predicate, among, compared
from hoodie_ds.sink.digest.input_digest import InputDigest

_MOST_VALUES: Final = 10_000
"""Values of a column of the source by which file groups are ruled out one by one."""


@dataclass(frozen=True, slots=True)
class KnownValues:
    """The values of a column, the least and the greatest of many, or any of a type without order.

    Null is none of them.
    """

    values: pa.Array
    are_bounds: bool = False

    @classmethod
    def of(cls, values: pa.Array | pa.ChunkedArray, are_bounds: bool = False) -> KnownValues:
        """Return what to keep of values."""
        known = values.drop_null().unique()
        if not _has_order(known.type):
            return cls(pa.concat_arrays([known.slice(0, 1)]), are_bounds=True)
        if not are_bounds and len(known) <= _MOST_VALUES:
            return cls(known)
        extremes = pc.min_max(known)
        both = pa.array([extremes["min"], extremes["max"]], known.type)
        return cls(both.drop_null(), are_bounds=True)

    def __add__(self, other: KnownValues) -> KnownValues:
        """Return what to keep of the values of both."""
        both = pa.concat_arrays([self.values, other.values])
        return KnownValues.of(both, self.are_bounds or other.are_bounds)

    def within(self, field: pa.Field) -> Predicate:
        """Return the rows that have one of the values in a column, or at least may have."""
        path = (field.name,)
        if not len(self.values):
            return Or(())
        if not _has_order(field.type):
            return ALL
        if not self.are_bounds:
            return among(path, self.values, field.type)
        least, greatest = self.values[0], self.values[1]
        ends = ((Op.GE, least), (Op.LE, greatest))
        return And(tuple(compared(path, op, end, field.type) for op, end in ends))


def _has_order(kind: pa.DataType) -> bool:
    """Whether values of a type rule files out; NaN is in no statistics."""
    return not pa.types.is_floating(kind) and kind_of(kind) is not None


@dataclass(frozen=True, slots=True)
class SourceSummary:
    """What a merge knows of some rows of its source."""

    values: tuple[KnownValues, ...]  # of each column that rows are matched by
    has_nulls: bool  # among these
    digest: InputDigest  # of the rows

    @classmethod
    def of(cls, columns: pa.Table, digest: InputDigest | None = None) -> SourceSummary:
        """Return what to know of rows by the columns that they are matched by."""
        has_nulls = any(column.null_count for column in columns.columns)
        return cls(tuple(map(KnownValues.of, columns.columns)), has_nulls, digest or InputDigest())

    def __add__(self, other: SourceSummary) -> SourceSummary:
        """Return what to know of the rows of both."""
        values = tuple(map(add, self.values, other.values))
        digest = self.digest + other.digest
        return SourceSummary(values, self.has_nulls or other.has_nulls, digest)

    def where(self, columns: pa.Schema) -> Predicate:
        """Return the rows of the table that a row of the source may match."""
        return And(tuple(map(KnownValues.within, self.values, columns)))
