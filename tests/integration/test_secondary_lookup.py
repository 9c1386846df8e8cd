"""Reads find rows by the values of a secondary index, where it can be believed."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.filters.given import predicate_of
from hoodie_ds.metadata_table.secondary_lookup import keys_of_values
from hoodie_ds.metadata_table.stored import MetadataTable
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.testing import FaultyStorage, Kind
from tests.golden.test_metadata_tables import unzipped
from tests.golden.test_secondary_indexes import COPIED, MERGED, OPTIONS, redefine, rows_of
from tests.integration.test_record_index_kept import ACTS, attempt, begun, given
from tests.tables import trips

BY_FOLDERS = {"hoodie.metadata.enable": "false"}
OPENED = (Kind.READ, Kind.OPEN)


def found(path: str | Path, where: pc.Expression, as_of: str | None = None) -> tuple[pa.Table, int]:
    """The rows that a filter finds, and how many data files were opened for them."""
    storage = FaultyStorage(open_storage(str(path)))
    rows = HoodieTable(str(path), storage=storage).read(filter=where, as_of=as_of)
    done = storage.recorder.operations
    files = {one.path for one in done if one.kind in OPENED and one.path.endswith(".parquet")}
    by_folders = HoodieTable(str(path), BY_FOLDERS).read(filter=where, as_of=as_of)
    assert rows.sort_by("id") == by_folders.sort_by("id")
    return rows, len(files)


def files_of(rows: pa.Table) -> int:
    return len(set(rows.column("_hoodie_file_name").to_pylist()))


def test_only_files_with_the_values_are_opened_of_a_table_of_hudi(tmp_path: Path) -> None:
    path = unzipped(COPIED, tmp_path)
    for column in ("name", "day"):
        values = [one for one in HoodieTable(path).read()[column].to_pylist() if one is not None]
        for value in values:
            rows, opened = found(path, pc.field(column) == value)
            assert rows.num_rows
            assert opened == files_of(rows)
        rows, opened = found(path, pc.field(column).isin(values[:2]))
        assert rows.num_rows == 2
        assert opened == files_of(rows)
    assert found(path, pc.field("name").isin(["n2", None]))[0].num_rows == 2
    both = (pc.field("name") == "n2") & (pc.field("day") == date(2024, 1, 6))
    assert found(path, both)[1] == 0


@pytest.mark.parametrize("version", ["9", pytest.param("8", marks=pytest.mark.slow)])
def test_values_are_found_after_random_writes(tmp_path: Path, version: str) -> None:
    begun(tmp_path, version, "COPY_ON_WRITE")
    table, random = HoodieTable(str(tmp_path), given(version, "COPY_ON_WRITE")), Random(version)
    for _ in range(4):
        attempt(table, random.choice(ACTS), random)
    table.upsert(trips(("a", "x", 10, 1.0), ("b", "y", 10, 1.0), ("c", "z", 11, 1.0)))
    for ts in range(8, 12):
        rows, opened = found(tmp_path, pc.field("ts") == ts)
        assert opened == files_of(rows)
    assert rows["id"].to_pylist() == ["c"]


def test_a_value_of_any_characters_is_found(tmp_path: Path) -> None:
    path = unzipped(COPIED, tmp_path)
    names = ["a$b", "a", "a\\", "", "\x00", "\x00$"]
    table = HoodieTable(path, OPTIONS)
    rows = rows_of(table, ts=10)
    at = rows.schema.get_field_index("name")
    table.upsert(rows.set_column(at, "name", pa.array(names)))
    for name in names:
        rows, opened = found(path, pc.field("name") == name)
        assert rows.num_rows
        assert opened == files_of(rows)


def keys(path: str | Path, where: pc.Expression) -> frozenset[str] | None:
    """What indexes say of a filter."""
    pinned = PinnedTable.latest(open_storage(str(path)))
    metadata = MetadataTable.open(pinned.table, pinned.timeline)
    assert metadata is not None
    return keys_of_values(pinned.table, metadata, predicate_of(where, pinned.schema), pinned.schema)


@pytest.mark.parametrize(
    "where",
    [
        pc.field("name") > "a",
        pc.field("qty") == 1,
        (pc.field("name") == "a") | (pc.field("qty") == 1),
        pc.field("name").is_null(),
        pc.field("day") == date(1500, 1, 1),
    ],
)
def test_a_filter_of_more_than_values_of_an_index_is_not_looked_up(
    tmp_path: Path, where: pc.Expression
) -> None:
    assert keys(unzipped(COPIED, tmp_path), where) is None


def test_an_index_that_may_be_wrong_is_not_believed(tmp_path: Path) -> None:
    """As one of a merge-on-read table, where Hudi updates only the first of several."""
    merged, copied = unzipped(MERGED, tmp_path), Path(unzipped(COPIED, tmp_path))
    by_name = pc.field("name") == "n2"
    assert keys(merged, by_name) is None
    assert found(merged, by_name)[1] > 1
    assert keys(copied, by_name) == frozenset({"a"})
    redefine(copied, {"sourceFields": ["at"], "version": "V1"})
    at = HoodieTable(str(copied)).read()["at"][0]
    assert keys(copied, pc.field("at") == at) is None
    redefine(copied, {"sourceFields": []})
    assert found(copied, by_name)[0].num_rows == 1


def test_a_past_moment_is_read_without_the_index(tmp_path: Path) -> None:
    path = unzipped(COPIED, tmp_path)
    table = HoodieTable(path, OPTIONS)
    before = table.timeline.commits[-1].time
    table.upsert(rows_of(table, name="new", ts=10))
    assert found(path, pc.field("name") == "n2", before)[0].num_rows == 1
    assert found(path, pc.field("name") == "n2")[0].num_rows == 0


def test_a_value_of_many_rows_is_not_looked_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = begun(tmp_path, "9", "COPY_ON_WRITE")
    table.upsert(trips(*((f"k{number}", "x", 1, 1.0) for number in range(4))))
    table.upsert(trips(("other", "y", 2, 1.0)))
    monkeypatch.setattr("hoodie_ds.metadata_table.secondary_lookup._MOST", 4)
    assert keys(tmp_path, pc.field("ts") == 1) is None
    assert keys(tmp_path, pc.field("ts") == 2) == frozenset({"other"})
