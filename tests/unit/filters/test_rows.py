"""Rows that match a tree, beside DuckDB, which compares as Spark does: NaN, too."""

from __future__ import annotations

import math
from datetime import date, datetime, timezone
from decimal import Decimal
from io import BytesIO
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import datasource as spark

from hoodie_ds.errors import SchemaError
from hoodie_ds.filters.bounds import Bounds
from hoodie_ds.filters.predicate import And, Comparison, Op, Or, Predicate, allowed_values
from hoodie_ds.filters.pruning import may_match
from hoodie_ds.filters.rows import matching
from hoodie_ds.filters.spark import from_spark
from hoodie_ds.formats.parquet.statistics import column_bounds

SECOND = datetime(2026, 1, 1, 0, 0, 1, tzinfo=timezone.utc)
VALUES: dict[tuple[str, ...], tuple[pa.DataType, list[Any]]] = {
    ("i",): (pa.int32(), [-(2**31), 0, 5]),
    ("l",): (pa.int64(), [2**53, 2**53 + 1, 0]),
    ("f",): (pa.float64(), [-math.inf, -0.0, 0.0, 1.5, math.nan, math.inf]),
    ("g",): (pa.float32(), [-0.0, 0.5, math.nan]),
    ("s",): (pa.string(), ["", "a", "ab", "\uffff", "\U00010000"]),
    ("b",): (pa.bool_(), [True, False]),
    ("d",): (pa.date32(), [date(1, 1, 1), date(2026, 1, 1)]),
    ("t",): (pa.timestamp("us", "UTC"), [SECOND, SECOND.replace(year=1900)]),
    ("n",): (pa.timestamp("us"), [SECOND.replace(tzinfo=None), datetime(1, 1, 1)]),
    ("m",): (pa.decimal128(9, 2), [Decimal("-1.25"), Decimal("0.00"), Decimal("3.50")]),
    ("x",): (pa.binary(), [b"", b"\x00", b"\xff"]),
    ("r", "i"): (pa.int32(), [1, 2]),
}
TOP = {path[0]: kind for path, (kind, _) in VALUES.items() if len(path) == 1}
SCHEMA = pa.schema({**TOP, "r": pa.struct({"i": pa.int32()})})
COMPARISONS = {
    "EqualTo": "=",
    "EqualNullSafe": "IS NOT DISTINCT FROM",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
}


class Asked:
    """A filter as a tree and as SQL whose literals are columns of one more table."""

    def __init__(self, predicate: Predicate, sql: str, literals: tuple[pa.Scalar, ...]) -> None:
        self.predicate, self.sql, self.literals = predicate, sql, literals

    def with_other(self, other: Asked, join: str) -> Asked:
        joined = And if join == "AND" else Or
        return Asked(
            joined((self.predicate, other.predicate)),
            f"({self.sql} {join} {other.sql})",
            (*self.literals, *other.literals),
        )

    def by_duckdb(self, rows: pa.Table) -> list[int]:
        names = [f"v{number}" for number in range(len(self.literals))]
        columns = [pa.array([value], value.type) for value in self.literals]
        literals = pa.table([*columns, pa.array([0])], [*names, "one"])
        with duckdb.connect() as connection:
            connection.register("rows", rows).register("literals", literals)
            sql = self.sql.format(*names)
            found = connection.sql(f"SELECT k FROM rows, literals WHERE {sql} ORDER BY k")
            return [k for (k,) in found.fetchall()]


@st.composite
def leaves(draw: st.DrawFn) -> Asked:
    path = draw(st.sampled_from(sorted(VALUES)))
    kind, known = VALUES[path]
    column = "rows." + ".".join(path)
    values = [draw(st.sampled_from(known))]
    filter_: spark.Filter
    match draw(st.sampled_from(["null", "in", "prefix", *COMPARISONS])):
        case "null":
            filter_, sql, values = spark.IsNull(path), f"{column} IS NULL", []
        case "in":
            values = draw(st.lists(st.none() | st.sampled_from(known), min_size=1, max_size=3))
            filter_, sql = (
                spark.In(path, tuple(values)),
                f"{column} IN ({', '.join(['{}'] * len(values))})",
            )
        case "prefix":
            values = [draw(st.sampled_from(["", "a", "\uffff", "z"]))]
            path, kind = ("s",), pa.string()
            filter_, sql = spark.StringStartsWith(path, values[0]), "starts_with(rows.s, {})"
        case name:
            filter_, sql = (
                getattr(spark, name)(path, values[0]),
                f"{column} {COMPARISONS[name]} {{}}",
            )
    if draw(st.booleans()):
        filter_, sql = spark.Not(filter_), f"NOT ({sql})"
    literals = tuple(pa.scalar(value, kind) for value in values)
    return Asked(from_spark([filter_], SCHEMA), sql, literals)


trees = st.recursive(
    leaves(),
    lambda part: st.builds(Asked.with_other, part, part, st.sampled_from(["AND", "OR"])),
    max_leaves=5,
)
rows_ = st.lists(
    st.fixed_dictionaries(
        {
            **{p[0]: st.none() | st.sampled_from(v) for p, (_, v) in VALUES.items() if len(p) == 1},
            "r": st.none() | st.fixed_dictionaries({"i": st.none() | st.sampled_from([1, 2])}),
        }
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=60, deadline=None)
@given(rows_, trees)
def test_rows_that_match_are_those_of_sql(rows: list[dict[str, Any]], asked: Asked) -> None:
    table = pa.Table.from_pylist(rows, SCHEMA).append_column("k", [list(range(len(rows)))])
    found = matching(table, asked.predicate)
    assert found["k"].to_pylist() == asked.by_duckdb(table)
    for name in TOP:
        allowed = allowed_values(asked.predicate, name)
        values = {repr(value.as_py()).replace("-0.0", "0.0") for value in allowed or ()}
        if allowed is not None:
            rest = {repr(v).replace("-0.0", "0.0") for v in found[name].to_pylist()} - values
            assert not rest, (name, rest)
    if found.num_rows:
        assert may_match(asked.predicate, bounds_of(table))


def bounds_of(rows: pa.Table) -> Any:
    file = BytesIO()
    pq.write_table(rows, file)
    opened = pq.ParquetFile(file)

    def known(column: str) -> Bounds | None:
        return column_bounds(opened.metadata, opened.schema_arrow, 0, SCHEMA.field(column))

    return known


def test_a_filter_that_does_not_fit_the_columns_is_refused() -> None:
    equal = Comparison(("x",), Op.EQ, pa.scalar("a"))
    with pytest.raises(SchemaError, match="does not fit the table's columns, i"):
        matching(pa.table({"i": [1]}), equal)
