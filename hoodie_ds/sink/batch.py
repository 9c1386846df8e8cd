"""What `Coordinator.begin` decides for one batch and passes to its tasks.

A `Batch` is pickled into every task, so that all of them, and every further attempt of each, see
the same table and make the same decisions. It comes back with their messages, so that the process
that commits needs no memory of its own (RFC-24: the coordinator's state is on the timeline).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property

from hoodie_ds.config.service_switches import Service
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.formats.parquet.bloom_filter import BloomParams
from hoodie_ds.handles.context import WriteContext
from hoodie_ds.index.choice import bloom_params
from hoodie_ds.index.protocol import LookupIndex
from hoodie_ds.metadata_table.task_keys import TaskKeys, takes_keys
from hoodie_ds.services.compaction.share import CompactionShare
from hoodie_ds.sink.replay_guard import BatchId, ReplayGuard
from hoodie_ds.sink.write_plan import WritePlan
from hoodie_ds.table.metadata_table import has_bloom_filters
from hoodie_ds.table.slicing import SLICINGS
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.bodies.replace_plan import empty_plan
from hoodie_ds.timeline.instant import Action
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction.pending_action import PendingAction


@dataclass(frozen=True)
class Batch:
    """One micro-batch, or batch write: its plan, its future instant, and what came before it."""

    plan: WritePlan
    guard: ReplayGuard
    proposed_time: str  # instant time to open, if it is still free
    attempt: str  # unique among all attempts to write a batch
    owner: str  # opens the instant: this attempt, or that of an earlier micro-batch in it
    creation_ms: int | None
    """When the first row, or an empty commit, creates the table; None if the table exists."""
    services: Collection[Service] = frozenset()
    share: CompactionShare | None = None  # what its tasks do of a pending compaction

    @property
    def table(self) -> Table:
        """The table."""
        return self.plan.table

    @property
    def timeline(self) -> Timeline:
        """The table as the batch sees it."""
        return self.plan.timeline

    @property
    def options(self) -> WriteOptions:
        """How to write."""
        return self.plan.options

    @property
    def given_id(self) -> BatchId | None:
        """The identity of a batch write, if options give one."""
        writer, number = self.options.checkpoint_identifier, self.options.batch_identifier
        return None if writer is None or number is None else BatchId(writer, number)

    @cached_property
    def pending(self) -> PendingAction:
        """What opening, deciding and rolling back the batch's instant need."""
        operation_type = self.plan.operation.value.upper()
        replaces = self.plan.action is Action.REPLACE_COMMIT
        return PendingAction(
            table=self.table,
            timeline=self.timeline,
            action=self.plan.action,
            operation_type=operation_type,
            proposed_time=self.proposed_time,
            attempt=self.attempt,
            owner=self.owner,
            concurrency=self.options.concurrency,
            plan=empty_plan(operation_type) if replaces else b"",
            creation_ms=self.creation_ms,
        )


def write_context(
    batch: Batch, instant_time: str, task_partition: int, task_attempt: str
) -> WriteContext:
    """Return what the handles of a task attempt, or of the commit, share."""
    plan, options = batch.plan, batch.options
    return WriteContext(
        storage=batch.table.storage,
        instant_time=instant_time,
        task_partition=task_partition,
        batch_attempt=batch.attempt,
        task_attempt=task_attempt,
        schema=plan.stored_schema,
        avro_schema=plan.stored_avro_schema,
        codec=options.parquet_codec.value,
        row_group_bytes=min(options.parquet_block_bytes, plan.budget.encode_bytes),
        log_block_bytes=min(options.log_block_max_bytes, plan.budget.encode_bytes),
        log_block_format=plan.log_block_format,
        bloom=_bloom_params(plan),
        has_keys=plan.index is not None and plan.table.properties.populate_meta_fields,
        virtual_keys=plan.virtual_keys,
        indexed=plan.indexed,
        logging=plan.table.properties.supplemental_logging,
        shares_log_files=SLICINGS[batch.table.layout].shares_log_files,
        history=plan.history,
        batch_number=batch.pending.batches_before,
    )


def task_context(
    batch: Batch, instant_time: str, task_partition: int, task_attempt: str
) -> WriteContext:
    """Return the context of a task, which may make entries of the record index.

    Several micro-batches of an instant may rewrite a file one after the other, and the commit names
    only the last: there the keys are found in the files.
    """
    context = write_context(batch, instant_time, task_partition, task_attempt)
    is_alone = batch.options.batches_per_commit == 1 and not batch.pending.batches_before
    has_keys = batch.plan.index is not None and context.virtual_keys is None
    if not (is_alone and has_keys and takes_keys(batch.table)):
        return context
    keys = TaskKeys(batch.table, instant_time, context.write_token)
    return replace(context, new_keys=keys)


def _bloom_params(plan: WritePlan) -> BloomParams | None:
    """Base files carry the bloom filter that Hudi needs if an index looks keys up in them.

    So they do if the metadata table has the filters, whatever the index is.
    """
    if plan.index is None or plan.virtual_keys is not None:
        return None
    if not isinstance(plan.index, LookupIndex) and not has_bloom_filters(plan.table.properties):
        return None
    return bloom_params(plan.options)
