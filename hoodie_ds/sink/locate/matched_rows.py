"""Finds the rows that a write changes by a filter, as of the write's own view of the table.

Such a write has read what it does not change. So each change of a file group that may hold rows
which match is a conflict, also of one that held none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa

from hoodie_ds.columns.arrow_columns import Mask
from hoodie_ds.columns.meta_columns import PARTITION_PATH, RECORD_KEY, with_meta_columns
from hoodie_ds.config.enums import Isolation, Operation
from hoodie_ds.errors import OptionError, UnsupportedTableError
from hoodie_ds.filters.given import Filter, predicate_of
from hoodie_ds.filters.predicate import ALL, columns_used
from hoodie_ds.filters.rows import matching
from hoodie_ds.index.bucket_index import BucketIndex
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.reader.scan_plan import ScanPlan, ScanTask
from hoodie_ds.reader.snapshot import SnapshotQuery
from hoodie_ds.record.merge.merger import Merger, RecordSet
from hoodie_ds.sink.hidden_columns import LOCATION_COLUMN, encode_locations
from hoodie_ds.sink.messages import WriteResult
from hoodie_ds.sink.records import are_deletes, check_stored_keys, partitions_of
from hoodie_ds.sink.row_change import NewValue, RowChange
from hoodie_ds.sink.write_plan import WritePlan
from hoodie_ds.table.file_slice import FileGroupId, FileSlice


def change_by_filter(
    where: Filter | None, values: Mapping[str, NewValue] | None, plan: WritePlan
) -> RowChange:
    """Return the change of the rows that match a filter; a delete has no new `values`."""
    predicate = predicate_of(where, readable_schema(plan), "where")
    if values is not None:
        return RowChange.update(predicate, values, plan.schema, plan.table.properties)
    if predicate == ALL:
        raise OptionError("where", where, "name a condition; an overwrite empties a table")
    return RowChange(predicate)


def scan_for_matches(plan: WritePlan) -> ScanPlan:
    """Return what to read for the rows that match the filter of `WritePlan.change`.

    Files that the filter rules out are not opened.
    """
    assert isinstance(plan.change, RowChange)
    return SnapshotQuery(pinned(plan)).plan(plan.change.where)


def matched_rows(
    plan: WritePlan, tasks: Iterable[ScanTask] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows that match the filter of `WritePlan.change`, as the write takes them.

    A delete takes only the columns of keys, and an update the rows that change. Rows of an index
    that looks keys up bring the locations in which they were found. `tasks` are some of
    `scan_for_matches`, by default all.
    """
    assert isinstance(plan.change, RowChange)
    scan, where, places = scan_for_matches(plan), plan.change.where, Places(plan)
    taken, fetched = _taken(plan), _fetched(plan, scan.schema)
    for task in scan.tasks if tasks is None else tasks:
        for rows in scan.executor.read(task, fetched):
            found = matching(rows, where)
            if found.num_rows:
                check_changeable(plan, task.slice)
                check_stored_keys(plan, found)
                rows = _changed(plan, found.select(taken))
                yield from places.of(task.slice.group, rows).to_batches()


def count_matched(plan: WritePlan) -> WriteResult:
    """Return what a change by a filter would do, without an instant."""
    found, deleted = 0, 0
    for batch in matched_rows(plan):
        found += batch.num_rows
        deleted += int(are_deletes(plan, pa.Table.from_batches([batch])).sum())
    return WriteResult(updated=found - deleted, deleted=deleted)


def may_hold_matches(plan: WritePlan) -> Callable[[FileGroupId], bool]:
    """Return whether a file group, of whatever content, may hold rows that a write changes.

    Under snapshot isolation that does not count.
    """
    if plan.change is None or plan.options.concurrency.isolation is Isolation.SNAPSHOT:
        return lambda _: False
    pruner = pinned(plan).pruner(plan.change.where)
    return (lambda _: True) if pruner is None else pruner.keeps_group


def readable_schema(plan: WritePlan) -> pa.Schema:
    """Return the columns that a filter may name: the meta columns too, where files have them."""
    has_meta_columns = plan.table.properties.populate_meta_fields
    return with_meta_columns(plan.schema) if has_meta_columns else plan.schema


def pinned(plan: WritePlan) -> PinnedTable:
    """Return the table as a write sees it."""
    options = plan.options
    given = readable_schema(plan), options.merge_hook, options.verify_checksums
    return PinnedTable(plan.table, plan.timeline, *given, history=plan.history)


def check_changeable(plan: WritePlan, slice_: FileSlice) -> None:
    """Refuse rows of log files, which only other engines write without record keys."""
    if plan.index is None and slice_.logs:
        raise UnsupportedTableError(
            f"{slice_.logs[0].path} changes rows of table {plan.table.properties.name!r}, which "
            f"has no record keys; merge it first by {plan.table.command('compact')}"
        )


def _taken(plan: WritePlan) -> list[str]:
    """The columns that the write takes; without ordering fields a delete always wins.

    Rows of a table without record keys have one nevertheless, Hudi's automatic one.
    """
    automatic = [RECORD_KEY] if plan.index is None else []
    if plan.operation is not Operation.DELETE:
        return [*plan.schema.names, *automatic]
    properties = plan.table.properties
    paths = (*properties.record_key_fields, *properties.partition_fields)
    needed = {path if path in plan.schema.names else path.partition(".")[0] for path in paths}
    return [*(name for name in plan.schema.names if name in needed), *automatic]


def _fetched(plan: WritePlan, schema: pa.Schema) -> list[str]:
    assert isinstance(plan.change, RowChange)
    used = columns_used(plan.change.where)
    if used is None:  # an expression may name columns by their positions
        return list(schema.names)
    needed = {RECORD_KEY, PARTITION_PATH, *_taken(plan), *used}
    return [name for name in schema.names if name in needed]


def _changed(plan: WritePlan, rows: pa.Table) -> pa.Table:
    """The rows of an update that change, as they become; those of a delete as they are."""
    assert isinstance(plan.change, RowChange)
    if plan.operation is Operation.DELETE:
        return rows
    new, differ = plan.change.of(rows)
    old, new = rows.filter(pa.array(differ)), new.filter(pa.array(differ))
    check_marks(plan, old, new)
    _check_order(plan, old, new)
    return new


def check_marks(plan: WritePlan, old: pa.Table, new: pa.Table) -> None:
    """Refuse rows of base files that are marked as deletes, and stay so."""
    if (are_deletes(plan, old) & are_deletes(plan, new)).any():
        raise UnsupportedTableError(
            f"table {plan.table.properties.name!r} has rows in base files that are marked as "
            "deletes, which readers return and a write would drop; give the mark a new value, too"
        )


def winning(plan: WritePlan, old: pa.Table, new: pa.Table) -> Mask:
    """Which new rows win over the old ones by their ordering values; a hook sees both."""
    merger = plan.stored_merger
    if not isinstance(merger, Merger):
        return np.ones(new.num_rows, np.bool_)
    rows = [RecordSet.of_rows(some, plan.ordering_fields) for some in (old, new)]
    at = np.arange(new.num_rows)
    return merger.new_wins(rows[0], at, rows[1], at)


def _check_order(plan: WritePlan, old: pa.Table, new: pa.Table) -> None:
    """Refuse new ordering values that are lower: the merge would drop such rows silently."""
    if not winning(plan, old, new).all():
        names = ", ".join(plan.ordering_fields)
        raise OptionError("set", names, "the stored row has a greater value there, and would win")


class Places:
    """The locations of rows in the view of a write: `LOCATION_COLUMN`, and the partition path."""

    def __init__(self, plan: WritePlan) -> None:
        self._plan = plan
        self._view = plan.view
        self._groups: dict[str, list[FileGroupId]] = {}

    def of(self, group: FileGroupId, rows: pa.Table) -> pa.Table:
        """Return rows of a file group with their location, if keys do not say it."""
        if isinstance(self._plan.index, BucketIndex):
            return rows
        path = pa.repeat(group.partition_path, rows.num_rows)
        return self._at(self.position(group), path, rows)

    def of_new(self, rows: pa.Table, num_tasks: int = 1) -> pa.Table:
        """Return rows for new file groups, as their keys are not stored."""
        if isinstance(self._plan.index, BucketIndex):
            return rows
        return self._at(-num_tasks, partitions_of(self._plan, rows).cast(pa.string()), rows)

    def position(self, group: FileGroupId) -> int:
        """Return which of the file groups of its partition one is."""
        path = group.partition_path
        if path not in self._groups:
            self._groups[path] = [found.group for found in self._view.latest_slices(path)]
        return self._groups[path].index(group)

    def _at(self, position: int, paths: pa.Array, rows: pa.Table) -> pa.Table:
        positions = np.full(rows.num_rows, position, dtype=np.int64)
        locations = encode_locations(self._plan.timeline.digest, positions)
        return rows.append_column(LOCATION_COLUMN, locations).append_column(PARTITION_PATH, paths)
