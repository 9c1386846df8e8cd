"""Which rows delete their keys: by Hudi's columns, or by a column and a text of the table's.

All count where rows come over others: in rows of a write, and in those of log files. What lies in a
base file is a row, whatever its columns say.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.meta_columns import IS_DELETED, ROW_OPERATION

DeleteMarker = tuple[str, str]
"""A column, and the text in it that makes a row a delete."""

_DELETING: Final = ("-U", "D")

_COMPARED: Final = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_dictionary,
    pa.types.is_primitive,
)


def deletes_among(rows: pa.Table, marker: DeleteMarker | None) -> npt.NDArray[np.bool_]:
    """Return for each row whether it is a delete.

    Parameters
    ----------
    rows : pyarrow.Table
        Rows that may have the columns or not.
    marker : tuple of str and str, optional
        The table's own column and text. Numbers, too, are compared as text; nested and binary
        values are none.
    """
    deleted = np.zeros(rows.num_rows, dtype=np.bool_)
    if IS_DELETED in rows.column_names:
        deleted |= pc.fill_null(rows.column(IS_DELETED), False).to_numpy()
    marks: dict[str, tuple[str, ...]] = {ROW_OPERATION: _DELETING}
    if marker is not None:
        marks[marker[0]] = (*marks.get(marker[0], ()), marker[1])
    for name, texts in marks.items():
        if name in rows.column_names:
            column = rows.column(name)
            if any(is_kind(column.type) for is_kind in _COMPARED):
                marked = pc.is_in(column.cast(pa.string()), value_set=pa.array(texts))
                deleted |= marked.to_numpy()
    return deleted
