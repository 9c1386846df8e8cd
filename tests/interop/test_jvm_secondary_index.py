"""Secondary indexes: Hudi's queries by them find what we have written, and both keep them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.table.table import open_table
from tests.integration.test_record_index_kept import assert_indexed
from tests.interop.jvm_hudi import TABLE_VERSION, JvmHudi
from tests.interop.test_jvm_record_index import OF_TABLE, OPTIONS
from tests.rows import assert_same_rows
from tests.tables import TYPE, TYPES, trips
from tests.tiers import by_day

pytestmark = [pytest.mark.jvm, pytest.mark.usefixtures("by_tasks")]

KINDS = [(version, kind) for version in "89" for kind in TYPES]
TURNS = [("9", "MERGE_ON_READ", 1), *((*kind, 2) for kind in KINDS)]
SKIPPING = "hoodie.enable.data.skipping"
LOCK = "org.apache.hudi.client.transaction.lock.InProcessLockProvider"


def found(jvm: JvmHudi, name: str, values: Iterable[int], skips: bool) -> list[tuple[int, str]]:
    """Values of `ts` and record keys that a query of Hudi finds, by its indexes or without."""
    scans = (f"select {value} ts, id from {name} where ts = {value}" for value in values)
    jvm.sql(f"set {SKIPPING}={str(skips).lower()}")
    jvm.sql(f"set hoodie.metadata.enable={str(skips).lower()}")
    jvm.sql(f"refresh table {name}")
    try:
        rows = jvm.sql(" union all ".join(scans)).to_pylist()
        return sorted((row["ts"], row["id"]) for row in rows)
    finally:
        jvm.sql(f"reset {SKIPPING}")
        jvm.sql("reset hoodie.metadata.enable")


@pytest.mark.parametrize(("version", "kind", "turns"), by_day(TURNS, TURNS[:1]))
def test_hudi_finds_our_rows_by_a_secondary_index(
    jvm_hudi: JvmHudi, tmp_path: Path, version: str, kind: str, turns: int
) -> None:
    path, name = tmp_path / "t", f"by_ts_{version}_{kind.lower()}"
    options = {**OPTIONS, TYPE: kind, TABLE_VERSION: version}
    theirs = {**options, **OF_TABLE, "hoodie.clean.automatic": "false"}
    jvm_hudi.write(path, trips(("a", "x", 1, 1.0), ("b", "y", 1, 1.0), ("c", "y", 2, 1.0)), theirs)
    jvm_hudi.sql(f"create table {name} using hudi location '{path}'")
    settings = {
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.global.record.level.index.enable": "true",
        TABLE_VERSION: version,
        "hoodie.write.auto.upgrade": "false",
        "hoodie.write.lock.provider": LOCK,
    }
    for key, text in settings.items():
        jvm_hudi.sql(f"set {key}={text}")
    jvm_hudi.sql(f"create index ts on {name} (ts)")
    for key in settings:
        jvm_hudi.sql(f"reset {key}")
    ours = HoodieTable(str(path), options)
    for turn in range(turns):
        ts = 10 * (turn + 1)
        ours.upsert(trips(("a", "z", ts, 2.0), (f"n{turn}", "x", ts, 2.0)))
        ours.delete(trips(("b", "y", ts, None)))
        ours.compact() if kind == "MERGE_ON_READ" else ours.cluster()
        ours.upsert(trips(("undone", "x", ts, 3.0), ("c", "y", ts, 3.0)))
        ours.rollback()
        assert_indexed(open_storage(str(path)))
        values = (1, 2, 10, 20)
        by_index = found(jvm_hudi, name, values, True)
        assert by_index == found(jvm_hudi, name, values, False)
        expected = ours.read(filter=pa.compute.field("ts").isin(values)).to_pylist()
        assert by_index == sorted((row["ts"], row["id"]) for row in expected)
        jvm_hudi.write(path, trips(("b", "y", ts + 1, 4.0), ("c", "y", ts + 1, 4.0)), theirs)
        assert_indexed(open_storage(str(path)))
        assert_same_rows(jvm_hudi.read(path), ours.read())
    there = open_table(open_storage(str(path))).properties.metadata_partitions
    assert "secondary_index_ts" in there
