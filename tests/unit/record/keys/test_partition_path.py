from __future__ import annotations

import re
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hoodie_ds.errors import RecordKeyError
from hoodie_ds.record.keys.partition_path import (
    DEFAULT_PARTITION,
    Coded,
    check_inside,
    distinct,
    escape,
    folders,
    joined,
)

TEXT = st.text(max_size=8)
NASTY = st.lists(
    st.sampled_from(
        ["..", ".", "/", "\\", "%2f", "%", "_", "a", "é", "=", ":", " ", "\0", ".hoodie"]
    ),
    max_size=5,
).map("".join)


def coded(*texts: str | None) -> Coded:
    return Coded(np.arange(len(texts)), texts)


def paths(values: Coded, hive_style: bool = False, url_encode: bool = False) -> list[str]:
    found: list[str] = joined([folders("f", values, hive_style, url_encode, True)]).to_pylist()
    return found


def test_escaped_characters_are_hudis() -> None:
    # What Hudi 1.2.0 made of the characters 0 to 255, printed by a JVM.
    controls = "".join(f"%{code:02X}" for code in range(32))
    printable = (
        " !%22%23$%25&%27()%2A+,-.%2F0123456789%3A;<%3D>%3F@ABCDEFGHIJKLMNOPQRSTUVWXYZ%5B%5C%5D%5E"
        "_`abcdefghijklmnopqrstuvwxyz%7B|}~%7F"
    )
    high = "".join(map(chr, range(128, 256)))
    assert escape("".join(map(chr, range(256)))) == controls + printable + high


@given(TEXT)
def test_escaping_can_be_undone(text: str) -> None:
    assert unquote(escape(text)) == text


@pytest.mark.parametrize(
    ("hive_style", "url_encode", "expected"),
    [
        (False, False, ["a:b", "x/y", DEFAULT_PARTITION, DEFAULT_PARTITION]),
        (True, False, ["f=a:b", "f=x/y", f"f={DEFAULT_PARTITION}", f"f={DEFAULT_PARTITION}"]),
        (False, True, ["a%3Ab", "x%2Fy", DEFAULT_PARTITION, DEFAULT_PARTITION]),
        (True, True, ["f=a%3Ab", "f=x%2Fy", f"f={DEFAULT_PARTITION}", f"f={DEFAULT_PARTITION}"]),
    ],
)
def test_styles(hive_style: bool, url_encode: bool, expected: list[str]) -> None:
    assert paths(coded("a:b", "x/y", None, ""), hive_style, url_encode) == expected


@pytest.mark.parametrize("url_encode", [False, True])
def test_the_name_of_the_default_partition_is_no_value(url_encode: bool) -> None:
    with pytest.raises(RecordKeyError, match="folder of null"):
        paths(coded(DEFAULT_PARTITION), True, url_encode)


def test_a_slash_beside_other_fields_needs_encoding() -> None:
    with pytest.raises(RecordKeyError, match=r"'a/b'.*urlencode"):
        folders("f", coded("a/b"), False, False, sole=False)
    assert folders("f", coded("a/b"), False, True, sole=False).strings == ("a%2Fb",)


@pytest.mark.parametrize(
    "path",
    [
        *("..", "../x", "a/..", "a/../b", "/etc", "a/", "a//b", ".", "a/./b", "a\0b", "C:\\x"),
        *(".hoodie", ".hoodie/x", ".a", "_temporary", "a/_x"),
        *(f"a/.{DEFAULT_PARTITION}", f"{DEFAULT_PARTITION}x"),
    ],
)
def test_paths_out_of_the_table_are_refused(path: str) -> None:
    with pytest.raises(RecordKeyError, match=re.escape(repr(path))):
        check_inside(path)


@pytest.mark.parametrize("path", ["a" * 256, "é" * 128, "/".join(["a" * 200] * 4)])
def test_names_that_no_file_system_takes_are_refused(path: str) -> None:
    with pytest.raises(RecordKeyError, match=r"more than (255|768) bytes.*short values"):
        check_inside(path)


@pytest.mark.parametrize(
    "path",
    [
        *("", "a", "2024/01/02", "f=..", "_f=1/g=2", "a..b", "%2e%2e", "a b", "é", "é" * 127),
        *(DEFAULT_PARTITION, f"a/{DEFAULT_PARTITION}", f"f={DEFAULT_PARTITION}"),
    ],
)
def test_folders_inside_the_table_pass(path: str) -> None:
    check_inside(path)


@given(NASTY | TEXT, st.booleans(), st.booleans())
def test_no_value_leaves_the_table(text: str, hive_style: bool, url_encode: bool) -> None:
    try:
        [path] = paths(coded(text), hive_style, url_encode)
    except RecordKeyError:
        return
    parts = path.split("/")
    assert not {"", ".", "..", ".hoodie"}.intersection(parts)
    assert not path.startswith("/")


@given(st.tuples(NASTY, NASTY), st.tuples(NASTY, NASTY), st.booleans(), st.booleans())
def test_different_values_never_share_a_folder(
    first: tuple[str, str], second: tuple[str, str], hive_style: bool, url_encode: bool
) -> None:
    assume(first != second)
    try:
        parts = [
            folders(name, coded(first[i], second[i]), hive_style, url_encode, sole=False)
            for i, name in enumerate(("f", "g"))
        ]
        one, other = joined(parts).to_pylist()
    except RecordKeyError:
        return
    assert one != other


def test_parts_are_joined_row_by_row() -> None:
    first = Coded(np.array([0, 1, 0, 1]), ("a", "b"))
    second = Coded(np.array([0, 0, 2, 1]), ("x", "y", "z"))
    third = Coded(np.array([0, 1, 1, 0]), ("1", "2"))
    assert joined([first, second, third]).to_pylist() == ["a/x/1", "b/x/2", "a/z/2", "b/y/1"]


@given(st.lists(st.lists(st.none() | st.sampled_from(["a", "b", ""]), max_size=4), max_size=4))
def test_distinct_values_rebuild_the_column(chunks: list[list[str | None]]) -> None:
    column = pa.chunked_array(chunks, pa.string())
    codes, values = distinct(column)
    assert [values[code].as_py() for code in codes.tolist()] == column.to_pylist()
    assert len(set(values.to_pylist())) == len(values)


def test_distinct_values_of_dictionaries_that_differ() -> None:
    chunks = [pa.array(part).dictionary_encode() for part in (["a", "b"], ["b", "a"])]
    codes, values = distinct(pa.chunked_array(chunks))
    assert [values[code].as_py() for code in codes.tolist()] == ["a", "b", "b", "a"]
