"""A rollback is at work while a table is read that shows the commit still."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.config.read_options import ReadOptions
from hoodie_ds.errors import TimelineError
from hoodie_ds.reader.query import Query, open_query
from hoodie_ds.storage.connect import open_storage
from tests.tables import BUCKETS, TRIPS, TYPE, VERSION, trips


@pytest.mark.parametrize("is_done", [False, True])
def test_a_rollback_in_one_partition_gives_no_mixed_rows(is_done: bool, tmp_path: Path) -> None:
    """Version 6 takes rows of log files back by blocks, one log file after the other."""
    path, aside = tmp_path / "table", tmp_path / "aside"
    options = {**TRIPS, BUCKETS: "1", TYPE: "MERGE_ON_READ", VERSION: "6"}
    table = HoodieTable(path, options)
    table.upsert(trips(("a", "x", 1, 1.0), ("b", "y", 1, 1.0)))
    table.upsert(trips(("a", "x", 2, 2.0), ("b", "y", 2, 2.0)))
    begun = table.scan(["fare"])
    assert begun.to_table()["fare"].to_pylist() == [2.0, 2.0]
    shutil.copytree(path / "y", aside)
    table.rollback()
    if not is_done:
        shutil.rmtree(path / "y")
        aside.rename(path / "y")
    with pytest.raises(TimelineError, match="was rolled back meanwhile; read again"):
        begun.to_table()
    if is_done:
        assert table.read(["fare"])["fare"].to_pylist() == [1.0, 1.0]


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_scan_names_the_rollback_that_deleted_its_files(
    kind: str, version: str, tmp_path: Path
) -> None:
    """The table was looked at before a rollback, or before a clean, and is read after it."""
    table = HoodieTable(tmp_path, {**TRIPS, BUCKETS: "1", TYPE: kind, VERSION: version})
    for order in range(1, 5):
        table.upsert(trips(("a", "x", order, float(order))))
    scans = [table.scan(["fare"]), table.scan(["fare"])]
    scans[1]._query = _incremental(tmp_path)
    (undone,) = table.rollback().losses
    if (kind, version) == ("MERGE_ON_READ", "6"):  # whose log files stay as they are
        assert scans.pop().to_table()["fare"].to_pylist() == [4.0]
    for scan in scans:
        with pytest.raises(TimelineError, match=rf"{undone.time}.* was rolled back meanwhile"):
            scan.to_table()
    scan = table.scan(["fare"])
    for order in range(5, 8):
        table.upsert(trips(("a", "x", order, float(order))))
        if kind == "MERGE_ON_READ":
            assert table.compact()
    assert table.clean({"hoodie.clean.commits.retained": "1"})
    with pytest.raises(TimelineError, match=r"clean \d+ took x/.*; read again"):
        scan.to_table()
    assert table.read(["fare"])["fare"].to_pylist() == [7.0]


def test_a_read_of_a_cleaned_instant_is_not_retried(tmp_path: Path) -> None:
    """A clean by versions names no time from which on all is there."""
    table = HoodieTable(tmp_path, {**TRIPS, BUCKETS: "1"})
    first = table.upsert(trips(("a", "x", 1, 1.0)))
    for order in (2, 3):
        table.upsert(trips(("a", "x", order, float(order))))
    by_versions = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS"}
    assert table.clean({**by_versions, "hoodie.clean.fileversions.retained": "1"})
    with pytest.raises(TimelineError, match=r"clean \d+ took x/.*, or as of a later moment"):
        table.read(as_of=first)


def _incremental(path: Path) -> Query:
    given = {
        "path": str(path),
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.read.begin.instanttime": "000",
    }
    return open_query(open_storage(str(path)), ReadOptions.parse(given))
