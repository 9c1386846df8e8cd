"""The sort order of a clustering.

Linear: by the columns, one after the other. Z-order: each column's values become ranks, and the
bits of the ranks are interleaved (Morton, 1966), so that rows which are near in all columns are
near in the file. Nulls come first, as on the JVM.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.config.enums import SortOrder
from hoodie_ds.errors import SchemaError
from hoodie_ds.record.field_path import resolve

_BITS: Final = 64
_PIECE_ROWS: Final = 1 << 16

Ranks = npt.NDArray[np.uint64]


def check_sortable(schema: pa.Schema, columns: Sequence[str]) -> None:
    """Refuse columns, given by their paths, that are missing or whose values have no order."""
    empty = schema.empty_table()
    for path in columns:
        kind = resolve(empty, path).type
        if pa.types.is_nested(kind):
            raise SchemaError(
                f"rows cannot be sorted by column {path!r}, which is {kind}; name columns of "
                "plain values"
            )
    if len(columns) > _BITS:
        raise SchemaError(f"rows are sorted by at most {_BITS} columns; {len(columns)} are named")


def in_order(
    rows: pa.Table, columns: Sequence[str], order: SortOrder = SortOrder.LINEAR
) -> Iterator[pa.Table]:
    """Yield rows sorted by columns, given by their paths; piece by piece."""
    keys = pa.table({str(n): resolve(rows, path) for n, path in enumerate(columns)})
    positions = _linear(keys) if order is SortOrder.LINEAR else _z_order(keys)
    rows = rows.combine_chunks()
    for start in range(0, rows.num_rows, _PIECE_ROWS):
        yield rows.take(positions.slice(start, _PIECE_ROWS))


def _linear(keys: pa.Table) -> pa.Array:
    columns = {}
    for name in keys.column_names:
        columns[f"has {name}"] = keys.column(name).is_valid()  # nulls first in any release of Arrow
        columns[name] = keys.column(name)
    return pc.sort_indices(pa.table(columns), sort_keys=[(name, "ascending") for name in columns])


def _z_order(keys: pa.Table) -> pa.Array:
    """Rank the values of each column, and sort by the interleaved bits of the ranks."""
    bits = _BITS // keys.num_columns
    ranks = [_scaled(_ranks(keys.select([name])), bits) for name in keys.column_names]
    codes = np.zeros(keys.num_rows, np.uint64)
    one = np.uint64(1)
    for bit in range(bits):
        for place, column in enumerate(reversed(ranks)):
            target = np.uint64(bit * len(ranks) + place)
            codes |= ((column >> np.uint64(bit)) & one) << target
    return pa.array(np.argsort(codes, kind="stable"))


def _ranks(key: pa.Table) -> Ranks:
    """Number the distinct values of a column by their order."""
    order = _linear(key).to_numpy()
    values = key.column(0).combine_chunks().take(pa.array(order))
    changed = np.zeros(len(order), np.uint64)
    if len(order) > 1:
        before, after = values.slice(0, len(order) - 1), values.slice(1)
        differs = pc.fill_null(pc.not_equal(before, after), False).to_numpy(zero_copy_only=False)
        nulls = values.is_null().to_numpy(zero_copy_only=False)
        changed[1:] = differs | (nulls[1:] != nulls[:-1])
    ranks = np.empty(len(order), np.uint64)
    ranks[order] = np.cumsum(changed, dtype=np.uint64)
    return ranks


def _scaled(ranks: Ranks, bits: int) -> Ranks:
    """Scale ranks to so many bits, lest the column with the most values alone decide."""
    used = int(ranks.max(initial=0)).bit_length()
    shift = np.uint64(abs(bits - used))
    return ranks << shift if bits >= used else ranks >> shift
