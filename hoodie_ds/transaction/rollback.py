"""Rollback: removes a failed write from the table, as an instant of its own.

Every step can be interrupted and repeated: files are searched again, deleting a file twice is no
error, and the failed instant is removed from the timeline last.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Final

from hoodie_ds.config.enums import TableType
from hoodie_ds.environment import Clock
from hoodie_ds.errors import AlreadyExistsError, TimelineError
from hoodie_ds.formats.log.log_block import BlockType, HeaderKey, encode_block, read_blocks
from hoodie_ds.log import Log
from hoodie_ds.table.file_name import LogFileName
from hoodie_ds.table.hashing_config import drop_rescaled
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.bodies.rollback_metadata import (
    PartitionRollback,
    metadata_to_bytes,
    plan_to_bytes,
    planned_files,
)
from hoodie_ds.timeline.instant import REPLACING, Action, Instant, State
from hoodie_ds.timeline.instant_time import following, next_time
from hoodie_ds.timeline.loading import read_commit
from hoodie_ds.timeline.paths import (
    PINNED_TIMELINES,
    in_partition,
    instant_path,
)
from hoodie_ds.timeline.rollback_marks import mark_undone
from hoodie_ds.timeline.rollbacks import target_of, undone_times
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction.completion import complete
from hoodie_ds.transaction.decision_log import Outcome, newest_decision
from hoodie_ds.transaction.failed_write import (
    delete_leftovers,
    files_of,
    is_ours,
    marked_files,
    was_committed,
)
from hoodie_ds.transaction.open_instant import put_step
from hoodie_ds.transaction.ownership import claim
from hoodie_ds.transaction.temporary_files import delete_temporary

_COMMAND_TOKEN = "1-0-1"  # noqa: S105  the write token of Hudi's own rollback commands
_COMMAND_ROLLBACK = "0"


UNDONE_ACTIONS: Final = (Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT)
"""Actions that are rolled back; not a pending compaction, as log files are named after it."""

_BEGUN_AS: Final = {
    Action.COMMIT: (Action.COMPACTION,),
    Action.DELTA_COMMIT: (Action.LOG_COMPACTION,),
    Action.REPLACE_COMMIT: (Action.CLUSTERING,),
}
"""The actions under which a completed instant may have been pending."""


def roll_back(table: Table, instant: Instant, clock: Clock) -> None:
    """Roll back a pending write; does nothing if it has been completed or is gone."""
    timeline = table.load_timeline()
    if not timeline.is_pending(instant.time):
        return
    if is_ours(table, instant) and was_committed(table, timeline, instant.time):
        delete_reopened(table, instant)
        return
    found = files_of(table, timeline, instant)
    body = plan_to_bytes(table.storage.root, instant, found)
    rollback = _request(table, timeline, clock, body, instant.time)
    if table.load_timeline().commit_at(instant.time) is not None:
        # Its writer was alive and completed it first: the commit stays.
        table.storage.delete(instant_path(rollback))
        return
    _execute(table, rollback, instant, found, clock)


def undo_by_hand(table: Table, instant: Instant, plan: bytes, clock: Clock) -> None:
    """Apply a decision to roll back a completed write or a planned compaction by hand.

    Any process may; does nothing if the instant is gone.
    """
    timeline = table.load_timeline()
    begun = [i for i in timeline.pending if i.action is Action.ROLLBACK]
    if instant.time in {target_of(table.storage, rollback) for rollback in begun}:
        for rollback in begun:
            finish_rollback(table, rollback, clock)
    elif timeline.at(instant.time):
        if instant.action is Action.COMPACTION:
            mark_undone(table.storage, instant.time)  # Hudi's rollback would leave its plan
        rollback = _request(table, timeline, clock, plan, instant.time)
        found = planned_files(plan, instant_path(rollback))
        _execute(table, rollback, _as_completed(timeline, instant), found, clock)


def drop_resurrected(table: Table, timeline: Timeline) -> bool:
    """Delete completed files that were put after their rollback; returns whether any were.

    A writer may be stopped between the decision to complete its instant and the put, while others
    complete the instant and roll it back.
    """
    found = set()
    for time in undone_times(table.storage, timeline):
        commit = timeline.commit_at(time)
        # Other engines put their files in another order.
        if commit is not None and read_commit(table.storage, commit).is_ours:
            found.add(commit)
    for commit in found:
        Log(table.storage.root, commit.time).info(
            "%s was put late and is rolled back again", commit
        )
        table.storage.delete(instant_path(commit))
    return bool(found)


def delete_reopened(table: Table, instant: Instant) -> None:
    """Delete a completed instant that a late process opened again from the timeline.

    A rollback instant would say that its commit does not count.
    """
    storage = table.storage
    Log(storage.root, instant.time).info(
        "%s had ended and was opened again; it is deleted", instant
    )
    delete_leftovers(storage, instant.time, marked_files(table, instant.time))
    storage.delete(instant_path(instant.at(State.INFLIGHT)))
    storage.delete(instant_path(instant.at(State.REQUESTED)))
    delete_leftovers(storage, instant.time, marked_files(table, instant.time))
    delete_temporary(storage, instant.time)


def finish_rollback(table: Table, rollback: Instant, clock: Clock) -> None:
    """Complete an interrupted rollback of any process."""
    time = target_of(table.storage, rollback)
    if time is None:
        table.storage.delete(instant_path(rollback.at(State.INFLIGHT)))
        table.storage.delete(instant_path(rollback.at(State.REQUESTED)))
        return
    timeline = table.load_timeline()
    known = timeline.at(time)
    instant = known[0] if known else _gone(table, time)
    if _was_decided(table, time):
        path = instant_path(rollback.at(State.REQUESTED))
        found = planned_files(table.storage.read(path), path)
        _execute(table, rollback, _as_completed(timeline, instant), found, clock)
        return
    if instant.state is State.COMPLETED or instant.action not in UNDONE_ACTIONS:
        raise TimelineError(
            f"{table.storage.root}: rollback {rollback.time} of {instant} is pending; finish it "
            "with the engine that began it"
        )
    found = files_of(table, timeline, instant) if known else {}
    _execute(table, rollback, instant, found, clock)


def _as_completed(timeline: Timeline, instant: Instant) -> Instant:
    """Return an instant as completed, so that its completed file is deleted if it exists."""
    return timeline.commit_at(instant.time) or instant.at(State.COMPLETED)


def _was_decided(table: Table, time: str) -> bool:
    """Whether the newest decision rolls back an instant by hand, so by the decision's plan."""
    newest = newest_decision(table.storage)
    return newest is not None and newest.outcome is Outcome.UNDO and newest.instant.time == time


def _gone(table: Table, time: str) -> Instant:
    """The instant of a rollback that was interrupted before its last step."""
    cow = table.properties.table_type is TableType.COPY_ON_WRITE
    return table.instant(time, Action.COMMIT if cow else Action.DELTA_COMMIT, State.INFLIGHT)


def _request(table: Table, timeline: Timeline, clock: Clock, plan: bytes, target: str) -> Instant:
    time = next_time(clock.now_ms(), table.properties.timeline_in_utc, timeline.latest_time)
    while True:
        rollback = table.instant(time, Action.ROLLBACK, State.REQUESTED)
        # A claim is deleted once its instant is on the timeline, so check the timeline after it.
        taken = claim(table.storage, time, f"rollback of {target}")
        is_free = taken and not table.load_timeline().has_other(rollback)
        if is_free and put_step(table.storage, rollback, State.REQUESTED, plan):
            return rollback
        time = following(time)


def _execute(
    table: Table,
    rollback: Instant,
    instant: Instant,
    found: dict[str, PartitionRollback],
    clock: Clock,
) -> None:
    storage, started_ms = table.storage, clock.now_ms()
    ours = instant.action is Action.COMPACTION or is_ours(table, instant)
    put_step(storage, rollback, State.INFLIGHT)
    if instant.state is State.COMPLETED:
        storage.delete(instant_path(instant))  # before its files, so that readers no longer see it
        storage.delete(PINNED_TIMELINES)
    done = delete_written(table, rollback.time, instant, found)
    taken_ms = max(0, clock.now_ms() - started_ms)
    body = metadata_to_bytes(storage.root, rollback.time, instant, done, taken_ms)
    complete(table, rollback, body, clock)
    remove_from_timeline(table, instant, ours)
    delete_temporary(storage, rollback.time)
    deleted = sum(len(files.deleted) for files in done.values())
    hidden = sum(len(files.mixed_logs or ()) for files in done.values())
    Log(storage.root, rollback.time).info(
        "rollback %s of %s: %d files deleted, its blocks in %d log files hidden",
        rollback.time, instant, deleted, hidden,
    )  # fmt: skip


def delete_written(
    table: Table, time: str, instant: Instant, found: Mapping[str, PartitionRollback]
) -> dict[str, PartitionRollback]:
    """Delete the files of a write, and hide its blocks in files that it shares.

    Returns the same with the commands that were put.
    """
    done = {}
    for partition, files in found.items():
        for path in files.deleted:
            table.storage.delete(path)
        commands = _append_commands(table, time, instant, files)
        done[partition] = PartitionRollback(files.deleted, files.mixed_logs, commands)
    return done


def with_commands(
    table: Table, target: str, found: Mapping[str, PartitionRollback]
) -> dict[str, PartitionRollback]:
    """Return what an earlier attempt did to a write, with the commands that it has put."""
    done = {}
    for partition, files in found.items():
        logs = filter(None, (_log_name(path) for path in files.mixed_logs or ()))
        slices = {(log.file_id, log.base_instant) for log in logs}
        listed = table.storage.list(partition) if slices else []
        commands = {
            status.path: status.size
            for status in listed
            if (log := _log_name(status.path)) is not None
            and (log.file_id, log.base_instant) in slices
            and log.write_token == _COMMAND_TOKEN
            and _commands(table, status.path, target)
        }
        done[partition] = replace(files, command_logs=commands)
    return done


def _log_name(path: str) -> LogFileName | None:
    return LogFileName.parse(path.rpartition("/")[2])


def remove_from_timeline(table: Table, instant: Instant, ours: bool) -> None:
    """Delete the requested and inflight files of a rolled back write, and files of late tasks."""
    storage = table.storage
    if instant.action in REPLACING:
        drop_rescaled(storage, instant.time)
    actions = (instant.action, *_BEGUN_AS.get(instant.action, ()))
    if instant.state is not State.COMPLETED:
        actions = (instant.action,)
    for step in (State.INFLIGHT, State.REQUESTED):
        for action in actions:
            storage.delete(instant_path(replace(instant, action=action).at(step)))
    # Its tasks may have put files during the rollback; without their markers none is found.
    if ours:
        delete_leftovers(storage, instant.time, marked_files(table, instant.time))
    delete_temporary(storage, instant.time)
    if instant.state is State.COMPLETED:
        storage.delete(instant_path(instant))  # again, as its writer may have put it meanwhile


def _append_commands(
    table: Table, time: str, instant: Instant, files: PartitionRollback
) -> dict[str, int]:
    """Append a rollback command to each slice that also has blocks of other instants.

    The command is a log file of its own, the slice's next version; readers skip the blocks of the
    instant that it names.
    """
    block = encode_block(
        BlockType.COMMAND,
        {
            HeaderKey.INSTANT_TIME: time,
            HeaderKey.TARGET_INSTANT_TIME: instant.time,
            HeaderKey.COMMAND_BLOCK_TYPE: _COMMAND_ROLLBACK,
        },
        b"",
    )
    logs = files.mixed_logs or {}
    paths = {_append_command(table, path, instant.time, block) for path in logs}
    return dict.fromkeys(sorted(path for path in paths if path is not None), len(block))


def _append_command(table: Table, log_path: str, target: str, block: bytes) -> str | None:
    """Append a command to a log file's slice, unless an earlier attempt did; return its path.

    None if the slice is gone.
    """
    partition, _, name = log_path.rpartition("/")
    log = LogFileName.parse(name)
    assert log is not None
    while True:
        newest = _newest_of_slice(table, partition, log)
        if newest is None:
            return None
        newest_path = in_partition(partition, newest)
        if _commands(table, newest_path, target):
            return newest_path
        found = LogFileName.parse(newest)
        assert found is not None
        command = LogFileName(log.file_id, log.base_instant, found.version + 1, _COMMAND_TOKEN)
        path = in_partition(partition, str(command))
        # The name is taken if another process rolls back a write of the same slice: try again.
        with suppress(AlreadyExistsError):
            table.storage.put_if_absent(path, block)
            return path


def _newest_of_slice(table: Table, partition: str, log: LogFileName) -> str | None:
    names = [status.path.rpartition("/")[2] for status in table.storage.list(partition)]
    versions = [
        (found.version, name)
        for name in names
        if (found := LogFileName.parse(name)) is not None
        and (found.file_id, found.base_instant) == (log.file_id, log.base_instant)
    ]
    return max(versions, default=(0, None))[1]


def _commands(table: Table, path: str, target: str) -> bool:
    """Whether a log file has the command that hides an instant."""
    return any(
        block.block_type is BlockType.COMMAND
        and block.header.get(HeaderKey.TARGET_INSTANT_TIME) == target
        for block in read_blocks(table.storage.read(path), path, lenient=True)
    )
