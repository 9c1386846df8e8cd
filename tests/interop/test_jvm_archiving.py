"""Our archive and Apache Hudi's, in turns, of one table."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.storage.local import LocalStorage
from hoodie_ds.timeline.archive.archived_timeline import archived_instants
from hoodie_ds.timeline.instant import WRITE_ACTIONS
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.interop.jvm_hudi import JvmHudi
from tests.rows import assert_same_rows
from tests.tables import TYPE, TYPES

pytestmark = pytest.mark.jvm

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


@pytest.mark.parametrize("kind", TYPES)
def test_hudi_lists_our_archive_and_goes_on_with_it(
    jvm_hudi: JvmHudi, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "t"
    options = {**_OPTIONS, TYPE: kind}
    table = HoodieTable(str(path), options)
    storage = LocalStorage(str(path))

    def agree() -> None:
        ours = archived_instants(storage, ".hoodie/archived")
        listed = jvm_hudi.sql(
            f"call show_archived_commits(table => '{name}', limit => 1000, "
            "start_ts => '00000000000000000', end_ts => '99999999999999999')"
        )
        times = sorted(set(listed["commit_time"].to_pylist()))
        assert times == [i.time for i in ours if i.action in WRITE_ACTIONS]
        found = table.read()
        assert_same_rows(read_with_hudi_rs(path), found)
        assert_same_rows(jvm_hudi.read(path), found)

    table.upsert(_rows("ab", 1))
    name = f"archived_{kind.lower()}"
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
    before = len(archived_instants(storage, ".hoodie/archived"))
    table.upsert(_rows("g", 13))
    table.clean()
    table.archive()
    assert len(archived_instants(storage, ".hoodie/archived")) > before
    agree()
    jvm_hudi.write(path, _rows("h", 14), options)
    agree()
    assert sorted(table.read()["id"].to_pylist()) == list("abcdefgh")
