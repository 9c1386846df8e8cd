"""Cleaning: deletes old versions of file groups by a plan on the timeline.

1. Finish pending cleans, of any engine.
2. Schedule the plan: a decision of the log, so that no process can add it late.
3. Put the inflight file, delete the files that the plan names, put the completed file.

Every step can be interrupted and repeated, by any process, and by several at a time: a missing file
counts as deleted, and names of data files are never used again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain

from hoodie_ds.config.service_switches import Service
from hoodie_ds.environment import Clock
from hoodie_ds.errors import NotFoundError
from hoodie_ds.services.clean_planner import commits_since_last, may_find_something, plan_clean
from hoodie_ds.services.context import ServiceContext
from hoodie_ds.services.results import Cleaning, ServiceResult, Work, tell
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.bodies.clean_metadata import CleanerPlan, read_plan
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.paths import instant_path
from hoodie_ds.timeline.rollbacks import refuse_restore
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction.completion import complete
from hoodie_ds.transaction.open_instant import put_step


def clean(
    context: ServiceContext, *, dry: bool = False, most: int | None = None
) -> ServiceResult[Cleaning]:
    """Delete the files that no reader needs any more.

    A call deletes at most `most` files of a plan, and a later one continues; a dry call only plans.
    Pending cleans come first. Raises `TimelineError` while a restore is pending, and
    `CorruptFileError` if a plan, a savepoint or an earlier clean cannot be read.
    """
    started_ms, table = context.clock.now_ms(), context.open_table()
    done = _would_clean(context, table) if dry else _clean(context, table, most)
    took_ms = context.clock.now_ms() - started_ms
    work = sum((work for _, work in done), Work())
    return ServiceResult(Service.CLEAN, tuple(one for one, _ in done), work, dry, took_ms)


def clean_if_due(
    context: ServiceContext, table: Table, timeline: Timeline, most: int | None = None
) -> None:
    """Delete old files after a commit, if there are any and a clean is due.

    Otherwise no instant time is claimed, and no partition listed.
    """
    if pending_cleans(timeline):
        _clean(context, table, most)
        return
    rule, now_ms = context.options.cleaning, context.clock.now_ms()
    utc = table.properties.timeline_in_utc
    may_be = may_find_something(table.storage, timeline, rule, now_ms, utc)
    if may_be and is_clean_due(context, timeline):
        draft = _plan(context, table, timeline)
        if draft is not None:
            _clean(context, table, most, (timeline, draft))


def _would_clean(context: ServiceContext, table: Table) -> list[tuple[Cleaning, Work]]:
    timeline = table.load_timeline()
    found = []
    for instant in pending_cleans(timeline):
        with suppress(NotFoundError):  # another process completed and archived it
            plan = read_plan(table.storage, instant)
            found.append((Cleaning(instant.time, plan), _deleted(plan.paths, _sizes(table, plan))))
    new = None if found else _plan(context, table, timeline)
    if new is not None:
        found.append((Cleaning(None, new), _deleted(new.paths, new.sizes)))
    return found


def _clean(
    context: ServiceContext,
    table: Table,
    most: int | None,
    draft: tuple[Timeline, CleanerPlan] | None = None,
) -> list[tuple[Cleaning, Work]]:
    """Finish pending cleans and execute a plan: the draft, if its timeline is still the same."""
    for follower in context.followers(table):
        if follower.names_files:  # it must not name files that are deleted
            follower.after(table)
    done = finish_cleans(table, context.clock, most) if draft is None else []
    planned: CleanerPlan | None = None

    def plan(timeline: Timeline, _: str) -> bytes | None:
        nonlocal planned
        if pending_cleans(timeline):
            planned = None
        elif draft is not None and _shows_same(draft[0], timeline):
            planned = draft[1]
        else:
            planned = _plan(context, table, timeline)
        return None if planned is None else planned.to_bytes(table.storage.root)

    context.schedule(context.action(table, Action.CLEAN, "CLEAN"), plan)
    # Also a plan that another process made meanwhile: it does what is due.
    return done + finish_cleans(table, context.clock, most, planned)


def is_clean_due(context: ServiceContext, timeline: Timeline) -> bool:
    """Whether enough commits were made since the last clean for the next one to be due."""
    due = context.options.cleaning.max_commits
    return commits_since_last(context.storage, timeline) >= due


def pending_cleans(timeline: Timeline) -> tuple[Instant, ...]:
    """Return the cleans that were planned and have not completed."""
    return tuple(i for i in timeline.pending if i.action is Action.CLEAN)


def finish_cleans(
    table: Table, clock: Clock, most: int | None = None, known: CleanerPlan | None = None
) -> list[tuple[Cleaning, Work]]:
    """Execute pending cleans, also of other engines; return each with what it deleted now.

    `known` is a plan of this process, which has the sizes of its files. Raises `TimelineError`
    while a restore is pending: superseded files may become the newest again.
    """
    timeline, done = table.load_timeline(), []
    for instant in pending_cleans(timeline):
        refuse_restore(table.storage.root, timeline)
        executed = _execute(table, timeline, instant, clock, most, known)
        if executed is not None:
            tell(table.storage.root, Service.CLEAN, instant.time, executed[1])
            done.append(executed)
    return done


def _plan(context: ServiceContext, table: Table, timeline: Timeline) -> CleanerPlan | None:
    return plan_clean(table, timeline, context.options.cleaning, context.clock.now_ms())


def _shows_same(one: Timeline, other: Timeline) -> bool:
    """Whether two timelines have the same instants, without comparing each settled one."""
    return (
        one.settled.digest == other.settled.digest
        and one.recent == other.recent
        and one.pending == other.pending
        and one.savepoints == other.savepoints
    )


def _execute(
    table: Table,
    timeline: Timeline,
    instant: Instant,
    clock: Clock,
    most: int | None,
    known: CleanerPlan | None,
) -> tuple[Cleaning, Work] | None:
    """Execute a plan; None if nothing of it is left."""
    storage, started_ms = table.storage, clock.now_ms()
    path = instant_path(instant.at(State.REQUESTED))
    try:
        plan = read_plan(storage, instant)
    except NotFoundError:
        # Another process completed and archived the clean while this one put the inflight file.
        storage.delete(instant_path(instant.at(State.INFLIGHT)))
        return None
    if any(restore.time > instant.time for restore in timeline.restores):
        # What was superseded when it was planned may be the newest again.
        storage.delete(instant_path(instant.at(State.INFLIGHT)))
        storage.delete(path)
        return None
    put_step(storage, instant, State.INFLIGHT)
    paths: Sequence[str] = plan.paths
    is_long = most is not None and len(paths) > most
    is_known = known is not None and known.files == plan.files and not is_long
    sizes = known.sizes if known is not None and is_known else _sizes(table, plan)
    if is_long:
        paths = [path for path in paths if path in sizes]
    now = paths[:most]
    storage.delete_many(now)
    executed = Cleaning(instant.time, plan), _deleted(now, sizes)
    if len(now) == len(paths):  # else the next clean continues
        taken_ms = max(0, clock.now_ms() - started_ms)
        complete(table, instant, plan.done(instant.time, taken_ms), clock)
    return executed


def _sizes(table: Table, plan: CleanerPlan) -> dict[str, int]:
    """Sizes of the files that still exist in the partitions of a plan, by path."""
    listed = (table.storage.list(partition) for partition in plan.files)
    return {status.path: status.size for status in chain.from_iterable(listed)}


def _deleted(paths: Sequence[str], sizes: Mapping[str, int]) -> Work:
    there = [sizes[path] for path in paths if path in sizes]
    return Work(files_deleted=len(there), bytes_deleted=sum(there))
