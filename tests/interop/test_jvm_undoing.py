"""Savepoints, restores and rollbacks, in turns by us and by Apache Hudi on the JVM."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.storage.local import LocalStorage
from hoodie_ds.testing import Effect, Fault, FaultyStorage, Kind, SimulatedCrash
from hoodie_ds.timeline.instant import Action
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.interop.jvm_hudi import TABLE_VERSION, JvmHudi
from tests.rows import assert_same_rows
from tests.tables import TYPE
from tests.tiers import by_day

pytestmark = pytest.mark.jvm

_BASE = {
    "hoodie.table.name": "undone",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.compact.inline": "false",
}
_BUCKET = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
_BLOOM = {"hoodie.index.type": "BLOOM"}
_NO_PARTITION = {
    "hoodie.datasource.write.partitionpath.field": "",
    "hoodie.datasource.write.keygenerator.class": (
        "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
    ),
}
TABLES = {
    "copy-on-write": {**_BASE, **_BLOOM, TYPE: "COPY_ON_WRITE"},
    "merge-on-read": {**_BASE, **_BLOOM, **_NO_PARTITION, TYPE: "MERGE_ON_READ"},
    "merge-on-read, change data": {
        **_BASE,
        **_BLOOM,
        **_NO_PARTITION,
        TYPE: "MERGE_ON_READ",
        "hoodie.table.cdc.enabled": "true",
    },
    "merge-on-read, buckets": {**_BASE, **_BUCKET, TYPE: "MERGE_ON_READ"},
    "copy-on-write, version 8": {**_BASE, **_BLOOM, TYPE: "COPY_ON_WRITE", TABLE_VERSION: "8"},
    "merge-on-read, version 9": {**_BASE, **_BUCKET, TYPE: "MERGE_ON_READ", TABLE_VERSION: "9"},
}
_COMPACT = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
_CLEAN = {"hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "1"}


def _rows(ts: int, keys: range) -> pa.Table:
    return pa.table(
        {
            "id": [f"k{i:02}" for i in keys],
            "city": [f"c{i % 2}" for i in keys],
            "ts": pa.array([ts] * len(keys), pa.int64()),
        }
    )


SOME = {"copy-on-write", "merge-on-read, version 9"}
OTHERS = {"merge-on-read, change data", "copy-on-write, version 8"}


class _Table:
    """A table that both write, read and take writes off."""

    def __init__(self, name: str, path: Path, jvm: JvmHudi) -> None:
        self.path, self.jvm, self.options = path, jvm, TABLES[name]
        self.ours = HoodieTable(str(path), self.options)
        self.is_mor = self.options[TYPE] == "MERGE_ON_READ"

    def write(self, ts: int, keys: range) -> None:
        self.ours.upsert(_rows(ts, keys))

    def their_write(self, ts: int, keys: range, **more: str) -> None:
        self.jvm.write(self.path, _rows(ts, keys), {**self.options, **more})

    def agree(self) -> pa.Table:
        """The rows, which all readers see."""
        found = self.ours.read()
        assert_same_rows(self.jvm.read(self.path), found)
        assert_same_rows(read_with_hudi_rs(self.path), found)
        return found

    @property
    def newest(self) -> str:
        return self.ours.timeline.commits[-1].time

    @property
    def actions(self) -> list[Action]:
        return [instant.action for instant in self.ours.timeline.completed]

    def data_files(self) -> set[str]:
        found = (p for p in self.path.rglob("*") if p.is_file() and p.suffix != ".crc")
        return {p.name for p in found if ".hoodie" not in p.parts and ".hoodie_" not in p.name}

    def goes_on(self, ts: int) -> None:
        """Both write, compact and read on."""
        before = {row["id"]: row["ts"] for row in self.agree().to_pylist()}
        self.their_write(ts, range(3))
        self.write(ts + 1, range(2, 5))
        wanted = {**before, **dict.fromkeys(["k00", "k01"], ts)}
        wanted |= dict.fromkeys(["k02", "k03", "k04"], ts + 1)
        assert {row["id"]: row["ts"] for row in self.agree().to_pylist()} == wanted
        if self.is_mor:
            assert self.ours.compact()
            self.agree()


@pytest.mark.parametrize("name", by_day(TABLES, SOME))
def test_hudi_restores_to_our_savepoint(name: str, jvm_hudi: JvmHudi, tmp_path: Path) -> None:
    table = _Table(name, tmp_path / "t", jvm_hudi)
    table.write(1, range(8))
    table.write(2, range(3, 10))
    savepoint = table.ours.savepoint(user="us")
    before = table.agree()
    if table.is_mor:
        table.ours.compact()
        table.agree()
    table.write(3, range(4, 12))
    table.their_write(4, range(6, 14), **(_COMPACT if table.is_mor else {}), **_CLEAN)
    table.their_write(5, range(2), **(_COMPACT if table.is_mor else {}), **_CLEAN)
    assert {path.rpartition("/")[2] for path in savepoint.files} <= table.data_files()
    table.agree()
    jvm_hudi.call("rollback_to_savepoint", table.path, instant_time=savepoint.time)
    assert Action.RESTORE in table.actions
    assert table.newest == savepoint.time
    assert_same_rows(table.agree(), before)
    table.goes_on(6)
    table.ours.delete_savepoint(savepoint.time)
    table.ours.clean({"hoodie.clean.commits.retained": "1"})
    table.agree()


@pytest.mark.parametrize("name", by_day(TABLES, OTHERS))
def test_we_restore_to_hudis_savepoint(name: str, jvm_hudi: JvmHudi, tmp_path: Path) -> None:
    table = _Table(name, tmp_path / "t", jvm_hudi)
    table.their_write(1, range(8))
    table.their_write(2, range(3, 10))
    before, time = table.agree(), table.newest
    jvm_hudi.call("create_savepoint", table.path, commit_time=time, user="them")
    files = table.data_files()
    table.their_write(3, range(4, 12), **(_COMPACT if table.is_mor else {}))
    table.write(4, range(6, 14))
    if table.is_mor:
        table.ours.compact()
    table.their_write(5, range(2))
    table.ours.clean({"hoodie.clean.commits.retained": "1"})
    table.agree()
    lost = table.ours.restore(time)
    assert lost.target == table.newest == time
    assert_same_rows(table.agree(), before)
    left = table.data_files()
    # Blocks of log files are hidden by more log files; nothing else is left of what came later.
    assert not {file for file in left - files if ".log." not in file}
    table.goes_on(6)
    jvm_hudi.call("delete_savepoint", table.path, instant_time=time)
    assert not table.ours.timeline.savepoints
    table.their_write(9, range(3), **_CLEAN)
    table.agree()


@pytest.mark.parametrize("name", by_day(TABLES, OTHERS))
def test_each_rolls_the_others_write_back(name: str, jvm_hudi: JvmHudi, tmp_path: Path) -> None:
    table = _Table(name, tmp_path / "t", jvm_hudi)
    table.write(1, range(8))
    table.their_write(2, range(3, 10))
    before = table.agree()
    table.write(3, range(5, 14))
    assert jvm_hudi.roll_back(table.path, table.newest)
    assert_same_rows(table.agree(), before)
    table.their_write(4, range(5, 14))
    table.ours.rollback()
    assert_same_rows(table.agree(), before)
    table.write(5, range(2, 8))
    if table.is_mor:
        assert table.ours.compact()
        assert jvm_hudi.roll_back(table.path, table.newest)  # the compaction alone
        assert {row["ts"] for row in table.agree().to_pylist()} == {1, 2, 5}
    assert jvm_hudi.roll_back(table.path, table.newest)
    assert_same_rows(table.agree(), before)
    table.goes_on(6)
    table.ours.rollback()
    table.goes_on(8)


@pytest.mark.parametrize("name", by_day(TABLES, SOME))
def test_hudi_finishes_our_rollback(name: str, jvm_hudi: JvmHudi, tmp_path: Path) -> None:
    """It goes by our plan: deletes our files, and hides our blocks in log files of slices."""
    table = _Table(name, tmp_path / "t", jvm_hudi)
    table.write(1, range(8))
    table.their_write(2, range(3, 7))
    before = table.agree()
    table.write(3, range(5, 12))
    time = table.newest
    seen_no_more = Fault(Effect.CRASH_AFTER, kinds=frozenset({Kind.DELETE}), path=f"*{time}*commit")
    storage = FaultyStorage(LocalStorage(str(table.path)), [seen_no_more])
    with pytest.raises(SimulatedCrash):
        HoodieTable(str(table.path), table.options, storage=storage).rollback()
    pending = next(i for i in table.ours.timeline.pending if i.action is Action.ROLLBACK)
    table.their_write(4, range(2))
    done = {(instant.time, instant.action) for instant in table.ours.timeline.completed}
    assert (pending.time, Action.ROLLBACK) in done
    assert not [p for p in table.path.rglob(f"*{time}.parquet") if ".hoodie" not in p.parts]
    wanted = {row["id"]: row["ts"] for row in before.to_pylist()} | dict.fromkeys(["k00", "k01"], 4)
    assert {row["id"]: row["ts"] for row in table.agree().to_pylist()} == wanted
    assert not list(table.path.rglob("._*.log.*"))  # no log file of a group without a name
    table.goes_on(6)
