"""Recovery: brings a table to where every write has either happened or not.

Runs at the start of every batch. What it decides by is on storage alone: a pending instant of ours
with a whole manifest is committed now (its tasks had all answered); any other is rolled back.
"""

from __future__ import annotations

from contextlib import suppress

from hoodie_ds.config.clock import Clock
from hoodie_ds.errors import (
    AlreadyExistsError,
    NotFoundError,
    TimelineError,
)
from hoodie_ds.services.failed_write import is_ours
from hoodie_ds.services.prepared import newest_manifest
from hoodie_ds.services.rollback import finish_rollback, roll_back
from hoodie_ds.services.sweep import left_over_times, sweep
from hoodie_ds.table.opened import Table
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.paths import instant_path
from hoodie_ds.timeline.replace_plan import is_clustering
from hoodie_ds.timeline.timeline import Timeline, load_timeline

_WRITES = (Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT)


def recover(table: Table, clock: Clock, prepared: Instant | None = None) -> Timeline:
    """Finish or undo every write that did not complete.

    Killed anywhere, it does the rest when it runs again.

    Parameters
    ----------
    table : Table
        The table.
    clock : Clock
        For the times of rollbacks.
    prepared : Instant, optional
        The pending instant that the caller goes on with.

    Returns
    -------
    Timeline
        As it is afterwards.

    Raises
    ------
    TimelineError
        A clustering is pending, which only the engine that began it can undo.
    """
    left_over = left_over_times(table)
    timeline = load_timeline(table.storage)
    timeline = timeline.with_prepared(prepared)
    pending = [i for i in timeline.pending if i.action in (*_WRITES, Action.ROLLBACK)]
    for instant in pending:
        if instant.action is Action.REPLACE_COMMIT and _is_clustering(table, instant):
            raise TimelineError(
                f"{table.storage.root}: clustering {instant.time} is pending; finish it or roll "
                "it back with the engine that began it"
            )
    for instant in pending:
        if instant.action is Action.ROLLBACK:
            finish_rollback(table, instant, clock)
    for instant in pending:
        if instant.action in _WRITES and not _recommit(table, instant):
            roll_back(table, instant, clock)
    if pending:
        timeline = load_timeline(table.storage).with_prepared(prepared)
    sweep(table, timeline, left_over)
    return timeline


def _is_clustering(table: Table, instant: Instant) -> bool:
    path = instant_path(instant.at(State.REQUESTED))
    with suppress(NotFoundError):
        return is_clustering(table.storage.read(path), path)
    return False


def _recommit(table: Table, instant: Instant) -> bool:
    """Complete an instant of ours whose manifest is there and whole.

    Its temporary folder stays for the sweep: the markers in it tell of files of lost attempts.
    """
    if not is_ours(table, instant):
        return False
    found = newest_manifest(table.storage, instant.time)
    if found is None:
        return False
    # Taken already: by another recovery, or by a first try whose answer was lost.
    with suppress(AlreadyExistsError):
        table.storage.put_if_absent(instant_path(instant.at(State.COMPLETED)), found[1])
    return True
