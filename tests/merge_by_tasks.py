"""A merge by several tasks, with what Spark's joins do done row by row."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import replace

import pyarrow as pa

from hoodie_ds.api.table_merge import with_columns
from hoodie_ds.filters.predicate import ALL
from hoodie_ds.reader.snapshot import SnapshotQuery
from hoodie_ds.sink.batch import Batch
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.digest.input_digest import InputDigest
from hoodie_ds.sink.hidden_columns import TASK_COLUMN
from hoodie_ds.sink.locate.matched_rows import pinned
from hoodie_ds.sink.locate.merge_tasks import MergeTasks, Role
from hoodie_ds.sink.locate.merged_rows import MergeCounts, merge_of, scan_for_merge, stored_keys
from hoodie_ds.sink.numbered_rows import NumberedRows
from hoodie_ds.sink.row_merge import GivenClause, GivenMerge, On, RowMerge
from hoodie_ds.sink.source_summary import SourceSummary
from hoodie_ds.sink.write_plan import WritePlan


def begun_by_tasks(
    writer: Coordinator,
    source: pa.Table,
    on: On,
    clauses: tuple[GivenClause, ...],
    number: int,
    counts: MergeCounts,
) -> tuple[Batch, list[Iterator[pa.RecordBatch]]]:
    """Begin a merge, and return what each of its tasks writes, which adds to `counts`."""

    def change_of(plan: WritePlan) -> RowMerge:
        merge = merge_of(GivenMerge(NumberedRows(source.schema, ()), on, clauses), plan)
        values = merge.matched_by(source, merge.pairs.values())
        return replace(merge, whole=SourceSummary.of(values, InputDigest.of(source)))

    batch = with_columns(writer.begin_change(change_of))
    scan = scan_for_merge(batch.plan)
    tasks = copy(MergeTasks(batch.plan, number))  # as workers get it
    parts = [replace(scan, tasks=part) for part in tasks.parts(scan.tasks)]
    owners = defaultdict[object, set[int]](set)
    for task, part in enumerate(parts):
        for values in tasks.matched_values(part):
            for row in values.to_pylist():
                owners[(*row.values(),)].add(task)
    given = (iter(_rows_of(task, tasks, source, owners)) for task in range(number))
    return batch, [
        _of_task(task, tasks.merged(task, part, rows, counts))
        for task, (part, rows) in enumerate(zip(parts, given, strict=True))
    ]


def _of_task(task: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of file groups, or keys, of which no other task has rows, as Spark's workers say."""
    for rows in batches:
        yield rows.append_column(TASK_COLUMN, pa.array([task] * rows.num_rows, pa.int32()))


def _rows_of(
    task: int, tasks: MergeTasks, source: pa.Table, owners: Mapping[object, set[int]]
) -> list[tuple[Role, pa.Table]]:
    merge = tasks.plan.change
    assert isinstance(merge, RowMerge)
    values = merge.matched_by(source, merge.pairs.values()).to_pylist()
    places = [owners.get((*row.values(),), set()) for row in values]
    new = source.filter(pa.array([not one for one in places]))
    rows = [
        (Role.MATCHED, source.filter(pa.array([task in one for one in places]))),
        (Role.INSERTED, new.filter(pa.array(tasks.of_new(new) == task))),
    ]
    if tasks.compares_keys:
        for keys in stored_keys(tasks.plan, SnapshotQuery(pinned(tasks.plan)).plan(ALL)):
            assert keys.column_names == tasks.unique_names
            rows.append((Role.STORED, keys.filter(pa.array(tasks.of_keys(keys) == task))))
    return rows
