"""The JVM oracle itself: it writes tables of version 6, reads them, deletes, and refuses."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tests.interop.hudi_rs import read_with_hudi_rs
from tests.interop.jvm_hudi import JvmHudi, JvmHudiError
from tests.rows import assert_same_rows, without_meta

pytestmark = pytest.mark.jvm

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "2",
}


def rows(*values: tuple[str, str, int, str]) -> pa.Table:
    columns = zip(*values, strict=True)
    return pa.table(dict(zip(["id", "city", "ts", "note"], map(list, columns), strict=True)))


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_upsert_and_delete_read_back_by_both_readers(
    jvm_hudi: JvmHudi, tmp_path: Path, kind: str
) -> None:
    options = {**OPTIONS, "hoodie.datasource.write.table.type": kind}
    jvm_hudi.write(tmp_path / "t", rows(("a", "x", 5, "old"), ("b", "y", 5, "b")), options)
    jvm_hudi.write(tmp_path / "t", rows(("a", "x", 6, "new"), ("a", "x", 4, "late")), options)
    jvm_hudi.delete(tmp_path / "t", rows(("b", "y", 5, "b")), options)
    snapshot = jvm_hudi.read(tmp_path / "t")
    assert_same_rows(without_meta(snapshot), rows(("a", "x", 6, "new")), ["id"])
    assert_same_rows(read_with_hudi_rs(tmp_path / "t"), snapshot)
    assert jvm_hudi.properties(tmp_path / "t")["hoodie.table.version"] == "6"


def test_a_refusal_carries_the_java_message(jvm_hudi: JvmHudi, tmp_path: Path) -> None:
    with pytest.raises(JvmHudiError, match="TableNotFoundException"):
        jvm_hudi.properties(tmp_path / "none")


def test_sql_answers_rows(jvm_hudi: JvmHudi) -> None:
    assert jvm_hudi.sql("select 1 as one").to_pylist() == [{"one": 1}]
