"""Keys of all rows for an index, which are never in memory all at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from weakref import ref

import pyarrow as pa
import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.metadata_table import creation
from hoodie_ds.metadata_table.compaction import base_file
from hoodie_ds.metadata_table.keys_of_rows import KeysOfRows
from hoodie_ds.metadata_table.payload import Record
from hoodie_ds.metadata_table.record_keys import file_groups_of
from hoodie_ds.metadata_table.stored import MetadataTable
from hoodie_ds.table.file_slice import FileSlice
from hoodie_ds.testing import MemoryStorage
from tests.tables import BUCKETS, PARTITION, TRIPS, trips

GROUPS = 8
SLICES = 6
ROWS = 100
"""Of each file slice."""


class Held:
    """How many keys are in memory, and were at most."""

    def __init__(self) -> None:
        self.most = 0
        self._held: list[tuple[Any, int]] = []

    def note(self, keys: pa.Array) -> pa.Array:
        """Count keys until nobody has them."""
        self._held = [(alive, size) for alive, size in self._held if alive() is not None]
        self._held.append((ref(keys), len(keys)))
        self.most = max(self.most, sum(size for _, size in self._held))
        return keys


def slices(held: Held) -> Iterator[tuple[pa.Array, Record]]:
    for number in range(SLICES):
        keys = pa.array([f"{number}-{row}" for row in range(ROWS)], pa.string())
        yield held.note(keys), {"number": number}
        del keys


def test_keys_of_one_slice_or_one_file_group_are_held_at_a_time() -> None:
    held = Held()
    rows = KeysOfRows.of(slices(held))
    assert rows.num_keys == SLICES * ROWS
    assert held.most <= 2 * ROWS
    found: dict[str, int] = {}
    for number in range(GROUPS):
        here = held.note(rows.of_group(number, GROUPS))
        keys, numbers = here.columns
        assert {*file_groups_of(keys.combine_chunks(), GROUPS)} == {number}
        found |= zip(keys.to_pylist(), numbers.to_pylist(), strict=True)
        del here, keys, numbers
    assert held.most <= 2 * ROWS
    assert found == {f"{n}-{row}": n for n in range(SLICES) for row in range(ROWS)}


def indexed() -> tuple[HoodieTable, list[str]]:
    """A table with keys and a record index of them."""
    table = HoodieTable("/t", {**TRIPS, BUCKETS: "4", PARTITION: ""}, storage=MemoryStorage())
    keys = [f"{number}" for number in range(SLICES * ROWS)]
    table.insert(trips(*((key, "x", 1, 1.0) for key in keys)))
    groups = {"hoodie.metadata.record.index.min.filegroup.count": str(GROUPS)}
    table.create_metadata_table({"hoodie.metadata.record.index.enable": "true", **groups})
    return table, keys


def test_an_index_is_made_file_group_by_file_group(monkeypatch: pytest.MonkeyPatch) -> None:
    held, made = Held(), list[int]()
    of_group = KeysOfRows.of_group

    def counted(keys: pa.Array, values: Any) -> bytes:
        made.append(len(held.note(keys)))
        return base_file(keys, values)

    def noted(self: KeysOfRows, number: int, groups: int) -> pa.Table:
        assert len(made) == 1 + number  # the list of files comes first
        return held.note(of_group(self, number, groups))

    monkeypatch.setattr(creation, "base_file", counted)
    monkeypatch.setattr(KeysOfRows, "of_group", noted)
    _, keys = indexed()
    assert len(made) == 1 + GROUPS
    assert sum(made[1:]) == len(keys)
    assert held.most < 3 * len(keys) / GROUPS


def test_an_index_is_compared_file_group_by_file_group(monkeypatch: pytest.MonkeyPatch) -> None:
    table, _ = indexed()
    held, of_group, merged = Held(), KeysOfRows.of_group, MetadataTable._merged
    steps: list[str] = []

    def noted(self: KeysOfRows, number: int, groups: int) -> pa.Table:
        steps.append("rows")
        return held.note(of_group(self, number, groups))

    def stored(self: MetadataTable, slice_: FileSlice, *some: Any) -> dict[str, Record]:
        if slice_.group.partition_path == "record_index":
            steps.append("index")
        return merged(self, slice_, *some)

    monkeypatch.setattr(KeysOfRows, "of_group", noted)
    monkeypatch.setattr(MetadataTable, "_merged", stored)
    assert not table.inspect.verify_metadata_table().findings
    assert steps == ["index", "rows"] * GROUPS
    assert held.most < 3 * SLICES * ROWS / GROUPS
