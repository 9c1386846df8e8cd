"""The same changes of rows here and in deltalake, over the same rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

from hoodie_ds import HoodieTable, TableMerge, expr
from hoodie_ds.errors import MergeCardinalityError

NAN = float("nan")
ROWS = pa.table(
    {
        "id": ["a", "b", "c", "d", None, "f", "g"],
        "fare": [1.0, None, NAN, 4.0, 5.0, -0.0, 7.0],
        "ts": [1, 2, 3, 4, 5, 6, 7],
    }
)
SOURCE = pa.table(
    {
        "id": ["a", "b", "c", "x", None, "f"],
        "fare": [2.0, 3.0, NAN, 5.0, 6.0, 0.0],
        "ts": [2, 2, 2, 2, 2, 2],
        "op": ["u", "d", None, "u", "u", "u"],
    }
)
Ours = Callable[[TableMerge], object]
Theirs = Callable[[Any], object]
ALL = {"id": "source.id", "fare": "source.fare", "ts": "source.ts"}


def content(table: pa.Table) -> list[str]:
    names = ROWS.column_names
    return sorted(str([row[name] for name in names]) for row in table.to_pylist())


def tables(path: Path, key: str = "") -> tuple[HoodieTable, DeltaTable]:
    options = {"hoodie.table.name": "t"}
    if key:
        options |= {"hoodie.datasource.write.recordkey.field": key, "hoodie.index.type": "SIMPLE"}
    ours = HoodieTable(path / "ours", options)
    rows = ROWS.filter(ROWS["id"].is_valid()) if key else ROWS
    ours.upsert(rows) if key else ours.insert(rows)
    write_deltalake(path / "theirs", rows)
    return ours, DeltaTable(path / "theirs")


def same(ours: HoodieTable, theirs: DeltaTable) -> None:
    assert content(ours.read()) == content(theirs.to_pyarrow_table())


@pytest.mark.parametrize("where", ["fare > 3", "fare != 4", "fare is null", "ts <= 3"])
def test_deletes_and_updates(tmp_path: Path, where: str) -> None:
    ours, theirs = tables(tmp_path)
    done = ours.update({"fare": expr("fare * ts + 0.5"), "ts": expr("ts + 1")}, where)
    count = theirs.update({"fare": "fare * ts + 0.5", "ts": "ts + 1"}, predicate=where)
    assert done.updated == count["num_updated_rows"]
    same(ours, theirs)
    deleted = theirs.delete(where)["num_deleted_rows"]
    assert ours.delete(where=where).deleted == deleted
    same(ours, theirs)


@pytest.mark.parametrize(
    ("on", "ours", "theirs"),
    [
        (
            "id",
            lambda m: m.when_matched_delete("source.op = d").when_matched_update(
                {"fare": expr("source.fare + target.fare"), "ts": 9}, "source.fare != target.fare"
            ),
            lambda m: m.when_matched_delete("source.op = 'd'").when_matched_update(
                {"fare": "source.fare + target.fare", "ts": "9"}, "source.fare != target.fare"
            ),
        ),
        (
            "fare",
            lambda m: m.when_matched_update({"ts": expr("target.ts * 10")}),
            lambda m: m.when_matched_update({"ts": "target.ts * 10"}),
        ),
        (
            "id",
            lambda m: m.when_matched_update_all().when_not_matched_insert(ALL, "source.op = u"),
            lambda m: m.when_matched_update(ALL).when_not_matched_insert(ALL, "source.op = 'u'"),
        ),
        (
            "id",
            lambda m: m.when_not_matched_by_source_update(
                {"fare": expr("target.fare * 10")}, "target.fare > 5"
            ).when_not_matched_by_source_delete("target.ts = 4"),
            lambda m: m.when_not_matched_by_source_update(
                {"fare": "target.fare * 10"}, "target.fare > 5"
            ).when_not_matched_by_source_delete("target.ts = 4"),
        ),
    ],
)
def test_merges(tmp_path: Path, on: str, ours: Ours, theirs: Theirs) -> None:
    """A null matches none, NaN matches NaN, and zero its opposite."""
    table, delta = tables(tmp_path)
    merge = table.merge(SOURCE, on)
    ours(merge)
    other = delta.merge(SOURCE, f"target.{on} = source.{on}", "source", "target")
    theirs(other)
    done, told = merge.execute(), other.execute()
    kinds = ("inserted", "updated", "deleted")
    assert [getattr(done, kind) for kind in kinds] == [
        told[f"num_target_rows_{kind}"] for kind in kinds
    ]
    same(table, delta)


def test_rows_of_the_source_that_match_one_row(tmp_path: Path) -> None:
    """Both refuse them; deltalake only if the conditions of clauses leave several."""
    table, delta = tables(tmp_path)
    twice = pa.concat_tables([SOURCE, SOURCE])
    on = "target.id = source.id"
    with pytest.raises(MergeCardinalityError):
        table.merge(twice, "id").when_matched_update_all().execute()
    with pytest.raises(DeltaError, match="multiple source rows"):
        delta.merge(twice, on, "source", "target").when_matched_update(ALL).execute()
    two = SOURCE.slice(0, 1)
    two = pa.concat_tables([two, two.set_column(2, "ts", pa.array([8]))])
    with pytest.raises(MergeCardinalityError):
        table.merge(two, "id").when_matched_update_all("source.ts > 7").execute()
    one = delta.merge(two, on, "source", "target")
    assert one.when_matched_update(ALL, "source.ts > 7").execute()["num_target_rows_updated"] == 1


def test_new_rows_of_one_key(tmp_path: Path) -> None:
    """Delta has no keys; here a key is there once."""
    table, delta = tables(tmp_path, "id")
    twice = pa.concat_tables([SOURCE.slice(3, 1)] * 2)
    with pytest.raises(MergeCardinalityError, match="record key 'x'"):
        table.merge(twice, "id").when_not_matched_insert_all().execute()
    other = delta.merge(twice, "target.id = source.id", "source", "target")
    assert other.when_not_matched_insert(ALL).execute()["num_target_rows_inserted"] == 2


def test_rows_that_have_the_new_values_already(tmp_path: Path) -> None:
    """They are neither written nor counted here."""
    table, delta = tables(tmp_path)
    assert table.update({"ts": 7}).updated == 6
    assert delta.update({"ts": "7"})["num_updated_rows"] == 7
    same(table, delta)
