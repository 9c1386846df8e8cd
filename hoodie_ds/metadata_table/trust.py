"""Whether a metadata table has caught up with its table.

A writer without a metadata table may leave one behind, and readers that believe it lose rows
without an error. Every instant of the table leaves a delta commit of its own time there, but for
those that the first listing of the metadata table has seen. Archiving keeps delta commits for as
long as the table's instants.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hoodie_ds.metadata_table.stored import FILES_PARTITION, MetadataTable
from hoodie_ds.timeline.file_changes import file_changes
from hoodie_ds.timeline.instant import Action, Instant
from hoodie_ds.timeline.instant_time import padded

_NOT_RECORDED: Final = frozenset({Action.SAVEPOINT, Action.INDEXING, Action.SCHEMA_COMMIT})
"""Actions that change no file of the table."""
_FIRST_SECOND: Final = "0" * 14
"""What the times of the delta commits begin with that first fill the partitions."""
_LENGTHS: Final = (14, 17)
"""Digits of a table's instants; layout 1 gives the metadata table's own a suffix."""


def lacking(metadata: MetadataTable) -> Iterator[Instant]:
    """Yield the completed instants of a table that its metadata table does not have."""
    timeline = metadata.timeline
    recorded = {i.time for i in timeline.completed if i.action is Action.DELTA_COMMIT}
    begun = (i.time for i in (*timeline.completed, *timeline.pending) if _is_of_table(i))
    first, listed = min(map(padded, begun), default=""), _listed(metadata)
    for instant in metadata.data.completed:
        if instant.action in _NOT_RECORDED or instant.time in recorded:
            continue
        if not _was_listed(instant, first, listed):
            yield instant


def _listed(metadata: MetadataTable) -> str:
    """When the first listing was stored; empty in layout 1, or once that is archived."""
    for instant in metadata.timeline.completed:
        if not instant.time.startswith(_FIRST_SECOND) or not instant.completion_time:
            break
        if FILES_PARTITION in file_changes(metadata.view.storage, instant).partitions:
            return instant.completion_time
    return ""


def _is_of_table(instant: Instant) -> bool:
    """Whether an instant of the metadata table is that of an instant of the table."""
    is_start = instant.time.startswith(_FIRST_SECOND)
    return instant.action is Action.DELTA_COMMIT and len(instant.time) in _LENGTHS and not is_start


def _was_listed(instant: Instant, first: str, listed: str) -> bool:
    """Whether an instant was complete when the first listing was made.

    `first` is the time of the first recorded instant, empty if there is none: its writer has made
    the listing as it began.
    """
    if listed and instant.completion_time:
        return instant.completion_time < listed
    return padded(instant.time) < first
