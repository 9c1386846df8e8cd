"""Floating-point numbers as Java writes and reads them; what is expected is a JDK 25's answer."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from hoodie_ds.columns.java_numbers import float_strings, widen

FLOATS = [
    (1, "1.4E-45"),
    (2, "2.8E-45"),
    (16, "2.2E-44"),
    (71, "9.9E-44"),
    (0x3DCCCCCD, "0.1"),
    (0x7F7FFFFF, "3.4028235E38"),
    (0x4B189680, "1.0E7"),
    (0x4B18967F, "9999999.0"),
    (0x3A83126F, "0.001"),
    (0x3A83126E, "9.999999E-4"),
    (0x00000000, "0.0"),
    (0x7F800000, "Infinity"),
    (0x7FC00000, "NaN"),
]


@pytest.mark.parametrize("sign", ["", "-"])
def test_floats_are_written_and_widened_as_in_java(sign: str) -> None:
    bits, strings = zip(*FLOATS, strict=True)
    numbers = np.array(bits, np.uint32).view(np.float32)
    floats = pa.array(-numbers if sign else numbers)
    signed = [text if text == "NaN" else f"{sign}{text}" for text in strings]
    assert float_strings(floats).to_pylist() == signed
    doubles = widen(floats).to_numpy()
    assert np.array_equal(doubles, np.array(signed, np.float64), equal_nan=True)
    assert np.array_equal(np.signbit(doubles[:-1]), np.full(len(FLOATS) - 1, bool(sign)))


@pytest.mark.parametrize(
    ("number", "string"),
    [
        (5e-324, "4.9E-324"),
        (3.0000000000000003e-4, "3.0000000000000003E-4"),
        (4e-6, "4.0E-6"),
        (2e23, "2.0E23"),
        (123456789.5, "1.234567895E8"),
        (1e7, "1.0E7"),
        (-1e21, "-1.0E21"),
        (1234567.25, "1234567.25"),
    ],
)
def test_doubles_are_written_as_in_java(number: float, string: str) -> None:
    assert float_strings(pa.array([number, None])).to_pylist() == [string, None]
