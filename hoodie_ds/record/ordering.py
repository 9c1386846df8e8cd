"""Ordering values as integers that compare as Hudi compares the values.

Event-time merging asks only which of two ordering values is larger. Turned once into ``int64``
codes, whole columns are compared by NumPy, whatever their type: numbers, dates, timestamps,
decimals, strings. Null is lower than every value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.errors import SchemaError

Codes = npt.NDArray[np.int64]

_NULL = np.iinfo(np.int64).min


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


def _codes(column: pa.ChunkedArray) -> Codes:
    kind = column.type
    if pa.types.is_floating(kind):
        return _float_codes(column)
    if pa.types.is_date32(kind):
        column = column.cast(pa.int32())
    if pa.types.is_integer(column.type) or pa.types.is_timestamp(kind) or pa.types.is_boolean(kind):
        codes = pc.cast(column, pa.int64())
        lowest = pc.min(codes).as_py()
        if lowest is None or lowest > _NULL:
            return _to_numpy(pc.fill_null(codes, pa.scalar(_NULL, pa.int64())))
    return _rank_codes(column)


def _float_codes(column: pa.ChunkedArray) -> Codes:
    """Java's ``Double.compare``: -0.0 below 0.0, NaN above everything."""
    values = _to_numpy(pc.fill_null(pc.cast(column, pa.float64()), 0.0)).copy()
    values[np.isnan(values)] = np.nan
    bits = values.view(np.int64)
    # Two's complement orders negative doubles backwards; flipping their magnitude bits mends it.
    codes = np.where(bits < 0, bits ^ np.int64(0x7FFFFFFFFFFFFFFF), bits)
    codes[_to_numpy(pc.is_null(column))] = _NULL
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
    codes = _to_numpy(ranks).astype(np.int64)
    codes[_to_numpy(pc.is_null(column))] = _NULL
    return codes


def _to_numpy(values: pa.Array | pa.ChunkedArray) -> npt.NDArray[Any]:
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    result: npt.NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return result
