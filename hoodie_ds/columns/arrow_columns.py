"""Columns of Arrow tables in the forms that NumPy and Arrow's kernels take."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Mask = npt.NDArray[np.bool_]
"""A boolean for each row or key."""

Numbers = npt.NDArray[np.int64]
"""An integer for each row, key or value."""


def one_chunk(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column as one array."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def without_columns(num_rows: int) -> pa.Table:
    """Return a table of rows without columns, which tells their number."""
    return pa.table({"": pa.nulls(num_rows)}).select([])


def as_numpy(column: pa.Array | pa.ChunkedArray) -> npt.NDArray[Any]:
    """Return the values of a column without nulls; only numbers are not copied."""
    values: npt.NDArray[Any] = one_chunk(column).to_numpy(zero_copy_only=False)
    return values


def ranks(counts: Numbers) -> Numbers:
    """Return 0, 1, ... up to each count, concatenated."""
    ends = np.cumsum(counts)
    result: Numbers = np.arange(counts.sum()) - np.repeat(ends - counts, counts)
    return result
