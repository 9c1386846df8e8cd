"""Keys that inserts put into several file groups: we and Hudi on the JVM change each copy."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from tests.interop.jvm_hudi import TABLE_VERSION, JvmHudi
from tests.tables import TYPE
from tests.tiers import by_day

pytestmark = pytest.mark.jvm

OPTIONS = {
    "hoodie.table.name": "copies",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.compact.inline": "false",
    "hoodie.metadata.enable": "false",
}
OPERATION = "hoodie.datasource.write.operation"


def rows(ids: str, city: str, ts: int) -> pa.Table:
    return pa.table({"id": list(ids), "city": [city] * len(ids), "ts": pa.array([ts] * len(ids))})


def counted(table: pa.Table) -> Counter[tuple[str, str, int]]:
    chosen = table.select(["id", "_hoodie_partition_path", "ts"]).to_pylist()
    return Counter(tuple(row.values()) for row in chosen)


def same_rows(table: pa.Table) -> set[tuple[str, str, int]]:
    """Rows by value: copies that come to one partition are one record here, and apart there."""
    return set(counted(table))


@pytest.mark.parametrize(
    ("kind", "index", "version", "moves"),
    by_day(
        [
            ("COPY_ON_WRITE", "BLOOM", "6", "true"),
            ("MERGE_ON_READ", "SIMPLE", "9", "true"),
            ("COPY_ON_WRITE", "GLOBAL_SIMPLE", "9", "true"),
            ("COPY_ON_WRITE", "GLOBAL_BLOOM", "8", "false"),
        ],
        {
            ("MERGE_ON_READ", "SIMPLE", "9", "true"),
            ("COPY_ON_WRITE", "GLOBAL_BLOOM", "8", "false"),
        },
    ),
)
def test_both_change_each_copy(
    jvm_hudi: JvmHudi, tmp_path: Path, kind: str, index: str, version: str, moves: str
) -> None:
    options = {**OPTIONS, TYPE: kind, "hoodie.index.type": index, TABLE_VERSION: version}
    for name in ("bloom", "simple"):
        options[f"hoodie.{name}.index.update.partition.path"] = moves
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    for batch in (rows("abcdefh", "x", 1), rows("abcdi", "x", 3), rows("efh", "y", 3)):
        jvm_hudi.write(theirs, batch, {**options, OPERATION: "insert"})
    shutil.copytree(theirs, ours)
    table = HoodieTable(str(ours), options)
    changed = [rows("ag", "x", 5), rows("bi", "x", 2), rows("e", "x", 6), rows("f", "z", 6)]
    jvm_hudi.write(theirs, pa.concat_tables(changed), options)
    table.upsert(pa.concat_tables(changed))
    agree = same_rows if moves == "true" and "GLOBAL" in index else counted
    there = agree(jvm_hudi.read(theirs))
    assert ("a", "x", 1) not in there
    assert there == agree(jvm_hudi.read(ours)) == agree(table.read())
    jvm_hudi.write(theirs, rows("ch", "x", 9), {**options, OPERATION: "delete"})
    table.delete(rows("ch", "x", 9))
    there = agree(jvm_hudi.read(theirs))
    assert ("c", "x", 1) not in there
    assert there == agree(jvm_hudi.read(ours)) == agree(table.read())
