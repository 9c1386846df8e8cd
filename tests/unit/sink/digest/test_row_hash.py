"""Digests are equal if the rows are, in whatever order and parts, and differ if they do not."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_ds.sink.digest.input_digest import InputDigest
from hoodie_ds.sink.digest.row_hash import row_hashes

SCHEMA = pa.schema(
    {
        "id": pa.string(),
        "n": pa.int64(),
        "small": pa.int32(),
        "flag": pa.bool_(),
        "f": pa.float64(),
        "d": pa.decimal128(30, 2),
        "raw": pa.binary(),
        "tags": pa.list_(pa.string()),
        "v": pa.list_(pa.float32(), 2),
        "place": pa.struct({"x": pa.int64(), "name": pa.string()}),
        "counts": pa.map_(pa.string(), pa.int64()),
    }
)
# Few values, so that equal rows come about; and each next to one that it must not be taken for.
TEXTS = st.sampled_from([None, "", "a", "a ", "ä", "0123456", "01234567", "x" * 41, "x" * 3000])
NUMBERS = st.sampled_from([None, 0, 1, -1])
ROW = st.fixed_dictionaries(
    {
        "id": TEXTS,
        "n": NUMBERS,
        "small": NUMBERS,
        "flag": st.sampled_from([None, False, True]),
        "f": st.sampled_from([None, 0.0, 1.5]),
        "d": st.sampled_from([None, Decimal("0.00"), Decimal("1e20")]),
        "raw": st.sampled_from([None, b"", b"\0", b"\xff\xfe"]),
        "tags": st.none() | st.lists(TEXTS, max_size=3),
        "v": st.sampled_from([None, [0.0, 1.5], [1.5, 0.0]]),
        "place": st.none() | st.fixed_dictionaries({"x": NUMBERS, "name": TEXTS}),
        "counts": st.none() | st.dictionaries(st.sampled_from("abc"), NUMBERS, max_size=3),
    }
)
ROWS = st.lists(ROW, max_size=6)


def table(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(
        [{**r, "counts": r["counts"] and list(r["counts"].items())} for r in rows], schema=SCHEMA
    )


def canonical(row: dict[str, Any]) -> str:
    counts = row["counts"] and sorted(row["counts"].items())
    return repr(sorted({**row, "counts": counts}.items()))


@given(ROWS, st.data())
def test_a_digest_ignores_the_order_of_parts_and_columns(
    rows: list[dict[str, Any]], data: Any
) -> None:
    mixed = data.draw(st.permutations(rows))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    names = data.draw(st.permutations(SCHEMA.names))
    whole = table(mixed).select(names)
    bounds = [0, *cuts, len(rows)]
    parts = [whole.slice(a, b - a) for a, b in pairwise(bounds)]
    summed = reduce(add, map(InputDigest.of, parts))  # slices, whose arrays have offsets
    assert summed == InputDigest.of(table(rows))
    assert InputDigest.of(pa.concat_tables(parts)) == summed  # columns of several chunks
    assert InputDigest.parse(summed.to_text()) == summed


@given(ROWS, ROWS)
def test_digests_are_equal_exactly_if_the_rows_are(
    one: list[dict[str, Any]], other: list[dict[str, Any]]
) -> None:
    same = Counter(map(canonical, one)) == Counter(map(canonical, other))
    assert (InputDigest.of(table(one)) == InputDigest.of(table(other))) is same


@given(st.lists(ROW, min_size=2, max_size=5, unique_by=canonical))
def test_different_rows_have_different_hashes(rows: list[dict[str, Any]]) -> None:
    assert len(set(row_hashes(table(rows)).tolist())) == len(rows)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.string(), [None, "", " ", "a", "a ", "a\0", " a"]),
        (pa.int64(), [None, 0, 1, -1, 2**32, 2**63 - 1]),
        (pa.bool_(), [None, False, True]),
        (pa.list_(pa.string()), [None, [], [None], [""], ["a", "b"], ["b", "a"], ["ab"], ["a"]]),
        (pa.list_(pa.int8(), 2), [None, [0, 0], [0, 1], [1, 0], [-1, 0]]),
        (pa.struct({"a": pa.int64(), "b": pa.int64()}), [None, {}, {"a": 0}, {"b": 0}, {"a": 1}]),
        (pa.map_(pa.string(), pa.int64()), [None, [], [("a", None)], [("a", 1)], [("b", 1)]]),
        (pa.decimal128(38), [None, Decimal(0), Decimal(-1), Decimal(2**64), Decimal(1)]),
    ],
    ids=str,
)
def test_similar_values_have_different_digests(kind: pa.DataType, values: list[Any]) -> None:
    hashes = row_hashes(pa.table({"v": pa.array(values, kind)}))
    assert len(set(hashes.tolist())) == len(values)


def test_every_byte_of_a_string_counts() -> None:
    whole = ["".join(chr(97 + i % 23) for i in range(n)) for n in (*range(140), 511, 2049)]
    texts = [f"{t[:i]}#{t[i + 1 :]}" for t in whole for i in range(len(t))] + whole
    assert len(set(texts)) == len(texts)
    hashes = row_hashes(pa.table({"t": texts}))
    assert len(set(hashes.tolist())) == len(texts)
    assert hashes.tolist()[::9] == [
        h for t in texts[::9] for h in row_hashes(pa.table({"t": [t]})).tolist()
    ]


def test_strings_longer_than_a_block_are_hashed_alike() -> None:
    texts = [f"{n:040}" for n in range(20_000)]
    hashes = row_hashes(pa.table({"t": texts}))
    assert hashes[-1] == row_hashes(pa.table({"t": texts[-1:]}))[0]
    assert len(set(hashes.tolist())) == len(texts)


def test_a_missing_column_equals_nulls_and_widths_do_not_matter() -> None:
    rows = pa.table({"a": pa.array([1, None], pa.int32())})
    wider = pa.table({"b": pa.nulls(2, pa.string()), "a": pa.array([1, None], pa.int64())})
    assert row_hashes(rows).tolist() == row_hashes(wider).tolist()


@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("us", tz="UTC"), pa.time64("us")])
def test_timestamps_are_hashed_as_numbers(kind: pa.DataType) -> None:
    width = pa.int32() if kind == pa.date32() else pa.int64()
    numbers = pa.array([1, None, 20_000], width)
    times = pa.table({"t": numbers.view(kind)})
    assert row_hashes(times).tolist() == row_hashes(pa.table({"t": numbers})).tolist()


def test_a_string_that_is_no_digest_is_refused() -> None:
    with pytest.raises(ValueError, match="'7' is no digest"):
        InputDigest.parse("7")
