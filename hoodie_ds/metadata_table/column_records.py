"""Records of ``column_stats`` and ``partition_stats``, as Hudi writes them.

There are two versions of the index. The second stores the type of the ends (Hudi's ``ValueType``),
each in the wrapper of what the type is stored as; the first has wrappers for days and decimals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import pyarrow as pa

from hoodie_ds.formats.column_ranges import ColumnRange
from hoodie_ds.metadata_table.payload import STATS, Record, RecordType, combined
from hoodie_ds.metadata_table.record_keys import UNPARTITIONED, digest, hashed

FIRST_VERSION: Final = "V1"

_NO_TYPE: Final = 1
_DECIMAL: Final = 10
_TYPES: Final[tuple[tuple[Callable[[pa.DataType], bool], str, int], ...]] = (
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


def file_records(
    partition_path: str, name: str, ranges: Mapping[str, ColumnRange], version: str
) -> dict[str, Record]:
    """Return the records of a file's columns by their keys."""
    return {
        _file_key(partition_path, name, column): _record(
            RecordType.COLUMN_STATS, fileName=name, columnName=column, **_recorded(known, version)
        )
        for column, known in ranges.items()
    }


def deleted_file_records(
    partition_path: str, name: str, columns: Iterable[str], version: str
) -> dict[str, Record]:
    """Return the records that say that a file is gone."""
    return {
        _file_key(partition_path, name, column): _record(
            RecordType.COLUMN_STATS, fileName=name, columnName=column, **_gone(version)
        )
        for column in columns
    }


def partition_records(
    partition_path: str, files: Iterable[Mapping[str, ColumnRange]], version: str
) -> dict[str, Record]:
    """Return the records that widen what is known of a partition by files that were added to it.

    They do not say that nothing else is in the partition (``isTightBound``), so readers add what
    older records say, and the other files of the partition need not be read.
    """
    found: dict[str, Record] = {}
    for ranges in files:
        for column, known in ranges.items():
            if not known.rows:
                continue
            key = partition_key(partition_path, column)
            recorded = {"fileName": partition_path, "columnName": column}
            record = _record(RecordType.PARTITION_STATS, **recorded, **_recorded(known, version))
            found[key] = combined(found.get(key), record)
    return found


def deleted_partition_records(
    partition_path: str, columns: Iterable[str], version: str
) -> dict[str, Record]:
    """Return the records that say that a partition is empty."""
    return {
        partition_key(partition_path, column): _record(
            RecordType.PARTITION_STATS,
            fileName=partition_path,
            columnName=column,
            **{**_gone(version), "isTightBound": True},
        )
        for column in columns
    }


def partition_key(partition_path: str, column: str) -> str:
    """Return the key of a partition's record of a column."""
    return hashed(column) + hashed(partition_path or UNPARTITIONED)


def _file_key(partition_path: str, name: str, column: str) -> str:
    return partition_key(partition_path, column) + digest(name)


def _record(kind: RecordType, **statistics: Any) -> Record:  # noqa: ANN401
    return {"type": kind, STATS: statistics}


def _recorded(known: ColumnRange, version: str) -> Record:
    branch, ordinal = _stored_as(known.kind)
    if version == FIRST_VERSION:
        if pa.types.is_date32(known.kind):
            branch = _OLD_DATE
        elif pa.types.is_decimal(known.kind):
            branch = _OLD_DECIMAL
    low, high = (
        None if end is None else {branch: _stored(end, known.kind, branch)}
        for end in (known.low, known.high)
    )
    more = f"{known.kind.precision},{known.kind.scale}" if ordinal == _DECIMAL else None
    return {
        "minValue": low,
        "maxValue": high,
        "valueCount": known.rows,
        "nullCount": known.nulls,
        "totalSize": known.size,
        "totalUncompressedSize": known.raw_size,
        "isDeleted": False,
        "isTightBound": False,
        "valueType": _type(ordinal, version, more),
    }


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


def _stored_as(kind: pa.DataType) -> tuple[str, int]:
    if pa.types.is_timestamp(kind):
        return "3", _TIMESTAMPS[kind.unit] + (0 if kind.tz else _LOCAL)
    return next(((b, ordinal) for is_one, b, ordinal in _TYPES if is_one(kind)), ("", _NO_TYPE))


def _stored(end: Any, kind: pa.DataType, branch: str) -> Any:  # noqa: ANN401
    if not pa.types.is_decimal(kind):
        return end
    number = end * 10 ** (_OLD_SCALE - kind.scale) if branch == _OLD_DECIMAL else end
    length = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return number.to_bytes(length, "big", signed=True)
