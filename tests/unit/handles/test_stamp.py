from __future__ import annotations

import pytest

from hoodie_ds.handles.stamp import sequence_numbers


@pytest.mark.parametrize(
    ("first", "count"),
    [
        *((0, n) for n in (0, 1, 9, 10, 11, 1_000, 1_001)),
        *((n, 2_500) for n in (1, 7, 99, 999, 1_000, 1_001, 9_999, 98_765, 99_999, 1_234_567)),
        (10**12 - 3, 6),
    ],
)
def test_each_string_ends_in_its_number(first: int, count: int) -> None:
    strings = sequence_numbers("20260101000000000_é_", first, count)
    strings.validate(full=True)
    assert strings.to_pylist() == [f"20260101000000000_é_{n}" for n in range(first, first + count)]
