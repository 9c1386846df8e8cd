"""What is logged of changes, held against the files of change data that Hudi wrote."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.formats.log.cdc_block import decode_cdc_block
from hoodie_ds.formats.log.log_block import read_blocks
from hoodie_ds.storage.local import LocalStorage
from hoodie_ds.timeline.loading import read_commit
from tests.golden.golden_tables import unzip_table
from tests.golden.make.recipe import rows

LOGGED = {"hoodie.table.cdc.enabled": "true"}
MODE = "hoodie.table.cdc.supplemental.logging.mode"
WRITE = "hoodie.datasource.write."


def changes_of(path: Path) -> list[Counter[str]]:
    """The changes that each commit has logged, oldest first; only of those that logged any.

    Times differ between two makings of a table, so they are left out.
    """
    table, storage = HoodieTable(str(path)), LocalStorage(str(path))
    found = []
    for instant in table.timeline.completed:
        if "commit" not in instant.action.value:
            continue
        logged: list[dict[str, Any]] = []
        for stat in read_commit(storage, instant).stats:
            for name, size in stat.change_files:
                data = (path / name).read_bytes()
                assert len(data) == size
                for block in read_blocks(data, name):
                    for change in decode_cdc_block(block, name).to_pylist():
                        assert change.pop("ts_ms", instant.time) == instant.time
                        logged.append(change)
        if logged:
            found.append(Counter(json.dumps(change, sort_keys=True) for change in logged))
    return found


def written(path: Path, like: TableProperties, more: Mapping[str, str]) -> HoodieTable:
    """A table of ours that is declared as one of Hudi's."""
    options = {
        "hoodie.table.name": like.name,
        "hoodie.write.table.version": str(like.version),
        f"{WRITE}table.type": like.table_type.value,
        f"{WRITE}recordkey.field": "id",
        f"{WRITE}precombine.field": "ts",
        "hoodie.compact.inline": "false",
        **LOGGED,
        MODE: like.raw[MODE],
        **more,
    }
    return HoodieTable(str(path), options)


def change(table: HoodieTable) -> None:
    """As the recipe of the golden tables `cow_cdc` and `mor_cdc`."""
    table.insert(rows([1, 2, 3], 1))
    table.upsert(rows([1, 5], 2))
    table.delete(rows([2], 3).select(["id"]))
    table.upsert(rows([1], 1, ts=5))
    table.upsert(rows([2, 3], 5))
    table.overwrite(rows([1, 7], 6))
    table.upsert(rows([7], 7))


@pytest.mark.parametrize("name", ["v6_cow_cdc", "v9_cow_cdc"])
@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM", "BUCKET"])
def test_the_same_rows_are_logged_as_hudi_logs_them(name: str, index: str, tmp_path: Path) -> None:
    theirs = unzip_table(name, tmp_path)
    more = {"hoodie.index.type": index, "hoodie.bucket.index.num.buckets": "1"}
    if index != "BUCKET":
        del more["hoodie.bucket.index.num.buckets"]
    table = written(tmp_path / "ours", HoodieTable(str(theirs)).properties, more)
    change(table)
    assert changes_of(tmp_path / "ours") == changes_of(theirs) != []
    assert sorted(table.read()["id"].to_pylist()) == ["k01", "k07"]


def test_a_compaction_logs_what_hudis_does(tmp_path: Path) -> None:
    theirs = unzip_table("v9_mor_cdc_compacted", tmp_path)
    more = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    table = written(tmp_path / "ours", HoodieTable(str(theirs)).properties, more)
    table.upsert(rows([1, 2, 3], 1))
    table.upsert(rows([1, 5], 2))
    table.delete(rows([2], 3).select(["id"]))
    table.upsert(rows([3], 4))
    assert changes_of(tmp_path / "ours") == []
    assert table.compact()
    assert changes_of(tmp_path / "ours") == changes_of(theirs) != []


def test_a_table_of_hudi_goes_on_logging(tmp_path: Path) -> None:
    path = unzip_table("v9_cow_cdc", tmp_path)
    before = changes_of(path)
    table = HoodieTable(str(path))
    (old,) = [row for row in table.read().to_pylist() if row["id"] == "k07"]
    table.upsert(rows([7, 8], 9))
    (found,) = changes_of(path)[len(before) :]
    old = {key: value for key, value in old.items() if not key.startswith("_hoodie_")}
    new = {row["id"]: row for row in rows([7, 8], 9).to_pylist()}
    expected = [
        {"op": "u", "before": old, "after": new["k07"]},
        {"op": "i", "before": None, "after": new["k08"]},
    ]
    assert found == Counter(json.dumps(change, sort_keys=True) for change in expected)
