"""Rows that are found by their numbers and by their values."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from hoodie_ds.sink import numbered_rows
from hoodie_ds.sink.numbered_rows import NumberedRows, RowIndex, comparable
from tests.unit.storage.test_memory_map import resident_kb

KEYS = pa.table(
    {"k": ["b", "a", None, "b", "c", "a", "b"], "n": [1, 1, 1, 1, None, 2, 1]},
    schema=pa.schema({"k": pa.string(), "n": pa.int64()}),
)


def rows_of(table: pa.Table, size: int) -> NumberedRows:
    return NumberedRows(table.schema, table.to_batches(max_chunksize=size))


@pytest.mark.parametrize("size", [1, 3, 100])
def test_rows_by_their_numbers(size: int) -> None:
    rows = rows_of(KEYS, size)
    for numbers in ([6, 0, 3, 0], [2], [], [0, 1, 2, 3, 4, 5, 6]):
        assert rows.take(np.array(numbers, np.int64)).to_pylist() == [
            KEYS.slice(number, 1).to_pylist()[0] for number in numbers
        ]


@pytest.mark.parametrize("colliding", [False, True])
def test_rows_by_their_values(colliding: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever their hashes are: those of different rows may be the same."""
    if colliding:
        same = lambda rows: np.full(rows.num_rows, 7, np.uint64)  # noqa: E731
        monkeypatch.setattr(numbered_rows, "row_hashes", same)
    index = RowIndex(rows_of(KEYS, 2))
    asked = pa.table({"k": ["a", "z", "b", None, "a", "c"], "n": [2, 1, 1, 1, 1, None]})
    groups = index.find(asked)
    assert (groups >= 0).tolist() == [True, False, True, False, True, False]
    assert index.sizes[groups[groups >= 0]].tolist() == [1, 3, 1]
    assert index.first(groups[groups >= 0]).tolist() == [5, 0, 1]
    chosen = np.isin(np.arange(len(index.sizes)), groups[[2, 4]])
    assert sorted(index.numbers(chosen).tolist()) == [0, 1, 3, 6]
    assert index.find(asked.slice(0, 0)).tolist() == []
    nothing = RowIndex(rows_of(KEYS.slice(0, 0), 2))
    assert nothing.find(asked).tolist() == [-1] * 6


def test_equal_floats_have_equal_bits() -> None:
    nan = float("nan")
    rows = comparable(pa.table({"x": pa.array([0.0, -0.0, nan, -nan, None], pa.float32())}))
    index = RowIndex(rows_of(rows, 2))
    assert sorted(index.sizes.tolist()) == [2, 2]


def test_of_rows_on_disk_no_more_stay_in_memory_than_are_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(numbered_rows, "_HELD_BYTES", 0)
    step, values = 1 << 17, np.arange(1 << 21)
    given = pa.table({"n": values})
    rows = NumberedRows.spooled(given.schema, iter(given.to_batches(step)))
    before = resident_kb()
    for numbers, piece in rows.pieces():
        assert (piece["n"].to_numpy() == numbers).all()
        assert resident_kb() - before < values.nbytes // 4 >> 10
    for start in range(0, len(values), step):
        some = values[start : start + step]
        assert (rows.take(some)["n"].to_numpy() == some).all()
        assert resident_kb() - before < values.nbytes // 4 >> 10
