"""Bucket numbers against Hudi's BucketIdentifier, restated row by row."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_ds.errors import OptionError
from hoodie_ds.index.bucket_identifier import (
    bucket_ids,
    bucket_prefix,
    file_id,
)
from hoodie_ds.table.file_name import bucket_of

MANY = 1_000_003


def bucket(values: list[str | None], buckets: int) -> int:
    code = 1
    for value in values:
        element = 0
        for (unit,) in struct.iter_unpack(">H", (value or "").encode("utf-16-be")):
            element = (31 * element + unit) & 0xFFFFFFFF
        code = (31 * code + element) & 0xFFFFFFFF
    return (code & 0x7FFFFFFF) % buckets


def hashed_values(key: str, fields: tuple[str, ...]) -> list[str | None]:
    """Releases from 1.0: a pair ends at the last comma before the next colon that has one."""
    if "," not in key or ":" not in key:
        return [key]
    pairs: list[tuple[str, str]] = []
    rest = key
    while rest:
        field, _, tail = rest.partition(":")
        cut = None
        for i, character in enumerate(tail):
            if character == ":" and "," in tail[:i]:
                cut = tail[:i].rindex(",")
                break
        value, rest = (tail, "") if cut is None else (tail[:cut], tail[cut + 1 :])
        pairs.append((field, value))
    chosen: list[str | None] = [
        {"__null__": None, "__empty__": ""}.get(value, value)
        for field, value in pairs
        if field in fields
    ]
    return chosen or [key]


def buckets_of(keys: list[str], fields: tuple[str, ...], buckets: int = MANY) -> list[int]:
    ids: list[int] = bucket_ids(pa.array(keys, pa.string()), buckets, fields, fields).tolist()
    return ids


def pair(field: str, value: str | None) -> str:
    """One part of a complex key, as Hudi's key generators write it."""
    return f"{field}:{'__null__' if value is None else value or '__empty__'}"


@pytest.mark.parametrize(
    ("values", "buckets", "expected"),
    [
        (["abc"], 4, 1),
        (["TXN-001"], 8, 5),
        (["a", "b"], 16, 2),
        (["334e26e9-8355-45cc-97c6-c31daf0df330"], 256, 227),
        (["id:abc"], 4, 2),
        (["2024-10-24 10:11:11.234"], 8, 0),
        (["1", None], 100_000, 2480),
        (["1", ""], 100_000, 2480),
    ],
)
def test_documented_vectors(values: list[str | None], buckets: int, expected: int) -> None:
    fields = tuple(f"f{number}" for number in range(len(values)))
    key = ",".join(map(pair, fields, values)) if len(values) > 1 else str(values[0])
    assert buckets_of([key], fields, buckets) == [expected]


# Buckets of 1000003 as Hudi 1.2.0's own BucketIdentifier.getBucketId printed them on a JVM.
@pytest.mark.parametrize(
    ("key", "fields", "expected"),
    [
        ("𝄞2024-10-24 10:11a,b:x", ("a",), 41429),
        ("b:é,b:,b::", ("a", "b"), 253762),
        ("a:a:𝄞,a1a:", ("b",), 766186),
        (":,b𝄞 :a,b:", ("a",), 437105),
        ("éa:1a 1,b:𝄞", ("a",), 505412),
        ("abb:b__empty__,a:", ("id",), 108010),
        ("a:b::,", ("a",), 977123),
        ("a:b,,a:", ("a", "b"), 96503),
        (",b:,,𝄞 __empty____null__idb:", ("id",), 469596),
        (":,b:id", ("a",), 99212),
        ("a::,2024-10-24 10:11", ("b",), 671375),
        ("a::__empty__,:,,b:", ("a", "b"), 252956),
    ],
)
def test_buckets_are_those_of_the_jvm(key: str, fields: tuple[str, ...], expected: int) -> None:
    assert bucket_ids(pa.array([key]), MANY, fields, ("a", "b")).tolist() == [expected]


def test_plain_keys_are_hashed_unchanged() -> None:
    assert buckets_of(["abc", "TXN-001"], ("id",), 8) == [
        bucket(["abc"], 8),
        bucket(["TXN-001"], 8),
    ]
    assert buckets_of(["f1:a,f2:b"], ("f1", "f2"), 16) == [2]


def test_the_name_of_a_single_field_is_hashed_with_its_value() -> None:
    assert buckets_of(["id:abc"], ("id",), 4) == [2]


def test_a_simple_key_may_hold_a_colon() -> None:
    assert buckets_of(["2024-10-24 10:11:11.234"], ("ts",), 8) == [0]


def test_null_and_empty_placeholders() -> None:
    keys = ["a:1,b:__null__", "a:1,b:__empty__", "a:1,b:__nul1__"]
    expected = [2480, 2480, bucket(["1", "__nul1__"], 100_000)]
    assert buckets_of(keys, ("a", "b"), 100_000) == expected


def test_values_keep_their_commas_and_colons() -> None:
    key = "a:x,y,b:2014-10-22 13:50:42,c:z"
    expected = bucket(["x,y", "2014-10-22 13:50:42", "z"], MANY)
    assert buckets_of([key], ("a", "b", "c")) == [expected]


def test_hash_fields_count_in_the_order_of_the_key() -> None:
    keys = pa.array(["a:1,b:2,c:3"])
    ids = bucket_ids(keys, MANY, ("c", "a"), ("a", "b", "c"))
    assert ids.tolist() == [bucket(["1", "3"], MANY)]
    everything = bucket_ids(keys, MANY, (), ("a", "b", "c"))
    assert everything.tolist() == [bucket(["1", "2", "3"], MANY)]


def test_a_last_field_that_is_not_hashed_may_hold_colons() -> None:
    # Hudi 1.2.0 itself never returns from this key; the natural reading is taken.
    ids = bucket_ids(pa.array(["a:1,b:2:3"]), MANY, ("a",), ("a", "b"))
    assert ids.tolist() == [bucket(["1"], MANY)]


PIECES = st.sampled_from(
    ["a", "b", "id", ":", ",", "a:", ",b:", "__null__", "__empty__", "é", "\U0001d11e", " "]
)
KEYS = st.lists(PIECES, min_size=1, max_size=9).map("".join)
FIELDS = st.sampled_from([("a",), ("b",), ("a", "b"), ("id",)])


@given(st.lists(KEYS, min_size=1), FIELDS)
def test_any_key_is_hashed_as_in_hudi_1_0(keys: list[str], fields: tuple[str, ...]) -> None:
    ids = bucket_ids(pa.array(keys), MANY, fields, ("a", "b"))
    assert ids.tolist() == [bucket(hashed_values(key, fields), MANY) for key in keys]


VALUES = st.none() | st.text(max_size=8).filter(lambda text: not set(text) & set(",:"))


@given(st.lists(st.tuples(VALUES, VALUES), min_size=1))
def test_keys_agree_with_the_values_they_were_made_of(
    rows: list[tuple[str | None, str | None]],
) -> None:
    keys = [f"{pair('f1', first)},{pair('f2', second)}" for first, second in rows]
    # a string that is a placeholder cannot be told from what it stands for
    read = [[None if value == "__null__" else value for value in row] for row in rows]
    expected = [bucket(["" if v == "__empty__" else v for v in row], 17) for row in read]
    assert buckets_of(keys, ("f1", "f2"), 17) == expected


def test_chunks_slices_and_large_strings() -> None:
    keys = pa.array([f"a:{i},b:{i % 7}" for i in range(40_000)], pa.large_string())
    chunked = pa.chunked_array([keys[:3], keys[3:3], keys[3:]])
    ids = bucket_ids(chunked, 64, ("a", "b"), ("a", "b"))
    expected = [bucket([str(i), str(i % 7)], 64) for i in range(40_000)]
    assert ids.tolist() == expected
    assert ids.dtype == "int32"


def test_no_rows() -> None:
    assert bucket_ids(pa.array([], pa.string()), 4, ("a",), ("a",)).tolist() == []


@pytest.mark.parametrize("buckets", [0, -1, 10**8 + 1])
def test_number_of_buckets_is_checked(buckets: int) -> None:
    with pytest.raises(OptionError, match=r"num\.buckets"):
        buckets_of(["a"], ("a",), buckets)


def test_file_ids() -> None:
    assert bucket_prefix(11) == "00000011"
    assert file_id(11) == "00000011-0000-0000-0000-000000000000-0"
    assert file_id(11, 2) == "00000011-0000-0000-0000-000000000002-0"


@given(st.integers(0, 10**8 - 1), st.integers(0, 10**12 - 1))
def test_a_file_id_names_its_bucket(number: int, generation: int) -> None:
    assert bucket_of(file_id(number, generation)) == number


@pytest.mark.parametrize(
    "name", ["", "0000001-x", "0000000a-1111-2222-3333-444444444444-0", "٠٠٠٠٠٠٠١-0000", "00000001"]
)
def test_other_file_ids_name_no_bucket(name: str) -> None:
    assert bucket_of(name) is None
