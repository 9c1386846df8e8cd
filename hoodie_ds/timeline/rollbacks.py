"""Which instants were rolled back, as the plans of rollbacks on the timeline say.

An archived rollback leaves a mark with the time of the instant that it has undone. Without it, a
file that a late task of that instant brings would count as one of an archived commit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache

from hoodie_ds.errors import NotFoundError, TimelineError
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.bodies.restore_metadata import RestoreRequest
from hoodie_ds.timeline.bodies.rollback_metadata import rolled_back, rolled_back_time
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.loading import is_archived
from hoodie_ds.timeline.paths import instant_path
from hoodie_ds.timeline.rollback_marks import mark_undone, marked_times
from hoodie_ds.timeline.timeline import Timeline, once_per_timeline


def target_of(storage: Storage, rollback: Instant) -> str | None:
    """Return the time of the instant that a rollback undoes.

    None if the rollback has no plan: its writer was killed before it had done anything.
    """
    path = instant_path(rollback.at(State.REQUESTED))
    try:
        plan = storage.read(path)
    except NotFoundError:
        return None
    return rolled_back_time(plan, path) if plan else None


def undone_by(storage: Storage, instant: Instant) -> Collection[str]:
    """Return the times of the instants that an instant undoes; it has a plan if there are any."""
    if instant.action is Action.RESTORE:
        return restored_times(storage, instant)
    target = target_of(storage, instant) if instant.action is Action.ROLLBACK else None
    return () if target is None else (target,)


def is_undone(storage: Storage, timeline: Timeline, time: str) -> bool:
    """Whether a rollback of an instant was begun or done, though it may be pending again.

    A restore takes instants back too, and leaves no rollbacks of them. Apache Hudi rolls back a
    compaction that failed, and executes its plan again under the same time: that one is not undone,
    nor is what the archive has as completed.
    """
    later = (rollback for rollback in timeline.rollbacks if rollback.time > time)
    if any(_kept_target(storage, rollback) == time for rollback in later):
        return True
    if _is_restored(storage, timeline, time):
        return True
    if not timeline.starts_after(time) or time not in _remembered(storage, timeline):
        return False
    return not is_archived(storage, timeline, time)


def is_dead_compaction(storage: Storage, timeline: Timeline, pending: Instant) -> bool:
    """Whether a compaction is on the timeline again that has ended.

    A process that was stopped before it put the plan, or began on it, may do so after others have
    executed and archived it, or cancelled it. A missing plan alone proves nothing: its file may be
    lost, and log files be named after it.
    """
    time = pending.time
    if _is_restored(storage, timeline, time) or time in marked_times(storage):
        return True
    return timeline.starts_after(time) and is_archived(storage, timeline, time)


def _is_restored(storage: Storage, timeline: Timeline, time: str) -> bool:
    restores = (restore for restore in timeline.restores if restore.time > time)
    return any(time in restored_times(storage, restore) for restore in restores)


def remember_undone(storage: Storage, rollbacks: Iterable[Instant]) -> None:
    """Mark what completed rollbacks and restores have undone, before they are archived."""
    for rollback in rollbacks:
        if rollback.action is Action.RESTORE:
            times = restored_times(storage, rollback)
        else:
            times = frozenset(filter(None, [_kept_target(storage, rollback)]))
        for time in sorted(times):
            mark_undone(storage, time)


@once_per_timeline
def _remembered(storage: Storage, timeline: Timeline) -> frozenset[str]:
    """Times of instants whose rollbacks are archived."""
    return marked_times(storage)


def undone_times(storage: Storage, timeline: Timeline) -> frozenset[str]:
    """Return the times of the instants that rollbacks and restores of a timeline have undone."""
    done = (i for i in timeline.rollbacks if i.state is State.COMPLETED)
    targets = {_target_of_completed(storage, rollback) for rollback in done}
    restored = {t for restore in timeline.restores for t in restored_times(storage, restore)}
    return frozenset(restored | {time for time in targets if time is not None})


@lru_cache(maxsize=1 << 10)
def restored_times(storage: Storage, restore: Instant) -> frozenset[str]:
    """Return the times of the instants that a completed restore has taken back."""
    path = instant_path(restore.at(State.REQUESTED))
    try:
        plan = storage.read(path)
    except NotFoundError:
        return frozenset()
    return frozenset(RestoreRequest.from_bytes(plan, path).times if plan else ())


def _kept_target(storage: Storage, rollback: Instant) -> str | None:
    """Time of the instant that a rollback undoes for good; None if there is none."""
    if rollback.state is State.COMPLETED:
        return _target_of_completed(storage, rollback)
    return _undone_target(storage, rollback)


@lru_cache(maxsize=1 << 14)
def _target_of_completed(storage: Storage, rollback: Instant) -> str | None:
    return _undone_target(storage, rollback)


def _undone_target(storage: Storage, rollback: Instant) -> str | None:
    path = instant_path(rollback.at(State.REQUESTED))
    try:
        plan = storage.read(path)
    except NotFoundError:
        return None
    if not plan:
        return None
    time, action = rolled_back(plan, path)
    # Hudi rolls back what a failed compaction has left, and its plan stays; ours leave a mark.
    stays = action == Action.COMPACTION.value and time not in marked_times(storage)
    return None if stays else time


def refuse_restore(root: str, timeline: Timeline) -> None:
    """Raise `TimelineError` if a restore is pending: nothing may build on what it takes back."""
    for restore in timeline.pending_restores:
        raise TimelineError(
            f"{root}: restore {restore.time} is pending, so the table may be in a state between "
            "two; complete it (HoodieTable.restore, or the engine that began it), then write again"
        )
