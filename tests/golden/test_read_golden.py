"""Tables written by Apache Hudi read as its own readers read them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import UnsupportedTableError
from tests.golden.golden_tables import (
    assert_rows_equal,
    expected_rows,
    golden_names,
    unzip_table,
)

VERSION_6 = [name for name in golden_names() if "_v6_" in name]
LATER = [name for name in golden_names() if "_v6_" not in name]


@pytest.mark.parametrize("name", VERSION_6)
def test_version_6_reads_equal(name: str, tmp_path: Path) -> None:
    table = HoodieTable(str(unzip_table(name, tmp_path)))
    assert_rows_equal(table.read(), expected_rows(name))


@pytest.mark.parametrize("name", LATER)
def test_later_versions_are_refused_by_name(name: str, tmp_path: Path) -> None:
    table = HoodieTable(str(unzip_table(name, tmp_path)))
    with pytest.raises(UnsupportedTableError, match=r"table version [89]"):
        table.read()


@pytest.mark.parametrize("name", [name for name in VERSION_6 if "trips" in name])
def test_buckets_are_refused_where_the_table_has_none(name: str, tmp_path: Path) -> None:
    path = unzip_table(name, tmp_path)
    before = _digest(path)
    buckets = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"}
    table = HoodieTable(str(path), buckets)
    with pytest.raises(UnsupportedTableError, match="has another index"):
        table.upsert(_user_rows(table))
    assert _digest(path) == before


@pytest.mark.parametrize("index", ["BLOOM", "SIMPLE", None])
@pytest.mark.parametrize("name", VERSION_6)
def test_every_key_of_a_table_is_found_again(name: str, index: str | None, tmp_path: Path) -> None:
    """All rows upserted once more: their number stays, and no file group is added."""
    path = unzip_table(name, tmp_path)
    table = HoodieTable(str(path), {"hoodie.index.type": index} if index else {})
    before = table.read()
    if not table.properties.record_key_fields:
        pytest.skip("no record keys")
    groups = {row["_hoodie_file_name"].split("_")[0] for row in before.to_pylist()}
    table.upsert(_user_rows(table))
    after = table.read()
    assert sorted(after["_hoodie_record_key"].to_pylist()) == sorted(
        before["_hoodie_record_key"].to_pylist()
    )
    assert {row["_hoodie_file_name"].split("_")[0] for row in after.to_pylist()} <= groups


def _user_rows(table: HoodieTable) -> pa.Table:
    return table.read().drop_columns([c for c in table.schema.names if c.startswith("_hoodie_")])


def _digest(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }
