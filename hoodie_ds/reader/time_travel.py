"""Time travel: a table as it was once the commits that were begun up to a moment were complete.

Requested times of commits count, in every version of the table, as in Hudi.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hoodie_ds.config.query_options import QueryOptions
from hoodie_ds.errors import TimelineError
from hoodie_ds.log import Log
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.archive.archive import archived_writes
from hoodie_ds.timeline.bodies.clean_metadata import CleanMetadata
from hoodie_ds.timeline.bodies.replace_plan import is_clustering
from hoodie_ds.timeline.instant import WRITE_ACTIONS, Action, Instant, State
from hoodie_ds.timeline.paths import instant_path
from hoodie_ds.timeline.timeline import Timeline

_UNDER_ITS_OWN_NAME: Final = frozenset({Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT})
"""Actions of writes: pending instants of others change no row."""


def travel(pinned: PinnedTable, moment: str) -> PinnedTable:
    """Return a table as it was at an instant time, with the columns that it had then.

    Raises `TimelineError` if a commit before that moment is incomplete, so that the answer would
    not stay the same, or what the table was then has been cleaned or archived.
    """
    table, timeline = pinned.table, pinned.timeline
    for instant in timeline.pending:
        if instant.time <= moment and is_write(table.storage, instant):
            raise TimelineError(
                f"{table.storage.root}: {QueryOptions.as_of.key} {moment} is not before {instant}, "
                "which is incomplete and may change the answer; ask for an earlier moment, or wait "
                "until it is complete or rolled back"
            )
    _refuse_cleaned(table, timeline, moment)
    then = before(timeline, moment, lambda instant: instant.time <= moment)
    newest = next(then.commits_backwards(), None)
    if newest is None or timeline.starts_after(moment):
        archived = archived_writes(table.storage, timeline, table.properties.archive_folder)
        last = next((i.time for i in reversed(archived) if i.time <= moment), "")
        if last and (newest is None or last > newest.time):
            raise _gone(table, moment, "its commits have been archived")
    first = timeline.first_commit
    if newest is None and first is not None:  # no error, as in Hudi
        Log(table.storage.root).warning(
            "as of %s the table is empty; its first commit is %s", moment, first.time
        )
    return pinned.at(then)


def before(timeline: Timeline, time: str, is_earlier: Callable[[Instant], bool]) -> Timeline:
    """Return a timeline with its writes and cleans that were earlier than a moment.

    Rollbacks and restores stay: they show which files are not in the table. See `Timeline.past`.
    """

    def is_later(instant: Instant) -> bool:
        return instant.action in {*WRITE_ACTIONS, Action.CLEAN} and not is_earlier(instant)

    return timeline.past(time, is_later)


def is_write(storage: Storage, pending: Instant) -> bool:
    """Whether a pending instant brings rows, once it is complete."""
    if pending.action is Action.REPLACE_COMMIT:
        path = instant_path(pending.at(State.REQUESTED))
        return not is_clustering(storage.read(path), path)
    return pending.action in _UNDER_ITS_OWN_NAME


def _refuse_cleaned(table: Table, timeline: Timeline, moment: str) -> None:
    cleans = [i for i in timeline.deletions if i.action is Action.CLEAN]
    if not cleans:
        return
    path = instant_path(cleans[-1])
    earliest = CleanMetadata.from_bytes(table.storage.read(path), path).earliest
    if moment < earliest:
        raise _gone(table, moment, f"clean {cleans[-1].time} kept what counts from {earliest} on")


def _gone(table: Table, moment: str, what: str) -> TimelineError:
    return TimelineError(
        f"{table.storage.root}: the table as of {moment} cannot be read any more: {what}; ask for "
        "a later moment, and let the cleaner retain more commits"
    )
