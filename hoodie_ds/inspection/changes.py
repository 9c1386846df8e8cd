"""Rows of a table that differ between two instants."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.html_table import html_table
from hoodie_ds.columns.meta_columns import PARTITION_PATH, RECORD_KEY, without_meta_columns
from hoodie_ds.errors import UnsupportedTableError
from hoodie_ds.inspection.files import paths_of
from hoodie_ds.inspection.listing import plain
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.sink.digest.row_hash import Hashes, row_hashes
from hoodie_ds.table.file_slice import FileSlice

CHANGE: Final = "change"
"""Column of `TableDiff.rows`: ``insert``, ``delete``, ``update_before`` or ``update_after``."""

_IDENTITY: Final = (PARTITION_PATH, RECORD_KEY)
_SHOWN: Final = 200
_STEP: Final = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True, repr=False)
class TableDiff:
    """Rows that differ between two states of a table.

    Parameters
    ----------
    before, after : str
        What was compared.
    inserted, updated, deleted : int
        How many rows.
    rows : pyarrow.Table
        The rows: `CHANGE`, partition path, record key and the user's columns, in their order.
    """

    before: str
    after: str
    inserted: int
    updated: int
    deleted: int
    rows: pa.Table

    def __bool__(self) -> bool:
        return bool(self.rows.num_rows)

    def __repr__(self) -> str:
        numbers = f"{self.inserted} inserted, {self.updated} updated, {self.deleted} deleted"
        return f"<TableDiff {self.before} to {self.after}: {numbers}>"

    def _repr_html_(self) -> str:
        shown = map(plain, self.rows.slice(0, _SHOWN).to_pylist())
        return html_table(f"{self.before} to {self.after}", shown, self.rows.num_rows)


def table_diff(before: PinnedTable, after: PinnedTable, names: tuple[str, str]) -> TableDiff:
    """Return the rows that differ between two states of a table, by partition and record key.

    File groups with the same files in both are not read. Rows have the columns of the later state.
    """
    for pinned in (before, after):
        if RECORD_KEY not in pinned.schema.names:
            raise UnsupportedTableError(
                f"{pinned.table.storage.root}: the files of the table have no record keys by "
                "which rows could be compared"
            )
    latest = max(before, after, key=lambda pinned: pinned.timeline.latest_time or "")
    before, after = before.with_columns_of(latest), after.with_columns_of(latest)
    is_fixed = after.timeline.layout != 1  # in layout 1 Hudi appends to log files
    olds = {_state(s, is_fixed): s for s in before.slices()}
    news = {_state(s, is_fixed): s for s in after.slices()}
    changed: dict[str, tuple[list[FileSlice], list[FileSlice]]] = {}
    for number, (mine, others) in enumerate(((olds, news), (news, olds))):
        for state, slice_ in mine.items():
            if (not is_fixed and slice_.logs) or state not in others:
                path = slice_.group.partition_path
                changed.setdefault(path, ([], []))[number].append(slice_)
    parts = [
        rows_diff(_rows(before, old), _rows(after, new), _IDENTITY)
        for _, (old, new) in sorted(changed.items())
    ]
    empty = rows_diff(_rows(before, ()), _rows(after, ()), _IDENTITY)
    return diff_of(pa.concat_tables([empty, *parts], promote_options="permissive"), names)


def diff_of(rows: pa.Table, names: tuple[str, str]) -> TableDiff:
    """Return a diff with its numbers, of rows that `rows_diff` found."""
    kinds = rows.column(CHANGE).combine_chunks()
    inserted, updated, deleted = (
        int(pc.sum(pc.equal(kinds, kind)).as_py() or 0)
        for kind in ("insert", "update_after", "delete")
    )
    return TableDiff(*names, inserted, updated, deleted, rows)


def rows_diff(before: pa.Table, after: pa.Table, identity: Iterable[str]) -> pa.Table:
    """Return the rows that differ, behind the column `CHANGE`; `identity` names the key columns."""
    keys = list(identity)
    one, other = _counted(_hashes(before)), _counted(_hashes(after))
    gone = before.filter(pa.array(~np.isin(one, other)))
    come = after.filter(pa.array(~np.isin(other, one)))
    old, new = _hashes(gone.select(keys)), _hashes(come.select(keys))
    marked = [
        _marked(gone, np.where(np.isin(old, new), "update_before", "delete")),
        _marked(come, np.where(np.isin(new, old), "update_after", "insert")),
    ]
    rows = pa.concat_tables(marked, promote_options="permissive")
    order = [(name, "ascending") for name in keys]
    return rows.sort_by([*order, (CHANGE, "descending")])  # update_before first


def _hashes(rows: pa.Table) -> Hashes:
    return row_hashes(rows) if rows.num_rows else np.zeros(0, np.uint64)


def _counted(hashes: Hashes) -> Hashes:
    """Make the hashes of repeated rows differ: the first of them, the second and so on."""
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=~ordered[:1]))
    lengths = np.diff(starts, append=len(hashes))
    found = np.empty_like(hashes)
    found[order] = ordered + _STEP * (np.arange(len(hashes)) - np.repeat(starts, lengths)).astype(
        np.uint64
    )
    return found


def _marked(rows: pa.Table, kinds: object) -> pa.Table:
    return rows.add_column(0, CHANGE, pa.array(kinds, pa.string()))


def _state(slice_: FileSlice, is_fixed: bool) -> tuple[object, ...]:
    return slice_.group, *(paths_of(slice_) if is_fixed or not slice_.logs else ())


def _rows(pinned: PinnedTable, slices: Iterable[FileSlice]) -> pa.Table:
    columns = [*_IDENTITY, *without_meta_columns(pinned.schema).names]
    reader = pinned.reader()
    parts = [rows for slice_ in slices for rows in reader.read(slice_, columns)]
    schema = pa.schema(map(pinned.schema.field, columns))
    return pa.concat_tables([schema.empty_table(), *parts])
