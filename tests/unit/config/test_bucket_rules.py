"""Rules by which partitions have their number of buckets.

Expected numbers are Hudi's: of its own tests, and of its rule engine run on the JVM. That both
agree about random rules is tests/interop/test_jvm_partition_buckets.py's to say.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hoodie_ds.config.bucket_rules import BucketRules
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import OptionError, RecordKeyError

KEY = "hoodie.bucket.index.partition.expressions"
PARTS = (
    *("a", "A", "k", "Z", "_", "-", "é", "0", ".", "^", "$", "|", "(", ")", "(?:", "*", "+", "?"),
    *("{2}", r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", r"\.", r"\-", r"\]", r"\\\\"),
    *("[ab]", "[^ab]", "[A-z]", "[Z-b]", r"[\s.]", r"[\S]", r"[^\S-]", "[-a]", r"[\[-a]", "[^-]"),
    *(r"[\w-]", r"[^\W_]", "[k-m]", r"[+-\.]"),
)
DATES = r"\d{4}-(06-(01|17|18)|11-(01|10|11)),256"


def rules(text: str) -> BucketRules:
    found = WriteOptions.parse({"path": "/t", KEY: text}).bucket_rules
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        (DATES, "2023-06-01", 256),
        (DATES, "2023-11-11", 256),
        (DATES, "2023-07-01", None),
        (DATES, "dt=2024-06-17/hour=3", 256),  # found anywhere, not the whole path
        ("^2023$,3", "dt=2023", None),
        ("a,4;ab,5", "ab", 4),  # the first that is found
        ("b,4;ab,5;a,6", "a", 6),
        (" a , 7 ;b,3", "xa", 7),
        ("a , +4;", "xa", 4),
        ("(?i)É,4;(?i)AB,5", "éab", 5),  # no letter case outside ASCII
        (r"\d,4", "٣", None),
        (r"^\w$,4", "é", None),
        (".*,8", "", 8),
        ("city=(ams|nyc)$,64;city=,8", "city=nyc", 64),
        ("[^/]/[^/]+$,2", "2024/06", 2),
        # RE2 folds these two into ASCII letters, and takes a vertical tab for no blank.
        ("(?i)k,4", "\u212a", None),
        ("(?i)[r-t],4", "\u017f", None),
        (r"\s,4", "\x0b", 4),
        (r"\S,4", "\x0b", None),
        (r"[^\s],4", "\x0b", None),
        (r"[\S],4", "\x0b", None),
        (r"[\S],4", "\U0010ffff", 4),
        (r"(?i)^[^b-d\]]$,4", "C", None),
        (r"(?i)^[Z-a]$,4", "z", 4),
        ("(?i)^(?:Ab){2}$,4", "aBAb", 4),
        (r"[\d-]x,4", "-x", 4),
        (r"[a\-c]x,4", "bx", None),
        (r"^[\w-]+$,4", "a-b", 4),
    ],
)
def test_a_partition_has_the_number_of_buckets_that_hudi_gives_it(
    text: str, path: str, expected: int | None
) -> None:
    assert rules(text).num_buckets(path) == expected


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "a,",
        ",4",
        ";a,4",
        "a,4;;b,5",
        "a,0",
        "a,-1",
        "a,4.5",
        "a,100000000",
        "a,4,5",
        "a{1,2},4",
        "(,4",
        "*a,4",
        "a**,4",
        "[z-a],4",
        "(?<=a)b,4",
        "(?=a)b,4",
        "(?!a)b,4",
        "a++,4",
        "a{1001},4",
        "(?:a{500}){500},4",
        "^*a,4",
        r"\p{L},4",
        r"\bx,4",
        r"(a)\1,4",
        r"\Qa\E,4",
        r"a\Z,4",
        "[a[bc]],4",
        "[a-z&&[^b]],4",
        "[a--b],4",
        "[]a],4",
        "(?x)a b,4",
        "x(?i)a,4",
        "(?P<n>a),4",
        "(?<n>a),4",
        "x{a},4",
        "a]b,4",
        "a\tb,4",
    ],
)
def test_what_is_not_read_as_java_reads_it_in_bounded_time_is_refused(text: str) -> None:
    with pytest.raises(OptionError, match="regex,number;regex,number") as caught:
        rules(text)
    assert (caught.value.key, caught.value.value) == (KEY, text)


def test_another_type_of_rules_is_refused() -> None:
    option = "hoodie.bucket.index.partition.rule.type"
    WriteOptions.parse({"path": "/t", option: "REGEX"})
    with pytest.raises(OptionError, match="use 'regex'"):
        WriteOptions.parse({"path": "/t", option: "range"})


@pytest.mark.parametrize("end", ["\n", "\r", "\x85", "\u2028"])
def test_a_line_end_in_a_path_is_refused(end: str) -> None:
    with pytest.raises(RecordKeyError, match="line end"):
        rules("a$,4").num_buckets("a" + end)


def test_rules_are_written_as_hudi_reads_them() -> None:
    assert str(rules(" a , +7 ; b|c,3;")) == "a,7;b|c,3"


@given(
    st.lists(st.sampled_from(PARTS), min_size=1, max_size=8).map("".join),
    st.booleans(),
    st.text("aAbkKZ_z0- .]\\[\x0b\u212a\u017fé", max_size=6),
)
def test_expressions_are_found_as_an_engine_that_goes_back_finds_them(
    pattern: str, ignoring_case: bool, text: str
) -> None:
    pattern = "(?i)" * ignoring_case + pattern
    found = BucketRules.parse(f"{pattern},4")
    assume(found is not None)
    assert found is not None
    expected = 4 if re.search(pattern, text, re.ASCII) else None
    assert found.num_buckets(text) == expected
