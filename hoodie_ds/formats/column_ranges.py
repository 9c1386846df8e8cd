"""The lowest and highest values of a file's columns, gathered from its rows as they are written.

The footer of a Parquet file says less: of strings longer than 4 KB it has no ends, and of
floating-point numbers none that tell whether there is a NaN, which Spark takes for the highest.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

_LENGTH: Final = 512
"""Characters or bytes of the longest end of a column; a longer one becomes a looser, shorter one.
"""
_LAST: Final = 0xD7FE
"""The highest character whose successor follows it in the orders of UTF-8 and of Java."""


@dataclass(frozen=True, slots=True)
class ColumnRange:
    """What is known of a column in a file.

    `low` and `high` are the ends as Python compares them: numbers of days, of the type's unit and
    of the decimal's last digit; None without values. No value is outside. `kind` is null without
    rows.
    """

    kind: pa.DataType
    low: Any = None
    high: Any = None
    rows: int = 0
    nulls: int = 0
    size: int = 0
    raw_size: int = 0
    """Bytes of the column, and before compression; 0 in log files."""


class ColumnRanges:
    """The ranges of some columns in the rows of one file; nested ones by their dotted paths."""

    def __init__(self, columns: Iterable[str]) -> None:
        self.found: dict[str, ColumnRange] = {column: ColumnRange(pa.null()) for column in columns}

    def add(self, rows: pa.Table) -> None:
        """Widen the ranges by rows; a column that they lack, or that is nested, is left out."""
        for path, known in list(self.found.items()):
            column = _column(rows, path)
            if column is None:
                del self.found[path]
            else:
                self.found[path] = _widened(known, column)

    def measure(self, footer: pq.FileMetaData) -> None:
        """Add the bytes of the columns in a Parquet file that is complete."""
        for number in range(footer.num_row_groups):
            group = footer.row_group(number)
            for chunk in map(group.column, range(group.num_columns)):
                if (known := self.found.get(chunk.path_in_schema)) is not None:
                    self.found[chunk.path_in_schema] = replace(
                        known,
                        size=known.size + chunk.total_compressed_size,
                        raw_size=known.raw_size + chunk.total_uncompressed_size,
                    )


def _column(rows: pa.Table, path: str) -> pa.ChunkedArray | None:
    number, nested = rows.schema.get_field_index(path), list[str]()
    if number < 0:
        name, *nested = path.split(".")
        number = rows.schema.get_field_index(name)
    if number < 0:
        return None
    column = rows.column(number)
    for child in nested:
        if not pa.types.is_struct(column.type) or column.type.get_field_index(child) < 0:
            return None
        column = pc.struct_field(column, child)
    return None if pa.types.is_nested(column.type) else column


def _widened(known: ColumnRange, column: pa.ChunkedArray) -> ColumnRange:
    rows, nulls = known.rows + len(column), known.nulls + column.null_count
    if pa.types.is_dictionary(column.type):
        column = pa.chunked_array(map(_distinct, column.chunks), column.type.value_type)
    kind = column.type if rows else known.kind
    low, high = _ends(column)
    if low is None:
        low, high = known.low, known.high
    elif known.low is not None:
        low = min(known.low, low, key=_nan_last)
        high = max(known.high, high, key=_nan_last)
    return ColumnRange(kind, low, high, rows, nulls, known.size, known.raw_size)


def _distinct(chunk: pa.DictionaryArray) -> pa.Array:
    return chunk.dictionary.take(chunk.indices.unique().drop_null())


def _ends(column: pa.ChunkedArray) -> tuple[Any, Any]:
    found = pc.min_max(column)
    low, high = (_plain(found[end]) for end in ("min", "max"))
    if isinstance(low, str | bytes):
        return low[:_LENGTH], _above(high)
    if pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py():
        high = math.nan
    return low, high


def _above(end: str | bytes) -> str | bytes:
    """Return an end that is not less and has a limited length; whole if there is none."""
    for at in reversed(range(_LENGTH)) if len(end) > _LENGTH else ():
        if isinstance(end, bytes):
            if end[at] < 0xFF:
                return end[:at] + bytes([end[at] + 1])
        elif ord(end[at]) <= _LAST:
            return end[:at] + chr(ord(end[at]) + 1)
    return end


def _plain(value: pa.Scalar) -> Any:  # noqa: ANN401
    if not value.is_valid:
        return None
    if pa.types.is_temporal(value.type):
        return value.value
    if pa.types.is_decimal(value.type):
        sign, digits, _ = value.as_py().as_tuple()
        number = int("".join(map(str, digits)))
        return -number if sign else number
    return value.as_py()


def _nan_last(value: Any) -> tuple[bool, Any]:  # noqa: ANN401
    """What ends are compared by: NaN is the highest number, as in Java and Spark."""
    return value != value, value
