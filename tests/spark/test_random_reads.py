"""Spark's answers of random tables have the rows of a whole read, filtered one by one."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from functools import reduce
from operator import and_
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Column
from pyspark.sql import functions as sf

import hoodie_ds
from tests.merge_hooks import HOOK
from tests.random_reads import SIGNS, Condition, Query, RandomTable, shown
from tests.tiers import AT_NIGHT

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=AT_NIGHT) for seed in range(24)])
def test_answers_are_those_of_a_whole_read(spark: Any, tmp_path: Path, seed: int) -> None:
    made = RandomTable(tmp_path / "t", seed)
    options = {key: text for key, text in made.options.items() if key == HOOK}

    def read(**more: Any) -> Any:
        return hoodie_ds.read(spark, str(made.path), options, **more)

    for _ in range(5):
        made.change()
        rows = made.whole.to_pylist()
        for _ in range(2):
            query = made.query(rows)
            columns, wanted = query.columns or made.schema.names, query.of(rows)
            for _ in range(3):  # what log files hold is persisted the second time
                asked = read(columns=columns, filter=query.filters)
                assert shown(asked.toArrow().to_pylist(), columns) == wanted, query
                assert asked.count() == len(wanted), query
                filtered = read().where(_condition(query)).select([_column(c) for c in columns])
                assert shown(filtered.toArrow().to_pylist(), columns) == wanted, query


def _condition(query: Query) -> Column:
    return reduce(and_, map(_holds, query.conditions), sf.lit(True))


def _holds(condition: Condition) -> Column:
    column, value = _column(condition.column), condition.value
    if value is None:
        return column.isNull() if condition.sign == "is null" else column.isNotNull()
    if isinstance(value, list):
        among = column.isin([_literal(one) for one in value])
        return among if condition.sign == "in" else ~among
    found: Column = SIGNS[condition.sign](column, _literal(value))
    return found


def _column(name: str) -> Column:
    return sf.col(f"`{name}`")


def _literal(value: Any) -> Column:
    if isinstance(value, datetime):  # Spark takes Python's before 1582 for days of Julius
        return sf.timestamp_micros(sf.lit((value - EPOCH) // timedelta(microseconds=1)))
    return sf.lit(value)
