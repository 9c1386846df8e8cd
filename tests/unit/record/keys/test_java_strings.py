"""Texts of values; the vectors marked JVM were printed by Hudi 1.2.0's Avro key generators."""

from __future__ import annotations

import struct
from datetime import date, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_ds.errors import RecordKeyError, SchemaError
from hoodie_ds.record.keys.java_strings import java_strings

ZONED = pa.timestamp("us", "UTC")


def texts(values: list[object], kind: pa.DataType, consistent: bool = False) -> list[str | None]:
    result = java_strings(pa.array(values, kind), consistent)
    assert result.type == pa.string()
    found: list[str | None] = result.to_pylist()
    return found


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1e10, "1.0E10"),
        (1e-5, "1.0E-5"),
        (0.001, "0.001"),
        (9.999e-4, "9.999E-4"),
        (1e7, "1.0E7"),
        (9999999.0, "9999999.0"),
        (float("nan"), "NaN"),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (-12.25, "-12.25"),
        (100.0, "100.0"),
        (2.2e-322, "2.2E-322"),
        (4.9e-324, "4.9E-324"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (2e23, "2.0E23"),  # JDK 19 and later
    ],
)
def test_doubles_of_the_jvm(number: float, text: str) -> None:
    assert texts([number, None], pa.float64()) == [text, None]


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1e10, "1.0E10"),
        (0.1, "0.1"),
        (9999999.0, "9999999.0"),
        (16777216.0, "1.6777216E7"),
        (3.4028234663852886e38, "3.4028235E38"),
        (1.401298464324817e-45, "1.4E-45"),
    ],
)
def test_floats_of_the_jvm(number: float, text: str) -> None:
    assert texts([number], pa.float32()) == [text]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_strings_of_doubles_have_javas_form_and_read_back(number: float) -> None:
    [text] = texts([number], pa.float64())
    assert text is not None
    assert struct.pack(">d", float(text)) == struct.pack(">d", number)
    digits, _, exponent = text.lstrip("-").partition("E")
    whole, point, fraction = digits.partition(".")
    assert point
    assert fraction == "0" or fraction[-1:] in set("123456789")
    plain = number == 0 or 1e-3 <= abs(number) < 1e7
    assert plain == (exponent == "")
    assert plain or (len(whole) == 1 and whole != "0")


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_strings_of_floats_read_back(number: float) -> None:
    [text] = texts([number], pa.float32())
    assert text is not None
    assert struct.pack(">f", float(text)) == struct.pack(">f", number)


@pytest.mark.parametrize(
    ("value", "precision", "scale", "text"),
    [
        ("0", 20, 10, "0E-10"),
        ("0.0000000001", 20, 10, "1E-10"),
        ("-0.0000000123", 20, 10, "-1.23E-8"),
        ("1.5", 10, 2, "1.50"),
        ("15", 10, 0, "15"),
        ("0.000001", 10, 6, "0.000001"),
        ("0", 10, 6, "0.000000"),
        ("0.0000001", 10, 7, "1E-7"),
        ("0.0000012", 10, 7, "0.0000012"),
    ],
)
def test_decimals_of_the_jvm(value: str, precision: int, scale: int, text: str) -> None:
    assert texts([Decimal(value), None], pa.decimal128(precision, scale)) == [text, None]


@given(st.integers(-(10**38) + 1, 10**38 - 1), st.integers(0, 38))
def test_strings_of_decimals_are_bigdecimals(unscaled: int, scale: int) -> None:
    # BigDecimal.toString: plain if the adjusted exponent is at least -6, else scientific.
    sign, digits = "-" if unscaled < 0 else "", str(abs(unscaled))
    adjusted = len(digits) - 1 - scale
    if scale == 0:
        expected = digits
    elif adjusted >= -6:
        padded = digits.rjust(scale + 1, "0")
        expected = f"{padded[:-scale]}.{padded[-scale:]}"
    else:
        fraction = f".{digits[1:]}" if len(digits) > 1 else ""
        expected = f"{digits[0]}{fraction}E{adjusted}"
    value = Decimal((int(unscaled < 0), tuple(map(int, digits)), -scale))
    assert texts([value], pa.decimal128(38, scale)) == [sign + expected]


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (1577934245123456, "2020-01-02 03:04:05.123"),
        (1577934245000000, "2020-01-02 03:04:05.0"),
        (1577934245120000, "2020-01-02 03:04:05.12"),
        (-1, "1970-01-01 00:00:00.0"),
        (-1500001, "1969-12-31 23:59:58.5"),
        (253402300799999999, "9999-12-31 23:59:59.999"),
        (-62135596800000000, "0001-01-03 00:00:00.0"),
        (-14831769600000000, "1499-12-23 00:00:00.0"),
    ],
)
def test_consistent_timestamps_of_the_jvm(micros: int, text: str) -> None:
    column = pa.array([micros, None], pa.int64()).cast(ZONED)
    assert java_strings(column, True).to_pylist() == [text, None]
    assert java_strings(column).to_pylist() == [str(micros), None]


def test_the_calendar_changed_in_october_1582() -> None:
    days = [(date(1582, 10, 15) - date(1970, 1, 1)).days + shift for shift in (-1, 0)]
    column = pa.array([day * 86_400_000_000 for day in days]).cast(ZONED)
    assert java_strings(column, True).to_pylist() == [
        "1582-10-04 00:00:00.0",
        "1582-10-15 00:00:00.0",
    ]


def test_timestamps_without_a_zone_are_numbers_always() -> None:
    column = pa.array([1577934245123456]).cast(pa.timestamp("us"))
    assert java_strings(column, True).to_pylist() == ["1577934245123456"]


@pytest.mark.parametrize(
    ("unit", "number", "text"),
    [("s", 5, "5000"), ("ms", 5, "5"), ("us", 5, "5"), ("ns", 5999, "5")],
)
def test_timestamps_are_numbers_of_their_stored_unit(unit: str, number: int, text: str) -> None:
    assert java_strings(pa.array([number]).cast(pa.timestamp(unit))).to_pylist() == [text]


@given(st.dates())
def test_dates_are_iso(day: date) -> None:
    assert texts([day, None], pa.date32()) == [day.isoformat(), None]


@pytest.mark.parametrize("shift", [timedelta(days=1), timedelta(days=-1)])
def test_years_beyond_four_digits_are_refused(shift: timedelta) -> None:
    edge = date.max if shift.days > 0 else date.min
    days = (edge - date(1970, 1, 1)).days
    assert java_strings(pa.array([days], pa.int32()).cast(pa.date32())).to_pylist() == [str(edge)]
    with pytest.raises(RecordKeyError, match="1 to 9999"):
        java_strings(pa.array([days + shift.days], pa.int32()).cast(pa.date32()))


@given(st.lists(st.none() | st.binary(max_size=6)), st.integers(0, 3))
def test_binary_is_lower_case_hexadecimal(values: list[bytes | None], skipped: int) -> None:
    column = pa.array(values, pa.binary()).slice(skipped)
    expected = [None if value is None else value.hex() for value in values[skipped:]]
    assert java_strings(column).to_pylist() == expected


def test_other_types() -> None:
    assert texts([-7, None, 127], pa.int8()) == ["-7", None, "127"]
    assert texts([2**63 - 1], pa.int64()) == ["9223372036854775807"]
    assert texts([True, False, None], pa.bool_()) == ["true", "false", None]
    assert texts(["é", "", None], pa.large_string()) == ["é", "", None]
    assert texts([None], pa.null()) == [None]
    assert texts([b"ab"], pa.binary(2)) == ["6162"]


def test_chunks_and_dictionaries() -> None:
    chunked = pa.chunked_array([[1.5], [], [1.5, 2.0]], pa.float64())
    assert java_strings(chunked).to_pylist() == ["1.5", "1.5", "2.0"]
    encoded = pa.array([3, None, 3], pa.int32()).dictionary_encode()
    assert java_strings(encoded).to_pylist() == ["3", None, "3"]
    assert java_strings(pa.chunked_array([], pa.float64())).to_pylist() == []


def test_types_without_a_string_are_refused() -> None:
    with pytest.raises(SchemaError, match="list"):
        java_strings(pa.array([[1]]))
