"""Tables that we make ones of another version are Apache Hudi's to read and to write."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from tests.interop.jvm_hudi import JvmHudi
from tests.rows import assert_same_rows

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


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_hudi_reads_and_goes_on_with_what_we_changed(
    kind: str, jvm_hudi: JvmHudi, tmp_path: Path
) -> None:
    options, path = {**OPTIONS, TYPE: kind}, tmp_path / "t"
    table = HoodieTable(str(path), options)
    table.upsert(_rows(1, range(20)))
    table.upsert(_rows(2, range(5, 12)))
    before = _plain(table.read())
    for to in (8, 9):
        table.upgrade(to)
        assert_same_rows(_plain(jvm_hudi.read(path)), before)
    jvm_hudi.write(path, _rows(3, range(3, 6)), {**options, **NO_SERVICE})
    after = _plain(jvm_hudi.read(path))
    assert after.num_rows == 20
    assert_same_rows(_plain(table.read()), after)
    for to in (8, 6):
        table.downgrade(to)
        assert_same_rows(_plain(jvm_hudi.read(path)), after)
    table.upsert(_rows(4, range(8, 10)))
    assert_same_rows(_plain(jvm_hudi.read(path)), _plain(table.read()))
