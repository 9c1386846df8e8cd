"""Replace commits, in turns by us and by Apache Hudi on the JVM, on one bucket-indexed table."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.interop.jvm_hudi import TABLE_VERSION, JvmHudi
from tests.rows import assert_same_rows
from tests.tables import TYPE, TYPES
from tests.tiers import by_day

pytestmark = pytest.mark.jvm

COW, MOR = TYPES
OPTIONS = {
    "hoodie.table.name": "ops",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "2",
}
OPERATION = "hoodie.datasource.write.operation"


def rows(ids: str, city: str, ts: int) -> pa.Table:
    return pa.table({"id": list(ids), "city": [city] * len(ids), "ts": pa.array([ts] * len(ids))})


@pytest.mark.parametrize(
    ("kind", "version"),
    by_day(product(TYPES, "689"), {(COW, "9"), (MOR, "8")}),
)
def test_both_see_what_the_other_replaced(
    jvm_hudi: JvmHudi, tmp_path: Path, kind: str, version: str
) -> None:
    path = tmp_path / "t"
    options = {**OPTIONS, TYPE: kind, TABLE_VERSION: version}
    table = HoodieTable(str(path), options)

    def agree(expected: str) -> None:
        found = table.read()
        assert "".join(sorted(found["id"].to_pylist())) == expected
        assert_same_rows(read_with_hudi_rs(path), found)
        assert_same_rows(jvm_hudi.read(path), found)

    table.upsert(pa.concat_tables([rows("abcd", "x", 1), rows("efgh", "y", 1)]))
    table.overwrite(rows("ij", "x", 1), partitions_only=True)
    agree("efghij")
    jvm_hudi.write(path, rows("aij", "x", 2), options)
    agree("aefghij")
    table.delete_partitions(["y"])
    agree("aij")
    jvm_hudi.write(path, rows("ek", "y", 2), options)
    agree("aeijk")
    table.upsert(rows("el", "y", 3))
    agree("aeijkl")
    jvm_hudi.write(path, rows("m", "y", 3), {**options, OPERATION: "insert_overwrite"})
    agree("aijm")
    table.upsert(rows("men", "y", 4))
    agree("aeijmn")
    table.overwrite(rows("z", "x", 1))
    agree("z")
    jvm_hudi.write(path, rows("az", "x", 5), options)
    agree("az")
    jvm_hudi.write(path, rows("q", "x", 5), {**options, OPERATION: "insert_overwrite_table"})
    agree("q")
    table.upsert(rows("qr", "x", 6))
    agree("qr")
