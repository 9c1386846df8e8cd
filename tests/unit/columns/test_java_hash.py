"""Java's hash codes against their definition, unit by unit in plain Python."""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_ds.columns.java_hash import TextBuffer, list_hashes, slice_hashes, string_hashes
from hoodie_ds.errors import RecordKeyError


def string_hash(text: str | None) -> int:
    """``s[0]*31^(n-1) + ... + s[n-1]`` over UTF-16 units, in 32 bits."""
    code = 0
    for (unit,) in struct.iter_unpack(">H", (text or "").encode("utf-16-be")):
        code = (31 * code + unit) & 0xFFFFFFFF
    return code


def list_hash(texts: list[str | None]) -> int:
    code = 1
    for text in texts:
        code = (31 * code + string_hash(text)) & 0xFFFFFFFF
    return code


@pytest.mark.parametrize(
    ("text", "signed"),
    [
        # Printed by jshell 17: "...".hashCode()
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("polygenelubricants", -2147483648),
        ("é", 233),
        ("\U0001d11e", 1772394),
    ],
)
def test_known_hash_codes(text: str, signed: int) -> None:
    assert string_hashes(pa.array([text])).astype(np.int32).tolist() == [signed]


@given(st.lists(st.none() | st.text(max_size=40)))
def test_string_hash_is_javas_on_every_plane(texts: list[str | None]) -> None:
    column = pa.array(texts, pa.string())
    assert string_hashes(column).tolist() == [string_hash(text) for text in texts]


@given(st.lists(st.text(alphabet=st.characters(min_codepoint=0x10000)), max_size=5))
def test_astral_characters_are_two_units_each(texts: list[str]) -> None:
    assert string_hashes(pa.array(texts, pa.string())).tolist() == list(map(string_hash, texts))


@given(
    st.lists(st.none() | st.text(max_size=5), min_size=3, max_size=20),
    st.sampled_from([pa.string(), pa.large_string(), pa.string_view()]),
)
def test_slices_chunks_and_types_do_not_matter(texts: list[str | None], kind: pa.DataType) -> None:
    expected = [string_hash(text) for text in texts]
    column = pa.array(texts, kind)
    assert string_hashes(column.slice(1)).tolist() == expected[1:]
    assert (
        string_hashes(pa.chunked_array([column[:2], column[2:2], column[2:]])).tolist() == expected
    )


@given(st.lists(st.none() | st.sampled_from(["x", "yé", ""])))
def test_dictionaries_hash_as_their_values(texts: list[str | None]) -> None:
    column = pa.array(texts, pa.string()).dictionary_encode()
    assert string_hashes(column).tolist() == [string_hash(text) for text in texts]


def test_strings_longer_than_a_block() -> None:
    texts = ["z" * 300_000, "", "€" * 100_000, "q", "\U0001d11e" * 70_000, "end"]
    assert string_hashes(pa.array(texts)).tolist() == list(map(string_hash, texts))


def test_many_strings_over_several_blocks() -> None:
    texts = [f"key-{'ü' if i % 1000 == 7 else ''}{i}" for i in range(40_000)]
    assert string_hashes(pa.array(texts)).tolist() == list(map(string_hash, texts))


def test_null_rows_over_hidden_bytes_hash_as_zero() -> None:
    offsets = pa.py_buffer(np.array([0, 2, 4], np.int32))
    column = pa.Array.from_buffers(
        pa.string(), 2, [pa.py_buffer(b"\x02"), offsets, pa.py_buffer(b"abcd")]
    )
    assert string_hashes(column).tolist() == [0, string_hash("cd")]


@given(st.lists(st.tuples(st.none() | st.text(max_size=4), st.none() | st.text(max_size=4))))
def test_list_hash_is_javas(rows: list[tuple[str | None, str | None]]) -> None:
    columns = [pa.array([row[i] for row in rows], pa.string()) for i in range(2)]
    hashes = list_hashes([string_hashes(column) for column in columns])
    assert hashes.tolist() == [list_hash(list(row)) for row in rows]


def test_slices_need_not_cover_the_buffer() -> None:
    buffer = TextBuffer.of(pa.array(["a:é,b:z"]))
    starts, ends = np.array([2, 7], np.int64), np.array([4, 8], np.int64)
    expected = [string_hash("é"), string_hash("z")]
    assert slice_hashes(buffer.data, starts, ends).tolist() == expected


def test_broken_utf8_is_refused_with_its_bytes() -> None:
    column = pa.Array.from_buffers(
        pa.string(),
        1,
        [None, pa.py_buffer(np.array([0, 3], np.int32)), pa.py_buffer(b"a\xffb")],
    )
    with pytest.raises(RecordKeyError, match=r"UTF-8 near b'a\\xffb'"):
        string_hashes(column)


def test_no_rows() -> None:
    assert string_hashes(pa.array([], pa.string())).tolist() == []
    assert string_hashes(pa.chunked_array([], pa.string())).tolist() == []
