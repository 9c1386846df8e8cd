"""Numbers in a wider type or as strings, as Hudi promotes the values of older files.

Hudi widens a float through its string (HUDI-8902), so that 0.1 stays 0.1. The strings are those of
Java 19 and later; earlier releases print a digit too many for some values (JDK-4511638).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_FEW: Final = 128
"""Below this multiple of the smallest number the shortest string may differ from Java's. Java
prints at least two digits, and for such numbers several strings of two digits would do."""

_EXPONENT: Final = r"^(?P<sign>-?)(?P<first>\d)(?:\.(?P<rest>\d+))?e[+]?(?P<exponent>-?\d+)$"
_LARGE: Final = r"^(?P<sign>-?)(?P<first>[1-9])(?P<whole>\d*)(?:\.(?P<rest>\d+))?$"
_SMALL: Final = r"^(?P<sign>-?)0\.(?P<zeros>0+)(?P<first>[1-9])(?P<rest>\d*)$"


def widen(floats: pa.Array) -> pa.Array:
    """Return floats as the doubles that Java reads from their strings."""
    return _shortest(floats).cast(pa.float64())


def float_strings(values: pa.Array) -> pa.Array:
    """Return floats or doubles in the form of Java's ``toString``: ``1.5``, ``1.0E10``."""
    shortest = _shortest(values)
    size = pc.abs(values.cast(pa.float64()))
    is_plain = pc.or_(
        pc.and_(pc.greater_equal(size, 1e-3), pc.less(size, 1e7)), pc.equal(size, 0.0)
    )
    with_point = pc.if_else(
        pc.match_substring(shortest, "."),
        shortest,
        pc.binary_join_element_wise(shortest, "0", "."),
    )
    strings = pc.if_else(is_plain, with_point, _scientific(shortest))
    strings = pc.if_else(pc.is_nan(values), "NaN", strings)
    infinity = pc.if_else(pc.greater(values, 0.0), "Infinity", "-Infinity")
    return pc.if_else(pc.is_inf(values), infinity, strings)


def _shortest(values: pa.Array) -> pa.Array:
    """The digits that Java prints of each number, in one of Arrow's forms."""
    strings = values.cast(pa.string())
    kind = values.type.to_pandas_dtype()
    least = np.finfo(kind).smallest_subnormal
    numbers = values.fill_null(1.0).to_numpy(zero_copy_only=False)
    is_tiny = (np.abs(numbers) < _FEW * least) & (numbers != 0)
    if not is_tiny.any():
        return strings
    units = (np.where(is_tiny, numbers, 0) / least).astype(np.int64) + _FEW
    return pc.if_else(pa.array(is_tiny), _tiny_strings(kind).take(pa.array(units)), strings)


@lru_cache(maxsize=2)
def _tiny_strings(kind: type[np.floating]) -> pa.Array:
    """Strings of the multiples of the smallest number, from -`_FEW` on."""
    least = np.finfo(kind).smallest_subnormal
    numbers = [kind(least * unit) for unit in range(-_FEW, _FEW)]
    two_digits = [f"{float(number):.1e}" for number in numbers]
    strings = [
        short if kind(short) == number else str(number)
        for short, number in zip(two_digits, numbers, strict=True)
    ]
    return pa.array(strings)


def _scientific(shortest: pa.Array) -> pa.Array:
    """Arrow's strings, with or without an exponent, as a digit, a fraction and an exponent."""
    given = pc.extract_regex(shortest, _EXPONENT)
    large = pc.extract_regex(shortest, _LARGE)
    small = pc.extract_regex(shortest, _SMALL)
    whole = pc.struct_field(large, "whole")
    up = pc.utf8_length(whole).cast(pa.string())
    down = pc.subtract(-1, pc.utf8_length(pc.struct_field(small, "zeros"))).cast(pa.string())
    digits = pc.binary_join_element_wise(whole, pc.struct_field(large, "rest"), "")
    return pc.coalesce(
        _joined(given, pc.struct_field(given, "rest"), pc.struct_field(given, "exponent")),
        _joined(large, digits, up),
        _joined(small, pc.struct_field(small, "rest"), down),
    )


def _joined(parts: pa.StructArray, fraction: pa.Array, exponent: pa.Array) -> pa.Array:
    fraction = pc.utf8_rtrim(fraction, "0")
    fraction = pc.if_else(pc.equal(fraction, ""), "0", fraction)
    exponent = pc.replace_substring_regex(exponent, r"^(-?)0+(\d)", r"\1\2")
    first = pc.binary_join_element_wise(
        pc.struct_field(parts, "sign"), pc.struct_field(parts, "first"), ""
    )
    decimal = pc.binary_join_element_wise(first, fraction, ".")
    return pc.binary_join_element_wise(decimal, exponent, "E")
