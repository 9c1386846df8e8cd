"""Partition values of the timestamp key generator: a column of times as formatted strings.

Invariant: each value becomes the string that Hudi's ``TimestampBasedAvroKeyGenerator`` makes of it.
A column that Hudi would format as seconds although it holds days or microseconds is refused. Whole
columns are converted to milliseconds; only distinct times are formatted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from enum import Enum
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.config.table_options import KEYGEN_PREFIX
from hoodie_ds.errors import OptionError, RecordKeyError, SchemaError
from hoodie_ds.record.keys.epoch_time import (
    YEAR_1_MS,
    YEAR_10000_MS,
    TimeUnit,
    stored_timestamp,
    timestamp_millis,
    to_millis,
    whole_numbers,
)
from hoodie_ds.record.keys.joda_pattern import Parser, Printer
from hoodie_ds.record.keys.partition_path import Coded, distinct

_TYPE: Final = KEYGEN_PREFIX + "timestamp.type"
_SCALAR_UNIT: Final = KEYGEN_PREFIX + "timestamp.scalar.time.unit"
_INPUT_FORMAT: Final = KEYGEN_PREFIX + "input.dateformat"
_INPUT_DELIMITER: Final = KEYGEN_PREFIX + "input.dateformat.list.delimiter.regex"
_INPUT_ZONE: Final = KEYGEN_PREFIX + "input.timezone"
_OUTPUT_FORMAT: Final = KEYGEN_PREFIX + "output.dateformat"
_OUTPUT_ZONE: Final = KEYGEN_PREFIX + "output.timezone"
_ZONE: Final = KEYGEN_PREFIX + "timezone"

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
# Since then the offset of every time zone has been a multiple of 15 minutes.
_QUARTER_HOURS_SINCE_MS: Final = 94_694_400_000
_OFFSET_ZONE = re.compile(r"GMT([+-])([0-9]{1,2})(?::?([0-9]{2}))?")


class TimestampType(str, Enum):
    """What the partition column holds (``hoodie.keygen.timebased.timestamp.type``)."""

    UNIX_TIMESTAMP = "UNIX_TIMESTAMP"
    EPOCHMILLISECONDS = "EPOCHMILLISECONDS"
    EPOCHMICROSECONDS = "EPOCHMICROSECONDS"
    DATE_STRING = "DATE_STRING"
    MIXED = "MIXED"
    SCALAR = "SCALAR"

    @property
    def is_text(self) -> bool:
        """Whether the column holds strings, which Hudi requires under MIXED too."""
        return self in (TimestampType.DATE_STRING, TimestampType.MIXED)


_UNITS = {
    TimestampType.UNIX_TIMESTAMP: TimeUnit.SECONDS,
    TimestampType.EPOCHMILLISECONDS: TimeUnit.MILLISECONDS,
    TimestampType.EPOCHMICROSECONDS: TimeUnit.MICROSECONDS,
}


@dataclass(frozen=True, slots=True)
class TimestampFormat:
    """How a column of times becomes partition strings; made from options by `of`."""

    kind: TimestampType
    unit: TimeUnit | None  # of numbers; None for strings
    parsers: tuple[Parser, ...]  # patterns of strings, tried in order
    printer: Printer  # the pattern of the partition strings
    input_zone: tzinfo | None  # of strings without an offset; by default UTC
    output_zone: tzinfo | None  # by default the input zone, or the string's own offset
    null_text: str  # for null: that of one unit after 1970, as in Hudi

    @classmethod
    def of(cls, options: Mapping[str, str]) -> TimestampFormat:
        """Compile the ``hoodie.keygen.timebased.*`` options."""
        # Tables exist whose properties keep the patterns but not the type; only text has those.
        text = TimestampType.DATE_STRING.value if options.get(_INPUT_FORMAT) else None
        kind = _kind(options.get(_TYPE, text))
        unit = _UNITS.get(kind)
        if kind is TimestampType.SCALAR:
            unit = _unit(options.get(_SCALAR_UNIT, TimeUnit.SECONDS.name))
        printer = Printer.compile(options.get(_OUTPUT_FORMAT, ""), _OUTPUT_FORMAT)
        common = options.get(_ZONE)
        zones = [
            _zone(_ZONE, common) if common else _zone(key, options.get(key, ""))
            for key in (_INPUT_ZONE, _OUTPUT_ZONE)
        ]
        patterns = _input_patterns(options) if kind.is_text else ()
        parsers = tuple(Parser.compile(pattern, _INPUT_FORMAT) for pattern in patterns)
        made = cls(kind, unit, parsers, printer, zones[0], zones[1], "")
        if unit is not None:
            null_text = made._printed(to_millis(np.ones(1, np.int64), unit).item())
        else:
            first = Printer.compile(patterns[0], _INPUT_FORMAT)
            shown = _EPOCH.astimezone(zones[0] or zones[1] or timezone.utc)
            null_text = made._reprinted(first.text(shown), "")
        return cls(kind, unit, parsers, printer, zones[0], zones[1], null_text)

    def encode(self, column: pa.ChunkedArray, field: str, consistent: bool) -> Coded:
        """Return the partition string of each row.

        With `consistent`, ``consistent.logical.timestamp.enabled``, timestamps with a zone are used
        directly, whatever the timestamp type. A type that does not fit is a `SchemaError`; a value
        that cannot be read, or is outside the years 1 to 9999, a `RecordKeyError`.
        """
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if _is_text(column.type) and self.kind.is_text:
            codes, values = distinct(column)
            strings = [
                self._reprinted(v, field) if v is not None else None for v in values.to_pylist()
            ]
        else:
            codes, millis = distinct(self._coarse(self._millis(column, field, consistent), field))
            strings = [v if v is None else self._printed(v) for v in millis.to_pylist()]
        return Coded(codes, tuple(self.null_text if text is None else text for text in strings))

    def _millis(self, column: pa.ChunkedArray, field: str, consistent: bool) -> pa.ChunkedArray:
        """Milliseconds since 1970, in the order and with the nulls of the column."""
        kind = column.type
        if consistent and pa.types.is_timestamp(kind) and kind.tz is not None:
            return timestamp_millis(column)
        unit = self.unit
        if pa.types.is_timestamp(kind):
            fits = TimeUnit.MILLISECONDS if kind.unit in ("s", "ms") else TimeUnit.MICROSECONDS
            numbers = stored_timestamp(column) if unit is fits else None
        elif pa.types.is_date(kind):
            days = unit is TimeUnit.DAYS
            numbers = column.cast(pa.date32()).cast(pa.int32()).cast(pa.int64()) if days else None
        elif unit is not None:
            numbers = whole_numbers(column)
        else:
            numbers = None
        if numbers is None or unit is None:
            raise SchemaError(
                f"partition field {field!r} of type {kind} does not fit {_TYPE}={self.kind.value}"
                f"{f' in {unit.name}' if unit else ''}: use EPOCHMICROSECONDS for a timestamp "
                f"column, SCALAR with {_SCALAR_UNIT}=DAYS for a date, DATE_STRING for text, and "
                "one of the others for numbers"
            )
        values = pc.fill_null(numbers, 0).to_numpy()
        millis = pa.array(to_millis(values, unit))
        return pa.chunked_array([pc.if_else(numbers.combine_chunks().is_valid(), millis, None)])

    def _coarse(self, millis: pa.ChunkedArray, field: str) -> pa.ChunkedArray:
        """Round down to steps within which the string cannot change, for few distinct times."""
        span = pc.min_max(millis).as_py()
        oldest, newest = span["min"], span["max"]
        if oldest is None:
            return millis
        for number in (oldest, newest):
            if not YEAR_1_MS <= number < YEAR_10000_MS:
                raise RecordKeyError(
                    f"partition field {field!r} holds a time {number} ms from 1970, outside the "
                    f"years 1 to 9999; correct the value, or {_TYPE}={self.kind.value} if the "
                    "column is in another unit"
                )
        step = self.printer.resolution()
        if self.output_zone not in (None, timezone.utc):
            quarter_hours = oldest >= _QUARTER_HOURS_SINCE_MS
            step = min(step, timedelta(minutes=15) if quarter_hours else timedelta(seconds=1))
        width = step // timedelta(milliseconds=1)
        floored = pc.fill_null(millis, 0).to_numpy()
        floored = floored - floored % width
        return pa.chunked_array([pc.if_else(millis.combine_chunks().is_valid(), floored, None)])

    def _printed(self, millis: int) -> str:
        moment = _EPOCH + timedelta(milliseconds=millis)
        try:
            return self.printer.text(moment.astimezone(self.output_zone or timezone.utc))
        except OverflowError as error:
            raise RecordKeyError(f"{moment} is not a date in {self.output_zone}") from error

    def _reprinted(self, text: str, field: str) -> str:
        """Partition string of a date string, by the first pattern that matches it."""
        reason = f"it has none of the forms of {_INPUT_FORMAT}"
        for parser in self.parsers:
            try:
                read = parser.moment(text)
                if read is None:
                    continue
                local, offset = read
                zone = offset or self.input_zone or timezone.utc
                moment = local.replace(tzinfo=zone)
                back = moment.astimezone(timezone.utc).astimezone(zone)
                if back.replace(tzinfo=None) != local:
                    reason = f"that time is skipped in {zone}"
                    break
                shown = self.output_zone or self.input_zone or zone
                return self.printer.text(moment.astimezone(shown))
            except (ValueError, OverflowError) as error:
                reason = str(error)
                break
        raise RecordKeyError(
            f"partition field {field!r} holds {text[:200]!r}, which cannot be read: {reason}; "
            "correct the value or add its pattern"
        )


def _kind(value: str | None) -> TimestampType:
    if value is None or value not in TimestampType.__members__:
        raise OptionError(_TYPE, value, f"use one of {', '.join(TimestampType.__members__)}")
    return TimestampType[value]


def _unit(value: str) -> TimeUnit:
    if value.upper() not in TimeUnit.__members__:
        raise OptionError(_SCALAR_UNIT, value, f"use one of {', '.join(TimeUnit.__members__)}")
    return TimeUnit[value.upper()]


def _zone(key: str, name: str) -> tzinfo | None:
    """Zone of a region or offset; Java would silently take an unknown name for GMT."""
    name = name.strip()
    if not name:
        return None
    if name.upper() in ("UTC", "GMT", "Z"):
        return timezone.utc
    match = _OFFSET_ZONE.fullmatch(name)
    if match is not None:
        offset = timedelta(hours=int(match[2]), minutes=int(match[3] or 0))
        if offset < timedelta(hours=24):
            return timezone(-offset if match[1] == "-" else offset)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise OptionError(key, name, "use a region such as Europe/Paris, or GMT+8:00") from error


def _input_patterns(options: Mapping[str, str]) -> tuple[str, ...]:
    listed = options.get(_INPUT_FORMAT, "")
    delimiter = options.get(_INPUT_DELIMITER, "").strip() or ","
    try:
        patterns = tuple(pattern.strip() for pattern in re.split(delimiter, listed))
    except re.error as error:
        raise OptionError(
            _INPUT_DELIMITER, delimiter, f"not a regular expression: {error}"
        ) from error
    return patterns


def _is_text(kind: pa.DataType) -> bool:
    is_text = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return pa.types.is_null(kind) or any(test(kind) for test in is_text)
