"""Tables written by Apache Hudi read as its own readers read them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import UnsupportedTableError
from tests.golden.golden_tables import (
    assert_rows_equal,
    expected_rows,
    golden_names,
    needs_golden,
    unzip_table,
)

pytestmark = needs_golden

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
def test_an_upsert_without_bucket_index_is_refused(name: str, tmp_path: Path) -> None:
    path = unzip_table(name, tmp_path)
    before = _digest(path)
    table = HoodieTable(str(path), {"hoodie.bucket.index.num.buckets": "4"})
    rows = table.read().drop_columns([c for c in table.schema.names if c.startswith("_hoodie_")])
    with pytest.raises(UnsupportedTableError, match="has another index"):
        table.upsert(rows)
    assert _digest(path) == before


def _digest(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }
