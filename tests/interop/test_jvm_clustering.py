"""Clusterings that one side plans and the other carries out; afterwards all readers agree."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.errors import ClusteringConflictError
from hoodie_ds.services.clustering.clusterer import Clusterer
from hoodie_ds.timeline.instant import REPLACING, Action
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.interop.jvm_hudi import TABLE_VERSION, JvmHudi, JvmHudiError
from tests.rows import assert_same_rows
from tests.tables import TYPE
from tests.tiers import by_day

pytestmark = pytest.mark.jvm

_PARTITION = "hoodie.datasource.write.partitionpath.field"
_BASE = {
    "hoodie.table.name": "clustered",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.index.type": "BLOOM",
    "hoodie.parquet.small.file.limit": "0",  # each insert makes file groups of its own
    "hoodie.clustering.plan.strategy.sort.columns": "v",
    "hoodie.clustering.plan.strategy.small.file.limit": "10000000",
    "hoodie.compact.inline": "false",
}
_KEYGEN = "hoodie.datasource.write.keygenerator.class"
TABLES = {
    "copy-on-write, partitions": {
        **_BASE,
        TYPE: "COPY_ON_WRITE",
        _PARTITION: "city",
        "hoodie.datasource.write.hive_style_partitioning": "true",
    },
    "merge-on-read": {
        **_BASE,
        TYPE: "MERGE_ON_READ",
        _PARTITION: "",
        _KEYGEN: "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    },
    "merge-on-read, partitions": {**_BASE, TYPE: "MERGE_ON_READ", _PARTITION: "city"},
    "version 8": {**_BASE, TYPE: "COPY_ON_WRITE", _PARTITION: "city", TABLE_VERSION: "8"},
    "version 9": {**_BASE, TYPE: "MERGE_ON_READ", _PARTITION: "city", TABLE_VERSION: "9"},
}
_SCHEDULE = {
    "hoodie.clustering.schedule.inline": "true",
    "hoodie.clustering.async.max.commits": "1",
}


def _rows(ts: int, keys: range) -> pa.Table:
    return pa.table(
        {
            "id": [f"k{i:02}" for i in keys],
            "city": [f"c{i % 2}" for i in keys],
            "ts": pa.array([ts] * len(keys), pa.int64()),
            "v": [f"{(7 * i) % 10}-{ts}-{i}" for i in keys],
        }
    )


class _Table:
    """A table that both write, read and cluster."""

    def __init__(self, name: str, path: Path, jvm: JvmHudi) -> None:
        self.path, self.jvm, self.options = path, jvm, TABLES[name]
        self.ours = HoodieTable(str(path), self.options)

    def insert(self, ts: int, keys: range) -> None:
        self.ours.insert(_rows(ts, keys))

    def their_write(self, ts: int, keys: range, operation: str = "upsert", **more: str) -> None:
        given = {**self.options, "hoodie.datasource.write.operation": operation, **more}
        self.jvm.write(self.path, _rows(ts, keys), given)

    def agree(self) -> pa.Table:
        """The rows, which all readers see."""
        found = self.ours.read()
        assert_same_rows(self.jvm.read(self.path), found)
        assert_same_rows(read_with_hudi_rs(self.path), found)
        return found

    def file_groups(self) -> set[str]:
        return {name.split("_")[0] for name in self.ours.read()["_hoodie_file_name"].to_pylist()}


def _same_but_for_files(rows: pa.Table, others: pa.Table) -> None:
    drop = ["_hoodie_file_name"]
    assert_same_rows(rows.drop_columns(drop), others.drop_columns(drop))


def _is_sorted_in_files(rows: pa.Table) -> bool:
    """Whether the rows of each file are in the order of the sort column."""
    files = set(rows["_hoodie_file_name"].to_pylist())
    found = [
        [row["v"] for row in rows.to_pylist() if row["_hoodie_file_name"] == file] for file in files
    ]
    return found == [sorted(values) for values in found]


@pytest.mark.parametrize("name", by_day(TABLES, {"merge-on-read", "version 9"}))
def test_hudi_carries_our_plan_out(name: str, jvm_hudi: JvmHudi, tmp_path: Path) -> None:
    table = _Table(name, tmp_path / "t", jvm_hudi)
    table.insert(1, range(8))
    table.insert(1, range(8, 16))
    table.ours.upsert(_rows(2, range(4, 10)))
    scheduled = Clusterer(table.ours._services()).schedule()
    assert scheduled is not None
    before_plan = table.file_groups()
    table.insert(3, range(16, 20))  # beside the plan
    before = table.agree()
    with pytest.raises(JvmHudiError, match="Not allowed to update the clustering file group"):
        table.their_write(4, range(2))
    jvm_hudi.call("run_clustering", table.path, {}, op="execute")
    done = table.ours.timeline.commit_at(scheduled.instant_time or "")
    assert done is not None
    assert done.action is Action.REPLACE_COMMIT
    after = table.agree()
    _same_but_for_files(after, before)
    assert not before_plan & table.file_groups()
    table.their_write(5, range(6, 22))
    table.ours.upsert(_rows(6, range(3)))
    table.agree()
    assert table.ours.cluster()
    assert _written_at(table.agree()) == {
        **dict.fromkeys(range(3), 6),
        **dict.fromkeys(range(3, 4), 1),
        **dict.fromkeys(range(4, 6), 2),
        **dict.fromkeys(range(6, 22), 5),
    }


@pytest.mark.parametrize("name", by_day(TABLES, {"copy-on-write, partitions", "version 8"}))
def test_we_carry_hudis_plan_out(name: str, jvm_hudi: JvmHudi, tmp_path: Path) -> None:
    table = _Table(name, tmp_path / "t", jvm_hudi)
    table.their_write(1, range(8), "insert")
    table.their_write(1, range(8, 16), "insert")
    table.their_write(2, range(4, 10), **_SCHEDULE)
    before_plan = table.file_groups()
    (pending,) = table.ours.timeline.pending
    assert pending.action in REPLACING
    with pytest.raises(ClusteringConflictError):
        table.ours.upsert(_rows(3, range(2)))
    table.insert(3, range(16, 20))
    before = table.agree()
    (done, *_) = table.ours.cluster()
    assert done.instant_time == pending.time
    after = table.agree()
    _same_but_for_files(after, before)
    assert not before_plan & table.file_groups()
    assert _is_sorted_in_files(after)
    table.their_write(4, range(2, 6))
    table.ours.upsert(_rows(5, range(5, 7)))
    table.their_write(6, range(20, 24), "insert", **_SCHEDULE)
    table.agree()
    table.ours.cluster()
    assert _written_at(table.agree()) == {
        **dict.fromkeys(range(2), 1),
        **dict.fromkeys(range(2, 5), 4),
        **dict.fromkeys(range(5, 7), 5),
        **dict.fromkeys(range(7, 10), 2),
        **dict.fromkeys(range(10, 16), 1),
        **dict.fromkeys(range(16, 20), 3),
        **dict.fromkeys(range(20, 24), 6),
    }


def _written_at(rows: pa.Table) -> dict[int, int]:
    """The ``ts`` of each key's row."""
    return {int(row["id"][1:]): row["ts"] for row in rows.to_pylist()}
