"""Rows as JSON text."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import pyarrow as pa
import pytest

from hoodie_ds.reader.json_strings import json_objects

DAY = dt.date(1970, 1, 3)
COLUMNS = {
    "text": (pa.string(), 'a "b"\\ \n\u00fc', 'a "b"\\ \n\u00fc'),
    "plain": (pa.large_string(), "x", "x"),
    "chosen": (pa.dictionary(pa.int32(), pa.string()), "y", "y"),
    "number": (pa.int64(), -(2**62), -(2**62)),
    "fraction": (pa.float64(), 1e21, 1e21),
    "odd": (pa.float32(), float("nan"), "NaN"),
    "exact": (pa.decimal128(10, 2), Decimal("12.50"), 12.5),
    "truth": (pa.bool_(), True, True),
    "day": (pa.date32(), DAY, 2),
    "moment": (pa.timestamp("us", "UTC"), dt.datetime(1970, 1, 1, 0, 0, 1), 1_000_000),
    "time": (pa.time64("us"), dt.time(0, 0, 2), 2_000_000),
    "bytes": (pa.binary(), b"\x00\xff", "AP8="),
    "list": (pa.list_(pa.int32()), [1, None, 3], [1, None, 3]),
    "none": (pa.list_(pa.string()), [], []),
    "map": (pa.map_(pa.string(), pa.int32()), [("k", 1), ("l", None)], {"k": 1, "l": None}),
    "struct": (pa.struct([("x", pa.int32()), ("y", pa.string())]), {"x": 1, "y": None}, {"x": 1}),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_values_come_back_from_the_text(name: str) -> None:
    kind, value, expected = COLUMNS[name]
    values = [value, None, value]
    rows = pa.StructArray.from_arrays([pa.array(values, kind)], [name])
    for array, wanted in ((rows, [0, 1, 0]), (rows.slice(1), [1, 0]), (rows.slice(0, 0), [])):
        texts = json_objects(array, with_nulls=False).to_pylist()
        assert list(map(json.loads, texts)) == [[{name: expected}, {}][n] for n in wanted]
    (_, null, _) = json_objects(rows, with_nulls=True).to_pylist()
    assert json.loads(null) == {name: None}


def test_columns_stand_in_their_order_and_rows_may_be_missing() -> None:
    rows = pa.array([{"b": 1, "a": None}, None], pa.struct([("b", pa.int32()), ("a", pa.int32())]))
    assert json_objects(rows, with_nulls=True).to_pylist() == ['{"b":1,"a":null}', None]
    assert json_objects(rows, with_nulls=False).to_pylist() == ['{"b":1}', None]
    nothing = pa.array([{}, None], pa.struct([]))
    assert json_objects(nothing, with_nulls=True).to_pylist() == ["{}", None]
