"""Filters of any language, evaluated by Spark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import DataType, DoubleType, FloatType, StructType

from hoodie_ds.datasource.task import in_worker
from hoodie_ds.filters.predicate import (
    ALL,
    SIGNS,
    UNKNOWN,
    And,
    Comparison,
    In,
    IsNull,
    Opaque,
    Or,
    Path,
    Predicate,
    StartsWith,
    Unknown,
)
from hoodie_ds.filters.rows import matching


def rows_that_match(rows: DataFrame, predicate: Predicate, schema: pa.Schema) -> DataFrame:
    """Return the rows of a DataFrame that match; `schema` has the table's types.

    Of an expression of Arrow Spark evaluates what it implies, and Python the whole.
    """
    if predicate == ALL:
        return rows
    found = rows.where(_column(predicate))
    if not _has_opaque(predicate):
        return found
    return found.mapInArrow(MatchingRows(predicate, schema), rows.schema)


@dataclass(frozen=True)
class MatchingRows:
    """A function for ``mapInArrow``: the rows that match, compared in the table's types."""

    predicate: Predicate
    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield them."""
        with in_worker():
            for batch in batches:
                rows = pa.Table.from_batches([batch]).cast(self.schema)
                yield from matching(rows, self.predicate).cast(batch.schema).to_batches()


def _has_opaque(predicate: Predicate) -> bool:
    match predicate:
        case And(parts) | Or(parts):
            return any(map(_has_opaque, parts))
    return isinstance(predicate, Opaque)


def _column(predicate: Predicate) -> Column:
    """What is true of the rows that match; of more where a part is opaque or unknown."""
    match predicate:
        case Unknown(given):
            return sf.lit(True) if given is None else _given(*given)
        case Opaque(implied=implied):
            return _column(implied or UNKNOWN)
        case And(parts):
            return reduce(and_, map(_column, parts), sf.lit(True))
        case Or(parts):
            return reduce(or_, map(_column, parts), sf.lit(False))
    column = named(predicate.column)
    match predicate:
        case IsNull(_, negated):
            return column.isNotNull() if negated else column.isNull()
        case StartsWith(_, prefix, negated):
            found = column.startswith(prefix)
        case In(_, values, negated):
            found = column.isin([_literal(value) for value in values])
        case Comparison(_, op, value):
            found, negated = op(column, _literal(value)), False
    return ~found if negated else found


def _given(name: str, sign: str, value: object) -> Column:
    column = named((name,))
    if sign in SIGNS:
        found: Column = SIGNS[sign](column, value)
        return found
    assert isinstance(value, list)
    return column.isin(value) if sign == "in" else ~column.isin(value)


def _literal(value: pa.Scalar) -> Column:
    """A value of the table as Spark's; its session's time zone has no part in it."""
    if pa.types.is_timestamp(value.type) and value.type.tz is None:
        return sf.lit(str(value.cast(pa.timestamp("us"), safe=False))).cast("timestamp_ntz")
    if pa.types.is_timestamp(value.type):  # before 1582 Spark takes Python's for Julian dates
        return sf.timestamp_micros(sf.lit(value.cast(pa.timestamp("us", "UTC")).value))
    return sf.lit(value.as_py())


def with_nan(rows: DataFrame, schema: StructType) -> DataFrame:
    """Return the same rows; Spark skips none of them by statistics of floating-point columns.

    It finds NaN greater than any number, while the minimum and maximum of Arrow's files, and of
    what Spark persists, leave NaN out. Spark compares with them only filters of bare columns.
    `schema` is that of the rows.
    """
    changed = {}
    for field in schema:
        paths = [*_floating(field.dataType, ())]
        if not paths:
            continue  # to name a column takes a dozen messages to the JVM
        column = named((field.name,))
        if paths == [()]:
            changed[field.name] = sf.nanvl(column, column)
        else:
            for path in paths:
                inner = named((field.name, *path))
                column = column.withField(quoted(path), sf.nanvl(inner, inner))
            changed[field.name] = column
    is_clear = len({name.lower() for name in schema.names}) == len(schema.names)
    return rows.withColumns(changed) if changed and is_clear else rows


def _floating(kind: DataType, path: Path) -> Iterator[Path]:
    """Where a type has floating-point numbers that have statistics."""
    if isinstance(kind, (DoubleType, FloatType)):
        yield path
    elif isinstance(kind, StructType):
        for field in kind:
            yield from _floating(field.dataType, (*path, field.name))


def named(path: Path) -> Column:
    """Return a column, or a field of one, whatever its name."""
    return sf.col(quoted(path))


def quoted(path: Path) -> str:
    """Return the name of a column, or of a field of one, as Spark's methods take it."""
    return ".".join(f"`{name.replace('`', '``')}`" for name in path)
