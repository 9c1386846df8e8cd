"""Column values as the strings that Hudi puts into record keys and partition paths.

Invariant: equal values give the string that Hudi's Avro write path (that of its upserts) gives
them, byte for byte, because one different character makes another key or folder. Two things differ
between JVMs and are fixed here: time zones are UTC, and floating point has the shortest digits, as
``Double.toString`` prints them since JDK 19 (before, some values had more digits than needed:
2.0E23 was printed as 1.9999999999999998E23).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.java_numbers import float_strings
from hoodie_ds.errors import RecordKeyError, SchemaError
from hoodie_ds.record.keys.epoch_time import (
    YEAR_1_MS,
    YEAR_10000_MS,
    stored_timestamp,
    timestamp_millis,
)

_MILLIS_PER_DAY = 86_400_000
# java.sql.Timestamp prints Julian dates before 1582-10-15.
_GREGORIAN_SINCE_MS = -12_219_292_800_000
_HEX_PAIRS = np.frombuffer(bytes(range(256)).hex().encode(), np.uint16)


def java_strings(
    values: pa.Array | pa.ChunkedArray, consistent_logical_timestamp: bool = False
) -> pa.Array | pa.ChunkedArray:
    """Return the string of each value, in the container of the input; null stays null.

    `consistent_logical_timestamp` is the option
    ``hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled``: timestamps with a
    zone are ``java.sql.Timestamp`` strings to the millisecond, in UTC, instead of the stored
    number. Timestamps without a zone are always the stored number.

    Lists, maps, structs, times and intervals, which Hudi has no strings of, are a `SchemaError`; a
    date or a timestamp's string outside the years 1 to 9999 is a `RecordKeyError`.
    """
    if isinstance(values, pa.ChunkedArray):
        chunks = [java_strings(chunk, consistent_logical_timestamp) for chunk in values.chunks]
        return pa.chunked_array(chunks, pa.string())
    kind = values.type
    if pa.types.is_dictionary(kind):
        distinct = java_strings(values.dictionary, consistent_logical_timestamp)
        return pc.take(distinct, values.indices)
    if pa.types.is_floating(kind):
        return float_strings(values)
    if pa.types.is_timestamp(kind):
        consistent = consistent_logical_timestamp and kind.tz is not None
        return (
            _timestamps_text(values) if consistent else stored_timestamp(values).cast(pa.string())
        )
    if pa.types.is_date(kind):
        return _dates_text(values)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return _hex_text(values)
    if pa.types.is_fixed_size_binary(kind):
        return _hex_text(values.cast(pa.binary()))
    if pa.types.is_null(kind) or any(is_kind(kind) for is_kind in _ARROW_TEXT_IS_JAVAS):
        return values.cast(pa.string())
    raise SchemaError(
        f"a column of type {kind} cannot be part of a record key or a partition path; "
        "use a column of a number, string, boolean, date, timestamp, decimal or binary type"
    )


# Arrow prints decimals by BigDecimal.toString's rule, exponents included.
_ARROW_TEXT_IS_JAVAS = (
    pa.types.is_integer,
    pa.types.is_boolean,
    pa.types.is_decimal,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
)


def _dates_text(values: pa.Array) -> pa.Array:
    days = values.cast(pa.date32()).cast(pa.int32())
    _refuse_years(pc.multiply(days.cast(pa.int64()), _MILLIS_PER_DAY))
    return days.cast(pa.date32()).cast(pa.string())


def _timestamps_text(values: pa.Array) -> pa.Array:
    millis = timestamp_millis(values)
    _refuse_years(millis)
    text = pc.utf8_rtrim(millis.cast(pa.timestamp("ms")).cast(pa.string()), "0")
    text = pc.if_else(pc.ends_with(text, "."), pc.binary_join_element_wise(text, "0", ""), text)
    old = pc.fill_null(pc.less(millis, _GREGORIAN_SINCE_MS), False)
    if not pc.any(old).as_py():
        return text
    # Row by row, but only for rows older than the calendar: placeholders such as year 1.
    pairs = zip(pc.filter(millis, old).to_pylist(), pc.filter(text, old).to_pylist(), strict=True)
    julian = [_julian_date(number // _MILLIS_PER_DAY) + kept[10:] for number, kept in pairs]
    return pc.replace_with_mask(text, old, pa.array(julian, pa.string()))


def _julian_date(days: int) -> str:
    """Date of the Julian calendar, by the usual arithmetic on a March-based year."""
    shifted = days + 2_472_670  # days since 1 March of the year -4800
    year = (4 * shifted + 3) // 1461
    day_of_year = shifted - 1461 * year // 4
    month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month + 2) // 5 + 1
    return f"{year - 4800 + month // 10:04d}-{month + 3 - 12 * (month // 10):02d}-{day:02d}"


def _refuse_years(millis: pa.Array) -> None:
    span = pc.min_max(millis).as_py()
    for number in (span["min"], span["max"]):
        if number is not None and not YEAR_1_MS <= number < YEAR_10000_MS:
            raise RecordKeyError(
                f"a date or timestamp {number} ms from 1970 in a key or partition column is "
                "outside the years 1 to 9999; correct the value"
            )


def _hex_text(values: pa.Array) -> pa.Array:
    """Lower-case hexadecimal digits, two per byte."""
    wide = values.cast(pa.large_binary())
    _, offsets, data = wide.buffers()
    if offsets is None or data is None or len(wide) == 0:
        return pc.if_else(wide.is_valid(), "", None).cast(pa.string())
    bounds = np.frombuffer(offsets, np.int64)[wide.offset : wide.offset + len(wide) + 1]
    digits = _HEX_PAIRS[np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]]]
    parts = [None, pa.py_buffer((bounds - bounds[0]) * 2), pa.py_buffer(digits)]
    text = pa.Array.from_buffers(pa.large_string(), len(wide), parts)
    return pc.if_else(wide.is_valid(), text, None).cast(pa.string())
