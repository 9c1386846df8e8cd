"""What a metadata table says of columns: of those of base files, and of those of partitions.

Only ends are taken whose order is that of the table's values, whatever the file holds: no
timestamps, whose unit a file may have wrong, and no days before the calendar changed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import islice
from typing import Final

import pyarrow as pa

from hoodie_ds.columns.java_order import may_differ_in_java
from hoodie_ds.filters.bounds import Bounds
from hoodie_ds.formats.avro.decoder import damage_in
from hoodie_ds.metadata_table.payload import STATS, Record
from hoodie_ds.metadata_table.record_keys import UNPARTITIONED, digest, hashed
from hoodie_ds.metadata_table.stored import MetadataTable
from hoodie_ds.metadata_table.trust import is_ahead
from hoodie_ds.table.file_slice import BaseFile

COLUMN_STATS: Final = "column_stats"
PARTITION_STATS: Final = "partition_stats"
_FILES_AT_ONCE: Final = 5_000
"""Files whose records are held at a time."""
_SCALE: Final = 15
"""That of a decimal in a wrapper of its own; later versions store the type."""
_DATE, _DECIMAL = 12, 10
"""Types in ``valueType``, of values in the wrappers of what they are stored as."""
_WITHOUT_LENGTH: Final = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary)
"""Types of which Hudi counts values as null if the footer of a file has no room for their ends."""
_FIRST_DAY: Final = -141_427
"""1582-10-15 in days since 1970: files of old writers may count earlier days otherwise."""


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """Bounds of columns in base files."""

    metadata: MetadataTable

    def bounds(
        self, files: Iterable[BaseFile], columns: Iterable[pa.Field]
    ) -> Mapping[str, Mapping[str, Bounds]]:
        """Return what is known of columns in some files, by path and name."""
        found: dict[str, dict[str, Bounds]] = {}
        if COLUMN_STATS not in self.metadata.partitions:
            return found
        starts = [(field, hashed(field.name)) for field in columns]
        left = iter(files)
        while some := list(islice(left, _FILES_AT_ONCE)):
            for path, field, record in self._records(some, starts):
                with damage_in(path):
                    bounds = recorded_bounds(record[STATS], field.type)
                if bounds is not None:
                    found.setdefault(path, {})[field.name] = bounds
        return found

    def _records(
        self, files: Sequence[BaseFile], starts: Sequence[tuple[pa.Field, str]]
    ) -> Iterator[tuple[str, pa.Field, Record]]:
        """Yield the records of columns in some files; with each column the start of its keys."""
        places: dict[str, tuple[str, pa.Field]] = {}
        for file in files:
            end = hashed(file.partition_path or UNPARTITIONED) + digest(str(file.name))
            places |= {start + end: (file.path, field) for field, start in starts}
        for group in self.metadata.records(COLUMN_STATS, places.keys()):
            for key, record in group.items():
                yield *places[key], record


def partition_bounds(
    metadata: MetadataTable, paths: Iterable[str], columns: Iterable[pa.Field]
) -> Mapping[str, Mapping[str, Bounds]]:
    """Return what is known of columns in the files of some partitions, by path and name.

    Files of old columns have no record of a newer one, which is null there: so nothing says that a
    partition has no nulls. Nothing is known of a partition at an earlier moment: its ends may have
    become narrower since.
    """
    found: dict[str, dict[str, Bounds]] = {}
    if PARTITION_STATS not in metadata.partitions or is_ahead(metadata):
        return found
    ends = [(path, hashed(path or UNPARTITIONED)) for path in paths]
    places = {hashed(field.name) + end: (path, field) for field in columns for path, end in ends}
    for group in metadata.records(PARTITION_STATS, places.keys()):
        for key, record in group.items():
            path, field = places[key]
            with damage_in(path):
                bounds = recorded_bounds(record[STATS], field.type)
            if bounds is not None:
                found.setdefault(path, {})[field.name] = replace(bounds, nulls=True)
    return found


def recorded_bounds(statistics: Record, kind: pa.DataType) -> Bounds | None:
    """Return what statistics say of a column of a type; None if nothing is sure."""
    count, nulls = statistics["valueCount"], statistics["nullCount"]
    if statistics["isDeleted"] or count is None or nulls is None or not 0 <= nulls <= count:
        return None
    if nulls and any(is_one(kind) for is_one in _WITHOUT_LENGTH):
        return None
    if nulls == count:
        return Bounds(nulls=True, values=False)
    ends = statistics["minValue"], statistics["maxValue"]
    if None in ends:
        return None
    low, high = (_value(end, statistics.get("valueType"), kind) for end in ends)
    if isinstance(low, float) and isinstance(high, float):
        low, high = _without_nan(low, high)
    if isinstance(low, str) and isinstance(high, str) and may_differ_in_java(low, high):
        return None  # ends of several files are merged in Java's order
    return None if low is None or high is None else Bounds(low, high, nulls > 0)


def _value(wrapped: Record, stored: Record | None, kind: pa.DataType) -> object:
    """A wrapped value as values of a type are compared; None if they may be stored otherwise."""
    ((branch, value),) = wrapped.items()
    is_plain = stored is None or stored["typeOrdinal"] not in (_DATE, _DECIMAL)
    match branch:
        case "1" if pa.types.is_boolean(kind):
            return value
        case "2" | "3" if pa.types.is_integer(kind) and is_plain:
            return value
        case "4" if pa.types.is_float32(kind):
            return value
        case "5" if pa.types.is_float64(kind):
            return value
        case "6" if pa.types.is_decimal128(kind) and stored and stored["typeOrdinal"] == _DECIMAL:
            return _decimal(value, int(stored["additionalInfo"].partition(",")[2]))
        case "7" if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            return value
        case "2" | "8" if pa.types.is_date32(kind) and (branch == "8" or not is_plain):
            return value if value >= _FIRST_DAY else None
        case "9" if pa.types.is_decimal128(kind):
            return _decimal(value, _SCALE)
    return None


def _without_nan(low: float, high: float) -> tuple[float, float] | tuple[None, None]:
    """Ends of all values but NaN, which this library records as the highest one.

    Hudi records zero as both ends of a row group with NaN, whatever its other values are.
    """
    if low > 0 or high < 0:
        return low, high if high == high else math.inf
    return None, None


def _decimal(value: bytes, scale: int) -> Decimal:
    sign, digits, _ = Decimal(int.from_bytes(value, "big", signed=True)).as_tuple()
    return Decimal((sign, digits, -scale))
