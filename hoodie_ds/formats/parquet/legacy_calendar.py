"""Dates and timestamps that Spark wrote to Parquet in the hybrid calendar, as Spark rebases them.

Spark before 3.0, and later if configured so, counts days before 15 October 1582 by the Julian
calendar: a day number is another date there. The footer says which files do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hoodie_ds.columns.arrow_columns import Numbers
from hoodie_ds.errors import UnsupportedTableError
from hoodie_ds.formats.schema_conversion import null_mask

SPARK_VERSION_FOOTER: Final = "org.apache.spark.version"

_ZONE_FOOTER: Final = b"org.apache.spark.timeZone"
_DATETIME: Final = ("3.0.0", b"org.apache.spark.legacyDateTime")
_INT96: Final = ("3.1.0", b"org.apache.spark.legacyINT96")
"""The first version that writes the proleptic calendar, and the footer of a file without it."""

_UTC: Final = ("UTC", "Etc/UTC", "GMT", "Etc/GMT", "Z")
_GREGORIAN: Final = -141_427
"""Day of 15 October 1582, the first of the Gregorian calendar, from 1970 on."""
_YEAR_1900: Final = -25_567
"""The day from which on Java's two libraries have the same offsets for every time zone."""
_DAY_SECONDS: Final = 86_400
_PER_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


@dataclass(frozen=True, slots=True)
class LegacyCalendar:
    """The columns of a file in the hybrid calendar."""

    has_datetimes: bool  # whether it has dates and timestamps of plain integers
    int96: frozenset[str]  # columns with timestamps stored as INT96
    zone: str | None  # the writer's time zone, if the file says
    name: str

    @classmethod
    def of(cls, metadata: pq.FileMetaData, stored: pa.Schema, name: str) -> LegacyCalendar | None:
        """Return the calendar of a footer; None if no column is in the hybrid calendar.

        `stored` are the columns in Arrow's types. Where none has a date, the footers are not read:
        a bloom filter among them is large.
        """
        if not any(_has_days(field.type) for field in stored):
            return None
        footers = metadata.metadata or {}
        has_datetimes, has_int96 = (_is_legacy(footers, *kind) for kind in (_DATETIME, _INT96))
        leaves = map(metadata.schema.column, range(metadata.num_columns) if has_int96 else ())
        int96 = [leaf.path.split(".")[0] for leaf in leaves if leaf.physical_type == "INT96"]
        if not (has_datetimes or int96):
            return None
        zone = footers.get(_ZONE_FOOTER)
        return cls(has_datetimes, frozenset(int96), zone.decode() if zone else None, name)

    def concerns(self, field: pa.Field) -> bool:
        """Whether values of a column, in the file's type, may need rebasing."""
        return self._has(field.type, field.name)

    def rebased(self, rows: pa.Table) -> pa.Table:
        """Return rows of the file in the proleptic Gregorian calendar.

        A timestamp before 1900 in another time zone than UTC, for which offsets differ between
        Java's libraries, is an `UnsupportedTableError` that names column and file.
        """
        for at, field in enumerate(rows.schema):
            if self.concerns(field):
                chunks = [self._array(chunk, field.name) for chunk in rows.column(at).chunks]
                rows = rows.set_column(at, field, pa.chunked_array(chunks, field.type))
        return rows

    def _has(self, kind: pa.DataType, column: str) -> bool:
        if pa.types.is_nested(kind):
            fields = [kind.field(i) for i in range(kind.num_fields)]
            return any(self._has(field.type, column) for field in fields)
        if pa.types.is_timestamp(kind) and kind.tz is None:
            return column in self.int96  # others without a zone are proleptic in every file
        return self.has_datetimes and (pa.types.is_date32(kind) or pa.types.is_timestamp(kind))

    def _array(self, array: pa.Array, column: str) -> pa.Array:
        kind = array.type
        if not self._has(kind, column):
            return array
        if pa.types.is_struct(kind):
            children = [self._array(child, column) for child in array.flatten()]
            fields = [kind.field(i) for i in range(kind.num_fields)]
            return pa.StructArray.from_arrays(children, fields=fields, mask=null_mask(array))
        if pa.types.is_nested(kind):
            if pa.types.is_map(kind):
                values = pa.StructArray.from_arrays(
                    [self._array(array.keys, column), self._array(array.items, column)],
                    fields=[kind.key_field, kind.item_field],
                )
            else:
                values = self._array(array.values, column)
            lists = array.buffers()[:2]
            return pa.Array.from_buffers(
                kind, len(array), lists, offset=array.offset, children=[values]
            )
        return self._leaf(array, column)

    def _leaf(self, array: pa.Array, column: str) -> pa.Array:
        """Rebase plain dates or timestamps."""
        is_date = pa.types.is_date32(array.type)
        day = 1 if is_date else _DAY_SECONDS * _PER_SECOND[array.type.unit]
        is_exact = is_date or self.zone in _UTC
        counts = array.view(pa.int32() if is_date else pa.int64())
        least = pc.min(counts).as_py()
        if least is None or least >= (_GREGORIAN if is_exact else _YEAR_1900) * day:
            return array
        if not is_exact:
            raise UnsupportedTableError(
                f"{self.name}: column {column!r} has a timestamp before 1900 that Spark wrote in "
                f"the hybrid calendar and the time zone {self.zone or 'of its machine'!r}, which "
                "only the JVM turns into the same moment; cluster the table with Hudi on Spark, "
                "or leave the column out"
            )
        values = counts.cast(pa.int64()).fill_null(0).to_numpy()
        days, rest = np.divmod(values, day)
        moved = np.where(days < _GREGORIAN, _proleptic(days), days) * day + rest
        rebased = pa.array(moved, mask=np.asarray(array.is_null()) if array.null_count else None)
        return rebased.cast(counts.type).view(array.type)


def _has_days(kind: pa.DataType) -> bool:
    """Whether values of a type are or hold dates or timestamps."""
    if pa.types.is_nested(kind):
        return any(_has_days(kind.field(number).type) for number in range(kind.num_fields))
    return bool(pa.types.is_date32(kind) or pa.types.is_timestamp(kind))


def _is_legacy(footers: dict[bytes, bytes], since: str, legacy: bytes) -> bool:
    """Whether Spark reads a file in the hybrid calendar; it compares strings, too."""
    version = footers.get(SPARK_VERSION_FOOTER.encode())
    return version is not None and (version.decode() < since or legacy in footers)


def _proleptic(days: Numbers) -> Numbers:
    """Days with the year, month and day that the given ones have in the Julian calendar.

    A 29 February that the Gregorian calendar lacks is the day after the 28th, 1 March.
    """
    # Years begin in March, so that the day that a leap year adds is the last one of its year.
    since = days + 719_470  # from 1 March of the year 0 in the Julian calendar
    year: Any = (4 * since + 3) // 1461
    of_year = since - 1461 * year // 4
    month = (5 * of_year + 2) // 153
    of_month = of_year - (153 * month + 2) // 5
    # 29 February is day 28 of the twelfth month, and runs over into March of itself.
    first = 365 * year + year // 4 - year // 100 + year // 400 + (153 * month + 2) // 5
    return np.asarray(first + of_month - 719_468, np.int64)
