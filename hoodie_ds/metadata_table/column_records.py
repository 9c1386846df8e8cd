"""Records of ``column_stats`` and ``partition_stats``, as Hudi writes them.

There are two versions of the index. The second stores the type of the ends (Hudi's ``ValueType``),
each in the wrapper of what the type is stored as; the first has wrappers for days and decimals.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from hoodie_ds.formats.column_ranges import ColumnRange
from hoodie_ds.metadata_table.payload import STATS, Record, RecordType, combined
from hoodie_ds.metadata_table.record_keys import UNPARTITIONED, digest, hashed

FIRST_VERSION: Final = "V1"
SECOND_VERSION: Final = "V2"

_LENGTH: Final = 64
"""Characters of the widest end of strings."""

_NO_TYPE: Final = 1
_DECIMAL: Final = 10
_TYPES: Final[tuple[tuple[Callable[[pa.DataType], bool], str, int], ...]] = (
    (pa.types.is_null, "", _NO_TYPE),
    (pa.types.is_boolean, "1", 2),
    (pa.types.is_int64, "3", 4),
    (pa.types.is_integer, "2", 3),
    (pa.types.is_float32, "4", 5),
    (pa.types.is_float64, "5", 6),
    (pa.types.is_string, "7", 7),
    (pa.types.is_large_string, "7", 7),
    (pa.types.is_decimal, "6", _DECIMAL),
    (pa.types.is_fixed_size_binary, "6", 9),
    (pa.types.is_binary, "6", 8),
    (pa.types.is_large_binary, "6", 8),
    (pa.types.is_date32, "2", 12),
    (pa.types.is_time32, "2", 13),
    (pa.types.is_time64, "3", 14),
)
"""Types, the branch of the wrapper, and the ordinal of Hudi's type."""
_TIMESTAMPS: Final = {"ms": 15, "us": 16, "ns": 17}
_LOCAL: Final = 3
"""How far the ordinals of timestamps without a time zone are from those with one."""
_OLD_DATE, _OLD_DECIMAL = "8", "9"
_OLD_SCALE: Final = 15
_OLD_PRECISION: Final = 30


def has_wrapper(kind: pa.DataType, version: str) -> bool:
    """Whether values of a type can be recorded."""
    if pa.types.is_decimal(kind) and version == FIRST_VERSION:
        whole = kind.precision - kind.scale
        return bool(kind.scale <= _OLD_SCALE and whole <= _OLD_PRECISION - _OLD_SCALE)
    return pa.types.is_timestamp(kind) or any(is_one(kind) for is_one, _, _ in _TYPES)


def file_statistics(
    partition_path: str, name: str, ranges: Mapping[str, ColumnRange], version: str
) -> dict[str, Record]:
    """Return the records of a file's columns by their keys."""
    return {
        file_key(partition_path, name, column): _record(
            RecordType.COLUMN_STATS, fileName=name, columnName=column, **_recorded(known, version)
        )
        for column, known in ranges.items()
        if has_wrapper(known.kind, version)
    }


def recorded_range(statistics: Record, kind: pa.DataType, version: str) -> ColumnRange | None:
    """Return the range of a column of a type that statistics say; None if they say too little."""
    count, nulls = statistics["valueCount"], statistics["nullCount"]
    if statistics["isDeleted"] or count is None or nulls is None or not 0 <= nulls <= count:
        return None
    found = ColumnRange(kind, rows=count, nulls=nulls)
    ends = statistics["minValue"], statistics["maxValue"]
    if count == nulls:
        return found
    if None in ends:
        return None
    if not _is_alike(statistics, _recorded(widest(found), version)):
        return widest(found)
    low, high = (_unwrapped(end, kind) for end in ends)
    return replace(found, low=low, high=high)


def deleted_file_statistics(
    partition_path: str, name: str, columns: Iterable[str], version: str
) -> dict[str, Record]:
    """Return the records that say that a file is gone."""
    return {
        file_key(partition_path, name, column): _record(
            RecordType.COLUMN_STATS, fileName=name, columnName=column, **_gone(version)
        )
        for column in columns
    }


def partition_statistics(
    partition_path: str,
    files: Iterable[Mapping[str, ColumnRange]],
    known: Mapping[str, Record],
    version: str,
) -> dict[str, Record]:
    """Return the records of a partition to which files are added, given those of before by key.

    Readers widen what they know by a record (``isTightBound`` is false): a writer that began before
    others and ends after them knows of their files, and they do not know of its own. What has left
    the partition still counts: nothing in it is outside. Hudi fails to merge the ends of two types,
    so after a change of the type the record has those of all values, and takes the place of others.
    """
    found: dict[str, Record] = {}
    for ranges in files:
        for column, added in ranges.items():
            if not added.rows or not has_wrapper(added.kind, version):
                continue
            key = partition_key(partition_path, column)
            newer = {
                "fileName": partition_path,
                "columnName": column,
                **_recorded(added, version),
            }
            if key in found:
                newer = _joined(found[key][STATS], newer)
            elif key in known and _differs(known[key][STATS], newer):
                low, high = (_wrapped(end, added.kind, version) for end in _widest(added.kind))
                ends = {"minValue": low, "maxValue": high, "valueType": newer["valueType"]}
                newer = _joined({**known[key][STATS], **ends, "isTightBound": True}, newer)
            found[key] = _record(RecordType.PARTITION_STATS, **newer)
    return found


def _joined(older: Record, newer: Record) -> Record:
    """Statistics of what two say, of a column of one type."""
    parts = [{"type": RecordType.PARTITION_STATS, STATS: one} for one in (older, newer)]
    return {**combined(*parts)[STATS], "isTightBound": older["isTightBound"]}


def _differs(older: Record, newer: Record) -> bool:
    """Whether two statistics have ends of two types."""
    has_ends = older["minValue"] is not None and not older["isDeleted"]
    return has_ends and not _is_alike(older, newer)


def _is_alike(older: Record, newer: Record) -> bool:
    """Whether two statistics have ends of one type, or the newer has none."""
    if older.get("valueType") != newer["valueType"]:
        return False
    return newer["minValue"] is None or older["minValue"].keys() == newer["minValue"].keys()


def widest(known: ColumnRange) -> ColumnRange:
    """Return the range with the ends of all values that its type has."""
    low, high = _widest(known.kind)
    return replace(known, low=low, high=high)


def _widest(kind: pa.DataType) -> tuple[Any, Any]:
    """Ends of all values that a type has."""
    if pa.types.is_boolean(kind):
        return False, True
    if pa.types.is_floating(kind):
        return -math.inf, math.nan
    if pa.types.is_decimal(kind):
        most = 10**kind.precision - 1
        return -most, most
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "", chr(sys.maxunicode) * _LENGTH
    if pa.types.is_integer(kind) or pa.types.is_temporal(kind):
        most = (1 << kind.bit_width - 1) - 1
        return -most - 1, most
    return b"", b"\xff" * _LENGTH


def partition_key(partition_path: str, column: str) -> str:
    """Return the key of a partition's record of a column."""
    return hashed(column) + hashed(partition_path or UNPARTITIONED)


def of_partition(key: str) -> str:
    """Return the partition path, hashed, of which a record of a partition's column is."""
    return key[len(hashed("")) :]


def file_key(partition_path: str, name: str, column: str) -> str:
    """Return the key of a file's record of a column."""
    return partition_key(partition_path, column) + digest(name)


def _record(kind: RecordType, **statistics: Any) -> Record:  # noqa: ANN401
    return {"type": kind, STATS: statistics}


def _recorded(known: ColumnRange, version: str) -> Record:
    ordinal = _stored_as(known.kind)[1]
    more = f"{known.kind.precision},{known.kind.scale}" if ordinal == _DECIMAL else None
    return {
        "minValue": _wrapped(known.low, known.kind, version),
        "maxValue": _wrapped(known.high, known.kind, version),
        "valueCount": known.rows,
        "nullCount": known.nulls,
        "totalSize": known.size,
        "totalUncompressedSize": known.raw_size,
        "isDeleted": False,
        "isTightBound": False,
        "valueType": _type(ordinal, version, more),
    }


def _wrapped(end: Any, kind: pa.DataType, version: str) -> Record | None:  # noqa: ANN401
    branch = _stored_as(kind)[0]
    if version == FIRST_VERSION:
        if pa.types.is_date32(kind):
            branch = _OLD_DATE
        elif pa.types.is_decimal(kind):
            branch = _OLD_DECIMAL
    return None if end is None else {branch: _stored(end, kind, branch)}


def _unwrapped(wrapped: Record, kind: pa.DataType) -> Any:  # noqa: ANN401
    """Return what `_wrapped` has wrapped of a type."""
    ((branch, value),) = wrapped.items()
    if not pa.types.is_decimal(kind):
        return value
    number = int.from_bytes(value, "big", signed=True)
    return number // 10 ** (_OLD_SCALE - kind.scale) if branch == _OLD_DECIMAL else number


def _gone(version: str) -> Record:
    counts = ("valueCount", "nullCount", "totalSize", "totalUncompressedSize")
    return {
        "minValue": None,
        "maxValue": None,
        **dict.fromkeys(counts, -1),
        "isDeleted": True,
        "isTightBound": False,
        "valueType": _type(_NO_TYPE, version),
    }


def _type(ordinal: int, version: str, more: str | None = None) -> Record | None:
    if version == FIRST_VERSION:
        return None
    return {"typeOrdinal": ordinal, "additionalInfo": more}


@lru_cache(maxsize=256)
def _stored_as(kind: pa.DataType) -> tuple[str, int]:
    if pa.types.is_timestamp(kind):
        return "3", _TIMESTAMPS[kind.unit] + (0 if kind.tz else _LOCAL)
    return next((branch, ordinal) for is_one, branch, ordinal in _TYPES if is_one(kind))


def _stored(end: Any, kind: pa.DataType, branch: str) -> Any:  # noqa: ANN401
    if not pa.types.is_decimal(kind):
        return end
    number = end * 10 ** (_OLD_SCALE - kind.scale) if branch == _OLD_DECIMAL else end
    length = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return number.to_bytes(length, "big", signed=True)
