"""A table as a LazyFrame: Polars finds the rows that it would find in all of them."""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path
from typing import Any, cast

import polars as pl
import pyarrow as pa
import pytest
from polars.testing import assert_frame_equal

import hoodie_ds
from hoodie_ds import HoodieTable
from hoodie_ds.errors import MissingPackageError, OptionError
from hoodie_ds.formats.parquet.base_file_reader import BaseFileReader
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.testing.memory import MemoryStorage
from tests.counted_reads import CountedReads
from tests.tables import BUCKETS, TRIPS, TYPE, TYPES

NAN = float("nan")
COLUMNS = ["id", "city", "ts", "fare", "name", "day", "flag"]


def rows(count: int, ts: int = 1) -> pa.Table:
    """Rows with nulls and NaN in three cities."""
    every = range(count)
    return pa.table(
        {
            "id": [f"k{n}" for n in every],
            "city": ["xyz"[n % 3] for n in every],
            "ts": pa.repeat(ts, count),
            "fare": [None if n % 5 == 0 else NAN if n % 7 == 0 else n / 2 * ts for n in every],
            "name": [None if n % 4 == 0 else f"name {n % 6}" for n in every],
            "day": [None if n % 6 == 0 else date(2026, 1, 1 + n % 9) for n in every],
            "flag": [None if n % 3 == 0 else n % 2 == 0 for n in every],
        }
    )


def made(kind: str) -> MemoryStorage:
    """A table of both kinds of files, some rows replaced and one deleted."""
    storage = MemoryStorage()
    table = HoodieTable("/t", {**TRIPS, TYPE: kind, BUCKETS: "1"}, storage=storage)
    table.upsert(rows(40))
    table.upsert(rows(15, ts=2))
    table.delete(rows(1, ts=3))
    return storage


C = pl.col
FILTERS: list[pl.Expr] = [
    C("fare") > 3,
    ~(C("fare") > 3),
    C("fare") == NAN,
    C("fare") != 2.0,
    C("fare").is_nan(),
    C("fare").is_not_nan(),
    C("name").is_in(["name 1", "name 2"]),
    ~C("name").is_in(["name 1", None]),
    ~C("name").is_in(["name 1"]),
    C("name") != "name 1",
    C("name").ne_missing("name 1"),
    C("name").is_null() | (C("city") == "x"),
    C("name").str.ends_with("3") & (C("city") != "x"),
    (C("ts") == 2) ^ (C("fare") > 1),
    C("day").is_between(date(2026, 1, 2), date(2026, 1, 4)),
    C("day") > pl.lit(None),
    C("flag"),
    ~C("flag"),
    C("ts") > 1.5,
    C("fare").cast(pl.Int64, strict=False) == 3,
    C("fare") > C("ts"),
    C("fare") > C("fare").mean(),
]


@pytest.mark.parametrize("kind", TYPES)
def test_polars_finds_what_it_finds_in_all_rows(kind: str) -> None:
    table = HoodieTable("/t", storage=cast(Storage, made(kind)))
    whole, lazy = pl.DataFrame(table.read()), hoodie_ds.scan_hudi(table)
    assert lazy.collect_schema() == whole.schema
    for expression in FILTERS:
        expected = whole.filter(expression).select(COLUMNS).sort("id")
        found = lazy.filter(expression).select(COLUMNS).collect().sort("id")
        assert_frame_equal(found, expected, check_exact=True)
        streamed = lazy.filter(expression).select("id").collect(engine="streaming").sort("id")
        assert_frame_equal(streamed, expected.select("id"))
        count = lazy.filter(expression).select(pl.len()).collect().item()
        assert count == expected.height
    assert lazy.filter(C("ts") == 2).head(3).collect().height == 3
    assert lazy.select(pl.len()).collect().item() == 39
    assert lazy.head(0).collect().height == 0


@pytest.mark.parametrize("error", [NameError, SyntaxError, TypeError])
def test_a_filter_that_polars_cannot_translate_rules_nothing_out(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_dataset: object) -> None:
        raise error  # as Polars 1.40 does for NaN, ne_missing and ^

    lazy = hoodie_ds.scan_hudi(HoodieTable("/t", storage=cast(Storage, made("MERGE_ON_READ"))))
    monkeypatch.setattr(pl, "scan_pyarrow_dataset", fails)
    assert lazy.filter(C("ts") == 2).collect().height == 14


def cost(lazy: Any, seen: CountedReads) -> tuple[int, int]:
    """Files that a query opens, and bytes that it reads."""
    seen.bytes.clear()
    lazy.collect()
    return len(seen.bytes), seen.bytes.total()


def test_polars_reads_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = CountedReads(made("COPY_ON_WRITE"))
    options = {"hoodie.py.read.verify.checksums": "false"}
    table = HoodieTable("/t", options, storage=cast(Storage, seen))
    lazy = hoodie_ds.scan_hudi(table)
    files, _ = cost(lazy, seen)
    assert files == 3
    assert cost(lazy.filter((C("city") == "x") & C("name").str.contains("1")), seen)[0] == 1
    assert cost(lazy.filter(C("city").is_in(["x", "y"])).select("id"), seen)[0] == 2
    assert cost(lazy.filter(C("city") == "nowhere"), seen)[0] == 0
    assert cost(lazy.head(2), seen)[0] == 1
    read, pieces = list[Any](), BaseFileReader.pieces

    def noted(self: BaseFileReader, columns: Any, *row_groups: Any) -> Any:
        read.append({*columns})
        return pieces(self, columns, *row_groups)

    monkeypatch.setattr(BaseFileReader, "pieces", noted)
    assert lazy.filter(C("ts") > 0).select("id").collect().height == 39
    assert read == [{"id", "ts"}] * 3


def test_a_path_with_options_at_an_earlier_moment(tmp_path: Path) -> None:
    table = HoodieTable(tmp_path, {**TRIPS, BUCKETS: "1"})
    first = table.upsert(rows(6))
    table.upsert(rows(9))
    assert hoodie_ds.scan_hudi(tmp_path).collect().height == 9
    options = {"hoodie.metadata.enable": "false"}
    assert hoodie_ds.scan_hudi(str(tmp_path), options, as_of=first).collect().height == 6


def test_without_polars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingPackageError, match="scan_hudi needs polars: pip install polars"):
        hoodie_ds.scan_hudi(tmp_path)


def test_options_beside_a_table_are_refused() -> None:
    table = HoodieTable("/t", storage=cast(Storage, made("COPY_ON_WRITE")))
    with pytest.raises(OptionError, match="give them to the HoodieTable"):
        hoodie_ds.scan_hudi(table, {"a": "b"})
