"""What a write does that finds its rows by a filter, and not by their keys."""

from __future__ import annotations

import pickle
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.arrow_columns import Mask, as_numpy, one_chunk
from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.errors import OptionError, SchemaError
from hoodie_ds.filters.predicate import Predicate
from hoodie_ds.filters.rows import evaluated, to_arrow
from hoodie_ds.filters.sql_expression import SqlExpression
from hoodie_ds.formats.schema_conversion import conform_column

NewValue: TypeAlias = Any
"""A value, an expression of Arrow or SQL over the row, or a function from rows to an Arrow column.
"""

_ANY_INTEGER: Final = pa.decimal128(20, 0)
"""The type of decimals that holds integers of all widths."""
_BITS: Final = {pa.float32(): pa.int32(), pa.float64(): pa.int64()}


@dataclass(frozen=True, slots=True)
class RowChange:
    """Deletes the rows of a table that match a filter, or sets columns of them to new values."""

    where: Predicate
    values: Mapping[str, NewValue] = field(default_factory=dict)

    @classmethod
    def update(
        cls,
        where: Predicate,
        values: Mapping[str, NewValue],
        schema: pa.Schema,
        properties: TableProperties,
    ) -> RowChange:
        """Return a change of columns, none of keys and partitions, as in Hudi's UPDATE."""
        return cls(where, typed_values(values, schema, fixed_columns(properties), schema))

    @property
    def statement(self) -> list[bytes]:
        """The change itself, by which a repeated one is recognised: its rows are others by then.

        A function counts by its name.
        """
        return statement_of(self.where, self.values)

    def of(self, rows: pa.Table) -> tuple[pa.Table, Mask]:
        """Return rows of all columns with their new values, and which of them have changed.

        All new values are made of the old rows.
        """
        return with_values(rows, self.values, rows)


def fixed_columns(properties: TableProperties) -> set[str]:
    """Return the columns of record keys and partitions, which do not change."""
    fixed = (*properties.record_key_fields, *properties.partition_fields)
    return {*fixed, *(path.partition(".")[0] for path in fixed)}


def check_given(values: Mapping[str, NewValue]) -> None:
    """Refuse what names no new values."""
    if not isinstance(values, Mapping) or not values:
        raise OptionError("set", values, "give a mapping from columns to their new values")


def typed_values(
    values: Mapping[str, NewValue], schema: pa.Schema, fixed: Collection[str], given: pa.Schema
) -> dict[str, NewValue]:
    """Return new values in the types of their columns, none of which is `fixed`.

    They are made of rows with the columns of `given`.
    """
    check_given(values)
    for name in values:
        if name not in schema.names:
            raise OptionError("set", name, f"the columns are {', '.join(schema.names)}")
        if name in fixed:
            raise OptionError(
                "set", name, "record keys and partitions do not change; delete and insert rows"
            )
    for name, value in values.items():
        if isinstance(value, SqlExpression):
            _fitted(value.check(given), schema.field(name).type, name)
    return {name: _typed(value, schema.field(name)) for name, value in values.items()}


def with_values(
    rows: pa.Table, values: Mapping[str, NewValue], given: pa.Table
) -> tuple[pa.Table, Mask]:
    """Return rows with new values, made of `given` rows, and which of them have changed.

    Nested values always count as changed.
    """
    new, differ = rows, [np.zeros(rows.num_rows, np.bool_)]
    for name, value in values.items():
        number, old = rows.schema.get_field_index(name), rows.column(name)
        column = _column(value, given, name)
        if isinstance(value, SqlExpression):
            column = _fitted(column, old.type, name)
        column = conform_column(column, old.type, name)
        new = new.set_column(number, rows.schema.field(number), column)
        differ.append(~same_values(one_chunk(old), one_chunk(column)))
    return new, reduce(np.logical_or, differ)


def statement_of(where: Predicate, values: Mapping[str, NewValue]) -> list[bytes]:
    """Return what a filter and new values are, by which they are recognised."""
    columns = sorted(values.items())
    return [pickle.dumps(to_arrow(where)), *(_named(*column) for column in columns)]


def _typed(value: NewValue, column: pa.Field) -> NewValue:
    """A value in the type of its column; refuse one that is another there.

    Arrow would cut 2.5 to 2, and a moment to its day; only a float may be rounded.
    """
    if isinstance(value, (pc.Expression, SqlExpression)) or callable(value):
        return value
    given = value.as_py() if isinstance(value, pa.Scalar) else value
    remedy = f"column {column.name} is {column.type}"
    if isinstance(given, str):
        remedy += f"; an expression of SQL is hoodie_ds.expr({given!r})"
    try:
        typed = pa.scalar(given, column.type)
        same = given != given or typed.as_py() == given or _rounds(column.type)  # NaN
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise OptionError("set", value, remedy) from error
    if not same:
        raise OptionError("set", value, remedy)
    return typed


def _rounds(kind: pa.DataType) -> bool:
    """Whether a type has floating-point numbers that are less exact than those of Python."""
    parts = (kind.field(number).type for number in range(kind.num_fields))
    return pa.types.is_float32(kind) or any(map(_rounds, parts))


def _named(column: str, value: NewValue) -> bytes:
    if isinstance(value, pc.Expression):
        return column.encode() + pickle.dumps(value)
    if isinstance(value, SqlExpression):
        return f"{column} expr {value.text}".encode()
    if isinstance(value, pa.Scalar):
        return f"{column} {value.type} {value.as_py()!r}".encode()
    return f"{column} {getattr(value, '__qualname__', type(value).__qualname__)}".encode()


def _column(value: NewValue, rows: pa.Table, name: str) -> pa.ChunkedArray:
    if isinstance(value, pc.Expression):
        return evaluated(rows, value)
    if isinstance(value, SqlExpression):
        return value.of(rows, name)
    found = value if isinstance(value, pa.Scalar) else value(rows)
    if isinstance(found, pa.Scalar):
        found = pa.repeat(found, rows.num_rows)
    if isinstance(found, pa.Array):
        found = pa.chunked_array([found])
    if not isinstance(found, pa.ChunkedArray) or len(found) != rows.num_rows:
        raise SchemaError(
            f"the function for column {name!r} did not return an Arrow column of {rows.num_rows} "
            "values, one for each row that it was given"
        )
    return found


def _fitted(column: pa.ChunkedArray, kind: pa.DataType, name: str) -> pa.ChunkedArray:
    """Return numbers that SQL made in the type of their column, which may round only to floats."""
    if column.type == kind or not (_is_number(column.type) and _is_number(kind)):
        return conform_column(column, kind, name)
    made = _cast(column, kind)
    if made is not None:
        return made
    while len(column) > 1:  # to the first that does not fit
        half = len(column) // 2
        fits = _cast(column.slice(0, half), kind) is not None
        column = column.slice(half) if fits else column.slice(0, half)
    raise SchemaError(
        f"a new value of column {name!r}, {column[0].as_py()!r} of type {column.type}, is none of "
        f"{kind}; round or cast it in the expression"
    )


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | None:
    """Return numbers in a type; None if one is none of it."""
    with suppress(pa.ArrowException):
        if pa.types.is_integer(column.type) and pa.types.is_decimal(kind):
            column = column.cast(_ANY_INTEGER)  # Arrow asks that all integers of a type fit
        made = column.cast(kind)
        if not pa.types.is_decimal(kind) or made.cast(column.type).equals(column):
            return made
    return None


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def same_values(old: pa.Array, new: pa.Array) -> Mask:
    """Which values are the same: null is, and floating-point numbers are of the same bits."""
    if pa.types.is_nested(old.type):
        return np.zeros(len(old), np.bool_)
    if old.type in _BITS:
        old, new = old.view(_BITS[old.type]), new.view(_BITS[new.type])
    equal = pc.fill_null(pc.equal(old, new), False)
    same: Mask = as_numpy(pc.or_(equal, pc.and_(old.is_null(), new.is_null())))
    return same
