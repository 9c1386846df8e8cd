"""Compactions that one side plans and the other carries out; afterwards all readers agree."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.services.compaction.compactor import Compactor
from hoodie_ds.timeline.instant import Action
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.interop.jvm_hudi import TABLE_VERSION, JvmHudi
from tests.rows import assert_same_rows
from tests.tiers import by_day

pytestmark = pytest.mark.jvm

BASE = {
    "hoodie.table.name": "compacted",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.hive_style_partitioning": "true",
}
BUCKET = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
BLOOM = {"hoodie.index.type": "BLOOM"}
TABLES = {
    "bucket, parquet": {**BASE, **BUCKET, "hoodie.logfile.data.block.format": "parquet"},
    "bucket, avro": {**BASE, **BUCKET, "hoodie.logfile.data.block.format": "avro"},
    "bloom": {**BASE, **BLOOM},
    "bucket, version 9": {**BASE, **BUCKET, TABLE_VERSION: "9"},
    "bloom, version 8": {**BASE, **BLOOM, TABLE_VERSION: "8"},
}
NO_SERVICE = {"hoodie.compact.inline": "false"}
SCHEDULE = {
    "hoodie.compact.schedule.inline": "true",
    "hoodie.compact.inline.max.delta.commits": "1",
}


def _rows(number: int, keys: range, deleted: tuple[int, ...] = ()) -> pa.Table:
    return pa.table(
        {
            "id": [f"k{i}" for i in keys],
            "city": [f"c{i % 2}" for i in keys],
            "ts": pa.array([number] * len(keys), pa.int64()),
            "v": [f"{number}-{i}" for i in keys],
            "_hoodie_is_deleted": [i in deleted for i in keys],
        }
    )


def _check(jvm: JvmHudi, path: Path, options: Mapping[str, str], rows: pa.Table) -> None:
    """All three readers see the same rows as before."""
    ours = HoodieTable(str(path), options).read()
    plain = rows.drop_columns(["_hoodie_file_name"])
    for found in (ours, jvm.read(path), read_with_hudi_rs(path)):
        assert_same_rows(found.drop_columns(["_hoodie_file_name"]), plain)


@pytest.mark.parametrize("name", by_day(TABLES, {"bucket, parquet", "bucket, version 9"}))
def test_hudi_carries_our_plan_out(name: str, jvm_hudi: JvmHudi, tmp_path: Path) -> None:
    options, path = TABLES[name], tmp_path / "t"
    table = HoodieTable(str(path), options)
    table.upsert(_rows(1, range(20)))
    table.upsert(_rows(2, range(5, 12), deleted=(6, 7)))
    instant = Compactor(table._services()).schedule()
    assert instant is not None
    table.upsert(_rows(3, range(10, 22)))  # beside the plan
    before = table.read()
    assert_same_rows(jvm_hudi.read(path), before)
    jvm_hudi.call("run_compaction", path, options, op="run")
    done = table.timeline.commit_at(instant.time)
    assert done is not None
    assert done.action is Action.COMMIT
    _check(jvm_hudi, path, options, before)
    table.upsert(_rows(4, range(3)))
    assert table.compact()
    _check(jvm_hudi, path, options, table.read())


@pytest.mark.parametrize("name", by_day(TABLES, {"bucket, avro", "bloom, version 8"}))
def test_we_carry_hudis_plan_out(name: str, jvm_hudi: JvmHudi, tmp_path: Path) -> None:
    options, path = TABLES[name], tmp_path / "t"
    jvm_hudi.write(path, _rows(1, range(20)), {**options, **NO_SERVICE})
    jvm_hudi.write(path, _rows(2, range(5, 12)), {**options, **NO_SERVICE, **SCHEDULE})
    table = HoodieTable(str(path), options)
    (pending,) = table.timeline.pending_compactions
    table.upsert(_rows(3, range(10, 22)))
    before = table.read()
    (done, *_) = table.compact()
    assert done.instant_time == pending.time
    _check(jvm_hudi, path, options, before)
    jvm_hudi.write(path, _rows(4, range(15)), {**options, **NO_SERVICE})
    table.compact()
    _check(jvm_hudi, path, options, table.read())
