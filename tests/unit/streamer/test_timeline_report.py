"""The timeline as a table for the terminal."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from hoodie_ds import HoodieTable
from hoodie_ds.streamer.timeline_report import TimelineReport
from hoodie_ds.testing import MemoryStorage
from tests.terminal import cells
from tests.unit.transaction.failed_tables import new_table


def test_the_timeline_shows_the_written_rows(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    table = HoodieTable(path, options)
    table.upsert(pa.table({"id": range(1200)}))
    table.upsert(pa.table({"id": [5]}))
    report = TimelineReport.of({"path": path})
    first, second = (instant.time for instant in table.timeline.completed)
    assert cells(report.table()) == [
        ["time", "action", "state", "rows"],
        [first, "commit", "completed", "1,200"],
        [second, "commit", "completed", "1"],
    ]
    assert report.latest() == second


def test_a_planned_commit_is_not_the_latest() -> None:
    storage = MemoryStorage()
    new_table(storage)
    storage.put_if_absent(".hoodie/20250101000000000.deltacommit", b"{}")
    storage.put_if_absent(".hoodie/20250101000000001.compaction.requested", b"")
    assert TimelineReport(storage).latest() == "20250101000000000"


def test_a_folder_without_a_table_has_no_instants(tmp_path: Path) -> None:
    report = TimelineReport.of({"path": str(tmp_path / "t")})
    assert report.latest() == "none"
    assert len(cells(report.table())) == 1
