from __future__ import annotations

import pyarrow as pa
import pytest

from hoodie_ds.record.deletes import deletes_among


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (pa.array(["D", "I", None, "d"]), "D"),
        (pa.array(["D", "I", None, "d"], pa.large_string()), "D"),
        (pa.array(["D", "I", None, "d"]).dictionary_encode(), "D"),
        (pa.array([3, 4, None, 33]), "3"),
        (pa.array([True, False, None, False]), "true"),
    ],
)
def test_a_column_marks_deletes(values: pa.Array, text: str) -> None:
    rows = pa.table({"op": values})
    assert deletes_among(rows, ("op", text)).tolist() == [True, False, False, False]
    assert not deletes_among(rows, ("other", text)).any()
    assert not deletes_among(rows, None).any()


def test_both_columns_mark_deletes() -> None:
    marks = pa.array([None, False, True, True])
    rows = pa.table({"_hoodie_is_deleted": marks, "op": ["D", "I", "I", "D"]})
    assert deletes_among(rows, ("op", "D")).tolist() == [True, False, True, True]
    assert deletes_among(rows, None).tolist() == [False, False, True, True]


@pytest.mark.parametrize("values", [pa.array([b"D", b"\xff"]), pa.array([["D"], ["I"]])])
def test_values_that_are_no_strings_mark_no_deletes(values: pa.Array) -> None:
    assert not deletes_among(pa.table({"op": values}), ("op", "D")).any()
