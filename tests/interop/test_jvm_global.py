"""Tables with Hudi's global indexes, whose records we and Apache Hudi on the JVM move in turns."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.interop.jvm_hudi import JvmHudi
from tests.rows import assert_same_rows
from tests.tables import TYPE

pytestmark = pytest.mark.jvm

OPTIONS = {
    "hoodie.table.name": "moves",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.compact.inline": "false",
}
Row = tuple[str, str, int, bool]


def batch(draw: random.Random, turn: int, deletes: float) -> list[Row]:
    """One row each of many keys: on the move, too late, or, that share of them, deletes."""
    return [
        (f"k{n:03}", f"c{draw.randrange(3)}", 1 + draw.randrange(3 + turn), draw.random() < deletes)
        for n in draw.sample(range(150), 100)
    ]


def arrow(rows: list[Row]) -> pa.Table:
    names = ("id", "city", "ts", "_hoodie_is_deleted")
    kinds = (pa.string(), pa.string(), pa.int64(), pa.bool_())
    columns = [pa.array(c, k) for c, k in zip(zip(*rows, strict=True), kinds, strict=True)]
    return pa.table(dict(zip(names, columns, strict=True)))


@pytest.mark.parametrize(
    ("kind", "index", "ours_first", "deletes"),
    [
        ("COPY_ON_WRITE", "GLOBAL_BLOOM", True, 0.1),
        ("MERGE_ON_READ", "GLOBAL_BLOOM", False, 0.0),
        ("MERGE_ON_READ", "GLOBAL_SIMPLE", True, 0.1),
    ],
)
def test_records_move_back_and_forth(
    jvm_hudi: JvmHudi, tmp_path: Path, kind: str, index: str, ours_first: bool, deletes: float
) -> None:
    path = tmp_path / "t"
    options = {**OPTIONS, TYPE: kind, "hoodie.index.type": index}
    table = HoodieTable(str(path), options)
    draw = random.Random(4)
    stored: dict[str, Row] = {}
    for turn in range(6):
        rows = batch(draw, turn, deletes)
        if (turn % 2 == 0) == ours_first:
            table.upsert(arrow(rows))
        else:
            jvm_hudi.write(path, arrow(rows), options)
        for row in rows:
            if row[0] in stored and row[2] < stored[row[0]][2]:
                continue
            stored[row[0]] = row
            if row[3]:
                del stored[row[0]]
        read = table.read(columns=["id", "city", "ts", "_hoodie_partition_path"]).to_pylist()
        assert sorted((r["id"], r["city"], r["ts"]) for r in read) == sorted(
            row[:3] for row in stored.values()
        ), turn
        assert all(r["city"] == r["_hoodie_partition_path"] for r in read)
        assert_same_rows(jvm_hudi.read(path), table.read())
        if kind == "COPY_ON_WRITE" or not deletes:
            # Hudi puts deletes of moved records and others into one block, which hudi-rs refuses.
            assert_same_rows(read_with_hudi_rs(path), table.read())
