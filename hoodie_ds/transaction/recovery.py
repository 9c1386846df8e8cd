"""Recovery: completes or rolls back every pending write.

It runs at the start of every batch and depends on storage alone: a pending instant of this library
with a whole manifest is completed, as all its tasks had answered; any other is rolled back.

With several writers (`recover_lazily`, Hudi's policy LAZY) only instants of dead writers are rolled
back. As a manifest says nothing about conflicts, only instants whose completion was decided are
completed; Spark repeats the micro-batch of a write that was rolled back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Final

from hoodie_ds.config.concurrency import Concurrency
from hoodie_ds.config.enums import ConcurrencyMode
from hoodie_ds.environment import Clock
from hoodie_ds.errors import CorruptFileError, NotFoundError, WriteConflictError
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.bodies.replace_plan import is_pending_clustering
from hoodie_ds.timeline.instant import REPLACING, Action, Instant, State
from hoodie_ds.timeline.instant_time import format_time, padded
from hoodie_ds.timeline.paths import claim_path, instant_path, work_folder
from hoodie_ds.timeline.rollbacks import is_dead_compaction, is_undone, refuse_restore, target_of
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction.failed_write import announced, delete_leftovers, is_ours
from hoodie_ds.transaction.heartbeat import ages_ms, living, stop
from hoodie_ds.transaction.manifest import InstantTest, never
from hoodie_ds.transaction.ownership import is_of_several, owner_of
from hoodie_ds.transaction.resolution import apply_pending, resolve_instant
from hoodie_ds.transaction.restore import finish_own_restores
from hoodie_ds.transaction.rollback import (
    UNDONE_ACTIONS,
    delete_reopened,
    drop_resurrected,
    finish_rollback,
)
from hoodie_ds.transaction.temporary_files import delete_temporary, left_over, temporary_files

_PLANNED: Final = (Action.COMPACTION, *REPLACING)
"""Actions that may be table services, which wait on the timeline to be carried out."""


def decided_timeline(table: Table, clock: Clock, found: Mapping[str, frozenset[str]]) -> Timeline:
    """Return the timeline with all decided services, without dead plans or restores of our own.

    A killed process may leave a plan, a restore or a rollback in the decision log alone, and an
    interrupted restore is resumed. `found` is the result of `left_over`. A restore of another
    engine may be pending in the result.
    """
    timeline = table.load_timeline()
    if finish_own_restores(table, timeline, clock):
        timeline = table.load_timeline()
    claimed = any(paths == {claim_path(time)} for time, paths in found.items())
    if not claimed and all(instant.action not in _PLANNED for instant in timeline.pending):
        return timeline
    _, timeline = apply_pending(table, clock)
    if finish_own_restores(table, timeline, clock):
        timeline = table.load_timeline()
    return table.load_timeline() if drop_dead_plans(table, timeline) else timeline


def recover(
    table: Table,
    clock: Clock,
    joined: Instant | None = None,
    heartbeat_timeout_ms: int = 600_000,
    loaded: tuple[Mapping[str, frozenset[str]], Timeline] | None = None,
    superseded: InstantTest = never,
) -> Timeline:
    """Complete or roll back every pending write; after a crash the next run does the rest.

    `loaded` is the result of `left_over` and the timeline loaded after it. Raises `TimelineError`
    while a restore is pending, and `WriteConflictError` if a pending write has a live heartbeat.
    """
    found, timeline = loaded or (left_over(table.storage), table.load_timeline())
    timeline = timeline.with_joined(joined)
    refuse_restore(table.storage.root, timeline)
    pending = _unfinished(table, timeline)
    _refuse_living(table, pending, heartbeat_timeout_ms)
    for instant in pending:
        if instant.action is Action.ROLLBACK:
            finish_rollback(table, instant, clock)
    for instant in pending:
        if instant.action in UNDONE_ACTIONS:
            _finish_or_undo(table, instant, clock, superseded)
    if drop_resurrected(table, timeline) or pending:
        timeline = table.load_timeline().with_joined(joined)
    sweep(table, timeline, found)
    return timeline


def _unfinished(table: Table, timeline: Timeline) -> list[Instant]:
    """Pending writes and rollbacks; not clusterings, which wait for a process to execute them."""
    actions = (*UNDONE_ACTIONS, Action.ROLLBACK)
    found = (instant for instant in timeline.pending if instant.action in actions)
    return [instant for instant in found if not is_pending_clustering(table.storage, instant)]


def drop_dead_plans(table: Table, timeline: Timeline) -> bool:
    """Delete services that a late process put on the timeline again; returns whether any were.

    A process may be stopped before it puts or begins a plan, and do so after others have carried
    the plan out and archived it, or rolled it back.
    """
    planned = (instant for instant in timeline.pending if instant.action in _PLANNED)
    dead = [instant for instant in planned if _is_dead(table, timeline, instant)]
    for instant in dead:
        delete_reopened(table, instant)
    return bool(dead)


def _is_dead(table: Table, timeline: Timeline, instant: Instant) -> bool:
    if instant.action is Action.COMPACTION:
        return is_dead_compaction(table.storage, timeline, instant)
    if not is_pending_clustering(table.storage, instant):
        # Only a clustering has an empty inflight file, and its plan is put first.
        return instant.state is State.INFLIGHT and _is_alone_and_empty(table, instant)
    if timeline.starts_after(instant.time):
        return True
    undone = is_undone(table.storage, timeline, instant.time)
    rollbacks = [found for found in timeline.pending if found.action is Action.ROLLBACK]
    return undone and not any(target_of(table.storage, r) == instant.time for r in rollbacks)


def _is_alone_and_empty(table: Table, inflight: Instant) -> bool:
    with suppress(NotFoundError):
        if table.storage.read(instant_path(inflight)):
            return False
        table.storage.read(instant_path(inflight.at(State.REQUESTED)))
        return False
    return True


def _refuse_living(table: Table, pending: list[Instant], timeout_ms: int) -> None:
    """Refuse to roll back a write whose writer, one of several, is alive."""
    if not pending:
        return
    alive = living(table.storage, timeout_ms)
    for instant in pending:
        if instant.time in alive:
            raise WriteConflictError(
                f"{table.storage.root}: another writer is at work on instant {instant.time}; let "
                f"every writer set {Concurrency.mode.key} = "
                f"{ConcurrencyMode.OPTIMISTIC_CONCURRENCY_CONTROL.value}, or wait until it has "
                f"ended (a dead one shows after {timeout_ms} ms)"
            )


def _finish_or_undo(table: Table, instant: Instant, clock: Clock, superseded: InstantTest) -> None:
    """Complete an instant of ours that has a whole manifest; roll any other back.

    With several writers it is rolled back too, as a manifest says nothing about conflicts.
    """

    def may_complete(table: Table, timeline: Timeline, instant: Instant) -> bool:
        alone = is_ours(table, instant) and not _is_of_several(table, instant)
        return alone and not superseded(table, timeline, instant)

    resolve_instant(table, instant, clock, may_complete=may_complete)


def _is_of_several(table: Table, instant: Instant) -> bool:
    with suppress(CorruptFileError):  # no owner; the instant is ours because of its manifest
        owner = owner_of(table.storage, instant.at(State.INFLIGHT))
        return owner is not None and is_of_several(owner)
    return False


def recover_lazily(
    table: Table,
    clock: Clock,
    timeout_ms: int,
    lock: Callable[[], AbstractContextManager[object]],
) -> Timeline:
    """Roll back the pending writes of writers whose heartbeat has stopped.

    `lock` returns the table's lock, which is held during rollbacks.
    """
    found = left_over(table.storage)
    _, timeline = apply_pending(table, clock)
    refuse_restore(table.storage.root, timeline)
    unfinished = _unfinished(table, timeline)
    # Read after the timeline: a writer begins its heartbeat before its instant.
    ages = ages_ms(table.storage) if unfinished or found else {}
    alive = {time for time, age_ms in ages.items() if age_ms < timeout_ms}
    dead = [instant for instant in unfinished if _written_by(table, instant) not in alive]
    if drop_resurrected(table, timeline):
        timeline = table.load_timeline()
    if dead:
        with lock():
            _undo_dead(table, dead, clock)
        timeline = table.load_timeline()
    # Tasks put temporary files before their instant is on the timeline.
    young = format_time(clock.now_ms() - timeout_ms, utc=table.properties.timeline_in_utc)
    old = {t for t in found.keys() - alive if timeline.commit_at(t) or t < young}
    sweep(table, timeline, {time: found[time] for time in old})
    for time in ages.keys() - alive - {instant.time for instant in timeline.pending}:
        stop(table.storage, time)  # of an instant that has ended; its late tasks began it again
    return timeline


def _written_by(table: Table, instant: Instant) -> str | None:
    """Time of a pending write, or of the instant that a rollback rolls back."""
    is_rollback = instant.action is Action.ROLLBACK
    return target_of(table.storage, instant) if is_rollback else instant.time


def _undo_dead(table: Table, dead: Sequence[Instant], clock: Clock) -> None:
    """Finish the rollbacks among some instants, then roll back the others."""
    still = table.load_timeline().pending
    for instant in dead:
        if instant.action is Action.ROLLBACK and instant in still:
            finish_rollback(table, instant, clock)
    for instant in dead:
        if instant.action is not Action.ROLLBACK:
            resolve_instant(table, instant, clock)


def sweep(table: Table, timeline: Timeline, found: Mapping[str, frozenset[str]]) -> None:
    """Delete the files of late tasks, then all temporary files of their instants.

    Readers of this library never see such files, as a commit names its own. Readers that list
    folders do. They are found by the late tasks' markers.

    `found` is the result of `left_over`, taken before the timeline was loaded.
    """
    rollbacks = (*timeline.rollbacks, *timeline.restores)
    undone = {i.time for i in rollbacks if i.state is State.COMPLETED}
    view = FileSystemView(table.storage, timeline)
    latest = padded(timeline.latest_time or "")
    for time, paths in sorted(found.items()):
        if latest and padded(time) > latest and paths == {claim_path(time)}:
            continue  # of a service that is about to be planned; no process takes an earlier time
        commit = timeline.commit_at(time)
        is_commit = commit is not None and not commit.num_batches
        # Pending, joined, another action or archived: which files count is not known here. Those
        # of a rollback are the commands that hide failed blocks, and stay.
        known_otherwise = not is_commit and (timeline.at(time) or view.is_committed(time))
        if known_otherwise and time not in undone:
            if not timeline.at(time) and not announced(time, paths):
                _drop_work(table.storage, time, paths)
            continue
        marked = {} if time in undone else announced(time, paths)
        late = {p: m for p, m in marked.items() if not (is_commit and view.names(time, p))}
        delete_leftovers(table.storage, time, late, is_complete=is_commit)
        if paths >= temporary_files(table.storage, time):
            delete_temporary(table.storage, time)


def _drop_work(storage: Storage, time: str, paths: frozenset[str]) -> None:
    """Delete this library's temporary files of an instant that another engine archived."""
    if all(path.startswith(f"{work_folder(time)}/") for path in paths):
        storage.delete(work_folder(time))
