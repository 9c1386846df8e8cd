import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_ds.config.properties.java_properties import (
    format_properties,
    iso_time,
    java_date,
    parse_properties,
)
from hoodie_ds.errors import CorruptFileError, OptionError

_TEXT = st.text(
    st.one_of(st.sampled_from("\\=:#! \t\f\r\n\x00uU\x85\u2028é😀"), st.characters(codec="utf-8"))
)


@given(st.dictionaries(_TEXT, _TEXT), st.lists(_TEXT, max_size=2))
def test_what_is_written_comes_back(entries: dict[str, str], comments: list[str]) -> None:
    text = format_properties(entries, comments)
    assert parse_properties(text, "p") == entries
    assert text.isascii()


@given(_TEXT)
def test_any_text_is_entries_or_a_typed_error(text: str) -> None:
    with contextlib.suppress(CorruptFileError):
        assert parse_properties(text, "p") is not None


# The examples of the documentation of java.util.Properties.load.
@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("Truth = Beauty", {"Truth": "Beauty"}),
        ("  Truth:Beauty", {"Truth": "Beauty"}),
        ("Truth                    :Beauty", {"Truth": "Beauty"}),
        (
            "fruits   apple, banana, pear, \\\n   cantaloupe, watermelon, \\\n  kiwi, mango",
            {"fruits": "apple, banana, pear, cantaloupe, watermelon, kiwi, mango"},
        ),
        ("cheeses", {"cheeses": ""}),
        ("# a\n! b\n\n \t\nk=v", {"k": "v"}),
        ("k=a\\\n#b", {"k": "a#b"}),
        ("k=a\\\\\nj=b", {"k": "a\\", "j": "b"}),
        ("\\:\\==x", {":=": "x"}),
        ("k=\\b\\z\\u0041\\t", {"k": "bzA\t"}),
        ("k=a\rj=b\r\ni=c", {"k": "a", "j": "b", "i": "c"}),
        ("k=1\nk=2", {"k": "2"}),
        ("k=\\uD83D\\uDE00", {"k": "😀"}),
        ("k=a\x85b\u2028c", {"k": "a\x85b\u2028c"}),
        ("k=v \\", {"k": "v "}),
        ("", {}),
    ],
)
def test_text_is_read_as_java_reads_it(text: str, entries: dict[str, str]) -> None:
    assert parse_properties(text, "p") == entries


def test_bytes_are_latin_1_and_the_rest_is_escaped() -> None:
    assert parse_properties(b"k=\xe9", "p") == {"k": "é"}
    assert format_properties({"k": "é\x7f~"}) == b"k=\\u00E9\\u007F~\n"
    assert format_properties({"a b": " c d"}) == b"a\\ b=\\ c d\n"


@pytest.mark.parametrize("text", ["k=\\u00g0", "k=\\u12", "k=\\ud800", "k=\\uDE00\\uD83D"])
def test_malformed_escapes_are_refused(text: str) -> None:
    with pytest.raises(CorruptFileError, match=r"hoodie\.properties"):
        parse_properties(text, "hoodie.properties")


@pytest.mark.parametrize("entry", [("k", "\ud800"), ("\udc00", "v"), ("k", "\ud83d\ude00")])
def test_half_a_surrogate_pair_is_refused(entry: tuple[str, str]) -> None:
    with pytest.raises(OptionError, match="surrogate"):
        format_properties(dict([entry]))


def test_a_comment_stays_one_comment() -> None:
    text = format_properties({}, ["a\nk=v", "é"])
    assert text == b"#a\\u000Ak=v\n#\\u00E9\n"


def test_times_are_shown_as_java_shows_them() -> None:
    at = 1_772_863_109_749  # 2026-03-07T05:58:29.749Z
    assert java_date(at) == "Sat Mar 07 05:58:29 UTC 2026"
    assert iso_time(at) == "2026-03-07T05:58:29.749Z"
