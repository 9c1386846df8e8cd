"""The operator coordinator of RFC-24: it begins, commits and aborts batches.

It keeps nothing in memory between its entry points, as Spark calls them in different processes: its
state is on the timeline, or travels with the tasks (`Batch`, `TaskCommitMessage`).

The commit point is one put-if-absent of the completed file, which names every file of the batch.
Before it nothing of the batch is visible; after it nothing can take it away.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa

from hoodie_ds.config.enums import Operation
from hoodie_ds.config.operation_options import OperationOptions
from hoodie_ds.config.properties.agreement import check_agreement
from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.config.service_switches import Service
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.environment import Clock, IdSource, Pauses, RandomIds, RandomPauses, SystemClock
from hoodie_ds.errors import (
    LockTimeoutError,
    OptionError,
    TableNotFoundError,
    TimelineError,
    WriteConflictError,
)
from hoodie_ds.index.choice import choose_index
from hoodie_ds.index.protocol import LookupIndex
from hoodie_ds.metadata_table.column_index import indexed_columns
from hoodie_ds.metadata_table.compaction import is_noted
from hoodie_ds.metadata_table.creation import left_partitions, switched_off, wanted_partitions
from hoodie_ds.record.keys.keygen import KeyGenerator
from hoodie_ds.record.merge.hook_merger import merger_of
from hoodie_ds.services.context import ServiceContext
from hoodie_ds.services.failures import attempted, note_failures
from hoodie_ds.services.post_commit import catch_up
from hoodie_ds.sink.batch import Batch
from hoodie_ds.sink.batch_services import (
    ServicesOfBatch,
    share_for,
    with_all_metrics,
    with_failures,
)
from hoodie_ds.sink.commit.commit import complete, give_up, is_complete
from hoodie_ds.sink.commit.commit_record import replaced_groups
from hoodie_ds.sink.messages import TaskCommitMessage, WriteResult
from hoodie_ds.sink.pinned_timeline import forget_pinned
from hoodie_ds.sink.replay.past_writers import mark
from hoodie_ds.sink.replay.replay import check_replay, with_known_batches
from hoodie_ds.sink.replay.superseded_batches import is_superseded
from hoodie_ds.sink.replay_guard import ReplayGuard
from hoodie_ds.sink.write_checks import (
    check_ordering,
    columns_to_keep,
    numbered_to_write,
    resolve_operation,
    stored_schema,
    warn_of_copies,
    warn_of_new_columns,
    warn_of_no_index,
)
from hoodie_ds.sink.write_plan import Change, WritePlan, key_spec
from hoodie_ds.storage.connect import storage_to_read, storage_to_write
from hoodie_ds.storage.probe import check_condition_obeyed
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.sync.followers import followers
from hoodie_ds.table.hashing_config import agreed_buckets
from hoodie_ds.table.metadata_table import (
    dropped_indexes,
    refuse_metadata_table,
    wanted_record_index,
)
from hoodie_ds.table.schema_on_read import ALL_AS_NOW
from hoodie_ds.table.secondary_index import check_indexed_columns, secondary_indexes
from hoodie_ds.table.table import (
    Table,
    check_outside_tables,
    find_table,
    open_table,
)
from hoodie_ds.table.table_schema import declared_avro, table_schema
from hoodie_ds.timeline.instant_time import next_time
from hoodie_ds.timeline.rollbacks import refuse_restore
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction.lock import held
from hoodie_ds.transaction.manifest import find_joinable
from hoodie_ds.transaction.open_instant import ensure_table, open_instant, owner_to_join
from hoodie_ds.transaction.other_engines import (
    check_lock_is_shared,
    drop_metadata_partitions,
    note_delta_commits,
    switch_metadata_table_off,
    switch_metadata_table_on,
)
from hoodie_ds.transaction.ownership import owner_entry
from hoodie_ds.transaction.pending_action import write_action
from hoodie_ds.transaction.recovery import decided_timeline, recover, recover_lazily
from hoodie_ds.transaction.temporary_files import left_over


@dataclass(frozen=True)
class Coordinator:
    """Begins, commits and aborts the batches of one writer of one table."""

    options: WriteOptions
    storage: Storage
    clock: Clock
    ids: IdSource
    pauses: Pauses = field(default_factory=RandomPauses)

    @classmethod
    def of(cls, options: WriteOptions) -> Coordinator:
        """Return the coordinator with this machine's clock, random source and file systems."""
        return cls(options, storage_to_write(options), SystemClock(), RandomIds())

    def begin(
        self, schema: pa.Schema | None, query_id: str = "", *, is_stream: bool = False
    ) -> Batch:
        """Decide everything about a batch, before any of its tasks runs.

        Checks options, table and schema; recovers what an earlier, failed attempt left; reads the
        replay guard; proposes an instant time later than all others. Writes nothing of the batch
        itself: its first row creates the table, if there is none, and opens the instant. If
        anything does not allow the write, it raises a `HoodieError`.

        `schema` is None for the columns that the recovered table has. `query_id` is for the
        instant's record only. With `is_stream` the batch runs the table services of a stream.
        """
        found = left_over(self.storage)  # before the timeline is loaded
        table = find_table(self.storage)
        creation_ms = self.clock.now_ms() if table is None else None
        if table is None:
            plan = self._plan(table, self._properties(None), schema, self._timeline(table))
            self._check_place()
        else:
            properties = self._properties(table)  # refuses before anything is done
            timeline = self._joined(table, decided_timeline(table, self.clock, found))
            check_lock_is_shared(table, timeline, self.options.concurrency)
            plan = self._plan(table, properties, schema, timeline)
            plan = self._recovered(table, plan, schema, found)
            warn_of_copies(plan)
            warn_of_no_index(plan)
        guard = ReplayGuard.load(self.storage, plan.timeline)
        if isinstance(plan.index, LookupIndex):
            forget_pinned(self.storage, guard)
        utc = plan.table.properties.timeline_in_utc
        time = next_time(self.clock.now_ms(), utc, plan.timeline.latest_time)
        attempt = self.ids.unique()
        owner = self._owner(query_id, attempt)
        if joined := plan.timeline.joined:
            time, owner = joined.time, owner_to_join(self.storage, joined)
        for follower in followers(plan.table, self.options, self.clock, self.ids):
            follower.check(plan.schema)
        services = self.options.services.of_batch(is_stream=is_stream)
        share = share_for(plan, found) if is_stream else None
        return Batch(plan, guard, time, attempt, owner, creation_ms, services, share)

    def begin_change(self, change_of: Callable[[WritePlan], Change]) -> Batch | None:
        """Decide everything about a batch of the table's own rows, as `change_of` changes them.

        Its one task takes its `matched_rows`, or the `merged_rows` of a merge. None if nothing was
        committed to the table. For the rest see `begin`.
        """
        return self.begin_alteration(partial(self._changing, change_of))

    def preview_change(self, change_of: Callable[[WritePlan], Change]) -> WritePlan | None:
        """Return the plan that `begin_change` would make, by reading alone; see `preview`."""
        return self.preview_alteration(partial(self._changing, change_of))

    def begin_alteration(self, alter: Callable[[WritePlan], WritePlan]) -> Batch | None:
        """Decide everything about a commit without rows whose plan `alter` changes.

        None if nothing was committed to the table. For the rest see `begin`.
        """
        found = self._of_own_rows()
        if found is None:
            return None
        batch = found.begin(None)
        return replace(batch, plan=alter(batch.plan))

    def preview_alteration(self, alter: Callable[[WritePlan], WritePlan]) -> WritePlan | None:
        """Return the plan that `begin_alteration` would make, by reading alone; see `preview`."""
        found = self._of_own_rows()
        return None if found is None else alter(found.preview(None))

    def _of_own_rows(self) -> Coordinator | None:
        """What begins a batch of the table's own rows; None if it has no columns yet."""
        table = open_table(self.storage)
        if table_schema(table, table.load_timeline()) is None:
            return None
        if self.options.batches_per_commit > 1:
            raise OptionError(
                OperationOptions.batches_per_commit.key,
                self.options.batches_per_commit,
                "a change of rows reads the table as of its last instant, and needs its own",
            )
        if table.properties.record_key_fields:
            return self
        # no rows that come are merged there
        return replace(self, options=replace(self.options, operation=None))

    def _changing(self, change_of: Callable[[WritePlan], Change], plan: WritePlan) -> WritePlan:
        plan = replace(plan, operation=self.options.operation or plan.operation)
        return replace(plan, change=change_of(plan))

    def preview(
        self,
        schema: pa.Schema | None,
        timeline: Timeline | None = None,
        pin: Callable[[Callable[[], Timeline]], Timeline] | None = None,
    ) -> WritePlan:
        """Decide what can be decided by reading alone; changes nothing.

        For tasks before the batch, which assign its rows to file groups. They see `timeline`, the
        current one by default; or the one that `pin` returns, given a function that loads the
        current one.
        """
        table = find_table(self.storage)
        if timeline is None:
            timeline = pin(lambda: self._timeline(table)) if pin else self._timeline(table)
        return self._plan(table, self._properties(table), schema, timeline)

    def commit(self, messages: Sequence[TaskCommitMessage | None]) -> WriteResult:
        """Make a batch part of the table, in one step, given the messages of all of its tasks.

        Idempotent: a batch that is in the table already, with the same rows, is not written again.

        Raises
        ------
        TimelineError
            A task did not report, or the instant was rolled back meanwhile.
        ReplayMismatchError
            The batch is in the table already, with other rows.
        WriteConflictError
            Another writer changed a file group that this batch changes, or plans to rewrite it,
            inserted one of its keys, or added columns that do not fit its own.
        UnsupportedTableError
            The table's version was changed meanwhile, without the batch; nothing is left of it.
        LockTimeoutError
            Other writers held the table's lock all the time.
        CommitOutcomeUnknownError
            It is unknown whether the commit took effect.
        """
        reported = [message for message in messages if message is not None]
        if len(reported) < len(messages):
            missing = len(messages) - len(reported)
            raise TimelineError(
                f"{missing} of {len(messages)} tasks did not report; nothing was committed"
            )
        written = [message for message in reported if message.instant_time is not None]
        if written:
            result = self._complete(with_all_metrics(written, reported))
        else:
            result = self._commit_nothing_written(reported) if reported else WriteResult()
        result = with_failures(result, reported)
        if reported and reported[0].batch.creation_ms is not None:
            result = self._with_first_metadata(reported[0].batch, result)
        if result.failed_services:
            note_failures(self.storage, result.instant_time, result.failed_services)
        return result

    def commit_or_abort(self, messages: Sequence[TaskCommitMessage | None]) -> WriteResult:
        """Commit a batch, or abort it if other writers are in its way; see `commit`."""
        try:
            return self.commit(messages)
        except (LockTimeoutError, WriteConflictError):
            self.abort(messages)  # otherwise it looks alive until its heartbeat expires
            raise

    def abort(self, messages: Sequence[TaskCommitMessage | None]) -> None:
        """Abort a batch, unless it is in the table already, given messages of finished tasks.

        Nothing is deleted here, since tasks may still be writing: the next `begin` rolls back.
        """
        for message in messages:
            if message and message.instant_time is not None and not is_complete(message):
                give_up(message)
                return

    def _plan(
        self,
        table: Table | None,
        properties: TableProperties,
        schema: pa.Schema | None,
        timeline: Timeline,
    ) -> WritePlan:
        """Check options, table and schema against one another."""
        operation = resolve_operation(self.options, properties)
        if self.options.batches_per_commit > 1 and operation.replaces:
            raise OptionError(
                OperationOptions.batches_per_commit.key,
                self.options.batches_per_commit,
                f"{operation.value} replaces file groups and needs an instant for each batch",
            )
        refuse_restore(self.storage.root, timeline)
        if table is None and operation in (Operation.DELETE, Operation.DELETE_PARTITION):
            raise TableNotFoundError(
                f"{self.storage.root} holds no Hudi table to delete from; check the path"
            )
        index = None
        if properties.record_key_fields:
            index = choose_index(properties, self.options, table, timeline)
        stored = table_schema(table, timeline) if table else None
        if schema is None:
            schema = stored or pa.schema([])
        kept = columns_to_keep(schema, stored, table, timeline, operation, self.options)
        columns = stored_schema(schema, stored, properties, operation, self.options, kept)
        numbered = numbered_to_write(table, timeline, columns, self.options) if table else None
        if table is not None:
            partitions = left_partitions(table, self.options)
            check_indexed_columns(table, partitions, stored, columns)
        warn_of_new_columns(self.storage.root, stored, columns, self.options)
        check_ordering(columns, properties)
        merger_of(properties, self.options.merge_hook)  # refuses a hook that cannot be imported
        return WritePlan(
            table=table or Table(self.storage, properties),
            timeline=timeline,
            options=self.options,
            operation=operation,
            index=index,
            schema=columns,
            key_generator=KeyGenerator.of(key_spec(properties, self.options)),
            declared=declared_avro(table, timeline) if table else None,
            kept=kept,
            history=ALL_AS_NOW if numbered is None else numbered.history(),
            numbered="" if numbered is None else str(numbered),
        )

    def _check_place(self) -> None:
        """Refuse to create a table inside another one, or on a storage without atomic puts."""
        check_outside_tables(self.storage.root, partial(storage_to_read, self.options))
        if not self.options.allow_non_atomic_storage:
            check_condition_obeyed(self.storage, self.ids.unique())

    def _recovered(
        self,
        table: Table,
        plan: WritePlan,
        schema: pa.Schema | None,
        found: Mapping[str, frozenset[str]],
    ) -> WritePlan:
        """Recover the table, and return the plan for the recovered table."""
        if table.properties.metadata_partitions and self.options.metadata_enable is False:
            timeout_ms = self.options.concurrency.heartbeat_timeout_ms
            table = switch_metadata_table_off(table, self.clock, timeout_ms)
        is_other = False
        if plan.index is not None:
            table, is_other = plan.index.complete_change(table, plan.timeline, self.clock)
        timeline = self._recover(table, plan.timeline, found)
        table = self._with_metadata_table(table)
        # The plan may not fit any more.
        if is_other or timeline.digest != plan.timeline.digest:
            plan = self._plan(table, self._properties(table), schema, timeline)
        indexed = indexed_columns(table, plan.avro_schema)
        secondary = tuple(secondary_indexes(table))
        return replace(plan, table=table, timeline=timeline, indexed=indexed, secondary=secondary)

    def _with_metadata_table(self, table: Table) -> Table:
        """Drop what the options switch off in the metadata table, and make what it lacks."""
        there, given = set(table.properties.metadata_partitions), self.options.metadata
        asks = self._asks_for_metadata(table.properties)
        if self.options.metadata_enable is False or not (there or asks):
            return table
        wanted, off = wanted_partitions(table.properties, self.options), switched_off(table, given)
        is_noted_too = is_noted(table.properties, given.delta_commits)
        if not off and is_noted_too and there.issuperset(wanted):
            return table
        with self._locked():
            if off:
                timeout_ms = self.options.concurrency.heartbeat_timeout_ms
                table = drop_metadata_partitions(table, off, self.clock, timeout_ms)
            table = note_delta_commits(table, self.clock, given.delta_commits)
            return switch_metadata_table_on(table, self.clock, wanted, self.options)

    def _asks_for_metadata(self, properties: TableProperties) -> bool:
        """Whether the options ask for a metadata table where there is none."""
        return bool(self.options.metadata_enable) or bool(
            wanted_record_index(properties, self.options)
        )

    def _with_first_metadata(self, batch: Batch, result: WriteResult) -> WriteResult:
        """Make the metadata table of a table that a batch has created; else the next one does."""
        if not self._asks_for_metadata(batch.plan.table.properties):
            return result

        def make() -> None:
            self._with_metadata_table(open_table(self.storage))

        time = result.instant_time or ""
        failure = attempted(Service.METADATA, self.storage.root, time, make)
        missed = () if failure is None else (failure,)
        return replace(result, failed_services=(*result.failed_services, *missed))

    def _timeline(self, table: Table | None) -> Timeline:
        """Load the timeline as the next batch sees it, with the batches of a joined instant."""
        if table is None:
            return Timeline(layout=self._properties(None).layout_version)
        return self._joined(table, table.load_timeline())

    def _joined(self, table: Table, timeline: Timeline) -> Timeline:
        if self.options.batches_per_commit == 1:
            return timeline
        operation = resolve_operation(self.options, table.properties)
        action = write_action(table.properties, replaces=operation.replaces)
        spanned = self.options.batches_per_commit
        return timeline.with_joined(find_joinable(table, timeline, action, spanned, is_superseded))

    def _owner(self, query_id: str, attempt: str) -> str:
        shared, spans = self.options.concurrency.is_shared, self.options.batches_per_commit > 1
        return owner_entry(query_id, attempt, shared, spans)

    def _complete(self, messages: Sequence[TaskCommitMessage]) -> WriteResult:
        services = ServicesOfBatch(self._context(messages), messages)
        before = services.complete_compaction()
        done = complete(messages, self.clock, self.pauses, self.ids)
        instant, statuses = done or (None, None)
        result = WriteResult.of(str(messages[0].instant_time), statuses)
        return services.follow_up(result, instant, before)

    def _commit_nothing_written(self, messages: Sequence[TaskCommitMessage]) -> WriteResult:
        """Commit a batch of which no task opened the instant, if there is a reason to."""
        batch, batch_id = messages[0].batch, messages[0].batch_id
        if batch_id is not None:
            batch = with_known_batches(batch, batch_id)
        if messages[0].already_committed:
            check_replay(messages, batch.guard)
            missed = catch_up(self._context(messages), batch.plan.table)
            return WriteResult(already_committed=True, failed_services=missed)
        ensure_table(batch.pending, batch.plan.avro_schema)
        partitions = {path for message in messages for path in message.partitions}
        # A commit holds the table's columns, which a delete of partitions alone does not know.
        may_be_empty = batch.plan.options.allow_empty_commit and batch.plan.schema.names
        if may_be_empty or replaced_groups(batch.plan, partitions):
            time = open_instant(batch.pending)
            return self._complete([replace(message, instant_time=time) for message in messages])
        if batch_id not in (None, batch.given_id) and batch.guard.name_of(batch_id) is None:
            mark(self.storage, batch_id)
        return WriteResult(failed_services=catch_up(self._context(messages), batch.plan.table))

    def _context(self, messages: Sequence[TaskCommitMessage]) -> ServiceContext:
        storage = messages[0].batch.plan.table.storage
        return ServiceContext(self.options, storage, self.clock, self.ids, self.pauses)

    def _recover(
        self, table: Table, timeline: Timeline, found: Mapping[str, frozenset[str]]
    ) -> Timeline:
        concurrency = self.options.concurrency
        timeout_ms = concurrency.heartbeat_timeout_ms
        if not concurrency.is_shared:
            loaded = found, timeline
            return recover(table, self.clock, timeline.joined, timeout_ms, loaded, is_superseded)
        return recover_lazily(table, self.clock, timeout_ms, self._locked)

    def _locked(self) -> AbstractContextManager[object]:
        """Return the table's lock where there are several writers."""
        concurrency, owner = self.options.concurrency, self.ids.unique()
        if not concurrency.is_shared:
            return nullcontext()
        return held(self.storage, concurrency, owner, self.clock, self.pauses)

    def _properties(self, table: Table | None) -> TableProperties:
        if table is None:
            return TableProperties.create(self.options)
        properties = table.properties
        properties.check_writable()
        check_agreement(self.options, agreed_buckets(table, self.options.num_buckets))
        dropped = dropped_indexes(properties, self.options.metadata)
        refuse_metadata_table(table, self.options, dropped)
        return properties
