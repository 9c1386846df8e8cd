"""The public table: what its parameters are for."""

from __future__ import annotations

import re
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import OptionError, SchemaError
from hoodie_ds.inspection.arguments import Moment
from hoodie_ds.storage.connect import open_storage
from tests.merge_hooks import HOOK
from tests.tables import BUCKETS, TRIPS, TYPE, TYPES, VERSION, found, tree, trips

NULLS = "hoodie.write.set.null.for.missing.columns"
ROWS = trips(("a", "x", 1, 1.0), ("b", "y", 1, 1.0))


@dataclass(frozen=True)
class StoppedClock:
    def now_ms(self) -> int:
        return 1_772_891_907_749  # 2026-03-07T13:58:27.749Z


@pytest.mark.parametrize("kind", TYPES)
def test_a_table_in_memory(tmp_path: Path, kind: str) -> None:
    table = HoodieTable(f"memory://{tmp_path}", {**TRIPS, TYPE: kind})
    table.upsert(ROWS)
    table.upsert(trips(("a", "x", 0, 0.0), ("b", "y", 2, 2.0), ("c", "y", 1, 1.0)))
    table.delete(ROWS.select(["id", "city"]).slice(0, 1))
    assert found(table) == [("b", "y", 2, 2.0), ("c", "y", 1, 1.0)]


def test_a_storage_that_is_passed_in_is_used(tmp_path: Path) -> None:
    storage = open_storage(f"memory://{tmp_path}")
    HoodieTable(str(tmp_path / "elsewhere"), TRIPS, storage=storage).upsert(ROWS)
    assert storage.list(".hoodie")
    assert not (tmp_path / "elsewhere").exists()


def test_instants_increase_while_the_clock_stands(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), TRIPS, clock=StoppedClock())
    for _ in range(3):
        table.upsert(ROWS)
    assert [instant.time for instant in table.timeline.completed] == [
        "20260307135827749",
        "20260307135827750",
        "20260307135827751",
    ]


def test_properties_and_schema_describe_the_table(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), TRIPS)
    table.upsert(ROWS)
    assert (table.properties.name, table.properties.version) == ("trips", 6)
    assert table.properties.num_buckets == int(TRIPS[BUCKETS])
    assert table.schema.names[5:] == ROWS.column_names


@pytest.mark.parametrize(
    ("more", "then"),
    [
        ({}, f"keep what is stored under their keys; {NULLS}=true gives them nulls"),
        ({NULLS: "true"}, "get nulls"),
        ({HOOK: "tests.merge_hooks:add"}, f"are refused, unless {NULLS}=true gives them nulls"),
    ],
    ids=["kept", "nulls", "hook"],
)
def test_a_column_that_a_batch_adds_is_named_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, more: dict[str, str], then: str
) -> None:
    table = HoodieTable(str(tmp_path), {**TRIPS, **more})
    table.upsert(ROWS)
    assert not caplog.messages
    wider = ROWS.append_column("oops", pa.array(["x", "y"]))
    for _ in range(2):
        table.upsert(wider)
    (line,) = caplog.messages
    assert line.endswith(f"adds to the table: oops; rows of batches without it {then}")
    with pytest.raises(SchemaError, match=NULLS) if HOOK in more else nullcontext():
        table.upsert(ROWS)


def test_methods_of_other_libraries_read_rows(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), TRIPS)
    table.upsert(ROWS)
    columns = ["id", "fare"]
    assert (table.count(), table.count(pc.field("id") == "a")) == (2, 1)
    assert [table.head(n).num_rows for n in (0, 1, 5)] == [0, 1, 2]
    for wrong in (-1, 1.5, "3"):
        with pytest.raises(OptionError, match=f"'head' = '{wrong}' is refused: give a whole"):
            table.head(cast(Any, wrong))
    assert table.head(1, columns).column_names == columns
    assert sorted(table.to_pandas(columns).to_numpy().tolist()) == [["a", 1.0], ["b", 1.0]]
    assert pa.table(table).sort_by("id") == table.read().sort_by("id")


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("history", "inspect.commits()"),
        ("vacuum", "clean()"),
        ("optimize", "compact()"),
        ("partitions", "inspect.files().partitions"),
        ("drop", "delete_partitions"),
    ],
)
def test_a_name_of_another_library_suggests_ours(name: str, ours: str) -> None:
    with pytest.raises(AttributeError, match=re.escape(ours)):
        getattr(HoodieTable("/t"), name)
    assert not hasattr(HoodieTable("/t"), "of_nobody")


def test_the_public_names_of_a_table_fit_a_screen(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), TRIPS)
    shown = repr(table.inspect)
    assert str(tmp_path) in shown
    assert "verify" in shown
    assert len(shown) < 500


def test_an_existing_table_needs_no_options(tmp_path: Path) -> None:
    HoodieTable(str(tmp_path), TRIPS).upsert(ROWS)
    HoodieTable(str(tmp_path)).upsert(trips(("a", "x", 2, 2.0)))
    assert found(HoodieTable(str(tmp_path))) == [("a", "x", 2, 2.0), ("b", "y", 1, 1.0)]


def test_options_of_one_write_are_added_to_those_of_the_table(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), TRIPS)
    table.upsert(ROWS)
    table.upsert(ROWS.drop_columns(["fare"]).slice(0, 1), {NULLS: "true"})
    assert table.read(columns=["id", "fare"]).sort_by("id").to_pylist() == [
        {"id": "a", "fare": None},
        {"id": "b", "fare": 1.0},
    ]


def test_reading_writes_nothing(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), TRIPS)
    table.upsert(ROWS)
    before = tree(tmp_path)
    assert table.read().num_rows == 2
    assert tree(tmp_path) == before


@pytest.mark.parametrize("version", ["6", "9"])
def test_queries_take_results_of_writes_and_instants(tmp_path: Path, version: str) -> None:
    table = HoodieTable(tmp_path, {**TRIPS, VERSION: version})
    results = [table.upsert(trips((key, "x", 1, 1.0))) for key in "abc"]
    kept = table.savepoint()
    first, second, _ = table.timeline.commits
    for moment, ids in ((results[0], "a"), (second, "ab"), (kept, "abc")):
        assert sorted(table.read(as_of=moment).column("id").to_pylist()) == list(ids)
    ranges: list[tuple[Moment, Moment | None, str]] = [
        (first, None, "bc"),
        (results[0], second, "b"),
        ("000", results[1], "ab"),
        (results[1], kept, "c"),
    ]
    for begin, end, ids in ranges:
        news = table.read_incremental(begin, end)
        assert sorted(news.column("id").to_pylist()) == list(ids)
        assert table.read_changes(begin, end).num_rows == len(ids)
    with pytest.raises(OptionError, match=r"'begin' .*give an instant time.*of type int"):
        table.read_incremental(5)  # type: ignore[arg-type]
