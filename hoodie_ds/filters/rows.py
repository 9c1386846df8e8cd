"""Rows of Arrow that match a filter."""

from __future__ import annotations

from functools import reduce
from operator import and_, or_

import numpy as np
import pyarrow as pa
import pyarrow.acero as acero
import pyarrow.compute as pc

from hoodie_ds.columns.arrow_columns import Mask, as_numpy
from hoodie_ds.errors import SchemaError
from hoodie_ds.filters.predicate import (
    ALL,
    And,
    Comparison,
    In,
    IsNull,
    Op,
    Opaque,
    Or,
    Predicate,
    StartsWith,
    Unknown,
)


def matching(rows: pa.Table, predicate: Predicate) -> pa.Table:
    """Return the rows that match; refuse a filter that does not fit their columns."""
    if predicate == ALL:
        return rows
    expression = to_arrow(predicate)
    try:
        # `Table.filter` takes threads for each piece; the pieces have some already.
        steps = [
            acero.Declaration("table_source", acero.TableSourceNodeOptions(rows)),
            acero.Declaration("filter", acero.FilterNodeOptions(expression)),
        ]
        return acero.Declaration.from_sequence(steps).to_table(use_threads=False)
    except pa.ArrowException as error:
        raise SchemaError(
            f"the filter {str(expression)[:200]} does not fit the table's columns, "
            f"{', '.join(rows.column_names)}: {error}"
        ) from error


def are_true(rows: pa.Table, predicate: Predicate) -> Mask:
    """Return of which rows a filter is true; it is not where it is unknown, as that of a null."""
    if predicate == ALL:
        return np.ones(rows.num_rows, np.bool_)
    return as_numpy(pc.fill_null(evaluated(rows, to_arrow(predicate)), False))


def evaluated(rows: pa.Table, expression: pc.Expression) -> pa.ChunkedArray:
    """Return the values of an expression; refuse one that does not fit the columns of the rows."""
    try:
        steps = [
            acero.Declaration("table_source", acero.TableSourceNodeOptions(rows)),
            acero.Declaration("project", acero.ProjectNodeOptions([expression])),
        ]
        return acero.Declaration.from_sequence(steps).to_table(use_threads=False).column(0)
    except pa.ArrowException as error:
        raise SchemaError(
            f"the expression {str(expression)[:200]} does not fit the table's columns, "
            f"{', '.join(rows.column_names)}: {error}"
        ) from error


def to_arrow(predicate: Predicate) -> pc.Expression:
    """Return an expression that is true of the rows that match; of more if a part is unknown."""
    match predicate:
        case Unknown():
            return pc.scalar(True)
        case Opaque(expression):
            return expression
        case And(parts):
            return reduce(and_, map(to_arrow, parts), pc.scalar(True))
        case Or(parts):
            return reduce(or_, map(to_arrow, parts), pc.scalar(False))
    column = pc.field(*predicate.column)
    match predicate:
        case IsNull(_, negated):
            return ~column.is_null() if negated else column.is_null()
        case StartsWith(_, prefix, negated):
            found = pc.starts_with(column, prefix)
            return ~found if negated else found
        case In(_, values, negated):
            found = column.isin(_with_both_zeros(values))
            return ~found & column.is_valid() if negated else found
        case Comparison(_, op, value):
            if pa.types.is_floating(value.type):
                return _compared(column, op, value)
            return op(column, value)


def _compared(column: pc.Expression, op: Op, value: pa.Scalar) -> pc.Expression:
    """A comparison of floating-point numbers in which NaN is the greatest."""
    is_nan = pc.is_nan(column)
    if value.as_py() != value.as_py():
        return op(is_nan, pc.scalar(True))
    return op(column, value) | is_nan if op in (Op.GT, Op.GE) else op(column, value)


def _with_both_zeros(values: pa.Array) -> pa.Array:
    """Zeros with their opposites, which Arrow tells apart in `isin` alone."""
    if not pa.types.is_floating(values.type):
        return values
    zeros = values.filter(pc.equal(values, 0))
    return pa.concat_arrays([values, zeros, pc.negate(zeros)])
