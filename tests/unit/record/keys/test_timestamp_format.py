"""Partition values of times; the vectors marked JVM were printed by Hudi 1.2.0's generator."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_ds.errors import OptionError, RecordKeyError, SchemaError
from hoodie_ds.record.keys.timestamp_format import TimestampFormat

P = "hoodie.keygen.timebased."
FULL = "yyyy-MM-dd HH:mm:ss.SSS"
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def made(kind: str, output: str = FULL, **options: str) -> TimestampFormat:
    named = {f"{P}{key.replace('_', '.')}": value for key, value in options.items()}
    return TimestampFormat.of({P + "timestamp.type": kind, P + "output.dateformat": output} | named)


def texts(form: TimestampFormat, column: pa.Array, consistent: bool = False) -> list[str | None]:
    coded = form.encode(pa.chunked_array([column]), "v", consistent)
    return [coded.strings[code] for code in coded.codes.tolist()]


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("UNIX_TIMESTAMP", 1700000000, "2023-11-14 22:13:20.000"),
        ("UNIX_TIMESTAMP", -1, "1969-12-31 23:59:59.000"),
        ("UNIX_TIMESTAMP", None, "1970-01-01 00:00:01.000"),
        ("EPOCHMILLISECONDS", 1700000000123, "2023-11-14 22:13:20.123"),
        ("EPOCHMILLISECONDS", -1, "1969-12-31 23:59:59.999"),
        ("EPOCHMILLISECONDS", None, "1970-01-01 00:00:00.001"),
        ("EPOCHMICROSECONDS", 1700000000123456, "2023-11-14 22:13:20.123"),
        ("EPOCHMICROSECONDS", -1, "1970-01-01 00:00:00.000"),
        ("EPOCHMICROSECONDS", -1001, "1969-12-31 23:59:59.999"),
        ("EPOCHMICROSECONDS", None, "1970-01-01 00:00:00.000"),
    ],
)
def test_numbers_of_the_jvm(kind: str, value: int | None, text: str) -> None:
    assert texts(made(kind), pa.array([value], pa.int64())) == [text]


@pytest.mark.parametrize(
    ("unit", "after", "null", "before"),
    [
        ("NANOSECONDS", "01-01 00:00:00.000", "01-01 00:00:00.000", "1970-01-01 00:00:00.000"),
        ("MICROSECONDS", "01-01 00:00:00.020", "01-01 00:00:00.000", "1969-12-31 23:59:59.980"),
        ("MILLISECONDS", "01-01 00:00:20.001", "01-01 00:00:00.001", "1969-12-31 23:59:39.999"),
        ("SECONDS", "01-01 05:33:21.000", "01-01 00:00:01.000", "1969-12-31 18:26:39.000"),
        ("MINUTES", "01-14 21:21:00.000", "01-01 00:01:00.000", "1969-12-18 02:39:00.000"),
        ("HOURS", "1972-04-13 09:00:00.000", "01-01 01:00:00.000", "1967-09-20 15:00:00.000"),
        ("days", "2024-10-05 00:00:00.000", "01-02 00:00:00.000", "1915-03-30 00:00:00.000"),
    ],
)
def test_scalars_of_the_jvm(unit: str, after: str, null: str, before: str) -> None:
    column = pa.array([20001, None, -20001], pa.int32())
    form = made("SCALAR", timestamp_scalar_time_unit=unit)
    expected = [text if len(text) > 18 else f"1970-{text}" for text in (after, null, before)]
    assert texts(form, column) == expected


def test_a_scalar_is_seconds_unless_said() -> None:
    assert texts(made("SCALAR", "yyyy/MM/dd HH:mm:ss"), pa.array([20000])) == [
        "1970/01/01 05:33:20"
    ]


def test_fractions_are_cut_off_toward_zero() -> None:
    form = made("UNIX_TIMESTAMP")
    floats = pa.array([1700000000.9, -1.9, float("nan"), None])
    expected = ["2023-11-14 22:13:20.000", "1969-12-31 23:59:59.000", "1970-01-01 00:00:00.000"]
    assert texts(form, floats) == [*expected, "1970-01-01 00:00:01.000"]
    decimals = pa.array([Decimal("1700000000.99"), Decimal("-1.99")], pa.decimal128(20, 2))
    assert texts(form, decimals) == expected[:2]


MICROS = pa.array([1577934245123456], pa.int64())


@pytest.mark.parametrize("kind", ["us", "UTC"])
def test_timestamp_columns_are_microseconds(kind: str) -> None:
    column = MICROS.cast(pa.timestamp("us", None if kind == "us" else kind))
    assert texts(made("EPOCHMICROSECONDS"), column) == ["2020-01-02 03:04:05.123"]
    scalar = made("SCALAR", timestamp_scalar_time_unit="MICROSECONDS")
    assert texts(scalar, column) == ["2020-01-02 03:04:05.123"]


@pytest.mark.parametrize(
    "form", [made("UNIX_TIMESTAMP"), made("DATE_STRING", input_dateformat="yyyy")]
)
def test_consistent_timestamps_need_no_unit(form: TimestampFormat) -> None:
    column = MICROS.cast(pa.timestamp("us", "UTC"))
    assert texts(form, column, consistent=True) == ["2020-01-02 03:04:05.123"]
    with pytest.raises(SchemaError, match=r"'v' of type timestamp.*EPOCHMICROSECONDS"):
        texts(form, column)
    with pytest.raises(SchemaError, match="EPOCHMICROSECONDS"):
        texts(form, MICROS.cast(pa.timestamp("us")), consistent=True)


def test_dates_are_a_scalar_of_days() -> None:
    column = pa.array([date(2020, 2, 3), None])
    form = made("SCALAR", "yyyy/MM/dd", timestamp_scalar_time_unit="DAYS")
    assert texts(form, column) == ["2020/02/03", "1970/01/02"]
    with pytest.raises(SchemaError, match="=DAYS for a date"):
        texts(made("EPOCHMILLISECONDS"), column)


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        ("UNIX_TIMESTAMP", pa.array(["1700000000"])),
        ("MIXED", pa.array([5])),
        ("UNIX_TIMESTAMP", pa.array([True])),
        ("UNIX_TIMESTAMP", pa.array([2**63], pa.uint64())),
    ],
)
def test_columns_that_do_not_fit_are_refused(kind: str, column: pa.Array) -> None:
    with pytest.raises(SchemaError, match=f"={kind}"):
        texts(made(kind, input_dateformat="yyyy"), column)


# Offset in the text, output zone, zone for both; the JVM's text of 02:30 on 1 March 2020.
@pytest.mark.parametrize(
    ("zones", "plain", "offset", "null"),
    [
        ({}, "03-01 02:30 +00:00", "03-01 02:30 +05:30", "1970-01-01 00:00 +00:00"),
        (
            {"output_timezone": "GMT+8:00"},
            "03-01 10:30 +08:00",
            "03-01 05:00 +08:00",
            "1970-01-01 16:00 +08:00",
        ),
        (
            {"input_timezone": "Asia/Kolkata"},
            "03-01 02:30 +05:30",
            "03-01 02:30 +05:30",
            "1970-01-01 05:30 +05:30",
        ),
        (
            {"input_timezone": "Asia/Kolkata", "output_timezone": "GMT+8:00"},
            "03-01 05:00 +08:00",
            "03-01 05:00 +08:00",
            "1970-01-01 08:00 +08:00",
        ),
        (
            {"timezone": "America/Los_Angeles", "output_timezone": "GMT+8:00"},
            "03-01 02:30 -08:00",
            "02-29 13:00 -08:00",
            "1969-12-31 16:00 -08:00",
        ),
    ],
)
def test_zones_of_the_jvm(zones: dict[str, str], plain: str, offset: str, null: str) -> None:
    form = made(
        "DATE_STRING",
        "yyyy-MM-dd HH:mm ZZ",
        input_dateformat="yyyy-MM-dd HH:mm:ss, yyyy-MM-dd'T'HH:mm:ssZ",
        **zones,
    )
    column = pa.array(["2020-03-01 02:30:00", "2020-03-01T02:30:00+0530", None])
    assert texts(form, column) == [f"2020-{plain}", f"2020-{offset}", null]


def test_an_hour_that_happens_twice_is_the_first_and_one_that_is_skipped_is_refused() -> None:
    form = made(
        "DATE_STRING",
        "yyyy-MM-dd HH:mm Z",
        input_dateformat="yyyy-MM-dd HH:mm",
        timezone="America/Los_Angeles",
    )
    assert texts(form, pa.array(["2020-11-01 01:30"])) == ["2020-11-01 01:30 -0700"]
    with pytest.raises(RecordKeyError, match=r"'2020-03-08 02:30'.*skipped"):
        texts(form, pa.array(["2020-03-08 02:30"]))


def test_patterns_may_be_parted_by_another_delimiter() -> None:
    form = made(
        "MIXED",
        "yyyyMMdd",
        input_dateformat="MMM d, yyyy;;yyyy/MM/dd",
        input_dateformat_list_delimiter_regex=";+",
    )
    assert texts(form, pa.array(["Mar 1, 2020", "2020/03/02"])) == ["20200301", "20200302"]


@pytest.mark.parametrize("text", ["x", "", "2020-13-01", "2020-02-30"])
def test_strings_that_are_no_dates_are_refused_by_name(text: str) -> None:
    form = made("DATE_STRING", input_dateformat="yyyy-MM-dd")
    with pytest.raises(RecordKeyError, match=f"'v' holds '{text}', which cannot be read"):
        texts(form, pa.array([text]))


@pytest.mark.parametrize("seconds", [253402300800, -62135596801, 2**62])
def test_times_outside_the_years_1_to_9999_are_refused(seconds: int) -> None:
    with pytest.raises(RecordKeyError, match="1 to 9999"):
        texts(made("UNIX_TIMESTAMP"), pa.array([0, seconds]))


def test_a_zone_that_carries_a_time_out_of_the_calendar() -> None:
    with pytest.raises(RecordKeyError, match="not a date"):
        texts(made("UNIX_TIMESTAMP", timezone="GMT+8"), pa.array([253402300799]))


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("timestamp.type", "unix_timestamp"),
        ("timestamp.type", None),
        ("output.dateformat", None),
        ("output.dateformat", "uuuu"),
        ("input.dateformat", None),
        ("input.dateformat.list.delimiter.regex", "("),
        ("timezone", "Nonsense/Zone"),
        ("timezone", "+08:00"),
        ("input.timezone", "../etc/passwd"),
        ("output.timezone", "GMT+99"),
    ],
)
def test_options_that_are_refused(option: str, value: str | None) -> None:
    options = {
        P + "timestamp.type": "DATE_STRING",
        P + "output.dateformat": "yyyy",
        P + "input.dateformat": "yyyy",
    }
    if value is None:
        del options[P + option]
        if option == "timestamp.type":
            del options[P + "input.dateformat"]
    else:
        options[P + option] = value
    with pytest.raises(OptionError, match=P + option):
        TimestampFormat.of(options)


def test_an_unknown_unit_is_refused() -> None:
    with pytest.raises(OptionError, match=r"scalar\.time\.unit"):
        made("SCALAR", timestamp_scalar_time_unit="weeks")


def test_patterns_without_a_type_are_for_strings() -> None:
    options = {P + "output.dateformat": "yyyy/MM/dd/HH", P + "input.dateformat": "yyyy-MM-dd HH"}
    assert texts(TimestampFormat.of(options), pa.array(["2023-04-01 12"])) == ["2023/04/01/12"]


@given(
    st.lists(st.none() | st.datetimes(timezones=st.just(timezone.utc)), max_size=6),
    st.sampled_from(["UTC", "Europe/Paris", "Asia/Kathmandu", "Africa/Monrovia", "GMT-3:30"]),
    st.sampled_from(
        [
            ("yyyy/MM/dd", "{0:04d}/{1:02d}/{2:02d}"),
            ("HH", "{3:02d}"),
            ("dd HH:mm", "{2:02d} {3:02d}:{4:02d}"),
        ]
    ),
)
def test_rounding_to_coarse_steps_never_shows(
    moments: list[datetime | None], zone: str, patterns: tuple[str, str]
) -> None:
    day = timedelta(days=1)
    inside = [
        None if m is None else min(max(m, EPOCH.replace(year=2)), EPOCH.replace(year=9998)) + day
        for m in moments
    ]
    form = made("EPOCHMICROSECONDS", patterns[0], timezone=zone)
    found = texts(form, pa.array(inside, pa.timestamp("us", "UTC")))
    fixed = timezone(-timedelta(hours=3, minutes=30))
    place = fixed if zone.startswith("GMT") else ZoneInfo(zone)
    shown = [(m or EPOCH).astimezone(place) for m in inside]
    assert found == [patterns[1].format(*moment.timetuple()) for moment in shown]
