from __future__ import annotations

import pyarrow as pa
import pytest

from hoodie_ds.errors import SchemaError
from hoodie_ds.record.schema import evolve

INT, LONG, FLOAT, DOUBLE = pa.int32(), pa.int64(), pa.float32(), pa.float64()


def schema(**columns: pa.DataType) -> pa.Schema:
    return pa.schema(columns)


@pytest.mark.parametrize(
    ("table", "batch", "expected"),
    [
        (INT, INT, INT),
        (INT, LONG, LONG),
        (LONG, INT, LONG),
        (FLOAT, DOUBLE, DOUBLE),
        (DOUBLE, FLOAT, DOUBLE),
        (DOUBLE, INT, DOUBLE),
        (pa.decimal128(12, 2), pa.decimal128(9, 2), pa.decimal128(12, 2)),
        (pa.decimal128(12, 4), pa.decimal128(9, 2), pa.decimal128(12, 4)),
        (pa.list_(INT), pa.list_(LONG), pa.list_(LONG)),
        (pa.map_(pa.string(), INT), pa.map_(pa.string(), LONG), pa.map_(pa.string(), LONG)),
        (
            pa.struct([("x", INT)]),
            pa.struct([("x", LONG), ("y", pa.string())]),
            pa.struct([("x", LONG), ("y", pa.string())]),
        ),
    ],
)
def test_types_that_meet(table: pa.DataType, batch: pa.DataType, expected: pa.DataType) -> None:
    assert evolve(schema(a=table), schema(a=batch), False) == schema(a=expected)


@pytest.mark.parametrize(
    ("table", "batch"),
    [
        (INT, pa.string()),
        (pa.string(), INT),
        (LONG, DOUBLE),  # a double does not hold every long
        (INT, FLOAT),
        (LONG, FLOAT),
        (pa.date32(), pa.timestamp("us", "UTC")),
        (pa.timestamp("us", "UTC"), pa.timestamp("us")),
        (pa.decimal128(9, 2), pa.decimal128(12, 2)),
        (pa.decimal128(9, 2), pa.decimal128(9, 3)),
        (pa.decimal128(9, 4), pa.decimal128(9, 2)),
        (pa.list_(INT), INT),
        (pa.binary(), pa.string()),
    ],
)
def test_types_that_do_not_meet_name_the_column(table: pa.DataType, batch: pa.DataType) -> None:
    with pytest.raises(SchemaError, match=r"column 'a' is .* in the table and .* in the batch"):
        evolve(schema(a=table), schema(a=batch), True)


def test_the_path_of_a_nested_column_is_named() -> None:
    def deep(kind: pa.DataType) -> pa.Schema:
        return schema(s=pa.struct([("items", pa.list_(pa.struct([("x", kind)])))]))

    with pytest.raises(SchemaError, match=r"'s\.items\.element\.x'"):
        evolve(deep(INT), deep(pa.string()), False)


def test_new_columns_come_last_and_the_order_of_the_batch_does_not_count() -> None:
    evolved = evolve(schema(a=INT, b=INT), schema(z=INT, b=INT, a=INT), False)
    assert evolved.names == ["a", "b", "z"]


def test_a_missing_column_is_refused_unless_nulls_are_asked_for() -> None:
    with pytest.raises(SchemaError, match=r"'b'.*set\.null\.for\.missing\.columns"):
        evolve(schema(a=INT, b=INT), schema(a=INT), False)
    assert evolve(schema(a=INT, b=INT), schema(a=INT), True) == schema(a=INT, b=INT)
