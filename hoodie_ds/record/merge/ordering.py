"""Ordering values as integers that compare as Hudi compares the values.

Event-time merging asks only which of two ordering values is larger. Once they are ``int64`` codes,
NumPy compares whole columns of any type: numbers, dates, timestamps, decimals, strings.

A null is lower than any value of its field, whatever the type, and equal to another null. This is
our own rule: Hudi 1.2 on the JVM fails to compare a null. It makes the order of records total, so
that it does not matter how rows are cut into batches.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.arrow_columns import Mask, Numbers, as_numpy, one_chunk
from hoodie_ds.errors import SchemaError


def order_codes(columns: Sequence[pa.ChunkedArray], num_rows: int) -> Numbers:
    """Return a code for each row; a larger code means a larger ordering value.

    `columns` are those of the ordering fields, most significant first; without any all rows are
    equal. Codes are comparable within this call only. A type without an order, such as a map, is a
    `SchemaError`.
    """
    if not columns:
        return np.zeros(num_rows, dtype=np.int64)
    if len(columns) == 1:
        return _codes(columns[0])
    ranks = [np.unique(_codes(column), return_inverse=True)[1] for column in columns]
    combined = ranks[0].astype(np.int64)
    for rank in ranks[1:]:
        combined = combined * (int(rank.max(initial=0)) + 1) + rank
        combined = np.unique(combined, return_inverse=True)[1].astype(np.int64)
    return combined


def unconditional(columns: Sequence[pa.ChunkedArray], deleted: Mask) -> Mask:
    """Return which records are deletes that delete everything before them, whatever its order.

    Whenever one of two records is such a delete, the later one wins. Deletes without any ordering
    value are unconditional. So are those whose single value is the 32-bit integer 0 or the date
    1970-01-01: in delete blocks Hudi marks an unconditional delete by that integer.
    """
    found = deleted.copy()
    if not found.any():
        return found
    for column in columns:
        none = as_numpy(pc.is_null(column))
        if len(columns) == 1 and _is_stored_as_int(column.type):
            none = as_numpy(pc.equal(pc.fill_null(_integers(column), 0), 0))
        found &= none
    return found


def _is_stored_as_int(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_date32(kind) or (types.is_integer(kind) and kind.bit_width <= 32))


def _is_integral(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_integer(kind)
        or types.is_date32(kind)
        or types.is_timestamp(kind)
        or types.is_boolean(kind)
    )


def _codes(column: pa.ChunkedArray) -> Numbers:
    kind = column.type
    if pa.types.is_floating(kind):
        return _float_codes(column)
    if not _is_integral(kind):
        return _rank_codes(column)
    numbers = _integers(column)
    # No int64 is lower than all values, so nulls need ranks.
    return _rank_codes(numbers) if numbers.null_count else as_numpy(numbers)


def _integers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    return pc.cast(column, pa.int64())


def _float_codes(column: pa.ChunkedArray) -> Numbers:
    """Java's ``Double.compare``: -0.0 below 0.0, NaN above everything."""
    values = as_numpy(pc.fill_null(pc.cast(column, pa.float64()), 0.0)).copy()
    values[np.isnan(values)] = np.nan
    bits = values.view(np.int64)
    # Two's complement orders negative doubles backwards; flipping their magnitude bits fixes it.
    codes = np.where(bits < 0, bits ^ np.int64(0x7FFFFFFFFFFFFFFF), bits)
    codes[as_numpy(pc.is_null(column))] = np.iinfo(np.int64).min  # no double has this code
    return codes


def _rank_codes(column: pa.ChunkedArray) -> Numbers:
    try:
        ranks = pc.rank(one_chunk(column), "ascending", tiebreaker="dense")
    except pa.ArrowNotImplementedError as error:
        raise SchemaError(
            f"a column of type {column.type} has no order; choose ordering fields of a numeric, "
            "date, timestamp, decimal or string type"
        ) from error
    return np.where(as_numpy(pc.is_null(column)), 0, as_numpy(ranks).astype(np.int64))
