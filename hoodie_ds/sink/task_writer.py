"""One task of a batch: rows in, durable files and a message out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain

import pyarrow as pa

from hoodie_ds.config.enums import Operation
from hoodie_ds.environment import Clock, SystemClock
from hoodie_ds.formats.admission import admit
from hoodie_ds.formats.conform import conform
from hoodie_ds.formats.parquet.bloom_filter import BloomParams
from hoodie_ds.formats.row_sizes import cut
from hoodie_ds.handles.context import WriteContext
from hoodie_ds.sink.batch import Batch
from hoodie_ds.sink.commit.exclusion import alive
from hoodie_ds.sink.hidden_columns import Assignment
from hoodie_ds.sink.late_files import no_late_files
from hoodie_ds.sink.memory_budget import MemoryBudget
from hoodie_ds.sink.messages import TaskCommitMessage, TaskId
from hoodie_ds.sink.metrics import WriteMetrics
from hoodie_ds.sink.open_instant import open_instant
from hoodie_ds.sink.overtaken import told_if_undone
from hoodie_ds.sink.records import check_keys, distinct_partitions
from hoodie_ds.sink.replay.input_digest import InputDigest
from hoodie_ds.sink.replay.replay import digest_of, drain, informed
from hoodie_ds.sink.replay_guard import BatchId
from hoodie_ds.sink.task.append_writer import AppendWriter
from hoodie_ds.sink.task.global_writer import GlobalWriter
from hoodie_ds.sink.task.keyed_writer import KeyedWriter


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
    table already holds is read to its end, for its digest, and dropped (RFC-24, exactly once).

    Parameters
    ----------
    batch : Batch
        What the coordinator decided.
    task : TaskId
        This attempt.
    batch_id : BatchId or None
        The micro-batch, or numbered batch write; None for a write without identity.
    batches : iterable of pyarrow.RecordBatch
        The rows, with the hidden columns of ``shuffle_by_file_group`` where it sent them.
    sole_writer : bool
        Whether there is no other task.
    clock : Clock, optional
        For the times among the metrics; the machine's by default.

    Returns
    -------
    TaskCommitMessage

    Raises
    ------
    HoodieError
        A row cannot be stored, or storage failed. Nothing becomes visible.
    """
    if batch_id is not None:
        batch = informed(batch, batch_id)
    if batch_id is not None and batch.guard.holds(batch_id):
        return drain(batch, batch_id, batches)
    if batch.operation is Operation.DELETE_PARTITION:
        return _take_partitions(batch, batch_id, batches)
    return _write_rows(batch, task, batch_id, batches, sole_writer, clock or SystemClock())


def _write_rows(
    batch: Batch,
    task: TaskId,
    batch_id: BatchId | None,
    batches: Iterable[pa.RecordBatch],
    sole_writer: bool,
    clock: Clock,
) -> TaskCommitMessage:
    metrics, started = WriteMetrics(), clock.now_ms()
    chunks = _admitted(batch, in_chunks(batch, batches))
    first = next(chunks, None)
    if first is None:
        return TaskCommitMessage(batch, batch_id)
    check_keys(batch, first[1])
    context = write_context(batch, task, open_instant(batch))
    writer = _writer_class(batch)(batch, context, clock, metrics)
    assignment = Assignment(task.partition, batch.timeline.digest)
    digest = InputDigest()
    told = told_if_undone(batch, context.instant_time)
    late = no_late_files(batch, context)
    with told, alive(batch, context.instant_time), late, _discarding(writer):
        for chunk, rows in chain([first], chunks):
            writer.write(rows, assignment.places(chunk))
            digest += digest_of(batch, batch_id, rows)  # while they are encoded
        taken = clock.now_ms()
        owns = assignment.ownership(sole_writer, batch.layout is not None)
        statuses, staged = writer.close(owns)
    metrics.write_ms, metrics.close_ms = taken - started, clock.now_ms() - taken
    written = tuple(statuses), tuple(staged)
    return TaskCommitMessage(
        batch,
        batch_id,
        context.instant_time,
        *written,
        digest,
        metrics=metrics,
        owns_keys=owns.keys,
        assigned_by=assignment.assigned_by,
    )


def _writer_class(batch: Batch) -> type[KeyedWriter | GlobalWriter | AppendWriter]:
    if batch.index is None:
        return AppendWriter
    # Rows that are neither looked up nor folded are inserts, one beside another.
    folds = batch.looks_up or batch.options.combine_before_insert
    return GlobalWriter if batch.has_global_keys and folds else KeyedWriter


@contextmanager
def _discarding(writer: KeyedWriter | GlobalWriter | AppendWriter) -> Iterator[None]:
    """Give a writer's files up where it fails, whatever the reason."""
    try:
        yield
    except BaseException as error:
        writer.discard(error)
        raise


def _take_partitions(
    batch: Batch, batch_id: BatchId | None, batches: Iterable[pa.RecordBatch]
) -> TaskCommitMessage:
    """Take of the rows of a partition delete no more than their partitions."""
    seen: set[str] = set()
    digest = InputDigest()
    for part in batches:
        rows = pa.Table.from_batches([part])
        digest += digest_of(batch, batch_id, rows)
        if batch.options.partitions_to_delete is None:
            seen |= distinct_partitions(batch, rows)
    return TaskCommitMessage(batch, batch_id, digest=digest, partitions=tuple(sorted(seen)))


def write_context(batch: Batch, task: TaskId, instant_time: str) -> WriteContext:
    """Return what a task's handles share."""
    options, budget = batch.options, MemoryBudget.of(batch.options)
    prepared = batch.timeline.prepared
    return WriteContext(
        storage=batch.table.storage,
        instant_time=instant_time,
        task_partition=task.partition,
        batch_attempt=batch.attempt,
        task_attempt=f"{task.stage}-{task.attempt}",
        schema=batch.stored_schema,
        avro_schema=batch.stored_avro_schema,
        codec=options.parquet_codec.value,
        row_group_bytes=min(options.parquet_block_bytes, budget.encode_bytes),
        log_block_bytes=min(options.log_block_max_bytes, budget.encode_bytes),
        log_block_format=batch.log_block_format,
        bloom=_bloom_params(batch),
        has_keys=batch.index is not None,
        batch_number=prepared.num_batches if prepared else 0,
    )


def _bloom_params(batch: Batch) -> BloomParams | None:
    """Base files that an index looks keys up in carry the bloom filter that Hudi needs there."""
    options = batch.options
    if batch.index is None or batch.layout is not None:
        return None
    return BloomParams(
        options.bloom_num_entries,
        options.bloom_false_positives,
        options.bloom_filter_type,
        options.bloom_max_entries,
    )


def _admitted(batch: Batch, chunks: Iterable[pa.Table]) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Yield each chunk with its rows in the table's types, found fit to be stored."""
    properties = batch.table.properties
    keys = {*properties.record_key_fields, *properties.partition_fields}
    stored = batch.schema
    if batch.operation is Operation.DELETE:  # which stores no more than keys and their order
        needed = {path.partition(".")[0] for path in (*keys, *properties.ordering_fields)}
        stored = pa.schema([f for f in stored if f.name in needed or f.name in keys])
    row = 0
    for chunk in chunks:
        rows = admit(chunk, stored, row, keys)
        yield chunk, rows if stored is batch.schema else conform(chunk, batch.schema)
        row += chunk.num_rows


def in_chunks(batch: Batch, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Put Arrow batches together, up to what a task takes at once."""
    limits = batch.options.limits
    chunk_bytes = min(limits.chunk_bytes, MemoryBudget.of(batch.options).chunk_bytes)
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
