"""The rows that a merge writes: those of the table that change, and new ones of its source.

The table is read file group by file group, as of the write's own view. What is read counts, as for
`matched_rows`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from hoodie_ds.columns.arrow_columns import Mask, Numbers, one_chunk
from hoodie_ds.columns.meta_columns import IS_DELETED, PARTITION_PATH, RECORD_KEY
from hoodie_ds.errors import MergeCardinalityError, RecordKeyError
from hoodie_ds.filters.joined import joined
from hoodie_ds.filters.predicate import ALL, And, Predicate
from hoodie_ds.index.protocol import LookupIndex
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
from hoodie_ds.sink.row_merge import Clause, GivenMerge, Matching, RowMerge, one_of, taken
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
    changed, places = _ChangedRows(plan, counts), Places(plan)
    table = pinned(plan)
    fetched = changed.fetched(table.schema)
    scan = SnapshotQuery(table).plan(changed.merge.where)
    for task in scan.tasks:
        for rows in scan.executor.read(task, fetched):
            for part in changed.of(rows):
                check_changeable(plan, task.slice)
                yield from places.of(task.slice.group, part).to_batches()
    inserts = _Inserts(plan, changed.unmatched)
    for part in inserts.rows():
        counts.inserted += part.num_rows
        yield from places.of_new(part).to_batches()
    inserts.check()


def count_merged(plan: WritePlan) -> WriteResult:
    """Return what a merge would do, without an instant."""
    counts = MergeCounts()
    for _ in merged_rows(plan, counts):
        pass
    return counts.of(WriteResult())


class _ChangedRows:
    """What becomes of rows of the table, and which rows of the source they match."""

    def __init__(self, plan: WritePlan, counts: MergeCounts) -> None:
        assert isinstance(plan.change, RowMerge)
        self.merge = plan.change
        self._matched = np.zeros(len(self.merge.index.sizes), np.bool_)
        self._plan = plan
        self._counts = counts
        self._of_matched = self.merge.of_rows(Matching.MATCHED)
        self._of_others = self.merge.of_rows(Matching.NOT_MATCHED_BY_SOURCE)

    @property
    def unmatched(self) -> Mask:
        """Which rows of the source have matched none so far."""
        unmatched = np.ones(self.merge.source.num_rows, np.bool_)
        unmatched[self.merge.index.numbers(self._matched)] = False
        return unmatched

    def fetched(self, schema: pa.Schema) -> list[str]:
        """Return the columns to read of the table: all, if rows may change."""
        if self._of_matched or self._of_others:
            return list(schema.names)
        return [name for name in schema.names if name in self.merge.pairs]

    def of(self, rows: pa.Table) -> Iterator[pa.Table]:
        """Yield the rows that change, as they become."""
        groups = self.merge.index.find(self.merge.matched_by(rows, self.merge.pairs))
        here = groups >= 0
        found, others = groups[here], rows.filter(pa.array(~here))
        if self._of_matched and (self.merge.index.sizes[found] > 1).any():
            raise self._ambiguous(found)
        self._matched[found] = True
        if self._of_matched and len(found):
            target = rows.filter(pa.array(here))
            source = self.merge.source.take(self.merge.index.first(found))
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
        sizes = self.merge.index.sizes[found]
        row = self.merge.source.take(self.merge.index.first(found[sizes > 1][:1]))
        shown = row.select([*self.merge.pairs.values()]).to_pylist()[0]
        return MergeCardinalityError(
            f"{sizes.max()} rows of the source match one row of the table, those with {shown}; "
            "give the source one row of each"
        )


class _Inserts:
    """Rows of the source that match no row of the table, as the clauses insert them."""

    def __init__(self, plan: WritePlan, chosen: Mask) -> None:
        assert isinstance(plan.change, RowMerge)
        self._plan = plan
        self._merge = plan.change
        self._chosen = chosen
        self._keys: list[pa.RecordBatch] = []

    def rows(self) -> Iterator[pa.Table]:
        """Yield the new rows; those that are marked as deletes are none."""
        clauses = self._merge.of_rows(Matching.NOT_MATCHED)
        for numbers, rows in self._merge.source.pieces() if clauses else ():
            both = joined(None, rows.filter(pa.array(self._chosen[numbers])))
            for clause, at in taken(clauses, both):
                nothing = _nulls(self._plan, len(at))
                new, _ = with_values(nothing, clause.values, both.take(pa.array(at)))
                new = new.filter(pa.array(~are_deletes(self._plan, new)))
                if self._plan.index is not None:
                    self._keys += self._identified(new).to_batches()
                if new.num_rows:
                    yield _marked(self._plan, new)

    def check(self) -> None:
        """Refuse keys that are inserted twice, or stored in rows that did not match."""
        if not self._keys:
            return
        keys = NumberedRows(self._keys[0].schema, self._keys)
        index = RowIndex(keys)
        for group in np.flatnonzero(index.sizes > 1)[:1]:
            raise MergeCardinalityError(
                f"{index.sizes[group]} rows of the source would be inserted with record key "
                f"{_key(keys, index, group)!r}; give the source one row of each"
            )
        if self._merge.finds_keys(self._plan.table.properties):
            return
        table, fields = pinned(self._plan), fixed_columns(self._plan.table.properties)
        scan = SnapshotQuery(table).plan(self._where_stored(keys))
        names = [name for name in table.schema.names if name in fields]
        for task in scan.tasks:
            for rows in scan.executor.read(task, names):
                found = index.find(self._identified(rows))
                for group in found[found >= 0][:1]:
                    raise RecordKeyError(
                        f"a row of the source would be inserted with record key "
                        f"{_key(keys, index, group)!r}, which a row has that it does not match; "
                        "match rows by their record keys, too, or leave it out by a condition"
                    )

    def _identified(self, rows: pa.Table) -> pa.Table:
        """The columns that no two rows have in common: keys, and partitions of keys within them."""
        made, index = KeyedRows(self._plan, rows), self._plan.index
        keys = pa.table({RECORD_KEY: made.keys})
        if isinstance(index, LookupIndex) and index.is_global:
            return keys
        return keys.append_column(PARTITION_PATH, made.paths.cast(pa.string()))

    def _where_stored(self, keys: NumberedRows) -> Predicate:
        if not self._plan.table.properties.populate_meta_fields:
            return ALL
        rows = pa.Table.from_batches(self._keys, keys.schema)
        return And(tuple(map(one_of, rows.columns, rows.schema)))


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


def _key(keys: NumberedRows, index: RowIndex, group: int) -> str:
    return str(keys.take(index.first(np.array([group]))).column(RECORD_KEY)[0].as_py())
