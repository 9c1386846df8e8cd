"""Random reads of random tables have the rows of a whole read, filtered one by one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable, scan_hudi
from hoodie_ds.slices.merge_outcomes import merge_outcomes
from tests.random_reads import SIGNS, Query, RandomTable, Row, shown
from tests.tiers import by_day

READS = 4


@pytest.mark.slow
@pytest.mark.parametrize("seed", by_day(range(96), [0, 5, 10]))
def test_answers_are_those_of_a_whole_read(seed: int, tmp_path: Path) -> None:
    made = RandomTable(tmp_path / "t", seed)
    for _ in range(7):
        made.change()
        whole = made.whole
        rows = whole.to_pylist()
        assert len({row["id"] for row in rows}) == len(rows)
        for _ in range(READS):
            query = made.query(rows)
            check(made, query, whole, rows, merge_outcomes.cache_clear)
            check(made, query, whole, rows, lambda: None)  # what log files replace is known


def check(
    made: RandomTable,
    query: Query,
    whole: pa.Table,
    rows: list[Row],
    prepare: Callable[[], None],
) -> None:
    def table() -> HoodieTable:
        prepare()
        return made.table

    columns, filters = query.columns or made.schema.names, query.filters
    wanted = query.of(rows)
    assert shown(table().read(columns, filters).to_pylist(), columns) == wanted, query
    assert shown(pa.table(table().scan(columns, filters)).to_pylist(), columns) == wanted, query
    assert table().count(filters) == len(wanted), query
    assert table().head(3, columns).num_rows == min(3, len(rows))

    expression = query.expression(made.schema)
    wanted = shown(whole.filter(expression).to_pylist(), columns)
    dataset = table().to_pyarrow_dataset()
    assert shown(dataset.to_table(columns, expression).to_pylist(), columns) == wanted, query
    assert dataset.count_rows(filter=expression) == len(wanted), query

    condition = pl_condition(query)
    wanted = shown(pl.DataFrame(whole).filter(condition).to_dicts(), columns)
    found = scan_hudi(table()).filter(condition).select(columns).collect()
    assert shown(found.to_dicts(), columns) == wanted, query

    with duckdb.connect() as con:
        con.execute("SET TimeZone = 'UTC'")
        con.register("stored", whole)
        con.execute("CREATE TABLE plain AS SELECT * FROM stored")
        con.register("trips", dataset)
        where = " AND ".join(
            f'"{one.column}" {sql(one.sign, one.value)}' for one in query.conditions
        )
        asked = ", ".join(f'"{name}"' for name in columns)
        answers = [
            con.sql(f"SELECT {asked} FROM {name} WHERE {where or 'true'}").to_arrow_table()
            for name in ("plain", "trips")
        ]
    assert shown(answers[1].to_pylist(), columns) == shown(answers[0].to_pylist(), columns), query


def pl_condition(query: Query) -> pl.Expr:
    found = pl.lit(True)
    for one in query.conditions:
        column = pl.col(one.column)
        if one.value is None:
            found &= column.is_null() if one.sign == "is null" else column.is_not_null()
        elif isinstance(one.value, list):
            among = column.is_in(one.value)
            found &= among if one.sign == "in" else ~among
        else:
            found &= SIGNS[one.sign](column, one.value)
    return found


def sql(sign: str, value: object) -> str:
    if value is None:
        return sign
    if isinstance(value, list):
        return f"{sign} ({', '.join(map(literal, value))})"
    return f"{sign} {literal(value)}"


def literal(value: object) -> str:
    if isinstance(value, float):
        return f"'{value!r}'::DOUBLE"
    if isinstance(value, datetime):
        return f"TIMESTAMPTZ '{value.isoformat(sep=' ')}'"
    return str(value) if not isinstance(value, str) else "'" + value.replace("'", "''") + "'"
