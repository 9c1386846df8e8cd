"""Numbers and timestamps as 64-bit times, by the arithmetic of Hudi's Java code.

Invariant: every conversion rounds toward zero, as Java's integer division does. Arrow and NumPy
round down, which differs for times before 1970.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.arrow_columns import Numbers

YEAR_1_MS: Final = -62_135_596_800_000
"""Milliseconds from 1970 to the first instant of the year 1."""
YEAR_10000_MS: Final = 253_402_300_800_000
"""Milliseconds from 1970 to the first instant of the year 10000."""


class TimeUnit(Enum):
    """Units of numeric times, in nanoseconds; the names are Java's."""

    NANOSECONDS = 1
    MICROSECONDS = 1_000
    MILLISECONDS = 1_000_000
    SECONDS = 1_000_000_000
    MINUTES = 60_000_000_000
    HOURS = 3_600_000_000_000
    DAYS = 86_400_000_000_000


def stored_timestamp(values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Timestamps as the 64-bit numbers that Avro stores.

    They are milliseconds for a type of seconds or milliseconds, else microseconds.
    """
    unit = "ms" if values.type.unit in ("s", "ms") else "us"
    # Unsafe means truncating: nanoseconds, which no Hudi table stores, lose their last digits.
    return values.cast(pa.timestamp(unit, values.type.tz), safe=False).cast(pa.int64())


def timestamp_millis(values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Milliseconds since 1970 as Hudi makes them for a ``java.sql.Timestamp``, toward zero."""
    stored = stored_timestamp(values)
    return stored if values.type.unit in ("s", "ms") else pc.divide(stored, 1000)


def whole_numbers(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Numbers without their fractions, as Java's ``longValue``; None for other types."""
    kind = column.type
    if pa.types.is_integer(kind) and kind != pa.uint64():
        return column.cast(pa.int64())
    if pa.types.is_null(kind):
        return column.cast(pa.int64())
    if pa.types.is_decimal(kind):
        return column.cast(pa.int64(), safe=False)
    if not pa.types.is_floating(kind):
        return None
    # NaN is 0 in Java; beyond 64 bits it saturates, which is out of range later on.
    wide = column.cast(pa.float64())
    whole = pc.if_else(pc.is_nan(wide), 0.0, pc.trunc(wide))
    limit = float(2**62)
    return pc.max_element_wise(
        pc.min_element_wise(whole, limit, skip_nulls=False), -limit, skip_nulls=False
    ).cast(pa.int64())


def to_millis(numbers: Numbers, unit: TimeUnit) -> Numbers:
    """Milliseconds from numbers of a unit: toward zero and saturating, as Java's ``TimeUnit``."""
    milli = TimeUnit.MILLISECONDS.value
    if unit.value >= milli:
        factor = unit.value // milli
        limit = np.iinfo(np.int64).max // factor
        return np.clip(numbers, -limit, limit) * factor
    divisor = milli // unit.value
    quotient: Numbers = np.abs(numbers) // divisor * np.sign(numbers)
    return quotient
