"""A repeated batch: its digest, and whether its rows are the committed ones.

Spark identifies a batch only by its query and its number. The same number with other rows comes
from an old copy of a checkpoint, or from a source that does not return the same rows twice: to
treat that as done would lose rows silently.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import reduce
from operator import add

import pyarrow as pa

from hoodie_ds.config.enums import Operation
from hoodie_ds.config.operation_options import OperationOptions
from hoodie_ds.errors import (
    CorruptFileError,
    MissedBatchesError,
    NotFoundError,
    ReplayMismatchError,
    SchemaError,
)
from hoodie_ds.formats.avro.schema import normalise_schema
from hoodie_ds.formats.schema_conversion import conform, conform_column
from hoodie_ds.log import Log
from hoodie_ds.record.field_path import resolve
from hoodie_ds.sink.batch import Batch
from hoodie_ds.sink.digest.input_digest import InputDigest
from hoodie_ds.sink.hidden_columns import HIDDEN_COLUMNS, without_copies
from hoodie_ds.sink.messages import TaskCommitMessage
from hoodie_ds.sink.replay.past_writers import recall
from hoodie_ds.sink.replay_guard import BATCH_KEY, BatchId, ReplayGuard
from hoodie_ds.sink.write_plan import WritePlan
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.schema_on_read import ALTER_SCHEMA
from hoodie_ds.timeline.loading import read_commit
from hoodie_ds.transaction.rolled_back_batches import rolled_back_batches


def digest_of(
    plan: WritePlan, batch_id: BatchId | None, rows: pa.Table, converted: pa.Table
) -> InputDigest:
    """Return the digest of rows as they came, and so of the same rows as long as they come again.

    `converted` are the rows in the table's types, which other batches may widen. Rows of a batch
    without identity are only counted, as it cannot come again, and so are rows that the batch has
    from the table, where they are no more when it comes again; see `total_digest`.
    """
    if batch_id is None or plan.change is not None:
        return InputDigest(rows.num_rows)
    taken = plan.taken_schema.names
    rows = rows.select([name for name in rows.column_names if name in taken])
    kinds = normalise_schema(rows.schema, converted.schema)
    columns = [
        converted.column(field.name)
        if converted.field(field.name).type == field.type
        else conform_column(rows.column(field.name), field.type, field.name)
        for field in kinds
    ]
    return _digest(plan, pa.table(columns, schema=kinds))


def digest_of_partitions(batch_id: BatchId | None, rows: pa.Table) -> InputDigest:
    """Return the digest of the rows of a partition delete, which need only partition columns."""
    if batch_id is None:
        return InputDigest(rows.num_rows)
    rows = rows.drop_columns([n for n in rows.column_names if n in HIDDEN_COLUMNS])
    return InputDigest.of(conform(rows, normalise_schema(rows.schema)))


def _digest(plan: WritePlan, rows: pa.Table) -> InputDigest:
    """The digest of rows: of keys and values, or of columns in a table without keys."""
    if plan.index is None:
        return InputDigest.of_columns(rows)
    fields = plan.table.properties.record_key_fields
    return InputDigest.of_keyed(rows, pa.table({field: resolve(rows, field) for field in fields}))


def with_known_batches(batch: Batch, batch_id: BatchId) -> Batch:
    """Return a batch whose guard has all that the table knows of its query.

    `MissedBatchesError` if the table has not seen the earlier batches of the stream.
    """
    guard = recall(batch.table.storage, batch.timeline, batch.guard, batch_id)
    check_none_missed(batch, batch_id, guard)
    return batch if guard is batch.guard else replace(batch, guard=guard)


def check_none_missed(batch: Batch, batch_id: BatchId, guard: ReplayGuard) -> None:
    """Refuse a stream whose earlier batches the table has not seen, or has lost.

    `guard` is from `recall`. The numbers of a batch write are the user's, and may begin anywhere.
    """
    if batch_id == batch.given_id or batch_id.batch_id == 0 or batch.options.accept_missed:
        return
    root = batch.table.storage.root
    goes_on = f"{OperationOptions.accept_missed.key}=true continues without the rows of"
    if guard.name_of(batch_id) is None:
        earlier = "batch 0" if batch_id.batch_id == 1 else f"batches 0 to {batch_id.batch_id - 1}"
        raise MissedBatchesError(
            f"{root}: {batch_id} arrived, but the table has not seen {earlier} of the query: the "
            "table was deleted or restored, or the path has changed. Nothing was "
            "written. Give the path of the table that has them, or begin with a new checkpoint; "
            f"{goes_on} {earlier}"
        )
    undone = _undone_before(batch.table.storage, batch_id, guard.highest(batch_id))
    if undone is not None:
        raise MissedBatchesError(
            f"{root}: {batch_id} arrived, but a rollback or restore has removed batch {undone} of "
            "the query from the table. Nothing was written. Reset the checkpoint to "
            f"before batch {undone} (delete the files named {undone} and later from its folders "
            f"offsets and commits), or begin with a new one; {goes_on} batch {undone}"
        )


def _undone_before(storage: Storage, batch_id: BatchId, highest: int) -> int | None:
    """The first batch that was rolled back and has not come again; None if all have."""
    if batch_id.batch_id <= highest + 1:
        return None
    names = filter(None, (batch_id.query_id, batch_id.formerly))
    undone = frozenset().union(*(rolled_back_batches(storage, name) for name in names))
    return min((n for n in undone if highest < n < batch_id.batch_id), default=None)


def digest_only(
    batch: Batch, batch_id: BatchId, batches: Iterable[pa.RecordBatch]
) -> TaskCommitMessage:
    """Read one task's rows of a committed batch for their digests, and write nothing."""
    plan, digest, formerly = batch.plan, InputDigest(), InputDigest()
    if plan.change is not None:
        return TaskCommitMessage(batch, batch_id, already_committed=True)
    for part in batches:
        rows = without_copies(pa.Table.from_batches([part]))
        if plan.operation is Operation.DELETE_PARTITION:
            digest += (of_part := digest_of_partitions(batch_id, rows))
            formerly += of_part
        else:
            digest += digest_of(plan, batch_id, rows, conform(rows, plan.taken_schema))
            with suppress(SchemaError):  # of a column that the delete does not need
                formerly += _digest(plan, conform(rows, plan.schema))
    return TaskCommitMessage(
        batch, batch_id, digest=digest, formerly=formerly, already_committed=True
    )


def total_digest(messages: Sequence[TaskCommitMessage], formerly: bool = False) -> InputDigest:
    """Return the digest of a whole batch from the messages of all of its tasks.

    `formerly` asks for the one that earlier releases stored, if tasks have it. A batch that changes
    the table's own rows, or its columns, is recognised by what it does, not by its rows.
    """
    batch = messages[0].batch
    change = batch.plan.change or batch.plan.columns
    if change is not None:
        statement = pa.table({"statement": [*change.statement]})
        return replace(InputDigest.of(statement), num_rows=0)
    digests = ((formerly and message.formerly) or message.digest for message in messages)
    total = reduce(add, digests, InputDigest())
    if batch.plan.operation is Operation.DELETE_PARTITION and batch.options.partitions_to_delete:
        names = InputDigest.of(pa.table({"partition": batch.options.partitions_to_delete}))
        total += replace(names, num_rows=0)
    unusual = _unusual_operation(batch.plan)
    return total.of_operation(unusual.value) if unusual else total


def _unusual_operation(plan: WritePlan) -> Operation | None:
    """The operation, if it is not the usual one, which digests do not name."""
    match plan.operation:
        case Operation.UPSERT | Operation.DELETE_PARTITION:
            return None
        case Operation.INSERT | Operation.BULK_INSERT:  # which add the same rows
            return Operation.INSERT if plan.index is not None else None
    return plan.operation


def is_committed(plan: WritePlan) -> bool:
    """Whether the table has a numbered write without rows; see `check_replay`."""
    batch = Batch(plan, ReplayGuard(), "", "", "", None)
    given, storage = batch.given_id, plan.table.storage
    if given is None:
        return False
    guard = recall(storage, plan.timeline, ReplayGuard.load(storage, plan.timeline), given)
    if guard.holds(given):
        check_replay([TaskCommitMessage(batch, given)], guard)
    return guard.holds(given)


def check_replay(messages: Sequence[TaskCommitMessage], guard: ReplayGuard) -> None:
    """Refuse a batch whose number is taken, unless its rows are known to be the committed ones.

    A batch without rows, which would change nothing, passes if nothing is known of the number. One
    that is known not to be in the table is refused whatever the options say.
    """
    batch, batch_id = messages[0].batch, messages[0].batch_id
    assert batch_id is not None
    kept, now = guard.digests(batch_id), total_digest(messages)
    stored = kept.get(batch_id.batch_id)
    empties = batch.plan.operation is Operation.INSERT_OVERWRITE_TABLE
    if now == InputDigest() and not empties and stored in (None, InputDigest()):
        return
    forms = now, total_digest(messages, formerly=True)
    if stored is not None and any(stored == form.like(stored) for form in forms):
        return
    root, is_numbered = batch.table.storage.root, batch_id == batch.given_id
    kind = "writer" if is_numbered else "query"
    name = f"batch {batch_id.batch_id} of {kind} {batch_id.query_id}"
    remedy = (
        f"Give the write a number greater than {guard.highest(batch_id)}, or its writer another "
        f"{OperationOptions.checkpoint_identifier.key}"
        if is_numbered
        else "Continue from the newest checkpoint of the query, or begin a new one, which makes it "
        "a new query whose rows are all written (with foreach_batch and Spark Connect, give it "
        f"another {OperationOptions.checkpoint_identifier.key} too)"
    )
    if guard.leaves_out(batch_id):
        numbers = ", ".join(map(str, sorted(kept)))
        raise ReplayMismatchError(
            f"{root}: {name} came with {now.num_rows} rows after a later one, and no rows were "
            f"ever written under its number: the table has batches {numbers} of the {kind}, and "
            f"numbers must ascend. Nothing was written. {remedy}; "
            f"{OperationOptions.accept_different.key} does not accept the batch, as its rows are "
            "not in the table"
        )
    if stored is not None:
        then_as, now_as = _operations(batch, batch_id)
        text = (
            f"{name} is in the table{then_as} with {stored}, and came again{now_as} with "
            f"{now.like(stored)}"
        )
    else:
        known = f"only {min(kept)} to {max(kept)}" if kept else "none"
        text = (
            f"{name} came with {now}, which may or may not be in the table: it has batches of "
            f"the {kind} up to {guard.highest(batch_id)}, and knows the rows of {known}"
        )
    if batch.options.accept_different:
        Log(root).warning("%s; the table stays as it is", text)
        return
    raise ReplayMismatchError(
        f"{root}: {text}; the table stays as it is. {remedy}. "
        f"{OperationOptions.accept_different.key}=true accepts the batch as done, without its rows"
    )


def _operations(batch: Batch, batch_id: BatchId) -> tuple[str, str]:
    """What a batch was written as and comes again as; empty if that is the same or not known."""
    now, identity = batch.plan.operation.value, batch_id.to_json()
    if batch.plan.columns is not None:
        now = ALTER_SCHEMA.lower()
    with suppress(NotFoundError, CorruptFileError):  # archived meanwhile, or damaged
        for instant in batch.timeline.commits_backwards():
            commit = read_commit(batch.table.storage, instant)
            if commit.extra.get(BATCH_KEY) == identity:
                then = commit.operation_type.lower()
                return ("", "") if then == now else (f" as {then}", f" as {now}")
    return "", ""
