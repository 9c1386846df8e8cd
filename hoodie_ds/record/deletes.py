"""Which rows delete their keys: by Hudi's columns, or by a column and a value of the table's.

Deletes take effect in rows of a write and of log files, which are merged over others. A row of a
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
"""A column, and the value in it that makes a row a delete."""

_DELETING: Final = ("-U", "D")

_COMPARED: Final = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_dictionary,
    pa.types.is_primitive,
)


def deletes_among(rows: pa.Table, marker: DeleteMarker | None) -> npt.NDArray[np.bool_]:
    """Return which rows are deletes, by Hudi's columns and the table's own marker.

    The columns may be missing. Numbers are compared with the marker as strings; nested and binary
    values never match.
    """
    deleted = np.zeros(rows.num_rows, dtype=np.bool_)
    if IS_DELETED in rows.column_names:
        deleted |= pc.fill_null(rows.column(IS_DELETED), False).to_numpy()
    marks: dict[str, tuple[str, ...]] = {ROW_OPERATION: _DELETING}
    if marker is not None:
        marks[marker[0]] = (*marks.get(marker[0], ()), marker[1])
    for name, values in marks.items():
        if name in rows.column_names:
            column = rows.column(name)
            if any(is_kind(column.type) for is_kind in _COMPARED):
                marked = pc.is_in(column.cast(pa.string()), value_set=pa.array(values))
                deleted |= marked.to_numpy()
    return deleted
