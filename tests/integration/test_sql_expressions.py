"""New values of rows as expressions of SQL."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable, expr
from hoodie_ds.errors import HoodieError, OptionError, ReplayMismatchError, SchemaError
from hoodie_ds.filters.sql_expression import SqlExpression
from tests.integration.test_changes_by_filter import NUMBER, ROWS, WRITER, made
from tests.tables import BUCKETS, found, trips


def test_values_of_the_row_as_it_was() -> None:
    """What is computed of a null is null, and a condition on one is not true."""
    table, _ = made({})
    table.upsert(ROWS)
    values = {"fare": expr("fare * ts + 0.5"), "ts": expr("CASE WHEN fare >= 2 THEN 7 ELSE ts END")}
    assert table.update(values).updated == 3
    assert found(table) == [
        ("a", "x", 1, 1.5),
        ("b", "x", 7, 2.5),
        ("c", "y", 7, 3.5),
        ("d", "y", 1, None),
    ]
    assert table.update({"fare": expr("coalesce(fare, length(city))")}).updated == 1
    assert found(table)[3] == ("d", "y", 1, 1.0)


def test_a_string_is_no_expression() -> None:
    table, _ = made({})
    table.upsert(ROWS.append_column("note", pa.array(["n"] * 4)))
    table.update({"note": "upper(city)"}, "id = a")
    table.update({"note": expr("upper(city)")}, "id = b")
    assert sorted(table.read()["note"].to_pylist()) == ["X", "n", "n", "upper(city)"]


KINDS = {
    "small": pa.int32(),
    "price": pa.decimal128(6, 2),
    "real": pa.float32(),
    "day": pa.date32(),
    "moment": pa.timestamp("us", "UTC"),
    "local": pa.timestamp("us"),
    "nested": pa.struct({"n": pa.int64()}),
}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("small", "small * 2", 6),
        ("small", "small / 1", 3),
        ("price", "price * 2", Decimal("3.00")),
        ("price", "small / 2", Decimal("1.50")),
        ("price", "small", Decimal("3.00")),
        ("price", "CAST(price * 1.015 AS DECIMAL(6, 2))", Decimal("1.52")),
        ("real", "0.1", pa.scalar(0.1, pa.float32()).as_py()),
        ("real", "NULL", None),
        ("day", "day + 1", "2026-01-02"),
        ("moment", "moment + INTERVAL 1 HOUR", "2026-01-01 03:00:00+00:00"),
        ("local", "date_trunc('hour', local)", "2026-01-01 02:00:00"),
        ("nested", "{'n': nested.n + 1}", {"n": 2}),
    ],
)
def test_results_have_the_type_of_their_column(
    name: str, text: str, value: Any, typed: HoodieTable
) -> None:
    rows = typed.read(columns=[*KINDS])
    typed.update({name: expr(text)})
    made = typed.read()[name][0].as_py()
    typed.update({name: rows[name][0]})
    assert (made if value is None or type(made) is type(value) else str(made)) == value


@pytest.fixture(scope="module")
def typed() -> HoodieTable:
    table, _ = made({})
    at = datetime(2026, 1, 1, 2)
    values = [3, Decimal("1.50"), 1.5, at.date(), at, at, {"n": 1}]
    rows = trips(("a", "x", 1, 1.0))
    for (column, kind), value in zip(KINDS.items(), values, strict=True):
        rows = rows.append_column(column, pa.array([value], kind))
    table.upsert(rows)
    return table


@pytest.mark.parametrize(
    ("name", "text", "error", "match"),
    [
        ("fare", "prize + 1", OptionError, "prize.*the columns are id"),
        ("fare", "fare +", OptionError, "syntax error"),
        ("fare", "fare, ts", OptionError, "single expression"),
        ("fare", "*", OptionError, "several columns"),
        ("fare", "sum(fare)", OptionError, "without aggregates"),
        ("fare", "sum(fare) OVER ()", OptionError, "it has a window"),
        ("fare", "(SELECT 1)", OptionError, "it has a subquery"),
        ("fare", "unnest([fare])", OptionError, "UNNEST not supported"),
        ("fare", "1; SELECT 2", OptionError, "expr"),
        ("fare", "rows.fare", OptionError, "expr"),
        ("fare", "upper(city)", SchemaError, "'fare' is string"),
        ("id", "upper(id)", OptionError, "do not change"),
        ("ts", "fare / 2", SchemaError, r"'ts', 0\.5 of type double, is none of int64"),
        ("small", "small * 1000000000", SchemaError, "'small' fails: Out of Range"),
        ("small", "small::BIGINT * 1000000000", SchemaError, "'small', 3000000000"),
        ("price", "price * 1.015", SchemaError, r"'price', Decimal\('1\.52250'\)"),
        ("price", "price / 7", SchemaError, "'price', 0.21"),
        ("price", "small * 10000", SchemaError, "'price', 30000 of type int32"),
        ("day", "city::DATE", SchemaError, "'day' fails: Conversion Error.*'x'|\"x\""),
    ],
)
def test_what_is_refused_changes_nothing(
    name: str, text: str, error: type[HoodieError], match: str, typed: HoodieTable
) -> None:
    rows = ROWS  # noqa: F841  no table of an expression
    before = typed.timeline.commits
    with pytest.raises(error, match=match):
        typed.update({name: expr(text)})
    assert typed.timeline.commits == before


def test_the_value_that_does_not_fit_is_named() -> None:
    table, _ = made({BUCKETS: "1"})
    table.upsert(ROWS)
    with pytest.raises(SchemaError, match=r"'ts', 1\.5 of type double"):
        table.update({"ts": expr("fare / 2 + 0.5")}, "city = x")
    assert table.update({"ts": expr("fare / 2 + 0.5")}, "id = a").updated == 0


def test_a_late_row_is_refused_as_the_first_one_is() -> None:
    rows = pa.table({"note": ["1"] * 5000 + ["x"]})
    with pytest.raises(SchemaError, match="'ts' fails: Conversion Error"):
        expr("note::INT").of(rows, "ts")


def test_one_database_serves_all_expressions_until_it_breaks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[object] = []

    def connect(*args: Any, **options: Any) -> Any:
        opened.append(real(*args, **options))
        return opened[-1]

    def breaks(*_: object) -> None:
        raise duckdb.InternalException("the database is invalid")

    real = duckdb.connect
    monkeypatch.setattr(duckdb, "connect", connect)
    rows = pa.table({"ts": [1, 2]})
    expr("ts + 1").of(rows, "ts")
    before = len(opened)
    assert expr("ts + 2").of(rows, "ts").to_pylist() == [3, 4]
    assert len(opened) == before
    with monkeypatch.context() as broken:
        broken.setattr(SqlExpression, "_check_syntax", breaks)
        with pytest.raises(OptionError, match="is invalid"):
            expr("ts + 3").check(rows.schema)
    assert expr("ts + 3").of(rows, "ts").to_pylist() == [4, 5]
    assert len(opened) == before + 1


@pytest.mark.parametrize("text", ["", None])
def test_no_expression(text: Any) -> None:
    with pytest.raises(OptionError, match="expression of DuckDB's SQL"):
        expr(text)


def test_merges_have_columns_of_both_rows() -> None:
    table, _ = made({})
    table.upsert(ROWS)
    source = trips(("a", "x", 2, 5.0), ("n", "z", 2, 1.0))
    merge = table.merge(source, "id")
    merge.when_matched_update({"fare": expr("greatest(source.fare, target.fare) + target.ts")})
    merge.when_not_matched_insert(
        {"id": expr("source.id || '1'"), "city": "source.city", "ts": expr("source.ts")}
    )
    merge.when_not_matched_by_source_update({"fare": expr("target.fare * 10")}, "target.city = y")
    done = merge.execute()
    assert (done.inserted, done.updated) == (1, 2)
    assert [(row[0], row[3]) for row in found(table)] == [
        ("a", 6.0),
        ("b", 2.0),
        ("c", 30.0),
        ("d", None),
        ("n1", None),
    ]
    wrong = table.merge(source, "id").when_not_matched_by_source_update({"fare": expr("source.ts")})
    with pytest.raises(OptionError, match="source"):
        wrong.execute()


def test_a_numbered_change_is_recognised_by_its_expression() -> None:
    table, _ = made({})
    table.upsert(ROWS)
    number = {WRITER: "w", NUMBER: "1"}
    table.update({"fare": expr("fare + 1")}, options=number)
    assert table.update({"fare": expr("fare + 1")}, options=number).already_committed
    with pytest.raises(ReplayMismatchError):
        table.update({"fare": expr("fare + 2")}, options=number)
