"""The golden tables themselves: other readers agree with them, and a wrong row is found."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.golden.golden_tables import (
    FOLDER,
    assert_rows_equal,
    expected_rows,
    golden_names,
    queries,
    unzip_table,
)
from tests.golden.make import keys_and_types, services
from tests.golden.make.answers import differences
from tests.golden.make.recipe import GOLDENS
from tests.interop.hudi_rs import read_with_hudi_rs

RECIPES = (keys_and_types, services)
BEYOND_HUDI_RS = {
    "v6_mor_altered",
    "v6_cow_virtual_keys",
    "v6_mor_compaction_inflight",
    "v6_mor_compaction_requested",
    "v6_mor_partial_updates",
    "v6_mor_partial_updates_compacted",
}
"""What hudi-rs 0.5.0 does not read: renamed columns, files without meta columns, log files that a
pending compaction gave their name, partial updates in log files."""


@pytest.mark.parametrize("name", sorted({*golden_names("v6_")} - BEYOND_HUDI_RS))
def test_hudi_rs_reads_the_expected_rows(name: str, tmp_path: Path) -> None:
    assert_rows_equal(read_with_hudi_rs(unzip_table(name, tmp_path)), expected_rows(name))


def test_a_wrong_row_is_found(tmp_path: Path) -> None:
    name = "v6_cow_types"
    rows = expected_rows(name)
    rows[0]["text"] = "something else"
    with pytest.raises(AssertionError, match=r"row 'k.*' of partition ''"):
        assert_rows_equal(read_with_hudi_rs(unzip_table(name, tmp_path)), rows)


def test_every_table_has_a_recipe_and_every_recipe_a_table() -> None:
    names = golden_names()
    assert [name for name in names if not name.startswith(tuple(GOLDENS))] == []
    assert [made for made in GOLDENS if not any(name.startswith(made) for name in names)] == []
    assert {path.name for path in FOLDER.iterdir()} == {
        "README.md",
        *(f"{name}{ending}" for name in names for ending in (".zip", ".json.gz")),
    }


@pytest.mark.parametrize("name", ["v6_cow_history", "v9_cow_cdc"])
def test_another_making_differs_by_its_rows_and_not_by_its_times(name: str, tmp_path: Path) -> None:
    stored, made = FOLDER / f"{name}.json.gz", tmp_path / "made.json.gz"
    text = gzip.decompress(stored.read_bytes()).decode()
    later = text.replace("2026", "2031").replace("-0_0-", "-0_7-")
    made.write_bytes(gzip.compress(later.encode()))
    assert differences(stored, made) == []
    made.write_bytes(gzip.compress(later.replace("name 1 r1", "another").encode()))
    concerned = [query for query in queries(name) if "name 1 r1" in str(query.rows)]
    assert len(differences(stored, made)) == len(concerned) > 1
