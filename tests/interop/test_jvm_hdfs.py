"""A table on HDFS, written by Apache Hudi on the JVM and by ours, under Hudi's own lock."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.timeline.paths import FILE_LOCK
from tests.hdfs_server import HdfsServer
from tests.interop.jvm_hudi import TABLE_VERSION, JvmHudi, JvmHudiError
from tests.rows import assert_same_rows
from tests.tables import TRIPS, TYPE, found, trips
from tests.tiers import by_day

pytestmark = pytest.mark.jvm

SHARED = {
    **TRIPS,
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.metadata.enable": "false",
    "hoodie.write.lock.provider": (
        "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
    ),
}
THEIRS = {
    "hoodie.index.type": "BUCKET",
    "hoodie.compact.inline": "false",
    "hoodie.write.lock.num_retries": "1",
    "hoodie.write.lock.client.num_retries": "1",
    "hoodie.write.lock.client.wait_time_ms_between_retry": "50",
}


@pytest.mark.parametrize(
    ("kind", "version"),
    by_day([("COPY_ON_WRITE", "6"), ("MERGE_ON_READ", "9")], {("MERGE_ON_READ", "9")}),
)
def test_both_write_a_table_and_exclude_each_other(
    jvm_hudi: JvmHudi, hdfs: HdfsServer, tmp_path: Path, kind: str, version: str
) -> None:
    path = hdfs.url(tmp_path)
    options = {**SHARED, TYPE: kind, TABLE_VERSION: version}
    storage = open_storage(path, hdfs.options)
    table = HoodieTable(path, {**options, **hdfs.table_options})
    table.upsert(trips(("a", "x", 1, 1.0), ("b", "y", 1, 1.0)))
    assert_same_rows(jvm_hudi.read(path), table.read())

    storage.put_if_absent(FILE_LOCK, b"")  # as a writer of ours that holds it
    with pytest.raises(JvmHudiError, match="lock"):
        jvm_hudi.write(path, trips(("b", "y", 2, 2.0)), {**options, **THEIRS})
    storage.delete(FILE_LOCK)

    jvm_hudi.write(path, trips(("b", "y", 3, 3.0)), {**options, **THEIRS})
    table.upsert(trips(("a", "x", 4, 4.0)))
    assert found(table) == [("a", "x", 4, 4.0), ("b", "y", 3, 3.0)]
    assert_same_rows(jvm_hudi.read(path), table.read())
    assert FILE_LOCK not in [status.path for status in storage.list(".hoodie")]
