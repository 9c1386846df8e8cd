"""Which instants were rolled back, as the plans of rollbacks on the timeline say."""

from __future__ import annotations

from functools import lru_cache

from hoodie_ds.errors import NotFoundError, TimelineError
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.instant import Instant, State
from hoodie_ds.timeline.paths import instant_path
from hoodie_ds.timeline.rollback_metadata import rolled_back_time
from hoodie_ds.timeline.timeline import Timeline


def target_of(storage: Storage, rollback: Instant) -> str | None:
    """Return the time of the instant that a rollback is to undo.

    Returns
    -------
    str or None
        None if the rollback has no plan: its writer was killed before it had done anything.
    """
    path = instant_path(rollback.at(State.REQUESTED))
    try:
        plan = storage.read(path)
    except NotFoundError:
        return None
    return rolled_back_time(plan, path) if plan else None


def is_undone(storage: Storage, timeline: Timeline, time: str) -> bool:
    """Whether a rollback of an instant was begun or done, though it may be pending again."""
    later = (rollback for rollback in timeline.rollbacks if rollback.time > time)
    return any(_kept_target(storage, rollback) == time for rollback in later)


def _kept_target(storage: Storage, rollback: Instant) -> str | None:
    if rollback.state is State.COMPLETED:
        return _target_of_completed(storage, rollback)
    return target_of(storage, rollback)


@lru_cache(maxsize=1 << 14)
def _target_of_completed(storage: Storage, rollback: Instant) -> str | None:
    return target_of(storage, rollback)


def refuse_restore(root: str, timeline: Timeline) -> None:
    """Raise `TimelineError` if a restore is pending: what it is to take back is not known.

    Parameters
    ----------
    root : str
        The table's base path, for the message.
    timeline : Timeline
        As it is now.
    """
    for restore in timeline.pending_restores:
        raise TimelineError(
            f"{root}: restore {restore.time} is pending, so the table may be in a state between "
            "two; complete the restore with the engine that began it, then write again"
        )
