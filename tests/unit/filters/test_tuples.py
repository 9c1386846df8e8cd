"""Filters as tuples."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from hoodie_ds.errors import OptionError
from hoodie_ds.filters.given import predicate_of
from hoodie_ds.filters.predicate import Unknown, columns_used
from hoodie_ds.filters.rows import matching

NAN = float("nan")
ROWS = pa.table({"n": [1, 2, None, 4], "f": [0.5, None, NAN, 2.0], "s": ["a", "b", None, "d"]})


@pytest.mark.parametrize(
    ("conditions", "kept"),
    [
        ([], [0, 1, 2, 3]),
        ([("n", "=", 2)], [1]),
        ([("n", "==", 2)], [1]),
        ([("n", "!=", 2)], [0, 3]),
        ([("n", ">", 1), ("s", "<", "d")], [1]),
        ([("n", "IN", {1, 4})], [0, 3]),
        ([("n", "not in", [1])], [1, 3]),
        ([("n", "in", [1, None])], [0]),
        ([("n", "not in", [1, None])], []),
        ([("n", "in", [])], []),
        ([("n", "not in", [])], [0, 1, 2, 3]),
        ([("f", ">=", 2)], [2, 3]),
        ([("f", "=", NAN)], [2]),
    ],
)
def test_rows_that_conditions_keep(
    conditions: list[tuple[str, str, object]], kept: list[int]
) -> None:
    rows = ROWS.append_column("k", pa.array(range(4)))
    assert matching(rows, predicate_of(conditions, ROWS.schema))["k"].to_pylist() == kept


@pytest.mark.parametrize(
    ("kind", "value", "exact"),
    [
        (pa.int64(), 2.5, False),
        (pa.int64(), Decimal("2.5"), False),
        (pa.int64(), 2.0**53, False),  # which Spark finds equal to the next integer
        (pa.int64(), True, False),
        (pa.int64(), 2, True),
        (pa.float64(), 2, True),
        (pa.float64(), 2**53 + 1, False),
        (pa.float32(), 0.1, False),
        (pa.date32(), dt.datetime(2020, 1, 1, 12), False),
        (pa.date32(), dt.date(2020, 1, 1), True),
        (pa.timestamp("ms"), dt.datetime(2020, 1, 1, 0, 0, 0, 500), False),
        (pa.timestamp("ms"), dt.datetime(2020, 1, 1), True),
        (pa.timestamp("ms", "UTC"), dt.datetime(2020, 1, 1), False),
        (pa.decimal128(10, 2), 1, True),
        (pa.decimal128(10, 2), Decimal("1.555"), False),
        (pa.string(), b"a", False),
        (pa.list_(pa.int64()), [1], False),
    ],
)
def test_a_value_that_is_another_in_the_column_is_refused_or_left_to_the_caller(
    kind: pa.DataType, value: object, exact: bool
) -> None:
    schema = pa.schema([("c", kind)])
    for condition in (("c", "<", value), ("c", "in", [value])):
        found = predicate_of(condition, schema, inexact=True)
        if exact:
            assert predicate_of(condition, schema) == found
            continue
        assert isinstance(found, Unknown)
        assert found.given == condition
        assert columns_used(found) == frozenset("c")
        with pytest.raises(OptionError, match=r"holds exactly; there are c "):
            predicate_of(condition, schema)
