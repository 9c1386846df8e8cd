"""Files that no commit names: which are deleted, and which may still be somebody's."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from hoodie_ds import HoodieTable, TimelineError
from hoodie_ds.timeline.bodies.commit_metadata import CommitMetadata, WriteStat
from hoodie_ds.timeline.paths import instant_path
from tests.golden.golden_tables import assert_rows_equal, expected_rows, unzip_table
from tests.tables import TRIPS, TYPE, found, tree, trips

VERSION = "hoodie.write.table.version"
LAYOUTS: tuple[dict[str, str], ...] = ({}, {TYPE: "MERGE_ON_READ", VERSION: "9"})


@pytest.fixture(params=LAYOUTS, ids=["version 6", "version 9"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> HoodieTable:
    table = HoodieTable(tmp_path, {**TRIPS, **request.param})
    table.insert(trips(("a", "oslo", 1, 1.0)))
    table.upsert(trips(("a", "oslo", 2, 2.0)))
    return table


def left(table: HoodieTable, path: Path, time: str, log: bool = False) -> Path:
    """A file that a late task leaves under an instant."""
    name = "00000001-aaaa-4aaa-8aaa-aaaaaaaaaaaa-0"
    folder = path / "oslo"
    file = folder / (f".{name}_{time}.log.1_7-0-0" if log else f"{name}_7-0-0_{time}.parquet")
    file.write_bytes(b"late")
    return file


def test_nothing_is_found_in_a_table_in_order(table: HoodieTable, tmp_path: Path) -> None:
    before = tree(tmp_path)
    assert not table.cleanup()
    assert str(table.cleanup()) == "no files that no commit names, nothing to do"
    assert tree(tmp_path) == before


def test_what_late_tasks_left_is_deleted(
    table: HoodieTable, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    times = [instant.time for instant in table.timeline.commits]
    taken_back = "20990101000000000"  # on no timeline, and later than its start
    before = tree(tmp_path)
    files = [left(table, tmp_path, times[0]), left(table, tmp_path, taken_back)]
    if table.properties.version == 9:
        files.append(left(table, tmp_path, times[1], log=True))
    names = {file.relative_to(tmp_path).as_posix() for file in files}
    dry = table.cleanup(dry=True)
    assert (set(dry.files), dry.bytes, dry.dry) == (names, 4 * len(files), True)
    assert all(file.exists() for file in files)
    with caplog.at_level(logging.INFO, "hoodie_ds"):
        assert set(table.cleanup().files) == names
    assert f"{len(files)} files deleted that no commit names" in caplog.text
    assert (
        repr(dry) == f"<Orphans: {len(files)} files that no commit names ({4 * len(files)} bytes)>"
    )
    assert tree(tmp_path) == before
    assert found(table) == [("a", "oslo", 2, 2.0)]


def test_a_log_file_that_is_named_after_an_earlier_commit_stays(tmp_path: Path) -> None:
    """So Hudi names those that are written beside a clustering that splits buckets."""
    table = HoodieTable(tmp_path, {**TRIPS, TYPE: "MERGE_ON_READ", VERSION: "9"})
    table.insert(trips(("a", "oslo", 1, 1.0)))
    (first,) = table.timeline.commits
    log = left(table, tmp_path, first.time, log=True)
    stat = WriteStat("00000001-aaaa-4aaa-8aaa-aaaaaaaaaaaa-0", f"oslo/{log.name}", "oslo")
    end = str(int(first.ended) + 2)
    later = replace(first, time=str(int(first.ended) + 1), completion_time=end)
    commit = tmp_path / instant_path(later)
    commit.write_bytes(CommitMetadata((stat,), "UPSERT", {}).to_bytes(2))
    assert not table.cleanup()
    assert log.exists()
    commit.unlink()
    assert table.cleanup()
    assert not log.exists()


def test_files_that_may_still_be_used_stay(table: HoodieTable, tmp_path: Path) -> None:
    first = left(table, tmp_path, "20200101000000000")  # its commit may be archived
    open_ = left(table, tmp_path, "20990101000000000")
    folder = tmp_path / ".hoodie" / ("timeline" if table.properties.version == 9 else "")
    (folder / "20990101000000000.commit.requested").write_bytes(b"")
    log = left(table, tmp_path, "20990101000000001", log=table.properties.version == 6)
    found = table.cleanup().files
    assert first.exists()
    assert open_.exists()
    # Of a log file of version 6 only its blocks tell whose they are.
    assert log.exists() == (table.properties.version == 6)
    assert len(found) == (table.properties.version == 9)


def test_files_of_what_was_rolled_back_go(table: HoodieTable, tmp_path: Path) -> None:
    newest = table.timeline.commits[-1].time
    table.rollback()
    file = left(table, tmp_path, newest)
    assert table.cleanup().files == (file.relative_to(tmp_path).as_posix(),)


def test_nothing_is_deleted_while_a_restore_is_pending(table: HoodieTable, tmp_path: Path) -> None:
    folder = tmp_path / ".hoodie" / ("timeline" if table.properties.version == 9 else "")
    (folder / "20990101000000000.restore.requested").write_bytes(b"")
    with pytest.raises(TimelineError, match="restore 20990101000000000 is pending"):
        table.cleanup()


@pytest.mark.parametrize(
    "name", ["v6_cow_history", "v9_mor_history", "v9_mor_failed_rolled_back", "v6_mor_restored",
             "v9_cow_clustering_done", "v6_cow_archived_beyond_savepoint"],
)  # fmt: skip
def test_deleting_orphans_keeps_all_rows_of_a_table_of_hudi(name: str, tmp_path: Path) -> None:
    table = HoodieTable(unzip_table(name, tmp_path))
    table.cleanup()
    assert_rows_equal(table.read(), expected_rows(name))
