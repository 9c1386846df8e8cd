"""A table against other rows, by key: what one has and the other lacks, or has otherwise.

Both are read twice, piece by piece. First the rows become hashes, of which those stay that one
side alone has; then their rows are fetched, as many as are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hoodie_ds.errors import SchemaError
from hoodie_ds.inspection.changes import TableDiff, rows_diff
from hoodie_ds.sink.digest.row_hash import Hashes, row_hashes

Pieces = Callable[[], Iterable[pa.Table]]
"""Reads rows anew each time that it is called."""


@dataclass(frozen=True, slots=True)
class Side:
    """Rows that are compared.

    Parameters
    ----------
    name : str
        What they are called.
    schema : pyarrow.Schema
        Their columns.
    read : callable
        Yields them.
    """

    name: str
    schema: pa.Schema
    read: Pieces


def compare(expected: Side, found: Side, keys: Sequence[str], limit: int) -> TableDiff:
    """Return how the rows of one side differ from those of another.

    Columns that only one side has are compared too, as nulls of the other.

    Parameters
    ----------
    expected, found : Side
        The rows; an insert is one that `expected` lacks.
    keys : sequence of str
        Columns by which rows are the same one; all if there are none.
    limit : int
        How many rows of either side are fetched; all are counted.

    Raises
    ------
    SchemaError
        A column of the key is not on both sides.
    """
    for side in (expected, found):
        for name in keys:
            if name not in side.schema.names:
                raise SchemaError(f"{side.name} has no column {name!r}, by which rows are compared")
    names = list(keys) or list(found.schema.names)
    old, new = _hashed(expected, names), _hashed(found, names)
    gone, come = ~np.isin(old[0], new[0]), ~np.isin(new[0], old[0])
    old_keys, new_keys = old[1][gone], new[1][come]
    updated = int(np.isin(new_keys, old_keys).sum())
    rows = rows_diff(
        _fetched(expected, old[0][gone], limit), _fetched(found, new[0][come], limit), names
    )
    inserted, deleted = len(new_keys) - updated, int((~np.isin(old_keys, new_keys)).sum())
    return TableDiff(expected.name, found.name, inserted, updated, deleted, rows)


def _hashed(side: Side, keys: list[str]) -> tuple[Hashes, Hashes]:
    """Hashes of the rows of a side, and of their keys."""
    none = np.zeros(0, np.uint64)
    rows, of_keys = [none], [none]
    for piece in side.read():
        if piece.num_rows:
            rows.append(row_hashes(piece))
            of_keys.append(row_hashes(piece.select(keys)))
    return np.concatenate(rows), np.concatenate(of_keys)


def _fetched(side: Side, wanted: Hashes, limit: int) -> pa.Table:
    parts, count = [side.schema.empty_table()], 0
    if len(wanted):
        for piece in side.read():
            if piece.num_rows and count < limit:
                kept = piece.filter(pa.array(np.isin(row_hashes(piece), wanted)))
                kept = kept.slice(0, limit - count)
                count += kept.num_rows
                parts.append(kept)
    return pa.concat_tables(parts, promote_options="permissive")
