"""Cleaning: old versions of file groups are deleted, by a plan that lies on the timeline.

1. Finish the cleans that are pending, whoever planned them.
2. Schedule the plan: a decision like any other, so that nobody brings it late.
3. Put the inflight file, delete what the plan names, put the completed file.

Every step can be killed and done again, by any process, and by several at a time: a file that is
gone counts as deleted, and no name of a data file comes again.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final

from hoodie_ds.environment import Clock
from hoodie_ds.errors import AlreadyExistsError, NotFoundError
from hoodie_ds.services.clean_planner import commits_since_last, plan_clean
from hoodie_ds.services.context import ServiceContext
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.clean_metadata import CleanerPlan, read_plan
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.paths import instant_path
from hoodie_ds.timeline.rollbacks import refuse_restore
from hoodie_ds.timeline.timeline import Timeline, load_timeline

_DELETED_AT_ONCE: Final = 32
_FEW: Final = 8
"""Files that are deleted one after the other: threads would cost more than they save."""


def clean(
    context: ServiceContext, *, dry: bool = False, most: int | None = None
) -> CleanerPlan | None:
    """Delete the files that nobody needs any more.

    Parameters
    ----------
    context : ServiceContext
        Where and how; its options say what is to stay.
    dry : bool
        Whether to plan alone.
    most : int, optional
        How many files of a plan are deleted now; whoever cleans next goes on with it.

    Returns
    -------
    CleanerPlan or None
        What was deleted, or would be; None if there was nothing new.

    Raises
    ------
    TimelineError
        A restore is pending.
    CorruptFileError
        A plan, a savepoint or what an earlier clean said cannot be read.
    LockTimeoutError
        Others held the table's lock all the time.
    """
    table = context.open_table()
    if dry:
        return _plan(context, table, load_timeline(table.storage))
    finish_cleans(table, context.clock, most)
    planned: CleanerPlan | None = None

    def plan(timeline: Timeline, _: str) -> bytes | None:
        nonlocal planned
        planned = None if pending_cleans(timeline) else _plan(context, table, timeline)
        return None if planned is None else planned.to_bytes(table.storage.root)

    context.schedule(context.action(table, Action.CLEAN, "CLEAN"), plan)
    # Also one that another process has planned meanwhile; it is what is due.
    finish_cleans(table, context.clock, most)
    return planned


def is_clean_due(context: ServiceContext, timeline: Timeline) -> bool:
    """Whether so many commits were made since the last clean that the next one is due.

    Parameters
    ----------
    context : ServiceContext
        Where and how.
    timeline : Timeline
        As it is now.
    """
    due = context.options.cleaning.max_commits
    return commits_since_last(context.storage, timeline) >= due


def pending_cleans(timeline: Timeline) -> tuple[Instant, ...]:
    """Return the cleans that were planned and have not completed."""
    return tuple(i for i in timeline.pending if i.action is Action.CLEAN)


def finish_cleans(table: Table, clock: Clock, most: int | None = None) -> None:
    """Execute the cleans that are pending, also those of other engines.

    Parameters
    ----------
    table : Table
        The table.
    clock : Clock
        Measures how long it takes.
    most : int, optional
        See `clean`.

    Raises
    ------
    TimelineError
        A restore is pending: files that were superseded may be the newest again.
    CorruptFileError
        A plan cannot be read.
    """
    timeline = load_timeline(table.storage)
    for instant in pending_cleans(timeline):
        refuse_restore(table.storage.root, timeline)
        _execute(table.storage, timeline, instant, clock, most)


def _plan(context: ServiceContext, table: Table, timeline: Timeline) -> CleanerPlan | None:
    return plan_clean(table, timeline, context.options.cleaning, context.clock.now_ms())


def _execute(
    storage: Storage, timeline: Timeline, instant: Instant, clock: Clock, most: int | None
) -> None:
    started_ms = clock.now_ms()
    path = instant_path(instant.at(State.REQUESTED))
    try:
        plan = read_plan(storage, instant)
    except NotFoundError:
        # Another process completed the clean, and archived it, while this one put the state after.
        storage.delete(instant_path(instant.at(State.INFLIGHT)))
        return
    if any(restore.time > instant.time for restore in timeline.restores):
        # What was superseded when it was planned may be the newest again.
        storage.delete(instant_path(instant.at(State.INFLIGHT)))
        storage.delete(path)
        return
    _put_again(storage, instant.at(State.INFLIGHT), b"")
    paths: Sequence[str] = plan.paths
    if most is not None and len(paths) > most:
        paths = _still_there(storage, plan)
    _delete_all(storage, paths[:most])
    if most is not None and len(paths) > most:
        return  # whoever comes next goes on
    taken_ms = max(0, clock.now_ms() - started_ms)
    _put_again(storage, instant.at(State.COMPLETED), plan.done(instant.time, taken_ms))


def _delete_all(storage: Storage, paths: Sequence[str]) -> None:
    if len(paths) <= _FEW:
        for path in paths:
            storage.delete(path)
        return
    with ThreadPoolExecutor(_DELETED_AT_ONCE, "hoodie-clean") as pool:
        for _ in pool.map(storage.delete, paths):
            pass


def _still_there(storage: Storage, plan: CleanerPlan) -> list[str]:
    """Files of a plan that an earlier part of its execution has not deleted."""
    there = {status.path for partition in plan.files for status in storage.list(partition)}
    return [path for path in plan.paths if path in there]


def _put_again(storage: Storage, instant: Instant, body: bytes) -> None:
    """Put a state that another process, or an earlier try, may have reached already."""
    with suppress(AlreadyExistsError):
        storage.put_if_absent(instant_path(instant), body)
