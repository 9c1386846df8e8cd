"""One table, written in turns by us and by Apache Hudi on the JVM; after every turn all agree.

Readers: JVM Hudi, hudi-rs, ours, and a dictionary that folds the batches by event time.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.interop.jvm_hudi import TABLE_VERSION, JvmHudi
from tests.rows import assert_same_rows
from tests.tiers import by_day

pytestmark = pytest.mark.jvm

KEYS = 60
BASE = {
    "hoodie.table.name": "pingpong",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "3",
}
PARTITIONED = {
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.hive_style_partitioning": "true",
}
COW = {"hoodie.datasource.write.table.type": "COPY_ON_WRITE"}
MOR = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline": "false"}
AVRO = {"hoodie.logfile.data.block.format": "avro"}
PARQUET = {"hoodie.logfile.data.block.format": "parquet"}
NONPARTITIONED = {
    "hoodie.datasource.write.keygenerator.class": (
        "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
    )
}
TABLES = {
    "cow-partitioned": {**BASE, **PARTITIONED, **COW},
    "cow": {**BASE, **NONPARTITIONED, **COW},
    "mor-parquet-partitioned": {**BASE, **PARTITIONED, **MOR, **PARQUET},
    "mor-parquet": {**BASE, **NONPARTITIONED, **MOR, **PARQUET},
    "mor-avro-partitioned": {**BASE, **PARTITIONED, **MOR, **AVRO},
    "mor-avro": {**BASE, **NONPARTITIONED, **MOR, **AVRO},
    "cow, change data": {**BASE, **PARTITIONED, **COW, "hoodie.table.cdc.enabled": "true"},
    "version 8, cow": {**BASE, **NONPARTITIONED, **COW, TABLE_VERSION: "8"},
    "version 9, cow": {**BASE, **PARTITIONED, **COW, TABLE_VERSION: "9"},
    "version 9, mor-parquet": {**BASE, **PARTITIONED, **MOR, **PARQUET, TABLE_VERSION: "9"},
    "version 8, mor-avro": {**BASE, **NONPARTITIONED, **MOR, **AVRO, TABLE_VERSION: "8"},
}
OURS = {"mor-avro", "version 8, cow", "version 9, mor-parquet"}
THEIRS = {"mor-parquet-partitioned", "version 9, cow"}


@dataclass
class Game:
    """The table, its model, and the batches that both sides write."""

    path: Path
    options: dict[str, str]
    jvm: JvmHudi
    draw: random.Random = field(default_factory=lambda: random.Random(11))
    rows: dict[str, tuple[int, str]] = field(default_factory=dict)
    turn: int = 0

    def batch(self) -> pa.Table:
        """Late rows, several rows of a key, deletes; ordering values never equal for a key."""
        self.turn += 1
        ids = [self.draw.randrange(KEYS) for _ in range(40)]
        orders = [self.turn * 1000 + n - self.draw.choice([0, 0, 0, 2500]) for n in range(40)]
        deleted = [self.turn > 1 and self.draw.random() < 0.15 for _ in range(40)]
        batch = pa.table(
            {
                "id": [f"k{i}" for i in ids],
                "city": [f"c{i % 3}" for i in ids],
                "ts": pa.array(orders, pa.int64()),
                "v": [f"{self.turn}-{n}" for n in range(40)],
                "price": pa.array([n / 4 for n in range(40)], pa.float64()),
                "_hoodie_is_deleted": deleted,
            }
        )
        return self._fold(batch)

    def _fold(self, batch: pa.Table) -> pa.Table:
        """Apply the batch to the model; leave out what the table types treat differently.

        A delete without a stored row is remembered by a merge-on-read slice alone, so batches
        delete only what is there, and nothing older than a delete comes after it.
        """
        kept = []
        newest: dict[str, int] = dict.fromkeys(self.rows, 0)
        for row in batch.to_pylist():
            key, stored = row["id"], self.rows.get(row["id"])
            if row["_hoodie_is_deleted"] and (stored is None or row["ts"] < stored[0]):
                continue
            if stored is None and row["ts"] < self.turn * 1000:
                continue
            kept.append(row)
            newest[key] = row["ts"]
            if stored is None or row["ts"] >= stored[0]:
                if row["_hoodie_is_deleted"]:
                    del self.rows[key]
                else:
                    self.rows[key] = (row["ts"], row["v"])
        return pa.Table.from_pylist(kept, schema=batch.schema)

    def ours(self) -> None:
        HoodieTable(str(self.path), self._for_us()).upsert(self.batch())
        self.check()

    def theirs(self) -> None:
        self.jvm.write(self.path, self.batch(), self.options)
        self.check()

    def we_delete(self) -> None:
        keys = self._doomed()
        HoodieTable(str(self.path), self._for_us()).delete(keys)
        self.check()

    def they_delete(self) -> None:
        doomed = self._doomed()
        full = {
            "ts": pa.array([0] * len(doomed), pa.int64()),
            "v": [""] * len(doomed),
            "price": [0.0] * len(doomed),
            "_hoodie_is_deleted": [False] * len(doomed),
        }
        for name, values in full.items():
            doomed = doomed.append_column(name, pa.array(values))
        self.jvm.delete(self.path, doomed, self.options)
        self.check()

    def _for_us(self) -> dict[str, str]:
        return {k: v for k, v in self.options.items() if k != "hoodie.compact.inline"}

    def _doomed(self) -> pa.Table:
        keys = sorted(self.rows)[:3]
        for key in keys:
            del self.rows[key]
        return pa.table({"id": keys, "city": [f"c{int(key[1:]) % 3}" for key in keys]})

    def check(self) -> None:
        mine = HoodieTable(str(self.path)).read()
        found = {row["id"]: (row["ts"], row["v"]) for row in mine.to_pylist()}
        assert len(found) == mine.num_rows
        assert found == self.rows
        assert_same_rows(read_with_hudi_rs(self.path), mine)
        assert_same_rows(self.jvm.read(self.path), mine)


@pytest.mark.parametrize("name", by_day(TABLES, OURS))
def test_a_table_of_ours(jvm_hudi: JvmHudi, tmp_path: Path, name: str) -> None:
    game = Game(tmp_path / "t", TABLES[name], jvm_hudi)
    for _ in range(3):
        game.ours()
        game.theirs()
    game.we_delete()
    game.they_delete()
    game.ours()


@pytest.mark.parametrize("name", by_day(TABLES, THEIRS))
def test_a_table_of_theirs(jvm_hudi: JvmHudi, tmp_path: Path, name: str) -> None:
    game = Game(tmp_path / "t", TABLES[name], jvm_hudi)
    game.theirs()
    game.ours()
    game.we_delete()
    game.theirs()
    game.they_delete()
    game.ours()
    game.theirs()
    game.ours()


@pytest.mark.parametrize(
    "name", ["mor-parquet-partitioned", "version 8, mor-avro", "version 9, mor-parquet"]
)
def test_they_compact_our_table(jvm_hudi: JvmHudi, tmp_path: Path, name: str) -> None:
    game = Game(tmp_path / "t", TABLES[name], jvm_hudi)
    game.ours()
    game.ours()
    game.options = {
        **game.options,
        "hoodie.compact.inline": "true",
        "hoodie.compact.inline.max.delta.commits": "1",
    }
    game.theirs()
    completed = {instant.action.value for instant in HoodieTable(str(game.path)).timeline.completed}
    assert "commit" in completed
    game.options = TABLES[name]
    game.ours()
    game.theirs()
