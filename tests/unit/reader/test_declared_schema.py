"""Columns in the types that a user declares for a read."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hoodie_ds.errors import SchemaError
from hoodie_ds.reader.declared_schema import as_declared


def test_numbers_widen_as_where_the_table_widens_them() -> None:
    """A float by way of its string, at every depth."""
    narrow = pa.struct([("f", pa.float32()), ("n", pa.int32())])
    wide = pa.struct([("f", pa.float64()), ("n", pa.int64())])
    value = {"f": 0.1, "n": 1}
    columns = {"s": [value, None], "l": [[value], []], "id": ["a", "b"]}
    kinds = [("s", narrow), ("l", pa.list_(narrow)), ("id", pa.string())]
    declared = pa.schema([("l", pa.list_(wide)), ("s", wide)])
    found = as_declared(pa.table(columns, pa.schema(kinds)), declared)
    assert found.equals(pa.table({"l": columns["l"], "s": columns["s"]}, declared))


def test_nulls_are_refused_where_none_are_declared() -> None:
    declared = pa.schema([pa.field("n", pa.int64(), nullable=False)])
    assert as_declared(pa.table({"n": [1]}), declared).schema == declared
    with pytest.raises(SchemaError, match="'n' is declared NOT NULL"):
        as_declared(pa.table({"n": [1, None]}), declared)
