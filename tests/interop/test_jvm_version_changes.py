"""The version that one of us gave a table, the other takes back: Apache Hudi and we, in turns."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.interop.jvm_hudi import JvmHudi
from tests.rows import assert_same_rows
from tests.tiers import by_day

pytestmark = pytest.mark.jvm

OPTIONS = {
    "hoodie.table.name": "changed",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.index.type": "BLOOM",
}
NO_SERVICE = {"hoodie.metadata.enable": "false", "hoodie.compact.inline": "false"}
TYPE = "hoodie.datasource.write.table.type"
COLUMN_STATS = "hoodie.metadata.index.column.stats.enable"
RECORD_INDEX = "hoodie.metadata.record.index.enable"


def _rows(number: int, keys: range) -> pa.Table:
    return pa.table(
        {
            "id": [f"k{i}" for i in keys],
            "city": [f"c{i % 2}" for i in keys],
            "ts": pa.array([number] * len(keys), pa.int64()),
            "v": [f"{number}-{i}" for i in keys],
        }
    )


def _plain(rows: pa.Table) -> pa.Table:
    """Rows without the column that compactions change, and that Hudi fills in part in logs."""
    return rows.drop_columns(["_hoodie_file_name"])


ARCHIVING = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}
ALL_TIMES = "start_ts => '00000000000000000', end_ts => '99999999999999999'"


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("kind", by_day(["COPY_ON_WRITE", "MERGE_ON_READ"], {"MERGE_ON_READ"}))
def test_each_takes_back_the_version_that_the_other_gave(
    kind: str, jvm_hudi: JvmHudi, tmp_path: Path
) -> None:
    options, path = {**OPTIONS, **ARCHIVING, TYPE: kind}, tmp_path / "t"
    name = f"changed_{kind.lower()}"
    table = HoodieTable(str(path), options)
    expected: dict[str, tuple[str, int, str]] = {}
    number = 0

    def write(keys: range, *, ours: bool) -> None:
        nonlocal number
        number += 1
        rows = _rows(number, keys)
        table.upsert(rows) if ours else jvm_hudi.write(path, rows, {**options, **NO_SERVICE})
        expected.update({row["id"]: tuple(row.values())[1:] for row in rows.to_pylist()})

    def agree(version: str) -> int:
        assert jvm_hudi.properties(path)["hoodie.table.version"] == version
        found = table.read()
        values = found.select(["id", "city", "ts", "v"]).to_pylist()
        assert len(values) == len(expected)
        assert {row["id"]: tuple(row.values())[1:] for row in values} == expected
        assert_same_rows(_plain(jvm_hudi.read(path)), _plain(found))
        assert_same_rows(_plain(read_with_hudi_rs(path)), _plain(found))
        listed = jvm_hudi.sql(
            f"call show_archived_commits(table => '{name}', limit => 1000, {ALL_TIMES})"
        )
        ours = [commit.time for commit in table.inspect.writes() if commit.archived]
        assert sorted(set(listed["commit_time"].to_pylist())) == sorted(ours)
        return len(ours)

    def theirs(procedure: str, to: str) -> None:
        jvm_hudi.sql(f"call {procedure}(table => '{name}', to_version => '{to}')")

    write(range(20), ours=True)
    jvm_hudi.sql(f"create table {name} using hudi location '{path}'")
    for _ in range(6):
        write(range(5, 12), ours=True)
    table.clean()
    assert table.archive()
    agree("6")
    for to in (8, 9):
        table.upgrade(to)
        converted = agree(str(to))
    for _ in range(3):
        write(range(3, 6), ours=True)
    table.clean()
    table.archive()
    write(range(4, 7), ours=False)
    assert agree("9") > converted
    theirs("downgrade_table", "EIGHT")
    agree("8")
    write(range(8, 22), ours=True)
    theirs("downgrade_table", "SIX")
    agree("6")
    for _ in range(4):
        write(range(6, 9), ours=True)
    table.clean()
    table.archive()
    agree("6")
    theirs("upgrade_table", "NINE")
    agree("9")
    write(range(18, 24), ours=True)
    write(range(19, 21), ours=False)
    for to in (8, 6):
        table.downgrade(to)
        agree(str(to))
    write(range(9, 11), ours=False)
    agree("6")


@pytest.mark.slow
@pytest.mark.nightly
def test_hudi_keeps_a_metadata_table_that_was_made_again(jvm_hudi: JvmHudi, tmp_path: Path) -> None:
    path = tmp_path / "t"
    switches = dict.fromkeys((COLUMN_STATS, RECORD_INDEX), "true")
    ours = {**OPTIONS, **switches, "hoodie.index.type": "GLOBAL_BLOOM"}
    options = {**ours, TYPE: "COPY_ON_WRITE", "hoodie.metadata.enable": "true"}
    table = HoodieTable(str(path), ours)
    jvm_hudi.write(path, _rows(1, range(9)), {**options, "hoodie.write.table.version": "6"})
    there = table.properties.metadata_partitions
    assert {"files", "column_stats", "record_index"} <= set(there)
    for number, to in enumerate((9, 6, 8), 2):
        _ = table.downgrade(to) if to == 6 else table.upgrade(to)
        given = {"hoodie.write.table.version": str(to), "hoodie.write.auto.upgrade": "false"}
        jvm_hudi.write(path, _rows(number, range(4, 12)), {**options, **given})
        assert set(there) <= set(table.properties.metadata_partitions)
        assert not table.inspect.verify_metadata_table().findings
        table.upsert(_rows(10 + number, range(8, 14)))
        assert not table.inspect.verify_metadata_table().findings
        assert_same_rows(_plain(jvm_hudi.read(path)), _plain(table.read()))


LEFT_BY_HUDI = {"hoodie.compaction.record.merger.strategy", "hoodie.table.checksum"}
"""Properties that the two upgrades leave otherwise, and that say nothing in version 9."""


def test_an_upgraded_table_merges_late_rows_as_hudis_upgrade_has_it(
    jvm_hudi: JvmHudi, tmp_path: Path
) -> None:
    options = {**OPTIONS, TYPE: "MERGE_ON_READ"}
    name = "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"
    given = {"hoodie.datasource.write.payload.class": name, "hoodie.write.table.version": "6"}
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    for number in (5, 6):
        rows = _rows(number, range(6))
        jvm_hudi.write(theirs, rows, {**options, **NO_SERVICE, **given})
    shutil.copytree(theirs, ours)
    jvm_hudi.sql(f"create table late using hudi location '{theirs}'")
    for version in ("EIGHT", "NINE"):
        jvm_hudi.sql(f"call upgrade_table(table => 'late', to_version => '{version}')")
    HoodieTable(str(ours)).upgrade(9)
    there, here = jvm_hudi.properties(theirs), jvm_hudi.properties(ours)
    assert {key for key, _ in there.items() ^ here.items()} <= LEFT_BY_HUDI
    late = pa.concat_tables([_rows(1, range(2)), _rows(7, range(2, 4))])
    expected = {(f"k{i}", 7 if i in (2, 3) else 6) for i in range(6)}
    for path in (theirs, ours):
        HoodieTable(str(path), options).upsert(late)
        for read in (jvm_hudi.read(path), HoodieTable(str(path)).read()):
            assert {(row["id"], row["ts"]) for row in read.to_pylist()} == expected


def test_hudi_merges_no_log_file_again_after_our_downgrade(
    jvm_hudi: JvmHudi, tmp_path: Path
) -> None:
    """A row that came with a lower ordering value, once a compaction had forgotten its delete."""
    options = {**OPTIONS, TYPE: "MERGE_ON_READ", "hoodie.write.table.version": "9"}
    table = HoodieTable(str(tmp_path / "t"), options)
    table.upsert(_rows(1, range(3)))
    table.upsert(_rows(2, range(3)))
    table.delete(_rows(50, range(1)))
    table.compact()
    table.upsert(_rows(10, range(2)))
    expected = table.read().select(["id", "ts", "v"])
    table.downgrade(6)
    there = jvm_hudi.read(tmp_path / "t")
    assert_same_rows(there.select(["id", "ts", "v"]), expected, ("id",))
