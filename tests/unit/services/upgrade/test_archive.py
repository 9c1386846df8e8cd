"""The archive in the other layout: as Apache Hudi converts it, whole, and once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import CorruptFileError
from hoodie_ds.formats.avro.container import read_record
from hoodie_ds.services.upgrade.archive import put_archive
from hoodie_ds.services.upgrade.properties import translated
from hoodie_ds.storage.local import LocalStorage
from hoodie_ds.table.table import open_table
from hoodie_ds.testing import MemoryStorage
from hoodie_ds.timeline.archive import lsm_timeline
from hoodie_ds.timeline.archive.archived_timeline import (
    archive_files,
    archived_instants,
    put_archive_file,
    read_archive_file,
)
from hoodie_ds.timeline.archive.entry import ArchivedEntry
from hoodie_ds.timeline.archive.lsm_snapshot import newest_snapshot
from hoodie_ds.timeline.archive.lsm_timeline import whole_rows
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.paths import PROPERTIES
from tests.golden.golden_tables import unzip_table
from tests.tables import BUCKETS, ORDERING, TRIPS, TYPE, VERSION, found, trips

LOGS = ".hoodie/history"
ROW = tuple[str, str]


def _edited(path: Path, version: int) -> LocalStorage:
    """A table that says to be of another version, and of its layout."""
    file = path / PROPERTIES
    layout = 1 if version == 6 else 2
    text = file.read_text().splitlines()
    kept = [t for t in text if not t.startswith(("hoodie.table.version", "hoodie.timeline.layout"))]
    kept += [f"hoodie.table.version={version}", f"hoodie.timeline.layout.version={layout}"]
    file.write_text("\n".join(kept))
    return LocalStorage(str(path))


def _convert(storage: LocalStorage | MemoryStorage, to: int) -> None:
    table = open_table(storage)
    put_archive(table, translated(table.properties, to))


def _rows(path: Path) -> dict[ROW, tuple[str, dict[str, Any]]]:
    """What the archive of layout 2 says of each instant, read by Arrow alone."""
    return {
        (row["instantTime"], row["action"]): (
            row["completionTime"],
            _stated(read_record(row["metadata"], "a row")),
        )
        for file in (path / ".hoodie/timeline/history").glob("*.parquet")
        for row in pq.read_table(file).to_pylist()
    }


def _stated(value: Any) -> Any:
    """What is said, without what is null and the version of the schema."""
    if isinstance(value, dict):
        said = {k: _stated(v) for k, v in value.items() if k != "version"}
        return {k: v for k, v in said.items() if v not in (None, {})}
    return [_stated(v) for v in value] if isinstance(value, list) else value


def test_hudi_converts_an_archive_to_the_same(tmp_path: Path) -> None:
    """The table has the archive from before Hudi's upgrade beside what that made of it."""
    path = unzip_table("v9_upgraded", tmp_path)
    hudis = _rows(path)
    storage = _edited(path, 6)
    of_old = {(i.time, i.action.value) for i in archived_instants(storage, LOGS)}
    for file in (path / ".hoodie/timeline/history").iterdir():
        file.unlink()
    _convert(storage, 9)
    ours = _rows(path)
    assert ours == {key: hudis[key] for key in of_old}
    assert ours
    names = {file.name for file in (path / ".hoodie/timeline/history").iterdir()}
    _convert(storage, 9)
    assert {file.name for file in (path / ".hoodie/timeline/history").iterdir()} == names


def test_log_files_of_archived_commits_stay_below_what_has_taken_them_in(tmp_path: Path) -> None:
    options = {**TRIPS, ORDERING: "", TYPE: "MERGE_ON_READ", VERSION: "8"}
    HoodieTable(tmp_path, options).upsert(trips(("a", "x", 1, 1.0)))
    HoodieTable(tmp_path, options).upsert(trips(("a", "x", 2, 2.0)))
    HoodieTable(tmp_path, options).upsert(trips(("a", "x", 1, 3.0)))
    HoodieTable(tmp_path).downgrade(6)
    for file in (tmp_path / ".hoodie").glob("*commit"):
        os.utime(file)  # as a copy that keeps no times leaves them
    keep = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    assert HoodieTable(tmp_path).archive({**keep, "hoodie.clean.commits.retained": "1"})
    HoodieTable(tmp_path).upgrade(8)
    assert found(HoodieTable(tmp_path)) == [("a", "x", 1, 3.0)]


def test_the_archive_of_layout_2_says_the_same_in_layout_1(tmp_path: Path) -> None:
    path = unzip_table("v9_cow_archived", tmp_path)
    before, storage = _rows(path), LocalStorage(str(path))
    _convert(storage, 6)
    files = archive_files(storage, LOGS)
    entries = [e for file in files.values() for e in read_archive_file(storage, file)]
    done = {
        (e.instant.time, e.instant.action.value): (e.transition, next(iter(e.content.values())))
        for e in entries
        if e.instant.state is State.COMPLETED
    }
    assert {key: (end, _stated(said)) for key, (end, said) in done.items()} == before
    planned = {e.instant.action for e in entries if e.instant.state is State.REQUESTED}
    assert planned == {Action.CLEAN}
    _convert(storage, 6)
    assert archive_files(storage, LOGS) == files


def _compacted() -> tuple[MemoryStorage, HoodieTable]:
    storage = MemoryStorage("memory://t")
    options = {**TRIPS, BUCKETS: "1", TYPE: "MERGE_ON_READ"}
    table = HoodieTable("memory://t", options, storage=storage)
    table.upsert(trips(("a", "x", 0, 0.0)), {"hoodie.write.table.version": "6"})
    for number in range(3):
        table.upsert(trips(("a", "x", number, 1.0)))
        table.compact({"hoodie.compact.inline.max.delta.commits": "1"})
    table.overwrite(trips(("a", "x", 9, 1.0)))
    table.upsert(trips(("b", "x", 9, 1.0)))
    few = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    table.clean({"hoodie.clean.commits.retained": "1", **few})
    table.upsert(trips(("c", "x", 9, 1.0)))
    assert table.archive({"hoodie.clean.commits.retained": "1", **few})
    return storage, table


def test_plans_of_compactions_go_there_and_back() -> None:
    storage, table = _compacted()
    rows = found(table)
    assert table.upgrade(8)
    snapshot = newest_snapshot(storage)
    archived = [row for file in snapshot.files for row in whole_rows(storage, file)]
    plans = {row.action: row.plan for row in archived}
    assert b"HoodieCompactionPlan" in plans[Action.COMMIT]
    assert plans[Action.DELTA_COMMIT] == b""
    for file in archive_files(storage, ".hoodie/archived").values():
        storage.delete(file)
    assert table.downgrade(6)
    files = archive_files(storage, ".hoodie/archived").values()
    entries = [entry for file in files for entry in read_archive_file(storage, file)]
    compactions = [e for e in entries if e.instant.action is Action.COMPACTION]
    assert compactions
    assert all("hoodieCompactionPlan" in entry.content for entry in compactions)
    assert {
        (e.instant.time, e.instant.action) for e in entries if e.instant.state is State.COMPLETED
    } == {row.key for row in archived}
    assert found(table) == rows


def test_sparse_entries_of_an_old_release_are_converted() -> None:
    """No time of completion, a commit without content, and a savepoint, which has none here."""
    storage, _ = _compacted()
    for file in archive_files(storage, ".hoodie/archived").values():
        storage.delete(file)
    old = [
        ArchivedEntry(Instant("20200101000000000", Action.COMMIT, State.COMPLETED)),
        ArchivedEntry(Instant("20200102000000000", Action.SAVEPOINT, State.COMPLETED)),
        ArchivedEntry(Instant("20200103000000000", Action.CLEAN, State.REQUESTED)),
        ArchivedEntry(Instant("20200103000000000", Action.CLEAN, State.COMPLETED), {}, "2020"),
    ]
    put_archive_file(storage, ".hoodie/archived", old, 10)
    _convert(storage, 8)
    (of_lsm,) = newest_snapshot(storage).files
    rows = list(whole_rows(storage, of_lsm))
    assert [(row.time, row.ended, row.body, row.plan) for row in rows] == [
        (f"2020010{day}000000000", f"2020010{day}000000000", b"", b"") for day in (1, 2, 3)
    ]


def test_a_table_without_an_archive_has_none_there(tmp_path: Path) -> None:
    path = unzip_table("v9_cow_types", tmp_path)
    _convert(LocalStorage(str(path)), 6)
    assert not (path / LOGS).exists()


def test_an_action_that_is_unknown_is_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = unzip_table("v9_cow_archived", tmp_path)
    monkeypatch.setattr(lsm_timeline, "Action", _no_action)
    with pytest.raises(CorruptFileError, match="which is unknown"):
        _convert(LocalStorage(str(path)), 6)


def _no_action(text: str) -> Action:
    raise ValueError(text)
