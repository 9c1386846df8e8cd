"""A batch that comes again: what is taken of its rows, and whether they are the committed ones.

Spark tells a batch by its query and its number alone. The same number with other rows is what an
old copy of a checkpoint brings, or a source that does not give the same rows twice: to call that
done would lose rows in silence.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce
from operator import add

import pyarrow as pa

from hoodie_ds.config.kinds import Operation
from hoodie_ds.config.stream_catalog import ACCEPT_DIFFERENT
from hoodie_ds.errors import ReplayMismatchError
from hoodie_ds.formats.avro_schema import normalise_schema
from hoodie_ds.formats.conform import conform
from hoodie_ds.record.field_path import resolve
from hoodie_ds.sink.assignment import HIDDEN_COLUMNS
from hoodie_ds.sink.batch import Batch
from hoodie_ds.sink.input_digest import InputDigest
from hoodie_ds.sink.messages import TaskCommitMessage
from hoodie_ds.sink.replay_guard import BatchId, ReplayGuard

_log = logging.getLogger("hoodie_ds")


def digest_of(batch: Batch, batch_id: BatchId | None, rows: pa.Table) -> InputDigest:
    """Return the digest of rows: of their keys, or of their columns in a table without keys.

    Parameters
    ----------
    batch : Batch
        The batch.
    batch_id : BatchId or None
        Its identity; rows of a batch without one are only counted, as it cannot come again.
    rows : pyarrow.Table
        Some of its rows, in the table's types or as they came.
    """
    if batch_id is None:
        return InputDigest(rows.num_rows)
    if batch.operation is Operation.DELETE_PARTITION:  # they need no more than partition columns
        rows = rows.drop_columns([n for n in rows.column_names if n in HIDDEN_COLUMNS])
        return InputDigest.of(conform(rows, normalise_schema(rows.schema)))
    rows = conform(rows, batch.schema)
    if batch.index is None:
        return InputDigest.of_columns(rows)
    fields = batch.table.properties.record_key_fields
    return InputDigest.of(pa.table({field: resolve(rows, field) for field in fields}))


def drain(batch: Batch, batch_id: BatchId, batches: Iterable[pa.RecordBatch]) -> TaskCommitMessage:
    """Read one task's rows of a batch that is committed, and write nothing."""
    parts = (digest_of(batch, batch_id, pa.Table.from_batches([part])) for part in batches)
    digest = reduce(add, parts, InputDigest())
    return TaskCommitMessage(batch, batch_id, digest=digest, already_committed=True)


def total_digest(messages: Sequence[TaskCommitMessage]) -> InputDigest:
    """Return the digest of a whole batch, of the messages of all of its tasks."""
    batch = messages[0].batch
    total = reduce(add, (message.digest for message in messages), InputDigest())
    if batch.operation is Operation.DELETE_PARTITION and batch.options.partitions_to_delete:
        names = InputDigest.of(pa.table({"partition": batch.options.partitions_to_delete}))
        total += replace(names, num_rows=0)
    return total


def check_replay(messages: Sequence[TaskCommitMessage], guard: ReplayGuard) -> None:
    """Refuse a batch that is committed if it came with other rows this time.

    Parameters
    ----------
    messages : sequence of TaskCommitMessage
        From its tasks.
    guard : ReplayGuard
        Which holds the batch.

    Raises
    ------
    ReplayMismatchError
        The rows are others. A batch older than those that the guard has digests of passes.
    """
    batch, batch_id = messages[0].batch, messages[0].batch_id
    assert batch_id is not None
    then, now = guard.digest_of(batch_id), total_digest(messages)
    if then is None or then == now:
        return
    text = (
        f"{batch.table.storage.root}: {batch_id} is in the table with {then}, and came again "
        f"with {now}"
    )
    if batch.options.accept_different:
        _log.warning("%s; the table stays as it is", text)
        return
    raise ReplayMismatchError(
        f"{text}; the table stays as it is. Go on from the newest checkpoint of the query, or "
        "begin a new one, which makes it a new query whose rows are all written; give a batch "
        f"write a greater number. {ACCEPT_DIFFERENT.key}=true takes the batch for done"
    )
