"""Patterns; the texts of single letters were printed by Joda-Time 2.12 within Hudi 1.2.0."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_ds.errors import OptionError
from hoodie_ds.record.keys.joda_pattern import Parser, Printer

MOMENT = datetime(2020, 1, 2, 3, 4, 5, 6000, timezone.utc)
MIDNIGHT = datetime(2020, 12, 31, tzinfo=timezone.utc)


def printed(pattern: str, moment: datetime = MOMENT) -> str:
    return Printer.compile(pattern, "output").text(moment)


def read(pattern: str, text: str) -> tuple[datetime, timezone | None] | None:
    return Parser.compile(pattern, "input").moment(text)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("y yy yyy yyyy yyyyy", "2020 20 2020 2020 02020"),
        ("Y YY YYYY", "2020 20 2020"),
        ("M MM MMM MMMM", "1 01 Jan January"),
        ("d dd D DDD", "2 02 2 002"),
        ("E EE EEE EEEE e", "Thu Thu Thu Thursday 4"),
        ("H HH k K h hh m s", "3 03 3 3 3 03 4 5"),
        ("S SS SSS SSSS SSSSSS", "0 00 006 0060 006000"),
        ("a x xx xxxx w ww", "AM 2020 20 2020 1 01"),
        ("Z ZZ", "+0000 +00:00"),
        ("'year='yyyy", "year=2020"),
        ("yyyy''MM", "2020'01"),
        ("'it''s'", "it's"),
        ("yyyy/MM/dd'T'HH", "2020/01/02T03"),
    ],
)
def test_letters(pattern: str, text: str) -> None:
    assert printed(pattern) == text


def test_the_last_day_of_a_long_year_at_midnight() -> None:
    pattern = "x w xxxx ww yyyy yy e E k K h a D"
    assert printed(pattern, MIDNIGHT) == "2020 53 2020 53 2020 20 4 Thu 24 0 12 AM 366"


def test_offsets_of_zones() -> None:
    west = timezone(-timedelta(hours=3, minutes=30))
    assert printed("Z ZZ", MOMENT.astimezone(west)) == "-0330 -03:30"


@pytest.mark.parametrize("pattern", ["u", "QQ", "G", "z", "ZZZ", "yyyy-u", "", "'open", "yyyy 'x"])
def test_unsupported_patterns_are_refused(pattern: str) -> None:
    with pytest.raises(OptionError, match="'output'"):
        Printer.compile(pattern, "output")


@pytest.mark.parametrize(
    ("pattern", "step"),
    [
        ("yyyy/MM/dd", timedelta(days=1)),
        ("yyyy 'Hms'", timedelta(days=1)),
        ("yyyy a", timedelta(hours=1)),
        ("HH:mm", timedelta(minutes=1)),
        ("yyyy Z", timedelta(seconds=1)),
        ("HH SSS", timedelta(milliseconds=1)),
    ],
)
def test_resolution(pattern: str, step: timedelta) -> None:
    assert Printer.compile(pattern, "output").resolution() == step


@pytest.mark.parametrize(
    ("pattern", "text", "local"),
    [
        ("yyyy-MM-dd HH:mm:ss.SSS", "2020-1-2 3:4:5.6", datetime(2020, 1, 2, 3, 4, 5, 600000)),
        ("yyyy-MM-dd HH:mm:ss.SSS", "20-01-02 03:04:05.678", datetime(20, 1, 2, 3, 4, 5, 678000)),
        ("yyyy-MM-dd", "+2020-01-02", datetime(2020, 1, 2)),
        ("yyyyMMdd", "20200102", datetime(2020, 1, 2)),
        ("yyyyMMdd", "2020012", datetime(2020, 1, 2)),
        ("yyyy-MM-dd hh:mm a", "2020-03-01 12:30 AM", datetime(2020, 3, 1, 0, 30)),
        ("yyyy-MM-dd hh:mm a", "2020-03-01 12:30 pm", datetime(2020, 3, 1, 12, 30)),
        ("dd MMM yyyy", "01 mar 2020", datetime(2020, 3, 1)),
        ("dd MMM yyyy", "1 MARCH 2020", datetime(2020, 3, 1)),
        ("dd MMMM yyyy", "01 Mar 2020", datetime(2020, 3, 1)),
        ("yyyy", "2020", datetime(2020, 1, 1)),
        ("yyyy-MM-dd'T'HH", "2020-01-02t03", datetime(2020, 1, 2, 3)),
    ],
)
def test_reading(pattern: str, text: str, local: datetime) -> None:
    assert read(pattern, text) == (local, None)


@pytest.mark.parametrize(
    ("text", "hours"), [("Z", 0.0), ("z", 0.0), ("+05", 5.0), ("+0530", 5.5), ("-05:30", -5.5)]
)
def test_reading_offsets(text: str, hours: float) -> None:
    offset = timezone(timedelta(hours=hours))
    assert read("yyyy Z", f"2020 {text}") == (datetime(2020, 1, 1), offset)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy-MM-dd HH:mm:ss.SSS", "2020-1-2 3:4:5."),
        ("yyyy-MM-dd HH:mm:ss.SSS", "2020-01-02 03:04:05.6789"),
        ("yyyy-MM-dd", " 2020-01-02"),
        ("yyyy-MM-dd", "2020-01-02\n"),
        ("yyyy-MM-dd", ""),
        ("yyyyMMdd", "20201"),
        ("yyyyMMdd", "202001021"),
        ("yyyy", "-20"),
        ("yyyy", "٢٠٢٠"),
    ],
)
def test_other_forms_are_not_read(pattern: str, text: str) -> None:
    assert read(pattern, text) is None


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy-MM-dd", "2020-13-02"),
        ("yyyy-MM-dd", "2020-02-30"),
        ("yyyy HH", "2020 24"),
        ("yyyy hh a", "2020 13 AM"),
        ("yyyy hh a", "2020 0 AM"),
        ("yyyy", "0"),
        ("yyyy", "10000"),
        ("yyyy Z", "2020 +99"),
    ],
)
def test_numbers_out_of_range(pattern: str, text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read(pattern, text)


@pytest.mark.parametrize(
    "pattern",
    [
        "yy-MM-dd",
        "MM/dd",
        "EEE yyyy",
        "yyyy-DDD",
        "yyyy hh",
        "yyyy a",
        "yyyy HH hh a",
        "yyyy yyyy",
        "",
    ],
)
def test_patterns_that_cannot_be_read_back_are_refused(pattern: str) -> None:
    with pytest.raises(OptionError, match="'input'"):
        Parser.compile(pattern, "input")


@given(
    st.datetimes(timezones=st.just(timezone.utc)),
    st.sampled_from(
        [
            "yyyyMMddHHmmssSSS",
            "yyyy-MM-dd'T'HH:mm:ss.SSSZ",
            "dd/MMM/yyyy hh:mm:ss.SSS a",
            "'on' MMMM d, yyyy 'at' H.m.s.SSS ZZ",
        ]
    ),
)
def test_what_is_printed_is_read_back(moment: datetime, pattern: str) -> None:
    result = read(pattern, printed(pattern, moment))
    assert result is not None
    assert result[0] == moment.replace(microsecond=moment.microsecond // 1000 * 1000, tzinfo=None)
