"""Event time told by several fields."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.columns.meta_columns import IS_DELETED
from tests.tables import ORDERING, TRIPS, TYPE, TYPES, found, trips

Trip = tuple[str, str, int, float]


@pytest.fixture(params=TYPES)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> HoodieTable:
    return HoodieTable(str(tmp_path), {**TRIPS, ORDERING: "ts,fare", TYPE: request.param})


def test_the_first_field_decides_and_the_next_where_it_ties(table: HoodieTable) -> None:
    table.upsert(trips(("a", "x", 5, 5.0), ("a", "x", 5, 7.0), ("a", "x", 4, 9.0)))
    table.upsert(trips(("b", "x", 5, 5.0), ("c", "x", 5, 5.0)))
    assert found(table)[0] == ("a", "x", 5, 7.0)
    table.upsert(trips(("a", "x", 5, 6.0), ("b", "x", 6, 1.0), ("c", "x", 5, 5.5)))
    assert found(table) == [("a", "x", 5, 7.0), ("b", "x", 6, 1.0), ("c", "x", 5, 5.5)]


def test_deletes_take_part(table: HoodieTable) -> None:
    table.upsert(trips(("a", "x", 5, 5.0), ("b", "x", 5, 5.0), ("c", "x", 5, 5.0)))
    table.delete(trips(("a", "x", 5, 4.0), ("b", "x", 5, 5.0)))
    assert [row[0] for row in found(table)] == ["a", "c"]
    table.delete(pa.table({"id": ["a"], "city": ["x"]}))
    assert [row[0] for row in found(table)] == ["c"]


def test_a_delete_with_one_of_two_values_is_not_unconditional(table: HoodieTable) -> None:
    """A null is lower than any value of its field."""
    table.upsert(trips(*((key, "x", 5, -5.0) for key in "abcde")))
    kinds = pa.schema({"id": pa.string(), "city": "string", "ts": pa.int64(), "fare": "double"})
    deletes = [("a", 6, None), ("b", 5, None), ("c", None, 9.0), ("d", None, None), ("e", 5, -5.0)]
    rows = [{"id": key, "city": "x", "ts": ts, "fare": fare} for key, ts, fare in deletes]
    table.delete(pa.Table.from_pylist(rows, schema=kinds))
    assert [row[0] for row in found(table)] == ["b", "c"]


@pytest.mark.parametrize("kind", TYPES)
def test_a_null_beside_integers_is_lower_than_they_are(tmp_path: Path, kind: str) -> None:
    table = HoodieTable(str(tmp_path), {**TRIPS, ORDERING: "fare,ts", TYPE: kind})
    table.upsert(trips(*((key, "x", -5, 1.0) for key in "ab")))
    null = trips(*((key, "x", 0, 1.0) for key in "ab"))
    null = null.set_column(2, "ts", pa.nulls(2, pa.int64()))
    table.delete(null)
    assert [row[0] for row in found(table)] == ["a", "b"]
    table.delete(trips(("a", "x", -5, 1.0)))
    table.upsert(null)
    assert [row[0] for row in found(table)] == (["b"] if kind == "MERGE_ON_READ" else ["a", "b"])


def model(batches: list[list[tuple[bool, Trip]]]) -> list[Trip]:
    """Record by record: what is not lower than what there is takes its place, deletes too."""
    held: dict[str, tuple[bool, Trip]] = {}
    for deleted, trip in (record for batch in batches for record in batch):
        before = held.get(trip[0])
        if before is None or trip[2:] >= before[1][2:]:
            held[trip[0]] = deleted, trip
    return sorted(trip for deleted, trip in held.values() if not deleted)


@pytest.mark.parametrize("seed", range(6))
def test_log_files_are_merged_as_records_one_by_one(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    table = HoodieTable(str(tmp_path), {**TRIPS, ORDERING: "ts,fare", TYPE: "MERGE_ON_READ"})
    batches = [
        [
            (
                chance.random() < 0.4,
                (chance.choice("abcdef"), "x", chance.randint(-1, 2), chance.randint(-1, 2) / 2),
            )
            for _ in range(8)
        ]
        for _ in range(6)
    ]
    for number, batch in enumerate(batches, start=1):
        rows = trips(*(trip for _, trip in batch))
        table.upsert(rows.append_column(IS_DELETED, [pa.array([gone for gone, _ in batch])]))
        assert found(table) == model(batches[:number])
