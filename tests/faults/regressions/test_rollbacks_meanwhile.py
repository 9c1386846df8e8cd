"""A rollback is at work while a table is read that shows the commit still."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import TimelineError
from tests.tables import BUCKETS, TRIPS, TYPE, VERSION, trips


@pytest.mark.parametrize("is_done", [False, True])
def test_a_rollback_that_has_been_in_one_partition_gives_no_mixture(
    is_done: bool, tmp_path: Path
) -> None:
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
