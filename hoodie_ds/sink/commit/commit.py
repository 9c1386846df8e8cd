"""The commit of a batch, step by step; every step can be killed and repeated.

1. Merge staged rows into their file groups. 2. Check for conflicts with other writers. 3. Put the
manifest: the bytes of the completed file. 4. Delete files of lost task attempts. 5. Append the
decision to the log. 6. Put the completed file, and clean up.

Once the manifest is there (and, among several writers, decided), recovery can finish the commit
without the tasks. Other writers lose rows in that window, between a checkpoint and its commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, partial

from hoodie_ds.environment import Clock, IdSource, Pauses
from hoodie_ds.errors import (
    AlreadyExistsError,
    ClusteringConflictError,
    CommitOutcomeUnknownError,
    HoodieError,
    NotFoundError,
    TableNotFoundError,
    TimelineError,
    UnsupportedTableError,
    WriteConflictError,
)
from hoodie_ds.handles.context import WriteStatus
from hoodie_ds.index.protocol import LookupIndex
from hoodie_ds.log import Log
from hoodie_ds.sink.batch import Batch
from hoodie_ds.sink.commit.commit_record import commit_record, joined, replaced_groups
from hoodie_ds.sink.commit.conflicts import (
    check_based,
    check_groups,
    check_new_keys,
    check_not_cleaned,
    merged_schema,
)
from hoodie_ds.sink.commit.staged_merge import merge_all_staged
from hoodie_ds.sink.hidden_columns import mixed_timelines
from hoodie_ds.sink.messages import StagedRows, TaskCommitMessage
from hoodie_ds.sink.replay.past_writers import put_aside, recall
from hoodie_ds.sink.replay.replay import check_none_missed, check_replay
from hoodie_ds.sink.replay.superseded_batches import check_held_by_no_other
from hoodie_ds.sink.replay_guard import ReplayGuard
from hoodie_ds.sink.write_checks import check_indexed_paths
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.file_slice import FileGroupId
from hoodie_ds.table.schema_on_read import ALTER_SCHEMA, FIRST_KEY, LATEST_SCHEMA_KEY
from hoodie_ds.table.table import open_table
from hoodie_ds.table.table_schema import added_with, avro_schema, numbered_by
from hoodie_ds.timeline.bodies.commit_metadata import DECISION_KEY, CommitMetadata
from hoodie_ds.timeline.bodies.key_files import KeyFiles, key_files_of
from hoodie_ds.timeline.instant import WRITE_ACTIONS, Instant
from hoodie_ds.timeline.loading import is_archived, load_timeline, read_commit
from hoodie_ds.timeline.paths import (
    aborted_path,
    commit_path,
    manifest_path,
)
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction import heartbeat
from hoodie_ds.transaction.decision_log import Outcome, newest_decision
from hoodie_ds.transaction.exclusive_commit import (
    Exclusion,
    check_not_undone,
    delete_own_lost,
    excluding,
    heartbeating,
    store_summaries,
)
from hoodie_ds.transaction.instant_checks import check_table_unchanged, translate_rollback_errors
from hoodie_ds.transaction.resolution import resolve_instant


def complete(
    messages: Sequence[TaskCommitMessage], clock: Clock, pauses: Pauses, ids: IdSource
) -> tuple[Instant, list[WriteStatus]] | None:
    """Commit what tasks wrote, given messages of all tasks that had rows, at least one.

    Returns the instant as it is now, and the files; None if the batch was in the table before. For
    errors see `Coordinator.commit`.
    """
    try:
        return _complete(messages, clock, pauses, ids)
    except (TimelineError, UnsupportedTableError, WriteConflictError) as refusal:
        if _is_in_changed_table(messages, refusal):
            return None
        raise


def _complete(
    messages: Sequence[TaskCommitMessage], clock: Clock, pauses: Pauses, ids: IdSource
) -> tuple[Instant, list[WriteStatus]] | None:
    batch, time = _agreed(messages)
    pending, storage = batch.pending, batch.plan.table.storage
    instant = pending.inflight(time)
    timeline = load_timeline(storage, instant.layout)
    # Tasks took time to write. After the timeline is loaded, as an upgrade moves it away.
    check_table_unchanged(pending, instant)
    if _check_done(messages, timeline):
        return None
    check_not_undone(pending, timeline, instant)
    with translate_rollback_errors(pending, time), heartbeating(pending, time):
        # Otherwise each try has the same files, and the put of the manifest finds an earlier one.
        may_differ = batch.plan.options.batches_per_commit > 1 or any(m.staged for m in messages)
        tried = _first_try(messages[0]) if may_differ else None
        statuses, merged = _tried(tried) if tried else _all_files(batch, time, messages, ids)
        messages = [
            replace(messages[0], key_files={**messages[0].key_files, **merged}),
            *messages[1:],
        ]
        with excluding(pending, clock, pauses) as exclusion:
            step = partial(_try_to_commit, messages, instant, statuses, tried, timeline, exclusion)
            while (committed := step()) is None:
                pass
    if pending.concurrency.is_shared:
        heartbeat.stop(storage, time)
    return committed, statuses


def _all_files(
    batch: Batch, time: str, messages: Sequence[TaskCommitMessage], ids: IdSource
) -> tuple[list[WriteStatus], KeyFiles]:
    """Merge staged rows; return the files written, here and by tasks, and those of keys here."""
    statuses = [status for message in messages for status in message.statuses]
    staged = [part for message in messages for part in message.staged]
    _check_no_group_twice(statuses, staged)
    if staged and not all(message.owns_keys for message in messages):
        _warn_unshuffled(batch.plan.table.storage.root)
    merged, key_files = merge_all_staged(batch, time, staged, statuses, ids.unique())
    return statuses + merged, key_files


def _first_try(message: TaskCommitMessage) -> bytes | None:
    """Return the manifest of an earlier try to commit the same batch.

    `WriteConflictError` if another query has continued the same instant meanwhile.
    """
    batch, time = message.batch, message.instant_time
    if message.batch_id is None or time is None:
        return None
    with suppress(NotFoundError):
        path = manifest_path(time, _number(batch))
        manifest = batch.plan.table.storage.read(path)
        extra = CommitMetadata.from_bytes(manifest, path).extra
        if ReplayGuard.parse(extra, path).holds(message.batch_id):
            return manifest
        again = batch.plan.options.concurrency.remedy
        raise WriteConflictError(
            f"{batch.plan.table.storage.root}: another query continued instant {time} while this "
            f"batch was written, so the batch is not committed; run it again: {again}"
        )
    return None


def _tried(manifest: bytes) -> tuple[list[WriteStatus], KeyFiles]:
    commit = CommitMetadata.from_bytes(manifest, "manifest")
    statuses = [WriteStatus.of(stat, commit.checksums) for stat in commit.stats]
    return statuses, key_files_of(commit.extra)


def _number(batch: Batch) -> int:
    """How many micro-batches the instant holds with this one."""
    return batch.pending.batches_before + 1


def _try_to_commit(
    messages: Sequence[TaskCommitMessage],
    instant: Instant,
    statuses: Sequence[WriteStatus],
    tried: bytes | None,
    timeline: Timeline,
    exclusion: Exclusion,
) -> Instant | None:
    """Check for conflicts, put the manifest, decide and complete.

    Returns the instant as it is now; None if other writers decided something meanwhile, and the
    commit must be tried again.
    """
    batch, pending = messages[0].batch, exclusion.pending
    number, spanned = _number(batch), batch.plan.options.batches_per_commit
    known, timeline = timeline, exclusion.apply_pending(timeline)
    if pending.concurrency.is_shared or any(message.staged for message in messages):
        # The lock or the merge of staged rows took time; otherwise it was checked just now.
        check_table_unchanged(pending, instant)
    if timeline is not known:
        if _check_done(messages, timeline):
            return timeline.commit_at(instant.time) or instant
        check_not_undone(pending, timeline, instant)
    batch_id = messages[0].batch_id
    if batch_id is not None and not pending.concurrency.is_shared:
        check_held_by_no_other(pending.storage, batch_id, instant.time, timeline)
    if tried is None or spanned == 1:
        try:
            record = _checked_record(messages, instant, statuses, timeline, exclusion.number)
        except ClusteringConflictError as conflict:
            if not batch.plan.options.clustering.gives_way:
                raise
            _cancel_clustering(batch, conflict, timeline, exclusion)
            return None
        body = record.to_bytes(instant.layout)
        _put_manifest(messages[0], manifest_path(instant.time, number), body)
    else:
        check_based(batch.plan, timeline)
        body = tried  # with earlier batches in the instant
        record = CommitMetadata.from_bytes(body, "manifest")
    waits = number < spanned and batch_id is not None
    if not waits:
        delete_own_lost(pending, instant.time, record.file_paths)
    if pending.concurrency.is_shared:  # the manifest makes their keys visible here
        with_manifest = replace(instant, num_batches=1)
        check_new_keys(batch.plan, with_manifest, timeline)
    if waits:
        return instant if exclusion.append(Outcome.KEEP_OPEN, instant) else None
    ranges = {status.stat.path: status.ranges for status in statuses}
    named = {path: ranges.get(path, {}) for path in record.file_paths}
    completed = exclusion.complete(instant, body, record.entries_of_all, named)
    if completed is not None:
        store_summaries(pending.storage, timeline.with_joined(completed))
    return completed


def _cancel_clustering(
    batch: Batch, conflict: ClusteringConflictError, timeline: Timeline, exclusion: Exclusion
) -> None:
    """Roll back, by a decision, a clustering that was planned for what a batch changes."""
    time = conflict.instant_time
    log = Log(batch.plan.table.storage.root, time)
    log.warning("clustering %s was planned for what a batch changes, and is rolled back", time)
    for clustering in timeline.at(time):
        resolve_instant(batch.plan.table, clustering, exclusion.clock)


def _checked_record(
    messages: Sequence[TaskCommitMessage],
    instant: Instant,
    statuses: Sequence[WriteStatus],
    timeline: Timeline,
    checked_after: int,
) -> CommitMetadata:
    """Check for conflicts, and return the content of the commit."""
    batch = messages[0].batch
    storage = batch.plan.table.storage
    partitions = {path for message in messages for path in message.partitions}
    partitions |= {status.stat.partition_path for status in statuses}
    written = {status.group for status in statuses}
    check_indexed_paths(batch.plan.table, {group.partition_path for group in written})
    replaced = replaced_groups(batch.plan, partitions, written)
    check_based(batch.plan, timeline)
    check_not_cleaned(batch.plan, timeline)
    check_groups(batch.plan, instant.time, timeline, written, replaced)
    columns, change = merged_schema(batch.plan, instant.time, timeline), batch.plan.columns
    schema = batch.plan.avro_schema
    if change is None:
        schema = avro_schema(batch.plan.table, timeline, columns)
    before = batch.plan.timeline.joined
    timeline = timeline.with_joined(before)
    added = change.added if change else added_with(batch.plan.table, timeline, columns)
    guard, of_all = ReplayGuard.load(storage, timeline), None
    if next((i.time for i in timeline.commits_backwards()), "") > instant.time:
        guard, of_all = ReplayGuard.load_until(storage, timeline, instant.time), guard
    if messages[0].batch_id is not None:
        guard = recall(storage, timeline, guard, messages[0].batch_id)
    writes = (i.time for i in timeline.pending if i.action in WRITE_ACTIONS)
    others = [time for time in writes if time != instant.time]
    given = statuses, guard, of_all, others, replaced, schema, added
    record, left_out = commit_record(batch.plan, messages, *given)
    if left_out:  # before any process can complete the commit without them
        put_aside(storage, timeline, instant.time, left_out)
    if batch.plan.numbered:
        numbered = numbered_by(batch.plan.numbered, batch.plan.table, timeline, instant.time)
        record = record.with_extra({LATEST_SCHEMA_KEY: numbered})
    if change is not None:
        first = {FIRST_KEY: f"[{change.first}]"} if change.first else {}
        record = replace(record.with_extra(first), operation_type=ALTER_SCHEMA)
    if before is not None:
        record = joined(read_commit(storage, before), record, commit_path(before))
    # Of several batches any process that finds the manifest completes it.
    if batch.plan.options.batches_per_commit == 1:
        record = record.with_extra({DECISION_KEY: str(checked_after)})
    return record


def _check_done(messages: Sequence[TaskCommitMessage], timeline: Timeline) -> bool:
    """Whether the batch is in the table; refuses one that cannot be committed.

    It may be there with other rows (`ReplayMismatchError`), batches before it may be missing
    (`MissedBatchesError`), or its instant was completed without it (`TimelineError`).
    """
    message, storage = messages[0], messages[0].batch.plan.table.storage
    assert message.instant_time is not None
    completed = timeline.commit_at(message.instant_time)
    if message.batch_id is None and (
        completed is None or completed.action is message.batch.plan.action
    ):
        return completed is not None or _is_archived(storage, timeline, message.instant_time)
    if message.batch_id is not None:
        guard = ReplayGuard.load(storage, timeline)
        guard = recall(storage, timeline, guard, message.batch_id)
        if guard.holds(message.batch_id):
            check_replay(messages, guard)
            return True
        # The guard of the batch also knows earlier batches in the same instant.
        check_none_missed(message.batch, message.batch_id, guard.merged(message.batch.guard))
    if completed is not None:
        again = message.batch.plan.options.concurrency.remedy
        raise TimelineError(
            f"{storage.root}: another writer completed instant {completed.time} before this batch "
            f"of it was written, so the batch is not committed; run it again: {again}"
        )
    return False


def _is_in_changed_table(messages: Sequence[TaskCommitMessage], refusal: HoodieError) -> bool:
    """Whether a batch is in its table, whose properties others have changed, or are changing.

    A version change first completes an instant whose writer seems dead, and then moves it.
    """
    batch, time = _agreed(messages)
    storage = batch.plan.table.storage
    try:
        table, newest = open_table(storage), newest_decision(storage)
        is_changing = newest is not None and newest.table_version is not None
        if table.properties.same_table(batch.plan.table.properties) and not is_changing:
            return False
        timeline = table.load_timeline()
        if _is_archived(storage, timeline, time):
            return True
    except HoodieError as error:
        raise CommitOutcomeUnknownError(
            f"{storage.root}: others changed the table while instant {time} was written, and "
            f"whether they completed it is unknown, since the table cannot be read: {error}"
        ) from refusal
    return _check_done(messages, timeline)


def _is_archived(storage: Storage, timeline: Timeline, time: str) -> bool:
    """Whether others have completed the instant of a time and archived it."""
    return timeline.starts_after(time) and is_archived(storage, timeline, time)


def is_complete(message: TaskCommitMessage) -> bool:
    """Whether the instant of a message is completed."""
    table, time = message.batch.plan.table, message.instant_time
    assert time is not None
    timeline = table.load_timeline()
    is_active = timeline.commit_at(time) is not None
    return is_active or _is_archived(table.storage, timeline, time)


def give_up(message: TaskCommitMessage) -> None:
    """Mark the instant of a message as aborted, so that others roll it back at once."""
    assert message.instant_time is not None
    pending, storage = message.batch.pending, message.batch.plan.table.storage
    try:
        # No other step checks it for a batch that is not committed.
        check_table_unchanged(pending, pending.inflight(message.instant_time))
    except UnsupportedTableError:
        return  # nothing is left of the batch
    except (TableNotFoundError, WriteConflictError):
        pass
    with suppress(AlreadyExistsError):
        storage.put_if_absent(aborted_path(message.instant_time), b"")
    if pending.concurrency.is_shared:
        heartbeat.stop(storage, message.instant_time)


def _agreed(messages: Sequence[TaskCommitMessage]) -> tuple[Batch, str]:
    """The batch and instant time that all tasks name; different ones are an error."""
    instants = {(message.batch_id, message.instant_time) for message in messages}
    batch, time = messages[0].batch, messages[0].instant_time
    if len(instants) > 1 or time is None:
        raise TimelineError(f"tasks of one batch wrote under several instants: {sorted(instants)}")
    if len({m.assigned_by for m in messages}) > 1:
        raise WriteConflictError(mixed_timelines())
    if isinstance(batch.plan.index, LookupIndex) and len({m.owns_keys for m in messages}) > 1:
        # One task may have written a key that another one left to this commit.
        raise WriteConflictError(
            "some rows are where shuffle_by_file_group sent them and others are not; pass its "
            "result to the writer unchanged, without another repartition or union"
        )
    return batch, time


def _check_no_group_twice(statuses: Sequence[WriteStatus], staged: Sequence[StagedRows]) -> None:
    """Refuse a base file beside what another task has of its file group.

    In layout 1 log files of the slice before the base file do not count once that is there.
    """
    seen: set[FileGroupId] = {part.group for part in staged}
    logged = {status.group for status in statuses if status.stat.log is not None}
    for status in statuses:
        if status.stat.log is None:
            is_rewritten = status.stat.prev_commit != "null"
            if status.group in seen or (is_rewritten and status.group in logged):
                raise WriteConflictError(
                    f"another task wrote to file group {status.group} beside a base file; pass the "
                    "result of shuffle_by_file_group to the writer unchanged, without another "
                    "repartition, or run the batch again"
                )
            seen.add(status.group)


@lru_cache(maxsize=1024)
def _warn_unshuffled(root: str) -> None:
    """Warn once per table and process."""
    Log(root).warning(
        "rows of one file group come to several tasks, so every commit must merge them; "
        "write hoodie_ds.shuffle_by_file_group(df, opts) instead of df to let the tasks do it"
    )


def _put_manifest(message: TaskCommitMessage, path: str, body: bytes) -> None:
    """Put a manifest, also over one of an earlier try of the same commit."""
    storage = message.batch.plan.table.storage
    try:
        storage.put_if_absent(path, body)
    except AlreadyExistsError:
        _first_try(message)  # refuses that of another query
        storage.replace(path, body)
