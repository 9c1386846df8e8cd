"""Filling what a row lacks from the other row."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_ds.record.partial_update import FillNulls, fill_nulls, fill_unavailable

COLUMN = st.one_of(st.none(), st.integers(0, 3))
ROWS = st.lists(st.tuples(COLUMN, COLUMN, COLUMN), min_size=1)


def table(rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = zip(*rows, strict=True)
    return pa.table({name: pa.array(c, pa.int64()) for name, c in zip("tuv", columns, strict=True)})


@given(ROWS, st.booleans(), st.data())
def test_the_newer_row_is_filled_from_the_older(
    rows: list[tuple[Any, ...]], ordered: bool, data: st.DataObject
) -> None:
    others = data.draw(st.lists(st.sampled_from(rows), min_size=len(rows), max_size=len(rows)))
    hook = FillNulls(("t",)) if ordered else fill_nulls
    merged = hook(table(rows), table(others), pa.array([False] * len(rows)))
    expected = []
    for old, new in zip(rows, others, strict=True):
        older = ordered and None not in (old[0], new[0]) and old[0] > new[0]
        first, second = (old, new) if older else (new, old)
        expected.append(
            tuple(a if a is not None else b for a, b in zip(first, second, strict=True))
        )
    assert [tuple(row.values()) for row in merged.rows.to_pylist()] == expected
    assert merged.delete is None


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.string(), "a"),
        (pa.struct([("f", pa.int32())]), {"f": 1}),
        (pa.list_(pa.string()), ["a", None]),
        (pa.map_(pa.string(), pa.int32()), [("a", 1)]),
        (pa.decimal128(9, 2), 3),
    ],
)
def test_values_of_any_type_are_kept(kind: pa.DataType, value: object) -> None:
    some, none = (pa.table({"v": pa.array([v], kind)}) for v in (value, None))
    assert fill_nulls(some, none, pa.array([False])).rows == some


def test_a_marker_keeps_the_older_value_if_there_is_one() -> None:
    mark = "__debezium_unavailable_value"
    kinds = pa.schema([("s", pa.string()), ("b", pa.binary()), ("n", pa.int64())])
    old = pa.table([["x", "y", None], [b"x", b"y", None], [1, 1, None]], schema=kinds)
    new = pa.table([[mark, None, mark], [mark.encode(), b"z", b""], [None, 2, 3]], schema=kinds)
    rows = fill_unavailable(old, new, pa.array([False, False, True])).rows
    assert rows.to_pydict() == {
        "s": ["x", None, mark],
        "b": [b"x", b"z", b""],
        "n": [None, 2, 3],
    }
