"""Rows of files whose columns have other names than the table's."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hoodie_ds.formats.renaming import Renaming

INNER = Renaming({"x": ("lon", None), "y": ("x", None)})
"""``x`` is now ``lon``, ``y`` has its name, and ``z`` is gone."""
WAS = pa.struct([("x", pa.int64()), ("y", pa.string()), ("z", pa.bool_())])
NOW = {"lon": 1, "x": "a", "\0z": True}


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        (WAS, [{"x": 1, "y": "a", "z": True}, None], [NOW, None]),
        (pa.list_(WAS), [[{"x": 1, "y": "a", "z": True}], None], [[NOW], None]),
        (pa.large_list(WAS), [[{"x": 1, "y": "a", "z": True}], []], [[NOW], []]),
        (pa.map_(pa.string(), WAS), [[("k", {"x": 1, "y": "a", "z": True})]], [[("k", NOW)]]),
        (pa.list_(pa.list_(WAS)), [[[{"x": 1, "y": "a", "z": True}]]], [[[NOW]]]),
        (
            pa.map_(pa.string(), pa.list_(WAS)),
            [[("k", [{"x": 1, "y": "a", "z": True}])]],
            [[("k", [NOW])]],
        ),
    ],
    ids=str,
)
def test_fields_are_renamed_at_whatever_depth(
    kind: pa.DataType, values: list[object], expected: list[object]
) -> None:
    rows = pa.table({"was": pa.chunked_array([pa.array(values, kind), pa.array([None], kind)])})
    renamed = Renaming({"was": ("now", INNER)}).renamed(rows)
    assert renamed.to_pydict() == {"now": [*expected, None]}
    assert renamed.slice(1).to_pydict() == {"now": [*expected[1:], None]}


def test_columns_change_places_and_others_are_none_of_the_tables() -> None:
    rows = pa.table({"_hoodie_commit_time": ["1"], "a": [1], "b": [2], "gone": [3]})
    swap = Renaming({"a": ("b", None), "b": ("a", None)})
    assert swap.renamed(rows).to_pydict() == {"_hoodie_commit_time": ["1"], "b": [1], "a": [2]}
    assert swap.stored(["_hoodie_commit_time", "a", "gone"]) == {"_hoodie_commit_time", "b"}


def test_rows_without_any_column_are_still_rows() -> None:
    assert Renaming({"a": ("b", None)}).renamed(pa.table({"c": [1, 2, 3]})).num_rows == 3
