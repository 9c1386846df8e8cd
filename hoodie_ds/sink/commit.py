"""The commit of a batch, step by step; every step can be killed and done again.

merge staged rows, drop files of lost attempts, check for conflicts, put the manifest, put the
completed file, clean up. The manifest is the completed file's bytes: once it is there, recovery
can finish the commit without the tasks (the window between a checkpoint and its commit, which
loses rows in other writers).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import Final

from hoodie_ds.config.clock import SystemClock
from hoodie_ds.errors import (
    AlreadyExistsError,
    CommitOutcomeUnknownError,
    NotFoundError,
    StorageError,
    TimelineError,
    WriteConflictError,
)
from hoodie_ds.handles.context import WriteContext, WriteStatus
from hoodie_ds.services.rollback import target_of
from hoodie_ds.sink.batch import Batch
from hoodie_ds.sink.global_writer import write_placed
from hoodie_ds.sink.key_shares import UNPLACED
from hoodie_ds.sink.messages import StagedRows, TaskCommitMessage, TaskId
from hoodie_ds.sink.metrics import METRICS_KEY, WriteMetrics
from hoodie_ds.sink.open_instant import owner_of
from hoodie_ds.sink.replacement import replaced_groups
from hoodie_ds.sink.replay_guard import BATCH_KEY, CHECKPOINT_KEY, ReplayGuard
from hoodie_ds.sink.staging import commit_context, merge_staged
from hoodie_ds.sink.task_writer import write_context
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.file_slice import FileGroupId, FileSlice
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.timeline.commit_metadata import SCHEMA_KEY, CommitMetadata
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.paths import (
    instant_path,
    manifest_path,
    marked_file,
    temp_folder,
    tombstone_path,
)
from hoodie_ds.timeline.timeline import Timeline, load_timeline, read_commit

CHECKSUMS_KEY: Final = "_hoodie_ds_checksums"
"""Key in a commit's extra metadata: JSON object of file path to xxh64."""

ROWS_KEY: Final = "_hoodie_ds_rows_in"
"""Key in a commit's extra metadata: number of rows that the batch brought."""

_MERGE_THREADS: Final = 2

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
    batch_id = messages[0].batch_id
    if timeline.commit_at(time) is not None:
        return
    if batch_id is not None and ReplayGuard.load(storage, timeline).holds(batch_id):
        return
    inflight = Instant(time, batch.action, State.INFLIGHT)
    undone = owner_of(storage, inflight) != batch.owner or any(
        target_of(storage, pending) == time
        for pending in timeline.pending
        if pending.action is Action.ROLLBACK
    )
    if undone:
        raise TimelineError(
            f"{storage.root}: instant {time} was rolled back while this batch was written under "
            "it, so the batch is not committed; is a second writer at work on the table?"
        )
    statuses = [status for message in messages for status in message.statuses]
    staged = [part for message in messages for part in message.staged]
    _check_no_group_twice(statuses, staged)
    statuses += _merge_all_staged(batch, time, staged)
    _delete_unnamed(storage, time, statuses)
    partitions = {path for message in messages for path in message.partitions}
    partitions |= {status.stat.partition_path for status in statuses}
    replaced = replaced_groups(batch, partitions)
    _check_conflicts(batch, timeline, statuses, replaced)
    guard = ReplayGuard.load(storage, timeline)
    body = replace(_metadata(batch, messages, statuses, guard), replaced=replaced).to_bytes()
    _put_whole(storage, manifest_path(time), body)
    _put_completed(storage, inflight.at(State.COMPLETED), body)
    storage.delete(temp_folder(time))


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
    return batch, time


def _check_no_group_twice(statuses: Sequence[WriteStatus], staged: Sequence[StagedRows]) -> None:
    seen: set[FileGroupId] = {part.group for part in staged}
    for status in statuses:
        stat = status.stat
        group = FileGroupId(stat.partition_path, stat.file_id)
        if stat.log is None:
            if group in seen:
                raise WriteConflictError(
                    f"two tasks wrote a base file of file group {group}; hand the result of "
                    "shuffle_by_file_group to the writer as it is, without another repartition"
                )
            seen.add(group)


def _merge_all_staged(batch: Batch, time: str, staged: list[StagedRows]) -> list[WriteStatus]:
    if not staged:
        return []
    _warn_unshuffled(batch.table.storage.root)
    context = write_context(batch, TaskId(), time)
    placed, staged = _place_staged(batch, context, staged)
    groups: dict[FileGroupId, list[StagedRows]] = {}
    for part in staged:
        groups.setdefault(part.group, []).append(part)
    latest = _latest_slices(batch, groups)
    with ThreadPoolExecutor(_MERGE_THREADS, thread_name_prefix="hoodie-merge") as pool:
        merged = pool.map(
            lambda job: merge_staged(
                batch, commit_context(context, job[0]), groups[job[1]], latest.get(job[1])
            ),
            enumerate(groups, start=1),
        )
        return [*placed, *(status for statuses in merged for status in statuses)]


def _place_staged(
    batch: Batch, context: WriteContext, staged: list[StagedRows]
) -> tuple[list[WriteStatus], list[StagedRows]]:
    """Write the rows that no task could place; what has a file group is left to be merged."""
    parts = [part for part in staged if part.group == UNPLACED]
    others = [part for part in staged if part.group != UNPLACED]
    if not parts:
        return [], others
    parts.sort(key=lambda part: (part.task_partition, part.sequence))
    statuses, more = write_placed(
        batch, commit_context(context, 0), parts, SystemClock(), WriteMetrics(), not others
    )
    return statuses, [*others, *more]


@lru_cache(maxsize=1024)
def _warn_unshuffled(root: str) -> None:
    """Warn once for a table in the life of a process."""
    _log.warning(
        "%s: rows of one file group come to several tasks, so every commit has to merge them; "
        "write hoodie_ds.shuffle_by_file_group(df, opts) instead of df to let the tasks do it",
        root,
    )


def _latest_slices(
    batch: Batch, groups: dict[FileGroupId, list[StagedRows]]
) -> dict[FileGroupId, FileSlice]:
    view = FileSystemView(batch.table.storage, batch.timeline)
    partitions = {group.partition_path for group in groups}
    return {
        found.group: found
        for partition in sorted(partitions)
        for found in view.latest_slices(partition)
    }


def _delete_unnamed(storage: Storage, time: str, statuses: Sequence[WriteStatus]) -> None:
    """Delete files of this instant that no task answered for: they are of lost attempts."""
    named = {status.stat.path for status in statuses}
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
    touched = {FileGroupId(s.stat.partition_path, s.stat.file_id) for s in statuses}
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


def _metadata(
    batch: Batch,
    messages: Sequence[TaskCommitMessage],
    statuses: Sequence[WriteStatus],
    guard: ReplayGuard,
) -> CommitMetadata:
    batch_id = messages[0].batch_id
    identity = {}
    if batch_id is not None:
        guard = guard.with_batch(batch_id)
        identity = {BATCH_KEY: batch_id.to_json()}
    checksums = {status.stat.path: status.checksum for status in statuses}
    extra = {
        **batch.options.extra_metadata,
        **identity,
        SCHEMA_KEY: batch.avro_schema,
        CHECKSUMS_KEY: json.dumps(checksums, sort_keys=True),
        METRICS_KEY: WriteMetrics.total(message.metrics for message in messages).to_json(),
        ROWS_KEY: str(sum(message.num_rows for message in messages)),
    }
    if guard.committed:
        extra[CHECKPOINT_KEY] = guard.to_json()
    ordered = sorted((status.stat for status in statuses), key=lambda stat: stat.path)
    return CommitMetadata(tuple(ordered), batch.operation.value.upper(), extra)


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
        except NotFoundError:
            raise error from None
        except StorageError as unreadable:
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
