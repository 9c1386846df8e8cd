"""Tables for the terminal: the timeline, and counts by two columns."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from rich.console import Console
from rich.table import Table

from hoodie_ds import HoodieTable
from hoodie_ds.report import TimelineReport, cross_table


def cells(table: Table) -> list[list[str]]:
    console = Console(width=200, record=True, quiet=True)
    columns = [[str(column.header), *map(str, column.cells)] for column in table.columns]
    console.print(table)
    return [list(line) for line in zip(*columns, strict=True)]


def test_the_timeline_tells_the_rows_that_came_in(tmp_path: Path) -> None:
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


def test_a_folder_without_a_table_has_no_instants(tmp_path: Path) -> None:
    report = TimelineReport.of({"path": str(tmp_path / "t")})
    assert report.latest() == "none"
    assert len(cells(report.table())) == 1


def test_counts_by_two_columns() -> None:
    counts = pa.table({"month": [2, 10, 2], "status": ["b", "a", "a"], "rows": [1, 2000, 3]})
    assert cells(cross_table(counts, "x")) == [
        ["month", "a", "b"],
        ["2", "3", "1"],
        ["10", "2,000", "0"],
    ]
