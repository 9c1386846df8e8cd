"""Checksums of keyed rows are equal if the rows are, in whatever order and parts."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_ds.sink.digest.input_digest import InputDigest
from hoodie_ds.sink.digest.row_sums import row_sums
from tests.unit.sink.digest.test_row_hash import ROW, canonical, table

KEYED = st.lists(ROW, max_size=5)


def digest(rows: pa.Table, keys: pa.Table) -> InputDigest:
    return InputDigest.of_keyed(rows, keys)


def one(values: pa.Array) -> int:
    """The checksum of each of some values, beside the same key."""
    return row_sums(pa.table({"v": values}), np.array([12345], np.uint64))


@given(KEYED, st.data())
def test_sums_ignore_order_and_parts_but_not_values(rows: list[dict[str, Any]], data: Any) -> None:
    order = data.draw(st.permutations(range(len(rows))))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    whole = table(rows)
    keys = pa.table({"key": [f"k{n}" for n in range(len(rows))]})
    expected = digest(whole, keys)
    taken = pa.array(order, pa.int64())
    mixed, names = whole.take(taken), keys.take(taken)
    parts = [
        digest(mixed.slice(a, b - a), names.slice(a, b - a))
        for a, b in pairwise([0, *cuts, len(rows)])
    ]
    assert reduce(add, parts, InputDigest()) == expected
    chunks = pa.concat_tables(mixed.slice(a, b - a) for a, b in pairwise([0, *cuts, len(rows)]))
    assert digest(chunks, names) == expected
    swapped = digest(mixed, keys)
    same = [canonical(rows[n]) for n in order] == [canonical(row) for row in rows]
    assert (swapped == expected) is same
    assert InputDigest.parse(expected.to_text()) == (expected.as_kept() if rows else InputDigest())


@pytest.mark.parametrize(
    "values",
    [
        pa.array([None, 0, 1, -1, 2**32, 2**63 - 1, -(2**63)]),
        pa.array([None, 0.0, 1.0, 2.0, 4.0, -1.0, 1.5]),
        pa.array([None, False, True]),
        pa.array([None, "", "\0", "\0\0", "a", "a\0", "ab", "ba", "01234567", "012345678"]),
        pa.array([None, b"", b"\xff", b"\xff\xfe"]),
        pa.array([bytes([n]) + b"\0" * more for n in range(8) for more in range(8)]),
        pa.array([None, [], [1], [None], [1, 2], [2, 1]]),
        pa.array([None, [0, 0], [1, 2], [2, 1]], pa.list_(pa.float32(), 2)),
    ],
    ids=lambda values: str(values.type),
)
def test_similar_values_have_different_digests(values: pa.Array) -> None:
    sums = [one(values.slice(n, 1)) for n in range(len(values))]
    assert len(set(sums)) == len(sums)
    if values[0].is_valid:
        return
    missing = row_sums(pa.table({"other": pa.nulls(1, pa.int64())}), np.array([12345], np.uint64))
    assert sums[0] == missing


def test_every_byte_of_a_string_counts() -> None:
    whole = "".join(chr(97 + n % 23) for n in range(300))
    texts = [whole[:length] for length in (*range(1, 40), 255, 256, 257, 264, 300)]
    changed = [f"{t[:n]}#{t[n + 1 :]}" for t in texts for n in range(len(t))]
    every = sorted({*texts, *changed})
    sums = [one(pa.array([text])) for text in every]
    assert len(set(sums)) == len(sums)
    together = row_sums(pa.table({"v": every}), np.full(len(every), 12345, np.uint64))
    base = row_sums(pa.table({}), np.array([12345], np.uint64))
    assert together == (sum(sums) - len(sums) * base + len(sums) * 12345) % 2**64
