"""Ordering values as integers that compare as Hudi compares the values.

Event-time merging asks only which of two ordering values is larger. Turned once into ``int64``
codes, whole columns are compared by NumPy, whatever their type: numbers, dates, timestamps,
decimals, strings.

A null is lower than any value of its field, whatever the type, and equal to another null. That is a
rule of our own: Hudi 1.2 on the JVM fails as soon as it compares a null. It makes the order of
records a total one, so that it does not matter how rows are cut into batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.arrow_columns import Mask
from hoodie_ds.errors import SchemaError

Codes = npt.NDArray[np.int64]


def order_codes(columns: Sequence[pa.ChunkedArray], num_rows: int) -> Codes:
    """Give each row a code; a larger code means a larger ordering value.

    Parameters
    ----------
    columns : sequence of pyarrow.ChunkedArray
        One column per ordering field, most significant first, each of `num_rows` values. Without
        ordering fields all rows are equal.
    num_rows : int
        Number of rows.

    Returns
    -------
    numpy.ndarray of int64, shape (num_rows,)
        Codes that are comparable within this call only.

    Raises
    ------
    SchemaError
        A column has a type without an order, such as a map.
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
    """Tell which records are deletes that delete whatever was there before them.

    Whenever one of two records is such, the later one wins.

    Parameters
    ----------
    columns : sequence of pyarrow.ChunkedArray
        One column per ordering field; at least one.
    deleted : numpy.ndarray of bool
        Which records are deletes. Those without any ordering value are unconditional. So are those
        of which the single value is the 32-bit integer 0 or the date 1970-01-01: in delete blocks
        Hudi marks an unconditional delete by that very integer.
    """
    found = deleted.copy()
    if not found.any():
        return found
    for column in columns:
        none = _to_numpy(pc.is_null(column))
        if len(columns) == 1 and _is_stored_as_int(column.type):
            none = _to_numpy(pc.equal(pc.fill_null(_integers(column), 0), 0))
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


def _codes(column: pa.ChunkedArray) -> Codes:
    kind = column.type
    if pa.types.is_floating(kind):
        return _float_codes(column)
    if not _is_integral(kind):
        return _rank_codes(column)
    numbers = _integers(column)
    # No number is left that is lower than all integers, for a null to have as its code.
    return _rank_codes(numbers) if numbers.null_count else _to_numpy(numbers)


def _integers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    return pc.cast(column, pa.int64())


def _float_codes(column: pa.ChunkedArray) -> Codes:
    """Java's ``Double.compare``: -0.0 below 0.0, NaN above everything."""
    values = _to_numpy(pc.fill_null(pc.cast(column, pa.float64()), 0.0)).copy()
    values[np.isnan(values)] = np.nan
    bits = values.view(np.int64)
    # Two's complement orders negative doubles backwards; flipping their magnitude bits mends it.
    codes = np.where(bits < 0, bits ^ np.int64(0x7FFFFFFFFFFFFFFF), bits)
    codes[_to_numpy(pc.is_null(column))] = np.iinfo(np.int64).min  # no double has this code
    return codes


def _rank_codes(column: pa.ChunkedArray) -> Codes:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    try:
        ranks = pc.rank(column, "ascending", tiebreaker="dense")
    except pa.ArrowNotImplementedError as error:
        raise SchemaError(
            f"a column of type {column.type} has no order; choose ordering fields of a numeric, "
            "date, timestamp, decimal or string type"
        ) from error
    return np.where(_to_numpy(pc.is_null(column)), 0, _to_numpy(ranks).astype(np.int64))


def _to_numpy(values: pa.Array | pa.ChunkedArray) -> npt.NDArray[Any]:
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    result: npt.NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return result
