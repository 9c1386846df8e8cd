"""The comparison that other suites lean on must itself be able to fail."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.rows import assert_same_rows


def table(values: list[object], kind: pa.DataType, keys: str = "ab") -> pa.Table:
    return pa.table({"k": pa.array(keys), "v": pa.array(values, kind)})


def test_order_and_encoding_do_not_count() -> None:
    one = table(["x", None], pa.string())
    other = table([None, "x"], pa.large_string(), "ba").select(["v", "k"])
    assert_same_rows(other, one, ["k"])


def test_nan_equals_itself_and_not_null() -> None:
    assert_same_rows(
        table([float("nan")], pa.float64(), "a"), table([float("nan")], pa.float64(), "a"), ["k"]
    )
    with pytest.raises(AssertionError, match="column v differs in 1 of 1"):
        assert_same_rows(
            table([float("nan")], pa.float64(), "a"), table([None], pa.float64(), "a"), ["k"]
        )


@pytest.mark.parametrize(
    ("values", "kind"),
    [(["x", ""], pa.string()), (["x"], pa.string()), ([1, 2], pa.int32())],
)
def test_a_difference_is_found(values: list[object], kind: pa.DataType) -> None:
    with pytest.raises(AssertionError):
        assert_same_rows(
            table(values, kind, "ab"[: len(values)]), table(["x", None], pa.string()), ["k"]
        )


def test_nested_lists_of_either_item_name_are_equal() -> None:
    named = pa.list_(pa.field("element", pa.large_string(), nullable=False))
    assert_same_rows(table([["p"], []], named), table([["p"], []], pa.list_(pa.string())), ["k"])
