"""Whether what was written under an instant time is part of a table: the one place that decides.

The active timeline is no unbroken end of the history. Archiving may pass over the commits that
savepoints keep and archive later ones, and another engine may delete such a savepoint later, so
that its commit begins the timeline with a hole behind it. Then only the archive knows what is in
the hole.
"""

from __future__ import annotations

from enum import Enum

from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.instant_time import padded
from hoodie_ds.timeline.loading import is_archived
from hoodie_ds.timeline.rollbacks import is_undone
from hoodie_ds.timeline.timeline import Timeline, once_per_timeline


class InstantStatus(Enum):
    """What is known of an instant time."""

    COMMITTED = "committed"
    """A completed write of the active timeline."""
    ARCHIVED = "archived"
    """A completed write that has left the active timeline."""
    PENDING = "pending"
    """An instant of the active timeline that has not completed."""
    UNKNOWN = "unknown"
    """No known write of the table: undone, late, or never begun."""

    @property
    def counts(self) -> bool:
        """Whether data written under the time is part of the table."""
        return self in (InstantStatus.COMMITTED, InstantStatus.ARCHIVED)


def status_of(storage: Storage, timeline: Timeline, time: str) -> InstantStatus:
    """Return what is known of an instant time.

    As in Hudi a time before the start of the active timeline is that of an archived instant, unless
    the instant was rolled back: a late task may leave a file under it.
    """
    if timeline.commit_at(time) is not None:
        return InstantStatus.COMMITTED
    if timeline.is_pending(time):  # or a late process has begun again what is archived
        again = timeline.starts_after(time) and is_archived(storage, timeline, time)
        return InstantStatus.ARCHIVED if again else InstantStatus.PENDING
    if not timeline.is_committed(time) and not _is_in_hole(storage, timeline, time):
        return InstantStatus.UNKNOWN
    undone = is_undone(storage, timeline, time)
    return InstantStatus.UNKNOWN if undone else InstantStatus.ARCHIVED


def counts(storage: Storage, timeline: Timeline, time: str) -> bool:
    """Whether data written under an instant time is part of a table; see `status_of`."""
    return status_of(storage, timeline, time).counts


def _is_in_hole(storage: Storage, timeline: Timeline, time: str) -> bool:
    """Whether a time between commits of the active timeline is that of an archived instant."""
    newest = next(timeline.commits_backwards(), None)
    if timeline.begins or newest is None or padded(time) >= padded(newest.time):
        return False
    known = _archived(storage, timeline)
    if time not in known:
        known[time] = not timeline.at(time) and is_archived(storage, timeline, time)
    return known[time]


@once_per_timeline
def _archived(storage: Storage, timeline: Timeline) -> dict[str, bool]:
    """Whether the archive has the times that were asked for."""
    return {}
