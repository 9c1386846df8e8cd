"""What a merge came to, remembered: of which files it is, and what is read by it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from hoodie_ds import HoodieTable
from hoodie_ds.reader.snapshot import SliceExecutor
from hoodie_ds.slices.merge_outcomes import MergeOutcome, MergeOutcomes
from tests.tables import BUCKETS, TRIPS, TYPE, VERSION, trips

SMALL_GROUPS = {"hoodie.parquet.block.size": "16k"}
MOR = {**TRIPS, **SMALL_GROUPS, BUCKETS: "1", TYPE: "MERGE_ON_READ"}
STORED = [(f"k{number:04}", "x", 5, float(number)) for number in range(1_000)]


def fares(table: HoodieTable, low: float = 0) -> dict[str, float]:
    rows = table.read(["id", "fare"], filter=("fare", ">=", low))
    return dict(zip(rows["id"].to_pylist(), rows["fare"].to_pylist(), strict=True))


def test_each_later_batch_is_seen(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), MOR)
    table.upsert(trips(*STORED))
    expected = {key: fare for key, _, _, fare in STORED}
    for number in range(0, 1_000, 250):
        key = f"k{number:04}"
        table.upsert(trips((key, "x", 6, 5_000.0 + number), (f"new {number}", "x", 6, 1.0)))
        expected |= {key: 5_000.0 + number, f"new {number}": 1.0}
        assert fares(table) == expected
        assert fares(table) == expected
        table.delete(trips((f"k{number + 1:04}", "x", 7, None)).select(["id", "city", "ts"]))
        del expected[f"k{number + 1:04}"]
        assert fares(table) == expected
    for low in (0.0, 10.0, 300.5, 999.0, 5_000.0, 9_000.0):
        assert fares(table, low) == {key: fare for key, fare in expected.items() if fare >= low}


def test_the_merge_of_a_few_keys_is_that_of_no_others(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), {**MOR, VERSION: "6"})
    table.upsert(trips(*STORED))
    table.upsert(trips(("k0000", "x", 6, 7.5), ("k0900", "x", 6, 7.5)))
    for key, fare in (("k0900", 7.5), ("k0500", 500.0)):
        assert table.read(["fare"], filter=("id", "=", key))["fare"].to_pylist() == [fare]
    assert fares(table) == {key: f for key, _, _, f in STORED} | {"k0000": 7.5, "k0900": 7.5}


def test_statistics_rule_out_rows_of_a_known_outcome(tmp_path: Path) -> None:
    table = HoodieTable(str(tmp_path), MOR)
    table.upsert(trips(*STORED))
    table.upsert(trips(("k0000", "x", 6, 5_000.0)))
    table.read(["fare"])
    query = table.scan(["fare"], filter=("fare", "<", 2.0))
    plan = query._plan()
    assert isinstance(plan.executor, SliceExecutor)
    (task,) = plan.tasks
    read = pa.concat_tables(plan.executor.read(task, ["fare"]))["fare"].to_pylist()
    assert 1.0 in read
    assert 5_000.0 not in read  # of a log block
    assert len(read) < 500


def test_the_outcomes_of_a_table_have_a_limit_and_leave_in_the_order_of_use() -> None:
    outcomes = MergeOutcomes()
    large = MergeOutcome.of([~pa.nulls(80 << 20).is_valid().to_numpy(zero_copy_only=False)], {})
    for key in "abc":
        outcomes.put(key, large)
    assert outcomes.get("a") is large
    outcomes.put("d", large)
    assert [key for key in "abcd" if outcomes.get(key) is None] == ["b"]
