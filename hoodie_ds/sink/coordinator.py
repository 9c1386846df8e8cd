"""The operator coordinator of RFC-24: it begins, commits and aborts batches.

It keeps nothing in memory between its entry points, as Spark calls them in different processes:
what it knows is on the timeline, or travels with the tasks (`Batch`, `TaskCommitMessage`).

The commit point is one put-if-absent of the completed file, which names every file of the batch.
Before it nothing of the batch is visible; after it nothing can take it away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import pyarrow as pa

from hoodie_ds.config.enums import Operation
from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.environment import Clock, IdSource, Pauses, RandomIds, RandomPauses, SystemClock
from hoodie_ds.errors import OptionError, TableNotFoundError, TimelineError
from hoodie_ds.index.choice import choose_index
from hoodie_ds.record.keys.keygen import KeyGenerator
from hoodie_ds.sink.batch import Batch, key_spec, write_action
from hoodie_ds.sink.commit.commit import complete, give_up, is_complete
from hoodie_ds.sink.commit.commit_record import replaced_groups
from hoodie_ds.sink.messages import TaskCommitMessage, WriteResult
from hoodie_ds.sink.open_instant import ensure_table, go_on, open_instant
from hoodie_ds.sink.pinned_view import forget_views
from hoodie_ds.sink.replay.past_writers import mark
from hoodie_ds.sink.replay.replay import check_replay, informed
from hoodie_ds.sink.replay.superseded import is_superseded
from hoodie_ds.sink.replay_guard import ReplayGuard
from hoodie_ds.sink.write_checks import (
    check_ordering,
    check_timeline,
    resolve_operation,
    stored_schema,
)
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.storage.probe import check_condition_obeyed
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.hashing_config import complete_hashing_config
from hoodie_ds.table.table import (
    Table,
    check_outside_tables,
    drop_metadata_table,
    find_table,
)
from hoodie_ds.table.table_schema import table_schema
from hoodie_ds.timeline.instant_time import next_time
from hoodie_ds.timeline.rollbacks import refuse_restore
from hoodie_ds.timeline.timeline import Timeline, load_timeline
from hoodie_ds.transaction.lock import held
from hoodie_ds.transaction.manifest import find_prepared
from hoodie_ds.transaction.ownership import owner_text
from hoodie_ds.transaction.recovery import recover, recover_lazily
from hoodie_ds.transaction.sweep import left_over

_BATCHES_PER_COMMIT: Final = "hoodie.streaming.batches.per.commit"
_METADATA: Final = "hoodie.metadata.enable"


@dataclass(frozen=True)
class Coordinator:
    """Begins, commits and aborts the batches of one writer of one table.

    Parameters
    ----------
    options : WriteOptions
        How to write.
    storage : Storage
        Rooted at the table's base path.
    clock : Clock
        Where times come from.
    ids : IdSource
        Where the identity of an attempt comes from.
    pauses : Pauses
        Waits for the lock, where there are several writers.
    """

    options: WriteOptions
    storage: Storage
    clock: Clock
    ids: IdSource
    pauses: Pauses = field(default_factory=RandomPauses)

    @classmethod
    def of(cls, options: WriteOptions) -> Coordinator:
        """Return the coordinator of this machine's clock, random source and file systems."""
        storage = open_storage(
            options.base_path,
            options.storage_options,
            options.allow_non_atomic_storage,
            retry_ms=options.storage_retry_ms,
        )
        return cls(options, storage, SystemClock(), RandomIds())

    def begin(self, schema: pa.Schema, query_id: str = "") -> Batch:
        """Decide everything about a batch, before any of its tasks runs.

        Checks options, table and schema; recovers what an earlier, failed attempt left; reads the
        replay guard; proposes an instant time later than all others. Writes nothing of the batch
        itself: its first row creates the table, if there is none, and opens the instant.

        Parameters
        ----------
        schema : pyarrow.Schema
            Columns of the batch as they will arrive.
        query_id : str
            The streaming query, if it is known already; for the instant's record only.

        Returns
        -------
        Batch

        Raises
        ------
        HoodieError
            An option, the table or the schema does not allow the write. The table is as before.
        """
        found = left_over(self.storage)  # before the timeline is loaded
        batch = self.preview(schema, query_id)
        if batch.creation_ms is not None:
            check_outside_tables(self.storage.root, self._open)
            if not self.options.allow_non_atomic_storage:
                check_condition_obeyed(self.storage, self.ids.unique())
        table, timeline = batch.table, batch.timeline
        if batch.creation_ms is None:
            if table.properties.metadata_partitions:
                table = drop_metadata_table(table, self.clock.now_ms())
            complete_hashing_config(table)
            timeline = self._recover(table, timeline, found)
            if timeline.digest != batch.timeline.digest:  # what was chosen may not fit any more
                batch = self.preview(schema, query_id, timeline)
        guard = ReplayGuard.load(self.storage, timeline)
        if batch.index is not None and batch.layout is None:
            forget_views(self.storage, guard)
        utc = table.properties.timeline_in_utc
        time = next_time(self.clock.now_ms(), utc, timeline.latest_time)
        batch = replace(batch, table=table, timeline=timeline, guard=guard, proposed_time=time)
        return batch if timeline.prepared is None else go_on(batch, timeline.prepared)

    def preview(
        self, schema: pa.Schema, query_id: str = "", timeline: Timeline | None = None
    ) -> Batch:
        """Decide what can be decided by reading alone; changes nothing.

        For tasks upstream of the batch, which assign its rows to file groups.

        Parameters
        ----------
        schema, query_id
            See `begin`.
        timeline : Timeline, optional
            The table as it is to be seen; as it is now by default.

        Raises
        ------
        HoodieError
            An option, the table or the schema does not allow the write.
        """
        table = find_table(self.storage)
        properties = self._properties(table)
        operation = resolve_operation(self.options, properties)
        if self.options.batches_per_commit > 1 and operation.replaces:
            raise OptionError(
                _BATCHES_PER_COMMIT,
                self.options.batches_per_commit,
                f"{operation.value} replaces file groups and takes an instant for each batch",
            )
        if timeline is None:
            timeline = self._view(table)
        refuse_restore(self.storage.root, timeline)
        check_timeline(timeline, properties)
        if table is None and operation in (Operation.DELETE, Operation.DELETE_PARTITION):
            raise TableNotFoundError(
                f"{self.storage.root} holds no Hudi table to delete from; check the path"
            )
        index, layout = None, None
        if properties.record_key_fields:
            index, layout = choose_index(properties, self.options, table, timeline)
        stored = table_schema(table, timeline) if table else None
        columns = stored_schema(schema, stored, properties, operation, self.options)
        check_ordering(columns, properties)
        KeyGenerator.of(key_spec(properties, self.options))  # refuses what it cannot work with
        attempt = self.ids.unique()
        return Batch(
            table=table or Table(self.storage, properties),
            options=self.options,
            operation=operation,
            index=index,
            layout=layout,
            schema=columns,
            timeline=timeline,
            guard=ReplayGuard(),
            proposed_time="",
            attempt=attempt,
            owner=self._owner(query_id, attempt),
            creation_ms=self.clock.now_ms() if table is None else None,
        )

    def view(self) -> Timeline:
        """Load the timeline as the next batch would see it, with what its instant holds already."""
        return self._view(find_table(self.storage))

    def commit(self, messages: Sequence[TaskCommitMessage | None]) -> WriteResult:
        """Make a batch part of the table, in one step.

        Idempotent: a batch that is in the table already is left alone, if it has the same rows.

        Parameters
        ----------
        messages : sequence of TaskCommitMessage or None
            One from every task.

        Returns
        -------
        WriteResult
            What became of the batch.

        Raises
        ------
        TimelineError
            A task did not report, or the instant was rolled back meanwhile.
        ReplayMismatchError
            The batch is in the table already, with other rows.
        WriteConflictError
            Another writer changed a file group that this batch changes, or plans to rewrite it,
            inserted one of its keys, or added columns that do not go together with its own.
        UnsupportedTableError
            Another engine upgraded the table meanwhile; nothing is left of the batch.
        LockTimeoutError
            Other writers held the table's lock all the time.
        CommitOutcomeUnknownError
            It could not be found out whether the commit took effect.
        """
        reported = [message for message in messages if message is not None]
        if len(reported) < len(messages):
            missing = len(messages) - len(reported)
            raise TimelineError(
                f"{missing} of {len(messages)} tasks did not report; nothing was committed"
            )
        written = [message for message in reported if message.instant_time is not None]
        if written:
            return self._complete(written)
        return self._commit_nothing_written(reported) if reported else WriteResult()

    def abort(self, messages: Sequence[TaskCommitMessage | None]) -> None:
        """Give a batch up, unless it is in the table already.

        Nothing is deleted here, since tasks may still be writing: the next `begin` rolls back.

        Parameters
        ----------
        messages : sequence of TaskCommitMessage or None
            From the tasks that had finished.
        """
        for message in messages:
            if message and message.instant_time is not None and not is_complete(message):
                give_up(message)
                return

    def _view(self, table: Table | None) -> Timeline:
        if table is None:
            return Timeline()
        timeline = load_timeline(self.storage)
        action = write_action(table.properties, resolve_operation(self.options, table.properties))
        spanned = self.options.batches_per_commit
        return timeline.with_prepared(
            find_prepared(table, timeline, action, spanned, is_superseded)
        )

    def _owner(self, query_id: str, attempt: str) -> str:
        shared, spans = self.options.concurrency.is_shared, self.options.batches_per_commit > 1
        return owner_text(query_id, attempt, shared, spans)

    def _open(self, folder: str) -> Storage:
        """Open a folder near the table for reading."""
        options = self.options
        return open_storage(
            folder, options.storage_options, for_write=False, retry_ms=options.storage_retry_ms
        )

    def _complete(self, messages: Sequence[TaskCommitMessage]) -> WriteResult:
        statuses = complete(messages, self.clock, self.pauses, self.ids)
        return WriteResult.of(str(messages[0].instant_time), statuses)

    def _commit_nothing_written(self, messages: Sequence[TaskCommitMessage]) -> WriteResult:
        """Commit a batch of which no task opened the instant, if there is a reason to."""
        batch, batch_id = messages[0].batch, messages[0].batch_id
        if batch_id is not None:
            batch = informed(batch, batch_id)
        if messages[0].already_committed:
            check_replay(messages, batch.guard)
            return WriteResult(already_committed=True)
        ensure_table(batch, with_schema=True)
        partitions = {path for message in messages for path in message.partitions}
        if batch.options.allow_empty_commit or replaced_groups(batch, partitions):
            time = open_instant(batch)
            return self._complete([replace(message, instant_time=time) for message in messages])
        if batch_id not in (None, batch.given_id) and batch.guard.name_of(batch_id) is None:
            mark(self.storage, batch_id)
        return WriteResult()

    def _recover(
        self, table: Table, timeline: Timeline, found: Mapping[str, frozenset[str]]
    ) -> Timeline:
        concurrency = self.options.concurrency
        timeout_ms = concurrency.heartbeat_timeout_ms
        if not concurrency.is_shared:
            looked = found, timeline
            return recover(table, self.clock, timeline.prepared, timeout_ms, looked, is_superseded)
        owner = self.ids.unique()
        lock = partial(held, self.storage, concurrency, owner, self.clock, self.pauses)
        return recover_lazily(table, self.clock, timeout_ms, lock)

    def _properties(self, table: Table | None) -> TableProperties:
        if table is None:
            return TableProperties.create(self.options)
        properties = table.properties
        properties.check_writable()
        properties.check_agrees(self.options)
        if properties.metadata_partitions and self.options.metadata_enable is not False:
            partitions = ", ".join(properties.metadata_partitions)
            raise OptionError(
                _METADATA,
                self.options.metadata_enable,
                f"table {properties.name!r} has a metadata table ({partitions}), which this "
                "release cannot keep up to date; set it to false to drop the metadata table with "
                "the first write, as Hudi does",
            )
        return properties
