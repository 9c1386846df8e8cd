from __future__ import annotations

import pyarrow as pa
import pytest

from hoodie_ds.errors import SchemaError
from hoodie_ds.record.field_path import resolve

NESTED = pa.array(
    [{"b": {"c": 1}, "x.y": 7}, {"b": None, "x.y": 8}, None],
    pa.struct([("b", pa.struct([("c", pa.int64())])), ("x.y", pa.int64())]),
)
TABLE = pa.table(
    {"a": NESTED, "a.b.d": pa.array([10, 20, 30]), "plain": pa.array(["p", None, "q"])}
)


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("plain", ["p", None, "q"]),
        ("a.b.c", [1, None, None]),
        ("a.b.d", [10, 20, 30]),
        ("a.x.y", [7, 8, None]),
    ],
)
def test_paths(path: str, values: list[object]) -> None:
    assert resolve(TABLE, path).to_pylist() == values


def test_a_column_with_the_whole_name_wins_over_a_struct() -> None:
    table = pa.table({"a": pa.array([{"b": 1}]), "a.b": pa.array([2])})
    assert resolve(table, "a.b").to_pylist() == [2]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nope", "field 'nope' does not exist: in the rows there are a, a.b.d, plain"),
        ("a.b.e", "field 'a.b.e' does not exist: below 'a.b' there are c"),
        ("plain.x", "below 'plain' there are no fields"),
        ("", "field '' does not exist"),
        ("a.", "field 'a.' does not exist: below 'a' there are b, x.y"),
    ],
)
def test_a_missing_field_is_named_with_the_existing_ones(path: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        resolve(TABLE, path)


def test_two_columns_of_one_name_are_refused() -> None:
    table = pa.table([pa.array([1]), pa.array([2])], names=["k", "k"])
    with pytest.raises(SchemaError, match="ambiguous"):
        resolve(table, "k")
