"""The order of rows: linear, and along a z-order curve, against its definition bit by bit."""

from __future__ import annotations

import datetime as dt
import decimal
import itertools
import random
from typing import Any

import pyarrow as pa
import pytest

from hoodie_ds.config.enums import SortOrder
from hoodie_ds.errors import SchemaError
from hoodie_ds.services.clustering.sort_order import check_sortable, in_order

Z = SortOrder.Z_ORDER


def _ordered(
    rows: pa.Table, *columns: str, order: SortOrder = SortOrder.LINEAR
) -> list[tuple[Any, ...]]:
    pieces = list(in_order(rows, columns, order))
    return [tuple(row.values()) for piece in pieces for row in piece.to_pylist()]


def test_linear_order_is_that_of_the_columns_nulls_first() -> None:
    rows = pa.table({"a": ["b", None, "a", "b"], "n": [1, 2, 3, 0]})
    assert _ordered(rows, "a", "n") == [(None, 2), ("a", 3), ("b", 0), ("b", 1)]
    assert _ordered(rows, "n") == [("b", 0), ("b", 1), (None, 2), ("a", 3)]


def test_rows_that_are_equal_keep_their_order() -> None:
    rows = pa.table({"a": [1, 0] * 50, "n": range(100)})
    for order in SortOrder:
        assert [n for _, n in _ordered(rows, "a", order=order)] == [
            *range(1, 100, 2),
            *range(0, 100, 2),
        ]


def test_a_grid_is_walked_along_the_curve() -> None:
    """The order of Morton's paper: quadrant by quadrant, the first column deciding first."""
    cells = list(itertools.product(range(4), range(4)))
    random.Random(1).shuffle(cells)
    rows = pa.table({"x": [x for x, _ in cells], "y": [y for _, y in cells]})
    quadrant = [(0, 0), (0, 1), (1, 0), (1, 1)]
    expected = [(2 * x + a, 2 * y + b) for x, y in quadrant for a, b in quadrant]
    assert _ordered(rows, "x", "y", order=Z) == expected


def _morton(ranks: tuple[int, ...], bits: int) -> str:
    texts = [format(rank, f"0{bits}b") for rank in ranks]
    return "".join(text[bit] for bit in range(bits) for text in texts)


def test_values_of_any_kind_are_ranked_and_their_bits_interleaved() -> None:
    """The same by text: ranks as binary numerals of one length, read across."""
    chance = random.Random(7)
    days = [dt.date(2024, 1, 1) + dt.timedelta(days=n) for n in range(8)]
    rows = [
        (
            chance.choice([None, *(f"t{n}" for n in range(7))]),
            chance.choice(days),
            chance.choice([decimal.Decimal(n) for n in range(8)]),
            chance.choice([float(n) / 3 for n in range(8)]),
        )
        for _ in range(400)
    ]
    table = pa.table(dict(zip("abcd", map(list, zip(*rows, strict=True)), strict=True)))
    different = (
        sorted(set(column), key=lambda v: (v is not None, v)) for column in zip(*rows, strict=True)
    )
    ranked = [{value: rank for rank, value in enumerate(values)} for values in different]
    assert all(len(ranks) == 8 for ranks in ranked)
    expected = sorted(
        rows, key=lambda row: _morton(tuple(r[v] for r, v in zip(ranked, row, strict=True)), 3)
    )
    assert _ordered(table, *"abcd", order=Z) == expected


def test_a_column_of_few_values_decides_as_early_as_one_of_many() -> None:
    rows = pa.table({"many": range(256), "few": [n % 2 for n in range(256)]})
    ordered = _ordered(rows, "many", "few", order=Z)
    for start in range(0, 256, 64):
        assert len({(many < 128, few) for many, few in ordered[start : start + 64]}) == 1


def test_ranks_longer_than_the_bits_of_a_column_keep_their_first_ones() -> None:
    """Of 32 columns each has 2 bits: the quarter of its values that one is in."""
    rows = pa.table({"n": list(range(64))[::-1], **{f"c{i}": [0] * 64 for i in range(31)}})
    ordered = [row[0] for row in _ordered(rows, *rows.column_names, order=Z)]
    assert [n // 16 for n in ordered] == [n // 16 for n in range(64)]
    assert ordered[:16] == list(range(15, -1, -1))


@pytest.mark.parametrize("order", SortOrder)
@pytest.mark.parametrize("count", [0, 1])
def test_few_rows_are_in_order(count: int, order: SortOrder) -> None:
    rows = pa.table({"a": pa.array([5] * count, pa.int64())})
    assert _ordered(rows, "a", order=order) == [(5,)] * count


def test_fields_of_structs_are_columns_too() -> None:
    rows = pa.table({"s": [{"x": 2}, {"x": 1}, None]})
    assert _ordered(rows, "s.x") == [(None,), ({"x": 1},), ({"x": 2},)]


def test_what_has_no_order_is_refused_by_name() -> None:
    struct = pa.struct({"x": pa.int8()})
    schema = pa.schema({"a": pa.list_(pa.int32()), "b": pa.int32(), "s": struct})
    check_sortable(schema, ["b", "s.x"])
    for column in ("a", "s"):
        with pytest.raises(SchemaError, match=f"cannot be sorted by column '{column}'"):
            check_sortable(schema, ["b", column])
    with pytest.raises(SchemaError, match="field 'c' does not exist"):
        check_sortable(schema, ["c"])
    with pytest.raises(SchemaError, match="at most 64 columns; 65"):
        check_sortable(schema, ["b"] * 65)
