from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_ds.config.enums import IndexType, KeyGeneratorType
from hoodie_ds.config.given_options import GivenOptions, OptionGroup
from hoodie_ds.config.option import (
    BOOLEAN,
    BYTES,
    MEGABYTES,
    NAMES,
    ONE_OR_MORE_NAMES,
    POSITIVE_INT,
    TEXT,
    Kind,
    Option,
    choice,
)
from hoodie_ds.errors import OptionError

_KINDS = (
    BOOLEAN,
    BYTES,
    MEGABYTES,
    NAMES,
    ONE_OR_MORE_NAMES,
    POSITIVE_INT,
    TEXT,
    choice(IndexType),
)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (BOOLEAN, " TRUE ", True),
        (BOOLEAN, "false", False),
        (POSITIVE_INT, "007", 7),
        (BYTES, "125829120", 125829120),
        (BYTES, "1kb", 1024),
        (BYTES, "1.5 GiB", 3 << 29),
        (MEGABYTES, "256", 256 << 20),
        (MEGABYTES, "256.0", 256 << 20),
        (MEGABYTES, "256MB", 256 << 20),
        (MEGABYTES, "64 b", 64),
        (MEGABYTES, "1g", 1 << 30),
        (NAMES, "", ()),
        (NAMES, " a , b.c ", ("a", "b.c")),
        (choice(IndexType), "bucket", IndexType.BUCKET),
    ],
)
def test_allowed_texts(kind: Kind[object], text: str, value: object) -> None:
    assert Option("k", kind, "doc").parse(text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (BOOLEAN, "yes"),
        (POSITIVE_INT, "0"),
        (POSITIVE_INT, "-1"),
        (POSITIVE_INT, "2147483648"),
        (POSITIVE_INT, "٣"),
        (BYTES, "1e999"),
        (BYTES, "NaN"),
        (BYTES, "inf"),
        (BYTES, "-5"),
        (BYTES, "0"),
        (BYTES, "9" * 400),
        (MEGABYTES, "1125899906842624"),
        (MEGABYTES, "12XB"),
        (NAMES, "a,,b"),
        (NAMES, "a,a"),
        (NAMES, "a\nb"),
        (ONE_OR_MORE_NAMES, ""),
        (TEXT, "a\x00b"),
        (TEXT, "\ud800"),
        (choice(IndexType), "BUCKETS"),
    ],
)
def test_other_texts_are_refused_naming_what_is_allowed(kind: Kind[object], text: str) -> None:
    with pytest.raises(OptionError) as caught:
        Option("the.key", kind, "doc").parse(text)
    assert "the.key" in str(caught.value)
    assert kind.allowed in str(caught.value)


@given(st.text(), st.sampled_from(_KINDS))
def test_any_text_has_a_value_or_a_typed_error(text: str, kind: Kind[object]) -> None:
    with contextlib.suppress(OptionError):
        assert Option("k", kind, "doc").parse(text) is not None


def test_flink_names_count_megabytes_and_hudi_names_bytes() -> None:
    option = Option("hoodie.size", BYTES, "doc", aliases=("size",), flink_kind=MEGABYTES)
    assert option.parse("2048", "hoodie.size") == 2048
    assert option.parse("2048", "size") == 2048 << 20


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("org.apache.hudi.keygen.NonpartitionedKeyGenerator", KeyGeneratorType.NON_PARTITION),
        ("org.apache.hudi.keygen.TimestampBasedAvroKeyGenerator", KeyGeneratorType.TIMESTAMP),
        ("com.example.SimpleKeyGenerator", None),
    ],
)
def test_key_generators_have_java_classes(name: str, kind: KeyGeneratorType | None) -> None:
    assert KeyGeneratorType.from_java_class(name) is kind


@dataclass(frozen=True, kw_only=True)
class _Group(OptionGroup):
    size: Option[int] = Option("hoodie.size", BYTES, "doc", 7, aliases=("size",))
    path: Option[str] = Option("path", TEXT, "doc", needed="give it")
    name: Option[str | None] = Option("hoodie.name", TEXT, "doc")
    doubled: ClassVar[Option[bool]] = Option("hoodie.doubled", BOOLEAN, "doc", False)


def test_an_instance_of_a_group_has_the_values_and_its_class_the_options() -> None:
    group = _Group(path="/t", size=8)
    assert (group.size, group.path, group.name) == (8, "/t", None)
    assert replace(group, name="n") == _Group(path="/t", size=8, name="n") != group
    assert (_Group.size.key, _Group.doubled.names) == ("hoodie.size", ("hoodie.doubled",))
    assert repr(group) == "_Group(size=8, path='/t', name=None)"


def test_a_group_is_made_of_what_is_given_and_of_defaults() -> None:
    given = GivenOptions({"path": ("path", "/t"), "size": ("Size", "9")})
    assert _Group.of(given) == _Group(path="/t", size=9)
    assert given.problems == []


def test_a_group_notes_all_that_is_wrong() -> None:
    wrong = {"hoodie.size": ("hoodie.size", "x"), "hoodie.doubled": ("hoodie.doubled", "x")}
    given = GivenOptions(wrong)
    _Group.of(given)
    with pytest.raises(OptionError) as caught:
        given.check()
    assert {part.key: part.remedy for part in caught.value.parts} == {
        "hoodie.size": f"allowed is {BYTES.allowed}",
        "hoodie.doubled": f"allowed is {BOOLEAN.allowed}",
        "path": "give it",
    }
