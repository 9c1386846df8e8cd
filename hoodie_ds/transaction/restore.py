"""Restore: rolls back all writes after one, the newest first, as one instant.

While it is pending the table may be between two states, so no writer writes. Every step can be
interrupted and repeated, by another process too: the files to delete are stored before the
completed file is deleted, and the instant is removed from the timeline last. So readers see the
table after one commit or another, never a part of a commit.
"""

from __future__ import annotations

from contextlib import suppress

from hoodie_ds.environment import Clock
from hoodie_ds.errors import AlreadyExistsError, NotFoundError, TimelineError
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.bodies.restore_metadata import RestoreRequest, restore_to_bytes
from hoodie_ds.timeline.bodies.rollback_metadata import (
    PartitionRollback,
    plan_to_bytes,
    planned_files,
)
from hoodie_ds.timeline.instant import WRITE_ACTIONS, Action, Instant, State
from hoodie_ds.timeline.paths import PINNED_TIMELINES, instant_path, work_folder
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction.completion import complete
from hoodie_ds.transaction.decision_log import was_scheduled
from hoodie_ds.transaction.failed_write import (
    files_of,
    files_of_completed,
    is_named_after,
    is_ours,
)
from hoodie_ds.transaction.open_instant import put_step
from hoodie_ds.transaction.rollback import (
    delete_written,
    remove_from_timeline,
    with_commands,
)
from hoodie_ds.transaction.temporary_files import delete_temporary


def request_of(storage: Storage, restore: Instant) -> RestoreRequest:
    """Return the plan of a pending restore."""
    path = instant_path(restore.at(State.REQUESTED))
    try:
        plan = storage.read(path)
    except NotFoundError:
        plan = b""
    if not plan:
        raise TimelineError(
            f"{storage.root}: restore {restore.time} is pending without a plan, so it is unknown "
            f"what it rolls back; if the engine that began it is gone, delete its files, {path} "
            "and its inflight file"
        )
    return RestoreRequest.from_bytes(plan, path)


def finish_restore(table: Table, restore: Instant, clock: Clock) -> None:
    """Resume a pending restore of any process."""
    storage, started_ms = table.storage, clock.now_ms()
    request = request_of(storage, restore)
    put_step(storage, restore, State.INFLIGHT)
    storage.delete(PINNED_TIMELINES)
    done = {
        table.instant(time, Action(action), State.COMPLETED): _undo_write(table, restore, time)
        for time, action in request.instants
    }
    _delete_late_files(table, request)
    taken_ms = max(0, clock.now_ms() - started_ms)
    body = restore_to_bytes(storage.root, restore.time, request, done, taken_ms)
    complete(table, restore, body, clock)
    delete_temporary(storage, restore.time)


def finish_own_restores(table: Table, timeline: Timeline, clock: Clock) -> bool:
    """Finish the pending restores of this library; returns whether there were any."""
    own = [r for r in timeline.pending_restores if was_scheduled(table.storage, r)]
    for restore in own:
        finish_restore(table, restore, clock)
    return bool(own)


def _undo_write(table: Table, restore: Instant, time: str) -> dict[str, PartitionRollback]:
    """Roll back one write of the table; returns its files."""
    storage = table.storage
    kept = f"{work_folder(restore.time)}/{time}.plan"
    timeline = table.load_timeline()
    known = next((i for i in timeline.at(time) if i.action in WRITE_ACTIONS), None)
    if known is None:  # an earlier attempt rolled it back
        return with_commands(table, time, _planned(storage, kept) or {})
    found = _planned(storage, kept)
    if found is None:
        is_done = known.state is State.COMPLETED
        found = files_of_completed(table, known) if is_done else files_of(table, timeline, known)
        with suppress(AlreadyExistsError):
            storage.put_if_absent(kept, plan_to_bytes(storage.root, known, found))
    ours = is_ours(table, known)
    completed = timeline.commit_at(time) or known.at(State.COMPLETED)
    storage.delete(instant_path(completed))
    done = delete_written(table, restore.time, known, found)
    remove_from_timeline(table, completed, ours)
    return done


def _planned(storage: Storage, path: str) -> dict[str, PartitionRollback] | None:
    with suppress(NotFoundError):
        return planned_files(storage.read(path), path)
    return None


def _delete_late_files(table: Table, request: RestoreRequest) -> None:
    """Delete late files of tasks, and of other processes that resumed the restore.

    They are named after instants that are gone, so no other writer takes such a name.
    """
    view = FileSystemView(table.storage, table.load_timeline())
    for status in view.data_files():
        if any(is_named_after(status.path, time) for time in request.times):
            table.storage.delete(status.path)
