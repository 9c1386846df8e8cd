"""Ten rounds in turns with Apache Hudi on a table of its defaults: indexes, services and archives.

Spark's defaults are those of Hudi 1.2 on Spark 3.5; Flink's are the options that its writer has by
default, by the JVM that is here. Both sides compact, clean and archive, also in the metadata table.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hoodie_ds import HoodieTable
from tests.interop.hudi_rs import read_with_hudi_rs
from tests.interop.jvm_hudi import TABLE_VERSION, JvmHudi
from tests.interop.test_jvm_metadata_table import METADATA, agree
from tests.rows import assert_same_rows
from tests.tables import TYPE, TYPES, found, trips
from tests.tiers import by_day

pytestmark = pytest.mark.jvm

KEYS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "city",
}
EARLY = {
    "hoodie.clean.commits.retained": "2",
    "hoodie.keep.min.commits": "4",
    "hoodie.keep.max.commits": "6",
    "hoodie.metadata.compact.max.delta.commits": "4",
}
DEFAULTS = {
    "spark": {},
    "flink": {
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "4",
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.index.column.stats.enable": "false",
        "hoodie.datasource.write.hive_style_partitioning": "false",
    },
}
CASES = [(of, kind, version) for of in DEFAULTS for kind in TYPES for version in "689"]


@dataclass
class Rounds:
    """A table, what it should hold, and both sides that write it."""

    jvm: JvmHudi
    path: Path
    options: dict[str, str]
    draw: random.Random
    ts: int = 0
    rows: dict[str, tuple[Any, ...]] = field(default_factory=dict)

    def batch(self) -> list[tuple[Any, ...]]:
        """New keys and known ones; a key stays in its partition."""
        self.ts += 1
        ids = self.draw.sample(range(self.ts * 5 + 10), 8)
        rows = [(f"k{i:03}", "xyz"[i % 3], self.ts, float(self.ts * 1000 + i)) for i in ids]
        self.rows |= {row[0]: row for row in rows}
        return rows

    def gone(self) -> list[tuple[Any, ...]]:
        """Some rows, which are deleted."""
        self.ts += 1
        found = self.draw.sample(sorted(self.rows), min(3, len(self.rows)))
        return [(*self.rows.pop(key)[:2], self.ts, None) for key in found]

    def ours(self) -> None:
        table = HoodieTable(str(self.path), self.options)
        table.upsert(trips(*self.batch()))
        self.check()
        table.delete(trips(*self.gone()))
        if self.draw.random() < 0.3:
            self.ts += 1
            table.upsert(trips(("undone", "x", self.ts, 0.0), ("k001", "y", self.ts, 0.0)))
            table.rollback()
        if self.options[TYPE] == "MERGE_ON_READ" and self.draw.random() < 0.4:
            table.compact()
        table.clean()
        table.archive()

    def theirs(self) -> None:
        inline = str(self.options[TYPE] == "MERGE_ON_READ" and self.draw.random() < 0.5).lower()
        given = {**self.options, "hoodie.compact.inline": inline}
        self.jvm.write(self.path, trips(*self.batch()), given)
        self.check()
        self.jvm.delete(self.path, trips(*self.gone()), given)

    def check(self) -> None:
        """Compare what both sides read with the model."""
        ours = HoodieTable(str(self.path)).read()
        assert found(HoodieTable(str(self.path))) == sorted(self.rows.values())
        assert_same_rows(self.jvm.read(self.path, {METADATA: "true"}), ours)

    def check_all(self) -> None:
        """Compare what has been kept: indexes, statistics and listings too."""
        self.check()
        table = HoodieTable(str(self.path))
        skipping = {METADATA: "true", "hoodie.enable.data.skipping": "true"}
        assert_same_rows(self.jvm.read(self.path, skipping), table.read())
        assert table.inspect.verify().findings == ()
        if self.jvm.properties(self.path).get("hoodie.table.metadata.partitions"):
            agree(self.jvm, self.path, self.options[TABLE_VERSION])
            return
        assert_same_rows(self.jvm.read(self.path, {METADATA: "false"}), table.read())
        if self.options[TABLE_VERSION] != "6":
            assert_same_rows(read_with_hudi_rs(self.path), table.read())


@pytest.mark.parametrize("first", ["ours", "theirs"])
@pytest.mark.parametrize(("of", "kind", "version"), by_day(CASES, ()))
def test_ten_rounds(
    jvm_hudi: JvmHudi, tmp_path: Path, of: str, kind: str, version: str, first: str
) -> None:
    options = {**KEYS, **DEFAULTS[of], **EARLY, TYPE: kind, TABLE_VERSION: version}
    rounds = Rounds(jvm_hudi, tmp_path / "t", options, random.Random(f"{of}{kind}{version}{first}"))
    sides = [rounds.ours, rounds.theirs]
    for number in range(10):
        for side in sides if first == "ours" else sides[::-1]:
            side()
            rounds.check()
        if number % 3 == 2:
            rounds.check_all()
    rounds.check_all()
    assert len(HoodieTable(str(tmp_path / "t")).timeline.commits) < 12
