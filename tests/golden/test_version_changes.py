"""Tables that Apache Hudi wrote keep the rows of its own answers in every version."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import HoodieError, UnsupportedTableError
from tests.golden.golden_tables import assert_rows_equal, expected_rows, golden_names, unzip_table
from tests.tiers import by_day

QUICK = [
    *("v6_cow_history", "v6_mor_evolved", "v9_cow_clustering_done", "v9_mor_partial_updates"),
    *("v9_mor_virtual_keys", "v6_cow_archived", "v9_cow_archived", "v6_mor_restored"),
    "v6_mor_undone_by_a_write",
    *("v6_cow_clustering_requested", "v9_mor_metadata"),
]
REFUSED: dict[str, tuple[type[HoodieError], str]] = {
    "altered": (UnsupportedTableError, "columns have numbers"),
    "splitting": (UnsupportedTableError, "splits or merges buckets"),
    "v9_mor_restored": (UnsupportedTableError, "savepoints"),
    "v9_mor_undone": (UnsupportedTableError, "savepoints"),
}
"""What the names of tables hold that do not change their layout, and why."""


def _refusal(name: str) -> tuple[type[HoodieError], str] | None:
    return next((why for part, why in REFUSED.items() if part in name), None)


GOING = [name for name in golden_names() if _refusal(name) is None]
STAYING = [name for name in golden_names() if _refusal(name) is not None]


def _without_file_names(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows, but for the column that a compaction changes."""
    return [{k: v for k, v in row.items() if k != "_hoodie_file_name"} for row in rows]


def _go_round(name: str, folder: Path) -> None:
    table = HoodieTable(str(unzip_table(name, folder)))
    listed = "files" in table.properties.metadata_partitions
    expected = _without_file_names(expected_rows(name))
    version = table.properties.version
    ways = {6: (8, 9, 8, 6), 8: (9, 8, 6, 9), 9: (8, 6, 9)}[version]
    if table.timeline.savepoints and "v6_mor" in name:
        ways = (9, 8)
    for to in ways:
        done = table.upgrade(to) if to > version else table.downgrade(to)
        assert (done.before, done.after) == (version, to)
        version = table.properties.version
        assert version == to
        names = [name for name in table.schema.names if name != "_hoodie_file_name"]
        assert_rows_equal(table.read(names), expected)
        assert ("files" in table.properties.metadata_partitions) == listed
        assert not (listed and table.inspect.verify_metadata_table().findings)


@pytest.mark.parametrize("name", QUICK)
def test_rows_stay_what_hudi_answers(name: str, tmp_path: Path) -> None:
    _go_round(name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", by_day(GOING, GOING[::2]))
def test_rows_of_every_table_stay_what_hudi_answers(name: str, tmp_path: Path) -> None:
    _go_round(name, tmp_path)


@pytest.mark.parametrize("name", STAYING)
def test_what_is_not_taken_along_is_refused(name: str, tmp_path: Path) -> None:
    path = unzip_table(name, tmp_path)
    table, refusal = HoodieTable(str(path)), _refusal(name)
    before = (path / ".hoodie/hoodie.properties").read_bytes()
    assert refusal is not None
    with pytest.raises(refusal[0], match=refusal[1]):
        _ = table.upgrade(8) if name.startswith("v6") else table.downgrade(6)
    assert (path / ".hoodie/hoodie.properties").read_bytes() == before
    assert_rows_equal(
        table.read().drop_columns([n for n in table.schema.names if n == "_hoodie_file_name"]),
        _without_file_names(expected_rows(name)),
    )
