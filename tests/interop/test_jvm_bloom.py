"""Tables with Hudi's bloom index, upserted in turns by us and by Apache Hudi on the JVM."""

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

OPTIONS = {
    "hoodie.table.name": "bloom",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.index.type": "BLOOM",
}


def batch(first: int, count: int, ts: int) -> pa.Table:
    ids = range(first, first + count)
    return pa.table(
        {
            "id": [f"ключ-{i}" if i % 7 == 0 else f"k{i:04}" for i in ids],
            "city": [f"c{i % 2}" for i in ids],
            "ts": pa.array([ts] * count, pa.int64()),
        }
    )


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize(
    ("kind", "ours_first", "index", "version"),
    by_day(
        product(TYPES, (True, False), ("BLOOM", "SIMPLE"), "689"),
        {
            ("COPY_ON_WRITE", False, "BLOOM", "8"),
            ("MERGE_ON_READ", True, "SIMPLE", "6"),
            ("MERGE_ON_READ", True, "BLOOM", "9"),
        },
    ),
)
def test_no_key_is_stored_twice(
    jvm_hudi: JvmHudi, tmp_path: Path, kind: str, ours_first: bool, index: str, version: str
) -> None:
    path = tmp_path / "t"
    options = {**OPTIONS, TYPE: kind, "hoodie.index.type": index, TABLE_VERSION: version}
    table = HoodieTable(str(path), options)
    stored: dict[str, int] = {}
    for turn in range(6):
        rows = batch(150 * turn, 300, turn)
        if (turn % 2 == 0) == ours_first:
            table.upsert(rows)
        else:
            jvm_hudi.write(path, rows, {**options, "hoodie.compact.inline": "false"})
        stored.update(dict.fromkeys(rows["id"].to_pylist(), turn))
        found = table.read()
        listed = list(zip(found["id"].to_pylist(), found["ts"].to_pylist(), strict=True))
        assert len(listed) == len(stored)
        assert dict(listed) == stored
        assert_same_rows(jvm_hudi.read(path), found)
        assert_same_rows(read_with_hudi_rs(path), found)
