"""Recovery beside other writers: undoes what dead ones left, and leaves the living alone.

As Hudi's policy LAZY. Nothing is completed here but what its writer had decided to complete: a
manifest alone says nothing about conflicts. Its micro-batch is then brought again by Spark.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from hoodie_ds.config.clock import Clock
from hoodie_ds.services.decisions import decide, settle
from hoodie_ds.services.recovery import refuse_clustering
from hoodie_ds.services.rollback import UNDONE_ACTIONS, finish_rollback
from hoodie_ds.services.sweep import left_over, sweep
from hoodie_ds.table.heartbeat import ages_ms, stop
from hoodie_ds.table.opened import Table
from hoodie_ds.timeline.instant import Action
from hoodie_ds.timeline.instant_time import format_time
from hoodie_ds.timeline.rollbacks import refuse_restore, target_of
from hoodie_ds.timeline.timeline import Timeline, load_timeline


def recover_lazily(
    table: Table,
    clock: Clock,
    timeout_ms: int,
    lock: Callable[[], AbstractContextManager[None]],
) -> Timeline:
    """Undo the unfinished writes of writers whose heartbeat has stopped.

    Parameters
    ----------
    table : Table
        The table.
    clock : Clock
        For the times of rollbacks.
    timeout_ms : int
        Age of a heartbeat at which its writer counts as dead.
    lock : callable
        Returns the table's lock, to be held while anything is undone.

    Returns
    -------
    Timeline
        As it is afterwards.

    Raises
    ------
    TimelineError
        A clustering or a restore is pending, which only the engine that began it can end.
    LockTimeoutError
        Others held the lock all the time.
    """
    found = left_over(table.storage)
    _, timeline = settle(table, clock)
    refuse_restore(table.storage.root, timeline)
    refuse_clustering(table, timeline)
    unfinished = [i for i in timeline.pending if i.action in (*UNDONE_ACTIONS, Action.ROLLBACK)]
    # Looked at after the timeline: a writer's heart beats before its instant is there.
    ages = ages_ms(table.storage) if unfinished or found else {}
    alive = {time for time, age_ms in ages.items() if age_ms < timeout_ms}
    rollbacks = [i for i in unfinished if i.action is Action.ROLLBACK]
    dead = [i for i in unfinished if i.action in UNDONE_ACTIONS and i.time not in alive]
    orphaned = [i for i in rollbacks if target_of(table.storage, i) not in alive]
    if dead or orphaned:
        with lock():
            still = load_timeline(table.storage).pending
            for rollback in orphaned:
                if rollback in still:
                    finish_rollback(table, rollback, clock)
            for instant in dead:
                decide(table, instant, clock)
        timeline = load_timeline(table.storage)
    # Tasks that are about to open an instant have files there before it is on the timeline.
    young = format_time(clock.now_ms() - timeout_ms, utc=table.properties.timeline_in_utc)
    old = {t for t in found.keys() - alive if timeline.commit_at(t) or t < young}
    sweep(table, timeline, {time: found[time] for time in old})
    for time in ages.keys() - alive - {instant.time for instant in timeline.pending}:
        stop(table.storage, time)  # of late tasks of an instant that has ended
    return timeline
