from __future__ import annotations

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from hoodie_ds.formats.parquet.key_range import KeyRange

KEYS = st.lists(
    st.none()
    | st.text(st.sampled_from("aZé\u0000\ud7ff\ue000\uffff\U00010000\U0010ffff"), max_size=3)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
)


def java_units(text: str) -> list[int]:
    """What Java compares strings by: their 16-bit code units."""
    units = []
    for point in map(ord, text):
        if point < 0x10000:
            units.append(point)
        else:
            units += [0xD800 + (point - 0x10000 >> 10), 0xDC00 + (point & 0x3FF)]
    return units


@given(st.lists(KEYS, max_size=3))
@example([["\U00010000", "\uffff"]])
@example([["\U00010000"], ["\uffff"]])
@example([["a"], [], [None]])
def test_the_range_is_that_of_java(chunks: list[list[str | None]]) -> None:
    key_range = KeyRange()
    for chunk in chunks:
        key_range.add(pa.chunked_array([pa.array(chunk, pa.string())]))
    keys = [key for chunk in chunks for key in chunk if key is not None]
    assert key_range.min == min(keys, key=java_units, default=None)
    assert key_range.max == max(keys, key=java_units, default=None)


def test_a_slice_counts_only_its_own_keys() -> None:
    keys = pa.array(["a", "b", "c", "\U0001f600"])
    key_range = KeyRange()
    key_range.add(pa.chunked_array([keys.slice(1, 2)]))
    assert (key_range.min, key_range.max) == ("b", "c")
