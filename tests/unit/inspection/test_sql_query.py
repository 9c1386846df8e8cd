"""Queries in SQL over a table: their rows, and what they read."""

from __future__ import annotations

from typing import Any

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import CorruptFileError, OptionError
from hoodie_ds.testing import MemoryStorage
from tests.counted_reads import CountedReads
from tests.tables import TRIPS, TYPE, trips


@pytest.fixture(scope="module")
def storage() -> MemoryStorage:
    storage = MemoryStorage()
    table = HoodieTable("/t", {**TRIPS, TYPE: "COPY_ON_WRITE"}, storage=storage)
    table.upsert(trips(*((f"k{n}", f"c{n % 3}", n, float(n)) for n in range(30))))
    table.upsert(trips(("k1", "c1", 99, None)))
    return storage


def rows(storage: Any, sql: str, at: str | None = None) -> list[tuple[object, ...]]:
    found = HoodieTable("/t", storage=storage).inspect.sql(sql, at)
    return [tuple(row.values()) for part in found for row in part.to_pylist()]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT count(*) FROM t", [(30,)]),
        ("SELECT city, sum(fare) FROM t GROUP BY city ORDER BY city",
         [("c0", 135.0), ("c1", 144.0), ("c2", 155.0)]),
        ("SELECT id FROM t WHERE fare IS NULL OR fare > 28 ORDER BY id", [("k1",), ("k29",)]),
        ("SELECT count(*) FROM t a JOIN t b ON a.ts = b.ts + 1", [(27,)]),
        ("SELECT id FROM t WHERE city IN ('c1', 'c9') AND NOT ts < 28 ORDER BY id",
         [("k1",), ("k28",)]),
        ("FROM t SELECT id WHERE city = 'none'", []),
        ("SELECT DISTINCT _hoodie_partition_path FROM t WHERE city = 'c2'", [("c2",)]),
        ("WITH x AS (SELECT 1 AS n) SELECT n FROM x", [(1,)]),
    ],
)  # fmt: skip
def test_rows_of_a_query(storage: MemoryStorage, sql: str, expected: list[object]) -> None:
    assert rows(storage, sql) == expected


def test_the_table_as_it_was(storage: MemoryStorage) -> None:
    first = HoodieTable("/t", storage=storage).timeline.commits[0].time
    assert rows(storage, "SELECT fare FROM t WHERE id = 'k1'", first) == [(1.0,)]


def test_what_is_ruled_out_is_not_opened(storage: MemoryStorage) -> None:
    seen = CountedReads(storage)
    assert rows(seen, "SELECT max(fare) FROM t WHERE city = 'c2' AND ts > 3") == [(29.0,)]
    assert {path.partition("/")[0] for path in seen.bytes} == {"c2"}


@pytest.mark.parametrize(
    ("sql", "match"),
    [
        ("SELECT price FROM t", "DuckDB refuses it.*price"),
        ("SELECT", "DuckDB refuses it"),
        ("SELECT id FROM storage", "DuckDB refuses it"),
        ("SELECT if(range > 3000, 'x', '1')::INT FROM range(5000)", "DuckDB refuses it: Conver"),
        ("", "one SELECT"),
        ("SELECT 1; SELECT 2", "one SELECT"),
        ("COPY t TO '/tmp/trips.csv'", "one SELECT"),
        ("CREATE TABLE x AS SELECT * FROM t", "one SELECT"),
        ("INSERT INTO t VALUES (1)", "one SELECT"),
    ],
)
def test_what_is_no_query(storage: MemoryStorage, sql: str, match: str) -> None:
    with pytest.raises(OptionError, match=match):
        rows(storage, sql)


def test_an_error_of_the_table_is_its_own(storage: MemoryStorage) -> None:
    damaged = storage.copy()
    for name, content in storage.files.items():
        if name.startswith("c0/") and name.endswith(".parquet"):
            damaged.replace(name, content[:-9])
    with pytest.raises(CorruptFileError):
        rows(damaged, "SELECT sum(fare) FROM t")
