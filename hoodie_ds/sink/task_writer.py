"""One task of a batch: rows in, durable files and a message out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import chain

import pyarrow as pa

from hoodie_ds.columns.meta_columns import IS_DELETED, PARTITION_PATH, RECORD_KEY
from hoodie_ds.config.enums import Operation
from hoodie_ds.environment import Clock, SystemClock
from hoodie_ds.formats.admission import admit
from hoodie_ds.formats.row_sizes import cut
from hoodie_ds.formats.schema_conversion import conform
from hoodie_ds.handles.context import WriteStatus
from hoodie_ds.index.bucket_index import BucketIndex
from hoodie_ds.index.protocol import LookupIndex
from hoodie_ds.metadata_table.task_keys import TaskKeys
from hoodie_ds.sink.batch import Batch, task_context
from hoodie_ds.sink.batch_services import with_services
from hoodie_ds.sink.digest.input_digest import InputDigest
from hoodie_ds.sink.file_groups.append_writer import AppendWriter
from hoodie_ds.sink.file_groups.global_writer import GlobalWriter
from hoodie_ds.sink.file_groups.keyed_writer import KeyedWriter
from hoodie_ds.sink.hidden_columns import (
    LOCATION_COLUMN,
    Assignment,
    TaskOwnership,
    copies_among,
    digest_by_index,
    without_copies,
)
from hoodie_ds.sink.messages import TaskCommitMessage, TaskId, WriteMetrics
from hoodie_ds.sink.records import KeyedRows, check_indexed, distinct_partitions
from hoodie_ds.sink.replay.replay import (
    digest_of,
    digest_of_partitions,
    digest_only,
    with_known_batches,
)
from hoodie_ds.sink.replay_guard import BatchId
from hoodie_ds.sink.row_merge import RowMerge
from hoodie_ds.sink.write_plan import WritePlan
from hoodie_ds.table.live_files import naming_remedies
from hoodie_ds.timeline.bodies.key_files import KeyFiles
from hoodie_ds.transaction import heartbeat
from hoodie_ds.transaction.exclusive_commit import heartbeating
from hoodie_ds.transaction.instant_checks import no_late_files, translate_rollback_errors
from hoodie_ds.transaction.open_instant import open_instant
from hoodie_ds.transaction.pending_action import PendingAction


def write_task(
    batch: Batch,
    task: TaskId,
    batch_id: BatchId | None,
    batches: Iterable[pa.RecordBatch],
    sole_writer: bool = False,
    clock: Clock | None = None,
) -> TaskCommitMessage:
    """Write one task's rows.

    The first row opens the batch's instant; a task without rows leaves no trace. A batch that the
    table already holds is only read for its digest (RFC-24, exactly once). If a row cannot be
    stored, or storage fails, nothing becomes visible.

    `batch_id` is None for a write without identity. `batches` have the hidden columns of
    ``shuffle_by_file_group`` if it sent them. `sole_writer` says that there is no other task.
    """
    clock = clock or SystemClock()
    message = _write(batch, task, batch_id, batches, sole_writer, clock)
    return with_services(message, task, clock)


def _write(
    batch: Batch,
    task: TaskId,
    batch_id: BatchId | None,
    batches: Iterable[pa.RecordBatch],
    sole_writer: bool,
    clock: Clock,
) -> TaskCommitMessage:
    if batch_id is not None:
        batch = with_known_batches(batch, batch_id)
    if batch_id is not None and batch.guard.holds(batch_id):
        return digest_only(batch, batch_id, batches)
    if batch.plan.operation is Operation.DELETE_PARTITION:
        return _take_partitions(batch, batch_id, batches)
    return _write_rows(batch, task, batch_id, batches, sole_writer, clock)


def _write_rows(
    batch: Batch,
    task: TaskId,
    batch_id: BatchId | None,
    batches: Iterable[pa.RecordBatch],
    sole_writer: bool,
    clock: Clock,
) -> TaskCommitMessage:
    plan, pending = batch.plan, batch.pending
    metrics, started = WriteMetrics(), clock.now_ms()
    chunks = _admitted(plan, in_chunks(plan, batches))
    first = next(chunks, None)
    if first is None:
        return TaskCommitMessage(batch, batch_id)
    first[1].check()
    chunks = chain([first], chunks)
    del first  # which would be kept to the end of the task
    time = open_instant(pending)
    context = task_context(batch, time, task.partition, f"{task.stage}-{task.attempt}")
    writer = _writer_class(plan)(plan, context, clock, metrics)
    assignment = _assignment(plan, task)
    digest = InputDigest()
    alone = _dead_where_it_fails(pending, time) if sole_writer else nullcontext()
    with (
        naming_remedies(plan.table.storage, plan.timeline),
        translate_rollback_errors(pending, time),
        alone,
        heartbeating(pending, time),
        no_late_files(pending, time, context.files),
        _discarding(writer),
    ):
        for chunk, keyed in chunks:
            locations, copies = assignment.locations(chunk), copies_among(chunk)
            once = keyed
            if copies is not None:
                chunk = chunk.filter(pa.array(~copies))
                once = KeyedRows(plan, keyed.rows.filter(pa.array(~copies)))
            if locations is None:  # rows must be located here
                writer.write(once)
            else:
                writer.write(keyed, locations)
            digest += digest_of(plan, batch_id, chunk, once.rows)  # while they are encoded
        taken = clock.now_ms()
        owns = assignment.ownership(sole_writer, isinstance(plan.index, BucketIndex))
        statuses, staged = writer.close(owns)
        key_files = _key_files(plan, context.new_keys, statuses, owns)
    metrics.write_ms, metrics.close_ms = taken - started, clock.now_ms() - taken
    written = tuple(statuses), tuple(staged)
    return TaskCommitMessage(
        batch,
        batch_id,
        time,
        *written,
        digest,
        metrics=metrics,
        owns_keys=owns.keys,
        assigned_by=assignment.assigned_by,
        key_files=key_files,
    )


def _assignment(plan: WritePlan, task: TaskId) -> Assignment:
    """What reads the hidden columns; a change has sent its rows itself."""
    digest, index = plan.timeline.digest, plan.index if plan.change is None else None
    if not isinstance(index, LookupIndex):
        return Assignment(task.partition, {digest, digest_by_index(digest)}, plan.looks_up)
    # With a global index rows came to the tasks of their file groups only by the record index.
    digests = {digest_by_index(digest), *(() if index.is_global else (digest,))}
    fields = plan.table.properties.partition_fields
    return Assignment(task.partition, digests, plan.looks_up, index, fields)


def _key_files(
    plan: WritePlan, keys: TaskKeys | None, statuses: Sequence[WriteStatus], owns: TaskOwnership
) -> KeyFiles:
    """Put entries of the record index of the keys that a task has written."""
    if keys is None:
        return {}
    stats = [status.stat for status in statuses]
    if owns.groups and not plan.operation.replaces:
        keys.find(stats, lambda: plan.metadata, plan.avro_schema, plan.may_move_keys)
    elif owns.keys and not plan.operation.replaces:
        keys.find_updates(stats, lambda: plan.metadata, plan.avro_schema)
    return keys.close()


def _writer_class(plan: WritePlan) -> type[KeyedWriter | GlobalWriter | AppendWriter]:
    if plan.change is not None:
        return KeyedWriter  # rows stay where they were found
    if plan.index is None:
        return AppendWriter
    # Rows that are neither looked up nor combined are plain inserts.
    combines = plan.looks_up or plan.options.combine_before_insert
    return GlobalWriter if plan.index.is_global and combines else KeyedWriter


@contextmanager
def _dead_where_it_fails(pending: PendingAction, time: str) -> Iterator[None]:
    """Stop the heartbeat after a failure, so that the next writer rolls the instant back."""
    try:
        yield
    except BaseException:
        if pending.concurrency.is_shared:
            heartbeat.stop(pending.storage, time)
        raise


@contextmanager
def _discarding(writer: KeyedWriter | GlobalWriter | AppendWriter) -> Iterator[None]:
    """Discard a writer's files if it fails, for whatever reason."""
    try:
        yield
    except BaseException as error:
        writer.discard(error)
        raise


def _take_partitions(
    batch: Batch, batch_id: BatchId | None, batches: Iterable[pa.RecordBatch]
) -> TaskCommitMessage:
    """Take only the partitions from the rows of a partition delete."""
    seen: set[str] = set()
    digest = InputDigest()
    is_empty = not batch.plan.schema.names  # nothing was committed to the table
    for part in batches:
        rows = without_copies(pa.Table.from_batches([part]))
        digest += digest_of_partitions(batch_id, rows)
        if batch.plan.options.partitions_to_delete is None and not is_empty:
            seen |= distinct_partitions(batch.plan, rows)
    return TaskCommitMessage(batch, batch_id, digest=digest, partitions=tuple(sorted(seen)))


def _admitted(plan: WritePlan, chunks: Iterable[pa.Table]) -> Iterator[tuple[pa.Table, KeyedRows]]:
    """Yield each chunk with its rows in the table's types, checked to be storable."""
    properties = plan.table.properties
    keys = {*properties.record_key_fields, *properties.partition_fields}
    taken = plan.taken_schema
    has_automatic_keys = plan.index is None and plan.change is not None
    is_marked = isinstance(plan.change, RowMerge) and IS_DELETED not in plan.schema.names
    row = 0
    for chunk in chunks:
        rows = conform(admit(chunk, taken, row, keys), plan.schema)
        if is_marked:
            rows = rows.append_column(IS_DELETED, chunk.column(IS_DELETED))
        automatic = chunk.column(RECORD_KEY) if has_automatic_keys else None
        is_found = plan.change is not None and LOCATION_COLUMN in chunk.column_names
        stored_in = chunk.column(PARTITION_PATH) if is_found else None
        keyed = KeyedRows(plan, rows, automatic, stored_in)
        check_indexed(plan, keyed)
        yield chunk, keyed
        row += chunk.num_rows


def in_chunks(plan: WritePlan, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Combine Arrow batches, up to what a task writes at once."""
    limits = plan.options.limits
    chunk_bytes = min(limits.chunk_bytes, plan.budget.chunk_bytes)
    held: list[pa.RecordBatch] = []
    size = 0
    for part in chain.from_iterable(cut(part, limits.part_bytes) for part in batches):
        if not part.num_rows:
            continue
        held.append(part)
        size += part.nbytes
        if size >= chunk_bytes:
            yield pa.Table.from_batches(held)
            held, size = [], 0
    if held:
        yield pa.Table.from_batches(held)
