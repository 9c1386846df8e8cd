"""Codes compare as Hudi compares ordering values."""

from __future__ import annotations

import itertools
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_ds.errors import SchemaError
from hoodie_ds.record.merge.ordering import order_codes, unconditional
from tests.merge_model import KINDS


def codes(values: list[Any], kind: pa.DataType) -> list[int]:
    return list(order_codes([pa.chunked_array([pa.array(values, kind)])], len(values)))


@pytest.mark.parametrize(
    ("kind", "ascending"),
    [
        (pa.int32(), [-(2**31), -1, 0, 7, 2**31 - 1]),
        (pa.int64(), [-(2**63), -1, 0, 2**53, 2**53 + 1, 2**63 - 1]),
        (pa.float32(), [float("-inf"), -1.5, -0.0, 0.0, 1e-45, 2.5, float("inf"), float("nan")]),
        (pa.float64(), [float("-inf"), -1.5, -0.0, 0.0, 5e-324, 2.5, float("inf"), float("nan")]),
        (pa.string(), ["", "10", "9", "Z", "a", "aa", "é"]),
        (pa.date32(), [date(1, 1, 1), date(1969, 12, 31), date(1970, 1, 2), date(9999, 12, 31)]),
        (
            pa.timestamp("us", "UTC"),
            [datetime(y, 1, 1, tzinfo=timezone.utc) for y in (1900, 1970, 2026)],
        ),
        (pa.decimal128(12, 3), [Decimal("-2.125"), Decimal(0), Decimal("9.5"), Decimal("10.25")]),
        (pa.bool_(), [False, True]),
    ],
)
def test_codes_ascend_with_the_values(kind: pa.DataType, ascending: list[Any]) -> None:
    found = codes(ascending, kind)
    assert all(a < b for a, b in itertools.pairwise(found))
    assert len(set(codes([ascending[-1]] * 2, kind))) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_null_is_lower_than_any_value(kind: str) -> None:
    """As low as another null; the lowest of the values is a value."""
    arrow, ascending = KINDS[kind]
    null, again, *found = codes([None, None, *ascending], arrow)
    assert null == again
    assert all(a < b for a, b in itertools.pairwise([null, *found]))


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from("abc")), min_size=1))
def test_several_fields_compare_one_after_another(values: list[tuple[int, str]]) -> None:
    columns = [pa.chunked_array([list(column)]) for column in zip(*values, strict=True)]
    found = order_codes(columns, len(values))
    for i, one in enumerate(values):
        for j, other in enumerate(values):
            assert (found[i] < found[j]) == (one < other)


def test_without_fields_all_rows_are_equal() -> None:
    assert list(order_codes([], 3)) == [0, 0, 0]


def test_a_type_without_order_is_refused() -> None:
    column = pa.chunked_array([pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int32()))])
    with pytest.raises(SchemaError, match="map<string, int32> has no order"):
        order_codes([column], 1)


@pytest.mark.parametrize(
    ("kind", "values", "deleted", "expected"),
    [
        (pa.int32(), [0, None, 1, 0, None], [1, 1, 1, 0, 0], [1, 1, 0, 0, 0]),
        (pa.date32(), [0, None, 1, 0, None], [1, 1, 1, 0, 0], [1, 1, 0, 0, 0]),
        # The integer 0 is the mark, the long 0 is a value.
        (pa.int64(), [0, None, 1, 0, None], [1, 1, 1, 0, 0], [0, 1, 0, 0, 0]),
        (pa.bool_(), [False, None, None], [1, 1, 0], [0, 1, 0]),
        (pa.string(), ["", None, None], [1, 1, 0], [0, 1, 0]),
        (pa.float64(), [0.0, None, None], [1, 1, 0], [0, 1, 0]),
    ],
)
def test_deletes_without_a_value_are_unconditional(
    kind: pa.DataType, values: list[Any], deleted: list[int], expected: list[int]
) -> None:
    column = pa.chunked_array([pa.array(values, kind)])
    found = unconditional([column], np.array(deleted, np.bool_))
    assert list(found) == [bool(x) for x in expected]


@pytest.mark.parametrize(
    ("kind", "low"),
    [
        (pa.int32(), -(2**31)),
        (pa.string(), ""),
        (pa.float64(), float("-inf")),
        (pa.decimal128(9, 2), -9),
    ],
)
def test_among_several_fields_a_null_is_lower_than_any_value(kind: pa.DataType, low: Any) -> None:
    first = pa.chunked_array([pa.array([1, 1, 0, 2])])
    second = pa.chunked_array([pa.array([None, low, low, None], kind)])
    assert np.argsort(order_codes([first, second], 4)).tolist() == [2, 0, 1, 3]


def test_of_several_fields_all_are_null_in_an_unconditional_delete() -> None:
    numbers = pa.chunked_array([pa.array([0, None, None, 0], pa.int32())])
    texts = pa.chunked_array([pa.array(["", "", None, None])])
    deleted = np.ones(4, np.bool_)
    assert unconditional([numbers, texts], deleted).tolist() == [False, False, True, False]
