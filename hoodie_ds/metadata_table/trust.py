"""Whether a metadata table has caught up with its table.

A writer without a metadata table may leave one behind, and readers that believe it lose rows
without an error. Every instant of the table leaves a delta commit of its own time there, but for
those that the first listing of the metadata table has seen. Archiving keeps delta commits for as
long as the table's instants. Of a rollback or restore there may be nothing: it takes the delta
commits of what it undoes away (Hudi's ``HoodieBackedTableMetadataWriter.update``). A rollback of
layout 1 has one, as it may add log files.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hoodie_ds.metadata_table.stored import FILES_PARTITION, MetadataTable
from hoodie_ds.table.metadata_table import FIRST_SECOND
from hoodie_ds.timeline.file_changes import file_changes
from hoodie_ds.timeline.instant import Action, Instant
from hoodie_ds.timeline.instant_time import padded
from hoodie_ds.timeline.paths import V1, V2
from hoodie_ds.timeline.rollbacks import undone_by, undone_times

NOT_RECORDED: Final = frozenset({Action.SAVEPOINT, Action.INDEXING, Action.SCHEMA_COMMIT})
"""Actions that change no file of the table."""
_UNRECORDED: Final = {
    V1.version: (Action.RESTORE,),
    V2.version: (Action.RESTORE, Action.ROLLBACK),
}
"""Actions that need no delta commit, by layout."""
_LENGTHS: Final = (14, 17)
"""Digits of a table's instants; layout 1 gives the metadata table's own a suffix."""


def lacking(metadata: MetadataTable) -> Iterator[Instant]:
    """Yield the completed instants of a table of which its metadata table does not know."""
    timeline = metadata.timeline
    recorded = {i.time for i in timeline.completed if i.action is Action.DELTA_COMMIT}
    known = {i.time for i in timeline.completed}
    begun = (i.time for i in (*timeline.completed, *timeline.pending) if _is_of_table(i))
    first = min(map(padded, begun), default="")
    for instant in metadata.data.completed:
        if instant.action in NOT_RECORDED or instant.time in recorded:
            continue
        if instant.action in _UNRECORDED[timeline.layout]:
            undone = undone_by(metadata.storage, instant)
            is_known = instant.time in known or recorded.isdisjoint(undone)
        else:
            is_known = _was_listed(metadata, instant, first)
        if not is_known:
            yield instant


def is_ahead(metadata: MetadataTable) -> bool:
    """Whether a metadata table may know of an instant that the table's timeline lacks.

    So it is where it was opened later than the timeline. What the timeline says was rolled back, it
    does not lack: the rollback is recorded, or has taken the delta commit away.
    """
    done, start = {i.time for i in metadata.data.completed}, metadata.data.start
    recorded = (i.time for i in metadata.timeline.completed if _is_of_table(i))
    late = {time for time in recorded if time not in done and padded(time) >= start}
    return bool(late) and not late <= undone_times(metadata.storage, metadata.data)


def may_be_listed(metadata: MetadataTable, time: str) -> bool:
    """Whether the metadata table may have been made of what an instant had done already."""
    recorded = (padded(i.time) for i in metadata.timeline.completed if _is_of_table(i))
    return padded(time) < min(recorded, default=padded(time) + "0")


def _first_listing(metadata: MetadataTable) -> Instant | None:
    """The delta commit of the first listing; None once that is archived."""
    for instant in metadata.timeline.completed:
        if not instant.time.startswith(FIRST_SECOND):
            break
        if FILES_PARTITION in file_changes(metadata.view.storage, instant).partitions:
            return instant
    return None


def _is_of_table(instant: Instant) -> bool:
    """Whether an instant of the metadata table is that of an instant of the table."""
    is_start = instant.time.startswith(FIRST_SECOND)
    return instant.action is Action.DELTA_COMMIT and len(instant.time) in _LENGTHS and not is_start


def _was_listed(metadata: MetadataTable, instant: Instant, first: str) -> bool:
    """Whether an instant was complete when the first listing was made.

    `first` is the time of the first recorded instant, empty if there is none: its writer has made
    the listing as it began.
    """
    is_older = padded(instant.time) < first
    if is_older and instant.layout == V1.version:
        return True
    listing = _first_listing(metadata)
    return is_older if listing is None else metadata.was_before(instant, listing)
