"""The commit of a batch, step by step; every step can be killed and done again.

merge staged rows, check for conflicts, put the manifest, drop files of lost attempts, put the
completed file, clean up. The manifest is the completed file's bytes: once it is there, recovery
can finish the commit without the tasks (the window between a checkpoint and its commit, which
loses rows in other writers).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache

from hoodie_ds.errors import (
    AlreadyExistsError,
    CommitOutcomeUnknownError,
    NotFoundError,
    StorageError,
    TimelineError,
    UnavailableError,
    WriteConflictError,
)
from hoodie_ds.handles.context import WriteStatus
from hoodie_ds.services.prepared import newest_manifest
from hoodie_ds.services.rollback import target_of
from hoodie_ds.sink.assignment import mixed_views
from hoodie_ds.sink.batch import Batch
from hoodie_ds.sink.commit_record import commit_record, joined
from hoodie_ds.sink.messages import StagedRows, TaskCommitMessage
from hoodie_ds.sink.open_instant import owner_of
from hoodie_ds.sink.replacement import replaced_groups
from hoodie_ds.sink.replay_guard import CHECKPOINT_KEY, ReplayGuard
from hoodie_ds.sink.staged_merge import merge_all_staged
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.file_slice import FileGroupId
from hoodie_ds.timeline.commit_metadata import CommitMetadata
from hoodie_ds.timeline.instant import WRITE_ACTIONS, Action, Instant, State
from hoodie_ds.timeline.paths import (
    commit_path,
    instant_path,
    manifest_path,
    marked_file,
    temp_folder,
    tombstone_path,
)
from hoodie_ds.timeline.timeline import Timeline, load_timeline, read_commit

_log = logging.getLogger("hoodie_ds")


def complete(messages: Sequence[TaskCommitMessage]) -> None:
    """Commit what tasks wrote.

    Parameters
    ----------
    messages : sequence of TaskCommitMessage
        From every task that had rows; at least one.

    Raises
    ------
    HoodieError
        See `Coordinator.commit`.
    """
    batch, time = _agreed(messages)
    storage = batch.table.storage
    timeline = load_timeline(storage)
    instant = Instant(time, batch.action, State.INFLIGHT)
    if _is_done(messages[0], timeline):
        return
    _check_not_undone(batch, timeline, instant)
    prepared = newest_manifest(storage, time)
    if prepared is not None and _holds(prepared[1], messages[0]):
        _finish(batch, instant, *prepared)  # a first try got as far as the manifest
        return
    statuses = [status for message in messages for status in message.statuses]
    staged = [part for message in messages for part in message.staged]
    _check_no_group_twice(statuses, staged)
    if staged and not all(message.owns_keys for message in messages):
        _warn_unshuffled(storage.root)
    statuses += merge_all_staged(batch, time, staged, statuses)
    partitions = {path for message in messages for path in message.partitions}
    partitions |= {status.stat.partition_path for status in statuses}
    replaced = replaced_groups(batch, partitions)
    _check_conflicts(batch, timeline, statuses, replaced)
    before = batch.timeline.prepared
    guard = ReplayGuard.load(storage, timeline.with_prepared(before))
    others = [i.time for i in timeline.pending if i.action in WRITE_ACTIONS and i.time != time]
    record = commit_record(batch, messages, statuses, guard, others, replaced)
    number = 1
    if before is not None:
        record = joined(read_commit(storage, before), record, commit_path(before))
        number = before.num_batches + 1
    body = record.to_bytes()
    _put_whole(storage, manifest_path(time, number), body)
    if messages[0].batch_id is None:
        number = batch.options.batches_per_commit  # no further batch will come
    _finish(batch, instant, number, body)


def _is_done(message: TaskCommitMessage, timeline: Timeline) -> bool:
    """Whether the batch is in the table; its instant may have been completed without it."""
    assert message.instant_time is not None
    completed = timeline.commit_at(message.instant_time)
    if message.batch_id is None:
        return completed is not None
    storage = message.batch.table.storage
    if ReplayGuard.load(storage, timeline).holds(message.batch_id):
        return True
    if completed is not None:
        raise TimelineError(
            f"{storage.root}: another writer completed instant {completed.time} before this batch "
            "of it was written, so the batch is not committed; run it again"
        )
    return False


def _check_not_undone(batch: Batch, timeline: Timeline, instant: Instant) -> None:
    storage = batch.table.storage
    undone = owner_of(storage, instant) != batch.owner or any(
        target_of(storage, pending) == instant.time
        for pending in timeline.pending
        if pending.action is Action.ROLLBACK
    )
    if undone:
        raise TimelineError(
            f"{storage.root}: instant {instant.time} was rolled back while this batch was written "
            "under it, so the batch is not committed; is a second writer at work on the table?"
        )


def _holds(manifest: bytes, message: TaskCommitMessage) -> bool:
    """Whether a manifest of the instant is of this very batch already, or of a later one."""
    if message.batch_id is None:
        return False
    path = "a pending-commit manifest"
    text = CommitMetadata.from_bytes(manifest, path).extra.get(CHECKPOINT_KEY, "{}")
    return ReplayGuard.parse(text, path).holds(message.batch_id)


def _finish(batch: Batch, instant: Instant, number: int, manifest: bytes) -> None:
    """Complete an instant that has all of its batches."""
    if number < batch.options.batches_per_commit:
        return
    storage = batch.table.storage
    _delete_unnamed(storage, instant.time, manifest)
    _put_completed(storage, instant.at(State.COMPLETED), manifest)
    try:
        storage.delete(temp_folder(instant.time))
    except StorageError as error:
        # The batch is in the table: to report a failure would have it written twice.
        _log.warning("%s: the next batch will clean up after this one: %s", storage.root, error)


def is_complete(message: TaskCommitMessage) -> bool:
    """Whether the instant of a message is a completed one."""
    assert message.instant_time is not None
    timeline = load_timeline(message.batch.table.storage)
    return timeline.commit_at(message.instant_time) is not None


def give_up(message: TaskCommitMessage) -> None:
    """Leave a tombstone for the instant of a message."""
    assert message.instant_time is not None
    with suppress(AlreadyExistsError):
        message.batch.table.storage.put_if_absent(tombstone_path(message.instant_time), b"")


def _agreed(messages: Sequence[TaskCommitMessage]) -> tuple[Batch, str]:
    """The batch and instant time that all tasks name; mixed ones are an error, never a guess."""
    instants = {(message.batch_id, message.instant_time) for message in messages}
    batch, time = messages[0].batch, messages[0].instant_time
    if len(instants) > 1 or time is None:
        raise TimelineError(f"tasks of one batch wrote under several instants: {sorted(instants)}")
    if len({m.assigned_by for m in messages}) > 1:
        raise WriteConflictError(mixed_views())
    looked_up = batch.index is not None and batch.layout is None
    if looked_up and len({m.owns_keys for m in messages}) > 1:
        # One task may have written a key that another one left to this commit.
        raise WriteConflictError(
            "some rows are where shuffle_by_file_group sent them and others are not; hand its "
            "result to the writer as it is, without another repartition or union"
        )
    return batch, time


def _check_no_group_twice(statuses: Sequence[WriteStatus], staged: Sequence[StagedRows]) -> None:
    seen: set[FileGroupId] = {part.group for part in staged}
    for status in statuses:
        if status.stat.log is None:
            if status.group in seen:
                raise WriteConflictError(
                    f"two tasks wrote a base file of file group {status.group}; hand the result "
                    "of shuffle_by_file_group to the writer as it is, without another repartition"
                )
            seen.add(status.group)


@lru_cache(maxsize=1024)
def _warn_unshuffled(root: str) -> None:
    """Warn once for a table in the life of a process."""
    _log.warning(
        "%s: rows of one file group come to several tasks, so every commit has to merge them; "
        "write hoodie_ds.shuffle_by_file_group(df, opts) instead of df to let the tasks do it",
        root,
    )


def _delete_unnamed(storage: Storage, time: str, manifest: bytes) -> None:
    """Delete files of this instant that its manifest does not name: they are of lost attempts."""
    named = CommitMetadata.from_bytes(manifest, manifest_path(time)).file_paths
    for marker in storage.list(temp_folder(time), recursive=True):
        path = marked_file(time, marker.path)
        if path is not None and path not in named:
            storage.delete(path)


def _check_conflicts(
    batch: Batch,
    timeline: Timeline,
    statuses: Sequence[WriteStatus],
    replaced: Mapping[str, Sequence[str]],
) -> None:
    """Refuse if a commit that this batch did not see touched the same file groups.

    To what a batch replaces also belongs what has since been added to the same partitions.
    """
    touched = {status.group for status in statuses}
    touched |= {FileGroupId(path, file_id) for path, ids in replaced.items() for file_id in ids}
    for instant in timeline.commits:
        if batch.timeline.is_committed(instant.time):
            continue
        commit = read_commit(batch.table.storage, instant)
        others = {FileGroupId(stat.partition_path, stat.file_id) for stat in commit.stats}
        others |= {FileGroupId(p, file_id) for p, ids in commit.replaced.items() for file_id in ids}
        common = sorted(touched & others) or [g for g in others if g.partition_path in replaced]
        if common:
            raise WriteConflictError(
                f"{batch.table.storage.root}: commit {instant.time} changed file group "
                f"{common[0]} while this batch was written; the batch is not committed and can "
                "be run again"
            )


def _put_whole(storage: Storage, path: str, body: bytes) -> None:
    """Put a file that an earlier try of the same commit may have put already."""
    try:
        storage.put_if_absent(path, body)
    except AlreadyExistsError:
        storage.replace(path, body)


def _put_completed(storage: Storage, completed: Instant, body: bytes) -> None:
    path = instant_path(completed)
    try:
        storage.put_if_absent(path, body)
    except StorageError as error:
        # The put may have taken effect although its answer was lost: what counts is what is there.
        try:
            found = storage.read(path)
        except StorageError as unreadable:
            # Not there yet says little: a request without an answer may still arrive.
            if isinstance(unreadable, NotFoundError) and not isinstance(error, UnavailableError):
                raise error from None
            raise CommitOutcomeUnknownError(
                f"{storage.root}/{path}: the answer to the commit was lost ({error}) and reading "
                f"it back failed ({unreadable}); nothing was deleted, the next start of the query "
                "finds out"
            ) from error
        if found != body:
            raise TimelineError(
                f"{storage.root}/{path} exists and is not this batch's: a second writer completed "
                "the instant"
            ) from error
