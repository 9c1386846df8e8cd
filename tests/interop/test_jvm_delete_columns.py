"""A column that marks deletes, as Apache Hudi on the JVM and this library write and read it."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from tests.interop.jvm_hudi import JvmHudi
from tests.tables import TRIPS, TYPE, TYPES
from tests.tiers import by_day

pytestmark = pytest.mark.jvm

COW, MOR = TYPES

VERSION, MODE = "hoodie.write.table.version", "hoodie.write.record.merge.mode"
MARKS = {"hoodie.payload.delete.field": "Op", "hoodie.payload.delete.marker": "D"}
DMS = {"hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.AWSDmsAvroPayload"}
JVM_ONLY = {"hoodie.index.type": "BUCKET", "hoodie.compact.inline": "false"}
Row = tuple[str, int, str | None]


def rows(*values: Row) -> pa.Table:
    kinds = {"id": pa.string(), "ts": pa.int64(), "Op": pa.string()}
    dicts = [dict(zip(kinds, value, strict=True)) for value in values]
    table = pa.Table.from_pylist(dicts, schema=pa.schema(kinds))
    return table.append_column("city", pa.repeat("x", len(values)))


def content(table: pa.Table) -> list[tuple[str, int]]:
    return sorted((row["id"], row["ts"]) for row in table.to_pylist())


FIRST = rows(*((f"k{n}", 5, "I" if n % 2 else None) for n in range(6)))
OURS = rows(("k0", 6, "D"), ("k1", 4, "D"), ("k2", 6, "U"))
THEIRS = rows(("k2", 7, "D"), ("k3", 4, "D"), ("k0", 7, "I"))


@pytest.mark.parametrize(
    ("kind", "version"),
    by_day(product(TYPES, "689"), {(COW, "6"), (MOR, "8"), (MOR, "9")}),
)
def test_both_delete_by_the_column(
    jvm_hudi: JvmHudi, tmp_path: Path, kind: str, version: str
) -> None:
    options = {**TRIPS, TYPE: kind, VERSION: version, **MARKS}
    table = HoodieTable(str(tmp_path), options)
    table.upsert(FIRST)
    table.upsert(OURS)
    expected = [("k1", 5), ("k2", 6), ("k3", 5), ("k4", 5), ("k5", 5)]
    assert content(table.read()) == content(jvm_hudi.read(tmp_path)) == expected
    jvm_hudi.write(tmp_path, THEIRS, {**options, **JVM_ONLY})
    expected = [("k0", 7), ("k1", 5), ("k3", 5), ("k4", 5), ("k5", 5)]
    assert content(table.read()) == content(jvm_hudi.read(tmp_path)) == expected
    if kind == "MERGE_ON_READ":
        assert table.compact({"hoodie.compact.inline.max.delta.commits": "1"})
        assert content(table.read()) == content(jvm_hudi.read(tmp_path)) == expected


@pytest.mark.parametrize("kind", TYPES)
def test_a_table_of_database_migration_service(
    jvm_hudi: JvmHudi, tmp_path: Path, kind: str
) -> None:
    """In version 9 its payload is a column that marks deletes, and commit-time ordering."""
    options = {**TRIPS, TYPE: kind, VERSION: "9"}
    jvm_hudi.write(tmp_path, FIRST, {**options, **JVM_ONLY, **DMS})
    given = {MODE: "COMMIT_TIME_ORDERING", "hoodie.index.type": "BUCKET"}
    table = HoodieTable(str(tmp_path), {**options, **given})
    table.upsert(OURS)
    expected = [("k2", 6), ("k3", 5), ("k4", 5), ("k5", 5)]
    assert content(table.read()) == content(jvm_hudi.read(tmp_path)) == expected
