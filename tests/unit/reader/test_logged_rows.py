"""Rows that log files have a say in: little is read of base files, and nothing is lost."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.columns.meta_columns import META_COLUMNS
from hoodie_ds.filters.given import predicate_of
from hoodie_ds.formats.parquet.base_file_reader import BaseFileReader
from hoodie_ds.reader.logged_rows import LoggedRows
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.storage.connect import open_storage
from tests.golden.histories import BLOCKS
from tests.merge_hooks import HOOK, MODE, add
from tests.recombined import recombined
from tests.tables import BUCKETS, ORDERING, TRIPS, TYPE, VERSION, trips

MOR = {**TRIPS, BUCKETS: "1", TYPE: "MERGE_ON_READ"}
KEYS = ["_hoodie_record_key"]
OLD = trips(("a", "x", 5, 1.0), ("b", "x", 6, 1.0), ("c", "x", 7, 1.0))


def fares(rows: pa.Table) -> list[tuple[str, float]]:
    return sorted((row["id"], row["fare"]) for row in rows.to_pylist())


@contextmanager
def columns_read(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[list[str] | None]]:
    """The columns of every read of base files, but for the two of whole rows by `recombined`."""
    seen: list[list[str] | None] = []
    pieces = BaseFileReader.pieces

    def noted(self: BaseFileReader, columns: Any = None, row_groups: Any = None) -> Any:
        seen.append(columns)
        return pieces(self, columns, row_groups)

    with monkeypatch.context() as patched:
        patched.setattr(BaseFileReader, "pieces", noted)
        yield seen
        for _ in range(2):
            seen.remove([*META_COLUMNS, "id", "city", "ts", "fare"])


def test_only_keys_are_read_of_a_base_file_that_is_older(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = HoodieTable(str(tmp_path), MOR)
    table.upsert(OLD)
    table.upsert(trips(("b", "x", 7, 2.0), ("d", "x", 8, 2.0)))
    table.delete(trips(("a", "x", 0, None)).select(["id", "city"]))
    with columns_read(monkeypatch) as seen:
        assert fares(recombined(tmp_path)) == [("b", 2.0), ("c", 1.0), ("d", 2.0)]
    assert seen == [KEYS]


def test_late_rows_are_compared_once_for_rows_and_once_for_the_bitmap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = HoodieTable(str(tmp_path), MOR)
    table.upsert(OLD)
    table.upsert(trips(("a", "x", 5, 2.0), ("b", "x", 6, 2.0)))  # not above the file's greatest
    compared = ["_hoodie_record_key", "ts"]
    with columns_read(monkeypatch) as seen:
        assert fares(recombined(tmp_path)) == [("a", 2.0), ("b", 2.0), ("c", 1.0)]
    assert seen == [compared, compared]
    table.upsert(trips(("c", "x", 6, 3.0)))
    with columns_read(monkeypatch) as seen:
        assert fares(recombined(tmp_path)) == [("a", 2.0), ("b", 2.0), ("c", 1.0)]
    assert seen == [compared, compared]


def test_keys_that_a_base_file_has_twice(tmp_path: Path) -> None:
    """Each of the two rows is compared by itself, as where slices are read whole."""
    table = HoodieTable(str(tmp_path), MOR)
    table.insert(pa.concat_tables([OLD, trips(*((key, "x", 9, 9.0) for key in "abc"))]))
    assert len(fares(table.read())) == 6
    table.upsert(trips(("a", "x", 8, 2.0), ("b", "x", 9, 2.0)))
    whole = fares(table.read())
    assert fares(recombined(tmp_path)) == whole
    assert ("a", 9.0) in whole
    assert ("a", 1.0) not in whole


@pytest.mark.parametrize(
    ("kind", "early", "late"),
    [
        (pa.date32(), dt.date(2024, 1, 1), dt.date(2024, 1, 2)),
        (pa.timestamp("us", "UTC"), dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 2)),
        (pa.float64(), -1.0, float("nan")),
        (pa.string(), "a", "b"),
    ],
    ids=str,
)
def test_ordering_values_of_any_type(
    kind: pa.DataType, early: Any, late: Any, tmp_path: Path
) -> None:
    table = HoodieTable(str(tmp_path), MOR)

    def rows(ids: str, value: Any, fare: float) -> pa.Table:
        ts = pa.array([value] * len(ids), kind)
        columns = {"id": list(ids), "city": ["x"] * len(ids), "ts": ts, "fare": [fare] * len(ids)}
        return pa.table(columns)

    table.upsert(pa.concat_tables([rows("ab", early, 1.0), rows("c", late, 1.0)]))
    table.upsert(pa.concat_tables([rows("a", late, 2.0), rows("c", early, 2.0)]))
    table.upsert(rows("b", None, 3.0))
    assert fares(recombined(tmp_path)) == [("a", 2.0), ("b", 1.0), ("c", 1.0)]


def test_two_ordering_fields(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), {**MOR, ORDERING: "ts,fare"})
    table.upsert(OLD)
    table.upsert(trips(("a", "x", 9, 0.5), ("c", "x", 7, 0.5)))
    assert fares(recombined(tmp_path)) == [("a", 0.5), ("b", 1.0), ("c", 1.0)]


def test_a_hook_gets_the_rows_that_it_merges(tmp_path: Path) -> None:
    options = {**MOR, MODE: "CUSTOM", HOOK: "tests.merge_hooks:add"}
    table = HoodieTable(str(tmp_path), options)
    table.upsert(OLD)
    table.upsert(trips(("a", "x", 1, 2.0), ("b", "x", 1, -1.0), ("d", "x", 1, 4.0)))
    assert fares(recombined(tmp_path, add)) == [("a", 3.0), ("c", 1.0), ("d", 4.0)]


def test_slices_without_a_base_file_or_without_records(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), MOR)
    table.upsert(OLD)
    assert fares(recombined(tmp_path)) == fares(OLD)


@pytest.mark.parametrize("given", ["fare = 2.0", "id = d"])
def test_what_a_filter_leaves_is_not_remembered_as_all(given: str, tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), {**MOR, VERSION: "6", BLOCKS: "parquet"})
    table.upsert(OLD)
    table.upsert(trips(("b", "x", 7, 2.0)))
    table.upsert(trips(("d", "x", 8, 3.0)))
    pinned = PinnedTable.latest(open_storage(str(tmp_path)))
    (found,) = pinned.slices()
    logged, names = LoggedRows(pinned.reader()), pinned.schema.names
    few = logged.read(found, names, pinned.pruner(predicate_of(given, pinned.schema)))
    assert len(fares(pa.concat_tables(few))) == 1
    assert fares(pa.concat_tables(logged.read(found, names))) == [("b", 2.0), ("d", 3.0)]
