"""The checksum of rows without keys: the same for the same rows, another for others."""

from __future__ import annotations

import random
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hoodie_ds.sink.digest.column_sums import column_sums

KINDS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int": (pa.int32(), [-5, 0, 7]),
    "long": (pa.int64(), [-(2**62), 0, 2**62]),
    "float": (pa.float32(), [-1.5, 0.0, 2.5]),
    "double": (pa.float64(), [1e300, -1e-300, 0.1]),
    "decimal": (pa.decimal128(20, 2), [Decimal("-1.25"), Decimal("0.00"), Decimal("9e15")]),
    "boolean": (pa.bool_(), [True, False, True]),
    "date": (pa.date32(), [date(1969, 1, 1), date(2026, 1, 1), date(2026, 1, 2)]),
    "time": (
        pa.timestamp("us", "UTC"),
        [datetime(2026, 1, day, tzinfo=timezone.utc) for day in (1, 2, 3)],
    ),
    "text": (pa.string(), ["", "é", "some text"]),
    "bytes": (pa.binary(), [b"", b"\x00", b"\xff\xfe"]),
    "uuid": (pa.string(), ["", "a", "bc"]),
    "struct": (
        pa.struct({"a": pa.int32(), "b": pa.string()}),
        [{"a": 1, "b": "x"}, {"a": 3, "b": "x"}],
    ),
    "list": (pa.list_(pa.int64()), [[1, 2], [], [3, None]]),
    "vector": (pa.list_(pa.int8(), 2), [[1, 2], [0, 0], [2, 2]]),
    "map": (pa.map_(pa.string(), pa.int32()), [[("a", 1)], [], [("b", 2), ("c", None)]]),
}


def table(seed: int, count: int = 60) -> pa.Table:
    draw = random.Random(seed)
    return pa.table(
        {
            name: pa.array([draw.choice([*values, None]) for _ in range(count)], kind)
            for name, (kind, values) in KINDS.items()
        }
    )


def test_sums_ignore_the_order_of_rows_and_batches() -> None:
    rows = table(1)
    mixed = rows.take(pa.array(np.random.default_rng(2).permutation(rows.num_rows)))
    parts = [mixed.slice(0, 7), mixed.slice(7, 0), mixed.slice(7, 30), mixed.slice(37)]
    expected = column_sums(rows)
    assert column_sums(mixed) == expected
    assert column_sums(pa.concat_tables(parts)) == expected
    assert sum(map(column_sums, parts)) % 2**64 == expected
    assert column_sums(mixed.select(mixed.column_names[::-1])) == expected


@pytest.mark.parametrize("name", KINDS)
def test_a_changed_value_changes_the_sum(name: str) -> None:
    rows = table(3)
    kind, values = KINDS[name]
    at = rows.column_names.index(name)
    for position in (0, 31, 59):
        old = rows.column(name).to_pylist()
        for new in (*values, None):
            if new == old[position]:
                continue
            column = pa.array([*old[:position], new, *old[position + 1 :]], kind)
            assert column_sums(rows.set_column(at, name, column)) != column_sums(rows), (new, old)


def test_a_missing_column_equals_a_column_of_nulls() -> None:
    rows = table(4)
    more = rows.append_column("more", pa.nulls(rows.num_rows, pa.string()))
    assert column_sums(more) == column_sums(rows)
    assert column_sums(rows.slice(0, 0)) == 0


def test_integers_of_any_width_have_the_same_sum() -> None:
    narrow, wide = (pa.table({"n": pa.array([-1, 5], kind)}) for kind in (pa.int32(), pa.int64()))
    assert column_sums(narrow) == column_sums(wide)


def test_the_same_strings_in_other_columns_differ() -> None:
    one, other = pa.table({"a": ["x"], "b": ["y"]}), pa.table({"a": ["y"], "b": ["x"]})
    assert column_sums(one) != column_sums(other)
