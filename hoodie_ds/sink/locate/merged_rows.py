"""The rows that a merge writes: those of the table that change, and new ones of its source.

The table is read file group by file group, as of the write's own view. What is read counts, as for
`matched_rows`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from hoodie_ds.columns.arrow_columns import Mask, Numbers, one_chunk
from hoodie_ds.columns.meta_columns import IS_DELETED, PARTITION_PATH, RECORD_KEY
from hoodie_ds.errors import MergeCardinalityError, RecordKeyError
from hoodie_ds.filters.joined import joined
from hoodie_ds.filters.predicate import ALL, And, Predicate
from hoodie_ds.reader.scan_plan import ScanPlan
from hoodie_ds.reader.snapshot import SnapshotQuery
from hoodie_ds.record.field_path import resolve
from hoodie_ds.sink.locate.matched_rows import (
    Places,
    check_changeable,
    check_marks,
    pinned,
    readable_schema,
    winning,
)
from hoodie_ds.sink.messages import WriteResult
from hoodie_ds.sink.numbered_rows import NumberedRows, RowIndex
from hoodie_ds.sink.records import KeyedRows, are_deletes, check_stored_keys
from hoodie_ds.sink.row_change import fixed_columns, same_values, with_values
from hoodie_ds.sink.row_merge import Clause, GivenMerge, Matching, RowMerge, taken
from hoodie_ds.sink.source_summary import KnownValues
from hoodie_ds.sink.write_plan import WritePlan


@dataclass(slots=True)
class MergeCounts:
    """How many rows a merge has inserted, updated and deleted."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0

    def of(self, result: WriteResult) -> WriteResult:
        """Return the result of a merge with its counts, unless it was there before."""
        if result.already_committed:
            return result
        return replace(result, inserted=self.inserted, updated=self.updated, deleted=self.deleted)


def merge_of(given: GivenMerge, plan: WritePlan) -> RowMerge:
    """Return a merge for a write's view of the table."""
    return RowMerge.of(given, readable_schema(plan), plan.schema, plan.table.properties)


def merged_rows(plan: WritePlan, counts: MergeCounts) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the merge of `WritePlan.change`, as the write takes them, and count them.

    Deletes are marked by ``_hoodie_is_deleted``.
    """
    places, changed = Places(plan), ChangedRows(plan, counts)
    yield from changed.rows(scan_for_merge(plan), places)
    merge, unmatched, keys = changed.merge, changed.unmatched, NewKeys(plan)
    del changed  # and the index of the source, which is as large as its keys
    for numbers, rows in merge.source.pieces():
        for _, new in new_rows(plan, rows.filter(pa.array(unmatched[numbers]))):
            keys.add(new)
            counts.inserted += new.num_rows
            yield from places.of_new(new).to_batches()
    keys.check()
    if keys.are_some and not merge.finds_keys(plan.table.properties):
        scan = SnapshotQuery(pinned(plan)).plan(keys.where_stored)
        keys.check_not_among(stored_keys(plan, scan))


def scan_for_merge(plan: WritePlan) -> ScanPlan:
    """Return what to read of the table for the merge of `WritePlan.change`."""
    return SnapshotQuery(pinned(plan)).plan(merge_in(plan).where)


def merge_in(plan: WritePlan) -> RowMerge:
    """Return the merge of a write."""
    assert isinstance(plan.change, RowMerge)
    return plan.change


def count_merged(plan: WritePlan) -> WriteResult:
    """Return what a merge would do, without an instant."""
    counts = MergeCounts()
    for _ in merged_rows(plan, counts):
        pass
    return counts.of(WriteResult())


class ChangedRows:
    """What becomes of rows of the table, and which rows of the source they match."""

    def __init__(self, plan: WritePlan, counts: MergeCounts) -> None:
        self.merge = merge_in(plan)
        self._index = self.merge.index()
        self._matched = np.zeros(len(self._index.sizes), np.bool_)
        self._plan = plan
        self._counts = counts
        self._of_matched = self.merge.of_rows(Matching.MATCHED)
        self._of_others = self.merge.of_rows(Matching.NOT_MATCHED_BY_SOURCE)

    @property
    def unmatched(self) -> Mask:
        """Which rows of the source have matched none so far."""
        unmatched = np.ones(self.merge.source.num_rows, np.bool_)
        unmatched[self._index.numbers(self._matched)] = False
        return unmatched

    def rows(self, scan: ScanPlan, places: Places) -> Iterator[pa.RecordBatch]:
        """Yield the rows that change of file slices, as the write takes them."""
        fetched = self._fetched(scan.schema)
        for task in scan.tasks:
            for rows in scan.executor.read(task, fetched):
                for part in self._of(rows):
                    check_changeable(self._plan, task.slice)
                    yield from places.of(task.slice.group, part).to_batches()

    def _fetched(self, schema: pa.Schema) -> list[str]:
        """The columns to read of the table: all, if rows may change."""
        if self._of_matched or self._of_others:
            return list(schema.names)
        return [name for name in schema.names if name in self.merge.pairs]

    def _of(self, rows: pa.Table) -> Iterator[pa.Table]:
        """The rows that change, as they become."""
        groups = self._index.find(self.merge.matched_by(rows, self.merge.pairs))
        here = groups >= 0
        found, others = groups[here], rows.filter(pa.array(~here))
        if self._of_matched and (self._index.sizes[found] > 1).any():
            raise self._ambiguous(found)
        self._matched[found] = True
        if self._of_matched and len(found):
            target = rows.filter(pa.array(here))
            source = self.merge.source.take(self._index.first(found))
            yield from self._by(self._of_matched, target, joined(target, source))
        if self._of_others and others.num_rows:
            yield from self._by(self._of_others, others, joined(others, None))

    def _by(self, clauses: list[Clause], rows: pa.Table, both: pa.Table) -> Iterator[pa.Table]:
        for clause, at in taken(clauses, both):
            some = rows.take(pa.array(at))
            check_stored_keys(self._plan, some)
            if clause.deletes:
                self._counts.deleted += some.num_rows
                yield _as_deletes(self._plan, some)
                continue
            new = self._updated(clause, some, both.take(pa.array(at)))
            deleted = int(are_deletes(self._plan, new).sum())
            self._counts.deleted += deleted
            self._counts.updated += new.num_rows - deleted
            if new.num_rows:
                yield new

    def _updated(self, clause: Clause, rows: pa.Table, both: pa.Table) -> pa.Table:
        """Rows with new values: those that change, and win by their ordering values."""
        plan = self._plan
        old = rows.select(_columns(plan))
        new, differ = with_values(old, clause.values, both)
        _check_same_keys(plan, clause, old, new)
        old, new = old.filter(pa.array(differ)), new.filter(pa.array(differ))
        check_marks(plan, old, new)
        return _marked(plan, new.filter(pa.array(winning(plan, old, new))))

    def _ambiguous(self, found: Numbers) -> MergeCardinalityError:
        sizes = self._index.sizes[found]
        row = self.merge.source.take(self._index.first(found[sizes > 1][:1]))
        shown = row.select([*self.merge.pairs.values()]).to_pylist()[0]
        return MergeCardinalityError(
            f"{sizes.max()} rows of the source match one row of the table, those with {shown}; "
            "give the source one row of each"
        )


def new_rows(plan: WritePlan, rows: pa.Table) -> Iterator[tuple[Numbers, pa.Table]]:
    """Yield what the clauses insert for rows of the source that match none, and their positions.

    New rows that are marked as deletes are none.
    """
    clauses = merge_in(plan).of_rows(Matching.NOT_MATCHED)
    both = joined(None, rows)
    for clause, at in taken(clauses, both):
        new, _ = with_values(_nulls(plan, len(at)), clause.values, both.take(pa.array(at)))
        live = ~are_deletes(plan, new)
        if live.any():
            yield at[live], _marked(plan, new.filter(pa.array(live)))


class NewKeys:
    """The keys of new rows, none of which may be there twice."""

    def __init__(self, plan: WritePlan) -> None:
        self._plan = plan
        self._held: list[pa.RecordBatch] = []

    @property
    def are_some(self) -> bool:
        """Whether there are keys."""
        return bool(self._held)

    @cached_property
    def _rows(self) -> NumberedRows:
        return NumberedRows(self._held[0].schema, self._held)

    @cached_property
    def _index(self) -> RowIndex:
        return RowIndex(self._rows)

    def add(self, new: pa.Table) -> None:
        """Take new rows."""
        if self._plan.index is not None:
            self._held += unique_columns(self._plan, new).to_batches()

    def check(self) -> None:
        """Refuse keys that are inserted twice."""
        for group in np.flatnonzero(self._index.sizes > 1)[:1] if self._held else ():
            raise MergeCardinalityError(
                f"{self._index.sizes[group]} rows of the source would be inserted with record key "
                f"{self._shown(group)!r}; give the source one row of each"
            )

    def check_not_among(self, stored: Iterable[pa.Table]) -> None:
        """Refuse keys of rows that did not match."""
        for rows in stored if self._held else ():
            found = self._index.find(rows)
            for group in found[found >= 0][:1]:
                raise RecordKeyError(
                    f"a row of the source would be inserted with record key "
                    f"{self._shown(group)!r}, which a row has that it does not match; "
                    "match rows by their record keys, too, or leave it out by a condition"
                )

    @property
    def where_stored(self) -> Predicate:
        """The rows of the table that may have one of the keys."""
        if not self._plan.table.properties.populate_meta_fields:
            return ALL
        rows = pa.Table.from_batches(self._held)
        known = map(KnownValues.of, rows.columns)
        return And(tuple(map(KnownValues.within, known, rows.schema)))

    def _shown(self, group: int) -> str:
        row = self._rows.take(self._index.first(np.array([group])))
        return str(row.column(RECORD_KEY)[0].as_py())


def stored_keys(plan: WritePlan, scan: ScanPlan) -> Iterator[pa.Table]:
    """Yield the keys of file slices, as `NewKeys` compares them."""
    fields = fixed_columns(plan.table.properties)
    names = [name for name in scan.schema.names if name in fields]
    for task in scan.tasks:
        for rows in scan.executor.read(task, names):
            yield unique_columns(plan, rows)


def unique_columns(plan: WritePlan, rows: pa.Table) -> pa.Table:
    """Return what no two rows have in common: keys, and partitions of keys within them."""
    made, index = KeyedRows(plan, rows), plan.index
    keys = pa.table({RECORD_KEY: made.keys})
    if index is not None and index.is_global:
        return keys
    return keys.append_column(PARTITION_PATH, made.paths.cast(pa.string()))


def _columns(plan: WritePlan) -> list[str]:
    """The columns of rows that are written; rows without record keys have automatic ones."""
    return [*plan.schema.names, *([RECORD_KEY] if plan.index is None else [])]


def _nulls(plan: WritePlan, count: int) -> pa.Table:
    kinds = {field.name: field.type for field in plan.schema}
    return pa.table(
        {name: pa.nulls(count, kinds.get(name, pa.string())) for name in _columns(plan)}
    )


def _as_deletes(plan: WritePlan, rows: pa.Table) -> pa.Table:
    """Deletes of rows: without ordering values they always win."""
    kept, deletes = fixed_columns(plan.table.properties), _nulls(plan, rows.num_rows)
    for number, field in enumerate(deletes.schema):
        if field.name in {*kept, RECORD_KEY}:
            deletes = deletes.set_column(number, field, rows.column(field.name))
    return _marked(plan, deletes, np.ones(rows.num_rows, np.bool_))


def _marked(plan: WritePlan, rows: pa.Table, deleted: Mask | None = None) -> pa.Table:
    """Rows as the write takes them, with a mark of deletes after the table's columns."""
    if deleted is None and IS_DELETED in plan.schema.names:
        return rows
    marks = pa.array(np.zeros(rows.num_rows, np.bool_) if deleted is None else deleted)
    if IS_DELETED in plan.schema.names:
        return rows.set_column(rows.schema.get_field_index(IS_DELETED), IS_DELETED, marks)
    return rows.add_column(len(plan.schema), IS_DELETED, marks)


def _check_same_keys(plan: WritePlan, clause: Clause, old: pa.Table, new: pa.Table) -> None:
    """Refuse source rows with another record key or partition than the rows that they update."""
    properties = plan.table.properties
    for path in (*properties.record_key_fields, *properties.partition_fields):
        if {path, path.partition(".")[0]} & {*clause.values}:
            before, after = one_chunk(resolve(old, path)), one_chunk(resolve(new, path))
            for at in np.flatnonzero(~same_values(before, after))[:1]:
                raise RecordKeyError(
                    f"column {path!r} would become {after[at].as_py()!r} in a row with "
                    f"{before[at].as_py()!r}, but record keys and partitions do not change; match "
                    "rows by it, too, name the columns to set, or delete and insert the rows"
                )
