"""A streaming query as Spark drives the sink, one process per storage, and its model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds import HoodieTable
from hoodie_ds.config.limits import Limits
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.environment import Clock, Pauses
from hoodie_ds.errors import TableNotFoundError
from hoodie_ds.sink.batch import Batch
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.hidden_columns import TASK_COLUMN
from hoodie_ds.sink.locate.file_id_assigner import FileIdAssigner
from hoodie_ds.sink.locate.matched_rows import change_by_filter, matched_rows
from hoodie_ds.sink.locate.merged_rows import MergeCounts, merge_of, merged_rows
from hoodie_ds.sink.messages import TaskId
from hoodie_ds.sink.numbered_rows import NumberedRows
from hoodie_ds.sink.pinned_timeline import pin_timeline
from hoodie_ds.sink.records import KeyedRows
from hoodie_ds.sink.replay_guard import BatchId
from hoodie_ds.sink.row_merge import Effect, GivenClause, GivenMerge, Matching
from hoodie_ds.sink.table_alteration import altered
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.alteration import AlteredColumns
from hoodie_ds.testing import MemoryStorage, SimClock, SimIds, check_table
from hoodie_ds.timeline.timeline import Timeline
from tests.archived import archived
from tests.merge_by_tasks import begun_by_tasks
from tests.rows import META
from tests.sent_rows import sent_by_key
from tests.tables import KEY

OPERATION = "hoodie.datasource.write.operation"
QUERY = "q"
_CLAUSES = (
    GivenClause(Matching.MATCHED, Effect.UPDATE, None),
    GivenClause(Matching.NOT_MATCHED, Effect.INSERT, None),
    GivenClause(Matching.NOT_MATCHED_BY_SOURCE, Effect.DELETE, "target.fare = 1"),
)

Rows = Sequence[Mapping[str, Any]]


class NoPauses:
    """Pauses of a writer that need not wait for another."""

    def pause(self, longest_ms: int) -> int:
        raise AssertionError("nobody else is at work")


@dataclass(frozen=True)
class Step:
    """One micro-batch: an operation, its rows, and over how many tasks they are dealt out."""

    rows: pa.Table
    operation: str = "upsert"
    tasks: int = 1
    sent: str | None = None  # how rows are sent to tasks, "by file group" or "by key"
    options: Mapping[str, str] = field(default_factory=dict)
    batched: int = 1000
    least_fare: float | None = None  # of rows that are deleted, or doubled, in place of `rows`
    merged: bool = False  # by id and city, for rows that are not there; others of fare 1 go
    renamed: Mapping[str, str] = field(default_factory=dict)  # columns, in place of `rows`


@dataclass(frozen=True)
class Model:
    """The rows that a table ought to have; knows what the operations mean and nothing else."""

    rows: tuple[Mapping[str, Any], ...] = ()
    keyed: bool = True
    unique: tuple[str, ...] = ("city", "id")  # the columns of which there is one row

    def after(self, step: Step) -> Model:
        batch = step.rows.to_pylist()
        if step.renamed:
            names = step.renamed
            changed = [{names.get(n, n): value for n, value in row.items()} for row in self.rows]
            return replace(self, rows=tuple(changed))
        if step.merged:
            source = {(row["city"], row["id"]): row for row in batch}
            stored = [((row["city"], row["id"]), row) for row in self.rows]
            stay = [source.get(k, row) for k, row in stored if k in source or row["fare"] != 1]
            new = [row for key, row in source.items() if key not in dict(stored)]
            return replace(self, rows=(*stay, *new))
        if step.least_fare is not None:
            left = [row for row in self.rows if row["fare"] < step.least_fare]
            changed = [{**row, "fare": 2 * row["fare"]} for row in self.rows if row not in left]
            return replace(self, rows=(*left, *(() if step.operation == "delete" else changed)))
        if step.operation == "insert_overwrite":
            cities = {row["city"] for row in batch}
            kept = [row for row in self.rows if row["city"] not in cities]
        elif self.keyed:
            keys = {self._key(row) for row in batch}
            kept = [row for row in self.rows if self._key(row) not in keys]
        else:
            kept = list(self.rows)
        return replace(self, rows=(*kept, *(() if step.operation == "delete" else batch)))

    def _key(self, row: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(row[name] for name in self.unique)

    def plain(self) -> list[list[tuple[str, Any]]]:
        return plain(self.rows)


def plain(rows: Iterable[Mapping[str, Any]]) -> list[list[tuple[str, Any]]]:
    """Rows in an order of their own, without nulls and Hudi's columns."""
    return sorted(
        sorted((k, v) for k, v in row.items() if v is not None and k not in META) for row in rows
    )


def writer(
    storage: Storage,
    options: Mapping[str, str],
    attempt: str,
    clock: Clock,
    pauses: Pauses,
    limits: Limits | None = None,
) -> Coordinator:
    parsed = WriteOptions.parse({**options, "path": storage.root})
    parsed = replace(parsed, limits=limits or Limits())
    return Coordinator(parsed, storage, clock, SimIds(attempt), pauses)


def begin(
    storage: Any,
    options: Mapping[str, str],
    schema: pa.Schema,
    query: str = QUERY,
    *,
    clock: Clock | None = None,
    pauses: Pauses | None = None,
) -> Batch:
    """The start of a batch, recovery included, in a process of its own."""
    coordinator = writer(
        cast(Storage, storage), options, query, clock or SimClock(), pauses or NoPauses()
    )
    return coordinator.begin(schema, query)


def run(
    storage: Any,
    options: Mapping[str, str],
    number: int,
    step: Step,
    stage: int,
    query: str = QUERY,
    *,
    commit: bool = True,
    clock: Clock | None = None,
    pauses: Pauses | None = None,
    limits: Limits | None = None,
) -> None:
    """One micro-batch, in a process whose operations go to `storage`; a stage has one driver."""
    given = {**options, OPERATION: step.operation, **step.options}
    attempt = f"{query} {number} {stage}"
    coordinator = writer(
        cast(Storage, storage), given, attempt, clock or SimClock(), pauses or NoPauses(), limits
    )
    batches: Sequence[Iterable[pa.RecordBatch]]
    if step.merged and step.tasks > 1:
        batch, batches = begun_by_tasks(
            coordinator, step.rows, ["id", "city"], _CLAUSES, step.tasks, MergeCounts()
        )
    elif step.merged:
        merge = GivenMerge(
            NumberedRows(step.rows.schema, step.rows.to_batches()), ["id", "city"], _CLAUSES
        )
        begun = coordinator.begin_change(partial(merge_of, merge))
        assert begun is not None
        batch, batches = begun, [merged_rows(begun.plan, MergeCounts())]
    elif step.renamed:
        coordinator = replace(
            coordinator,
            options=replace(coordinator.options, operation=None, allow_empty_commit=True),
        )
        renames = [
            partial(AlteredColumns.rename, path=old, name=new) for old, new in step.renamed.items()
        ]
        altering = coordinator.begin_alteration(partial(altered, renames))
        assert altering is not None
        batch, batches = altering, [()]
    elif step.least_fare is not None:
        doubled = {"fare": pc.field("fare") * 2}
        values = None if step.operation == "delete" else doubled
        where = ("fare", ">=", step.least_fare)
        found = coordinator.begin_change(partial(change_by_filter, where, values))
        assert found is not None
        batch, batches = found, [matched_rows(found.plan)]
    else:
        batch = coordinator.begin(step.rows.schema, query)
        pin = partial(pin_timeline, coordinator.storage, BatchId(query, number))
        parts = list(_parts(coordinator, step, pin))
        batches = [iter(part.to_batches(step.batched)) for part in parts]
    messages = [
        write_task(
            batch,
            TaskId(task, 0, task),  # Spark's numbers, which begin anew with each driver
            BatchId(query, number),
            batches[task],
            sole_writer=step.tasks == 1,
            clock=coordinator.clock,
        )
        for task in range(step.tasks)
    ]
    if commit:
        coordinator.commit(messages)


def _parts(
    coordinator: Coordinator, step: Step, pin: Callable[[Callable[[], Timeline]], Timeline]
) -> Iterator[pa.Table]:
    """The rows of each task."""
    if step.sent is None:
        size = -(-step.rows.num_rows // step.tasks)
        yield from (step.rows.slice(task * size, size) for task in range(step.tasks))
        return
    plan = coordinator.preview(step.rows.schema, pin=pin)
    if step.sent == "by file group":
        sent = pa.concat_tables(FileIdAssigner(plan, step.tasks).assign(step.rows))
    else:
        assert plan.index is not None
        tasks = plan.index.spread(step.tasks).ids_by_key(KeyedRows(plan, step.rows).keys)
        sent = sent_by_key(plan, step.rows, tasks, step.tasks)
    for task in range(step.tasks):
        yield sent.filter(pc.field(TASK_COLUMN) == task)


HALF_OPEN = "is inflight and was not requested"
"""What a writer leaves that is stopped within the opening of its instant, until the next batch."""


def assert_well(
    left: MemoryStorage,
    options: Mapping[str, str],
    *,
    settled: bool = False,
    but_for: str | None = None,
) -> None:
    """Fail with what the independent checker has to say of a table."""
    buckets = "hoodie.index.type" not in options and KEY in options
    gone = [instant.time for instant in archived(left)]
    wrong = check_table(left.files, settled=settled, buckets=buckets, archived=gone)
    wrong = [what for what in wrong if but_for is None or but_for not in what]
    assert not wrong, "; ".join(wrong)


def found(storage: Any) -> list[list[tuple[str, Any]]]:
    """The rows that a table reads as; none where there is no table."""
    try:
        table = HoodieTable(storage.root, storage=cast(Storage, storage))
        return plain(table.read().to_pylist())
    except TableNotFoundError:
        return []
