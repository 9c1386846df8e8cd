"""Our archive and Apache Hudi's, in turns, of one table."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.storage.local import LocalStorage
from hoodie_ds.timeline.archive.archived_timeline import archived_instants
from hoodie_ds.timeline.instant import WRITE_ACTIONS
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.interop.jvm_hudi import TABLE_VERSION, JvmHudi
from tests.rows import assert_same_rows
from tests.tables import TYPE, TYPES
from tests.tiers import by_day

pytestmark = pytest.mark.jvm

COW, MOR = TYPES
_OPTIONS: Final = {
    "hoodie.table.name": "archived",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}


def _rows(ids: str, ts: int) -> pa.Table:
    times = pa.array([ts] * len(ids))
    return pa.table({"id": list(ids), "city": ["x"] * len(ids), "ts": times})


def _archived(path: Path) -> list[tuple[str, str]]:
    """The instant times and actions that the archive has, in either layout."""
    history = path / ".hoodie/timeline/history"
    if not history.exists():
        instants = archived_instants(LocalStorage(str(path)), ".hoodie/archived")
        return [(instant.time, instant.action) for instant in instants]
    manifest = json.loads((history / f"manifest_{(history / '_version_').read_text()}").read_text())
    tables = [pq.read_table(history / file["fileName"]) for file in manifest["files"]]
    return [(row["instantTime"], row["action"]) for rows in tables for row in rows.to_pylist()]


@pytest.mark.parametrize(
    ("kind", "version"),
    by_day(product(TYPES, "689"), {(COW, "9"), (MOR, "8")}),
)
def test_hudi_lists_our_archive_and_goes_on_with_it(
    jvm_hudi: JvmHudi, tmp_path: Path, kind: str, version: str
) -> None:
    path = tmp_path / "t"
    options = {**_OPTIONS, TYPE: kind, TABLE_VERSION: version}
    table = HoodieTable(str(path), options)

    def agree() -> None:
        listed = jvm_hudi.sql(
            f"call show_archived_commits(table => '{name}', limit => 1000, "
            "start_ts => '00000000000000000', end_ts => '99999999999999999')"
        )
        times = sorted(set(listed["commit_time"].to_pylist()))
        assert times == [time for time, action in _archived(path) if action in WRITE_ACTIONS]
        found = table.read()
        assert_same_rows(read_with_hudi_rs(path), found)
        assert_same_rows(jvm_hudi.read(path), found)

    table.upsert(_rows("ab", 1))
    name = f"archived_{kind.lower()}_{version}"
    jvm_hudi.sql(f"create table {name} using hudi location '{path}'")
    for ts in range(2, 6):
        table.upsert(_rows("ab", ts))
    table.overwrite(_rows("abcd", 6), partitions_only=True)
    table.upsert(_rows("be", 7))
    table.clean()
    assert len(table.archive()) >= 4
    agree()
    for ts in range(8, 12):
        jvm_hudi.write(path, _rows("ac", ts), options)
    agree()
    table.upsert(_rows("f", 12))
    before = len(_archived(path))
    table.upsert(_rows("g", 13))
    table.clean()
    table.archive()
    assert len(_archived(path)) > before
    agree()
    jvm_hudi.write(path, _rows("h", 14), options)
    agree()
    assert sorted(table.read()["id"].to_pylist()) == list("abcdefgh")


@pytest.mark.parametrize("older", by_day(["clean", "restore"], {"restore"}))
@pytest.mark.parametrize("version", by_day("89", {"9"}))
def test_hudi_compacts_log_files_whose_commits_we_have_archived(
    jvm_hudi: JvmHudi, tmp_path: Path, version: str, older: str
) -> None:
    """Instants that are older, and no commits, are archived with them: see `archive_planner`."""
    path = tmp_path / "t"
    options = {**_OPTIONS, TYPE: MOR, TABLE_VERSION: version}
    table = HoodieTable(str(path), options)
    for ts in (1, 2, 3):
        table.upsert(_rows("abcd", ts))
        table.compact()
    if older == "clean":
        assert table.clean()
    else:
        table.savepoint()
        saved = table.timeline.savepoints[0].time
        table.upsert(_rows("x", 4))
        table.restore(saved)
        table.delete_savepoint(saved)
    table.delete(_rows("d", 4))
    for ts in range(5, 9):
        table.upsert(_rows("abc", ts))
    assert table.archive()
    once = {"hoodie.compact.inline.max.delta.commits": "1"}
    jvm_hudi.call("run_compaction", path, {**options, **once}, op="scheduleandexecute")
    assert table.timeline.completed[-1].action == "commit"
    assert sorted(table.read()["id"].to_pylist()) == list("abc")
