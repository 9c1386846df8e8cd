"""Partial updates: built-in merge hooks that fill a row's missing values from the other row.

They do what Hudi's payload classes and partial update modes of the same names do. Whole columns are
chosen by position, whatever their type. A stored row that is newer than an update, and lacks
nothing that the update has, is kept with its commit time: it has not changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.arrow_columns import Mask
from hoodie_ds.config.enums import MergeMode, PartialUpdateMode
from hoodie_ds.config.properties.partial_updates import DEBEZIUM_UNAVAILABLE, PartialUpdate
from hoodie_ds.record.field_path import resolve
from hoodie_ds.record.merge.merge_hook import Merged
from hoodie_ds.record.merge.ordering import order_codes


@dataclass(frozen=True, slots=True)
class FillNulls:
    """A null in the newer row keeps the older row's value (Hudi's mode ``IGNORE_DEFAULTS``).

    A column's default is null here, as it is in every table that this library writes.

    The ordering fields decide which row is newer (Hudi's ``PartialUpdateAvroPayload``). If values
    are equal or one is null, or without fields (``OverwriteNonDefaultsWithLatestAvroPayload``), it
    is the later row. Updates of one key in another order than that of these fields are not
    associative in Hudi either: of two older rows, the one that is merged first prevails.
    """

    ordering_fields: tuple[str, ...] = ()

    def __call__(self, old: pa.Table, new: pa.Table, no_old: pa.BooleanArray) -> Merged:
        """Merge rows; see `hoodie_ds.record.merge_hook.MergeHook`."""
        old_newer = _old_newer(self.ordering_fields, old, new)
        kept, columns = old_newer.copy(), []
        for name in new.column_names:
            stored, later = old.column(name), new.column(name)
            from_old = np.where(old_newer, _valid(stored), ~_valid(later))
            kept &= from_old | ~_valid(later)
            columns.append(_choose(from_old, stored, later))
        return Merged(pa.Table.from_arrays(columns, schema=new.schema), kept=pa.array(kept))


@dataclass(frozen=True, slots=True)
class FillUnavailable:
    """A marker in the newer row keeps the older row's value (Hudi's mode ``FILL_UNAVAILABLE``).

    The ordering fields decide as in `FillNulls`. `marker` is the value in string and binary columns
    that stands for an unknown one.
    """

    ordering_fields: tuple[str, ...] = ()
    marker: str = DEBEZIUM_UNAVAILABLE

    def __call__(self, old: pa.Table, new: pa.Table, no_old: pa.BooleanArray) -> Merged:
        """Merge rows; see `hoodie_ds.record.merge_hook.MergeHook`."""
        has_old = ~np.asarray(no_old, dtype=np.bool_)
        old_newer = _old_newer(self.ordering_fields, old, new)
        kept, columns = old_newer.copy(), []
        for name in new.column_names:
            stored, later = old.column(name), new.column(name)
            from_old = old_newer
            if pa.types.is_string(later.type) or pa.types.is_binary(later.type):
                unknown = self._marked(later)
                from_old = np.where(old_newer, ~self._marked(stored), has_old & unknown)
                kept &= from_old | unknown
            columns.append(_choose(from_old, stored, later))
        return Merged(pa.Table.from_arrays(columns, schema=new.schema), kept=pa.array(kept))

    def _marked(self, column: pa.ChunkedArray) -> Mask:
        marked = pc.equal(column, pa.scalar(self.marker).cast(column.type))
        result: Mask = np.asarray(pc.fill_null(marked, False), dtype=np.bool_)
        return result


def fill_of(update: PartialUpdate, ordering_fields: tuple[str, ...]) -> FillNulls | FillUnavailable:
    """Return the hook of a table's partial update mode and ordering fields."""
    fields = ordering_fields if update.order is MergeMode.EVENT_TIME_ORDERING else ()
    if update.mode is PartialUpdateMode.FILL_UNAVAILABLE:
        return FillUnavailable(fields, update.marker)
    return FillNulls(fields)


fill_nulls: Final = FillNulls()
"""`FillNulls` by commit order, named ``hoodie_ds.record.partial_update:fill_nulls`` in options."""

fill_unavailable: Final = FillUnavailable()
"""`FillUnavailable` with Debezium's marker, named in the same way."""


def _old_newer(ordering_fields: tuple[str, ...], old: pa.Table, new: pa.Table) -> Mask:
    newer = np.full(new.num_rows, bool(ordering_fields))
    pairs = []
    for path in ordering_fields:
        stored, later = resolve(old, path), resolve(new, path)
        newer &= _valid(stored) & _valid(later)
        pairs.append(pa.chunked_array([*stored.chunks, *later.chunks], stored.type))
    codes = order_codes(pairs, 2 * new.num_rows)
    result: Mask = newer & (codes[: old.num_rows] > codes[old.num_rows :])
    return result


def _valid(column: pa.ChunkedArray) -> Mask:
    result: Mask = np.asarray(pc.is_valid(column), dtype=np.bool_)
    return result


def _choose(from_old: Mask, old: pa.ChunkedArray, new: pa.ChunkedArray) -> pa.ChunkedArray:
    if not from_old.any():
        return new
    both = pa.chunked_array([*old.chunks, *new.chunks], new.type)
    positions = np.arange(len(new)) + np.where(from_old, 0, len(old))
    return both.take(pa.array(positions))
