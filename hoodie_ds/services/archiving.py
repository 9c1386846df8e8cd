"""Archiving: the oldest instants move from the active timeline to the archive.

Readers and writers list the active timeline, so it must stay short. Every step can be repeated, by
another process too: duplicate entries count once, and deleting a file twice is no error. The order
of deletion keeps the timeline correct at every moment: of each instant the requested and inflight
files before the completed one, or it would look unfinished; and the oldest instant first, or an
instant after older ones that remain would look as if it had never been.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from hoodie_ds.config.service_switches import Service
from hoodie_ds.errors import TimelineError
from hoodie_ds.metadata_table.stored import MetadataTable, latest_compaction
from hoodie_ds.services.archive_planner import (
    ArchivePlan,
    hidden_files,
    is_archiving_due,
    plan_archive,
)
from hoodie_ds.services.context import ServiceContext
from hoodie_ds.services.earlier_state import table_archive
from hoodie_ds.services.results import ServiceResult, Work, counted, tell
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.table import Table, check_unchanged
from hoodie_ds.timeline.archive.active_files import (
    Steps,
    active_files,
    contents,
    delete_active,
)
from hoodie_ds.timeline.file_changes import file_changes
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.instant_time import padded
from hoodie_ds.timeline.rollback_marks import fold_marks
from hoodie_ds.timeline.rollbacks import refuse_restore, remember_undone
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction.exclusive_commit import excluding
from hoodie_ds.transaction.late_file_notes import delete_late_files
from hoodie_ds.transaction.recovery import sweep
from hoodie_ds.transaction.temporary_files import left_over

_AT_ONCE: Final = 200
"""Instants of one file of the archive: their contents are held in memory."""
_FIRST_TIME: Final = "0"
"""Before all instant times."""


def archive(
    context: ServiceContext, *, dry: bool = False, most: int | None = None
) -> ServiceResult[Instant]:
    """Archive the oldest instants, if there are too many.

    A call archives at most `most` instants, and a later one continues; a dry call only lists them.
    Raises `TimelineError` while a restore is pending, and `CorruptFileError` for a damaged file of
    the timeline, which cannot be archived.
    """
    started_ms, table = context.clock.now_ms(), context.open_table()
    if dry:
        instants = _plan(table, context.current_timeline(table), context).instants
        files = active_files(table.storage, table.layout, instants) if instants else {}
        work = _leaving(files)
    else:
        instants, work = _archive_oldest(context, table, most)
    took_ms = context.clock.now_ms() - started_ms
    return ServiceResult(Service.ARCHIVE, instants, work, dry, took_ms)


def _archive_oldest(
    context: ServiceContext, table: Table, most: int | None
) -> tuple[tuple[Instant, ...], Work]:
    storage, options = table.storage, context.options.archiving
    pending = context.action(table, Action.COMMIT, "ARCHIVE")
    if not is_archiving_due(pending.timeline, options):
        return (), Work()
    with excluding(pending, context.clock, context.pauses) as exclusion:
        found = left_over(storage)
        timeline = exclusion.apply_pending(table.load_timeline())
        refuse_restore(storage.root, timeline)
        check_unchanged(table)
        plan = _plan(table, timeline, context)
        instants = _settle(table, timeline, plan.instants[:most], found)
        work = Work()
        for start in range(0, len(instants), _AT_ONCE):
            work += _archive(context, table, instants[start : start + _AT_ONCE])
    if instants:
        times = f"of {counted(len(instants), 'instant')} up to {instants[-1].time}"
        tell(storage.root, Service.ARCHIVE, times, work)
    return instants, work


def _plan(table: Table, timeline: Timeline, context: ServiceContext) -> ArchivePlan:
    """Plan as Hudi does, whose readers of a metadata table look for the instants of its log files.

    So all instants stay that its newest compaction does not include.
    """
    metadata = MetadataTable.open(table, timeline)
    end = "" if metadata is None else latest_compaction(metadata.timeline) or _FIRST_TIME
    return plan_archive(table.storage, timeline, context.options.archiving, end)


def archive_if_due(context: ServiceContext, timeline: Timeline, most: int | None = None) -> None:
    """Archive after a commit, if its timeline has become too long."""
    if is_archiving_due(timeline, context.options.archiving):
        archive(context, most=most)


def left_behind(table: Table, timeline: Timeline, time: str) -> Instant | None:
    """Return the commit at a savepoint's time if later commits are archived; None otherwise.

    Without its savepoint this commit would start the timeline, and files of archived commits after
    it would no longer be visible.
    """
    commit = timeline.commit_at(time)
    newest = table_archive(table).newest_write() if commit is not None else ""
    return commit if newest and padded(newest) > padded(time) else None


def archive_left_behind(
    context: ServiceContext,
    table: Table,
    timeline: Timeline,
    time: str,
    found: Mapping[str, frozenset[str]],
) -> None:
    """Archive a commit that is `left_behind`, under the table's lock.

    `found` is the result of `left_over`, taken before the timeline was loaded. Raises
    `TimelineError` if files of file groups that the commit replaced still exist and would be
    visible again, or if a task is writing under it.
    """
    commit, storage = left_behind(table, timeline, time), table.storage
    if commit is None:
        return
    hidden = next(hidden_files(storage, commit), None)
    if hidden is not None:
        raise TimelineError(
            f"{storage.root}: the savepoint at {time} cannot be deleted yet: commits after it are "
            f"archived, and so it would be; but {hidden}, of a file group that it has replaced, "
            f"is still there, and its rows would count again; {_kept_by(storage, timeline, hidden)}"
        )
    if not _settle(table, timeline, (commit,), found):
        raise TimelineError(
            f"{storage.root}: the savepoint at {time} cannot be deleted yet: commits after it are "
            "archived, and so it would be; but a task that writes under it is still at work; "
            "delete the savepoint once that has ended"
        )
    _archive(context, table, (commit,))


def _kept_by(storage: Storage, timeline: Timeline, path: str) -> str:
    """Say what lets a clean delete a file."""
    kept = (i for i in timeline.savepoints if i.state is State.COMPLETED)
    for savepoint in kept:
        if path in file_changes(storage, savepoint).kept:
            return f"the savepoint at {savepoint.time} keeps it: delete that one first"
    return "clean the table first, by options that retain less"


def _settle(
    table: Table,
    timeline: Timeline,
    instants: tuple[Instant, ...],
    found: Mapping[str, frozenset[str]],
) -> tuple[Instant, ...]:
    """Delete what would count once instants are archived; return those that may be archived."""
    ready = _without_busy(table, timeline, instants, found)
    delete_late_files(table, timeline, _start_after(timeline, ready))
    return ready


def _without_busy(
    table: Table,
    timeline: Timeline,
    instants: tuple[Instant, ...],
    found: Mapping[str, frozenset[str]],
) -> tuple[Instant, ...]:
    """Delete what late tasks of the instants left, which would count once they are archived.

    An instant whose temporary folder stays has a running task; it stays too, with all later ones.
    """
    times = {instant.time for instant in instants}
    left = {time: paths for time, paths in found.items() if time in times}
    if not left:
        return instants
    sweep(table, timeline, left)
    busy = [time for time in left_over(table.storage) if time in times]
    end = min(busy, default="")
    return tuple(i for i in instants if not end or i.time < end)


def _start_after(timeline: Timeline, instants: Iterable[Instant]) -> str:
    """Time of the commit that starts the timeline once instants are archived."""
    gone = {instant.time for instant in instants}
    gone |= {savepoint.time for savepoint in timeline.savepoints}
    staying = (instant.time for instant in timeline.commits if instant.time not in gone)
    return next(staying, timeline.latest_time or "")


def _archive(context: ServiceContext, table: Table, instants: tuple[Instant, ...]) -> Work:
    storage = table.storage
    archive = table_archive(table, context.options.archiving)
    files = active_files(storage, table.layout, instants)
    utc = table.properties.timeline_in_utc
    found = [contents(storage, files[instant.time], utc) for instant in instants]
    # Before their plans are gone: files of late tasks of such instants must never count.
    undoing = (Action.ROLLBACK, Action.RESTORE)
    remember_undone(storage, (i for i in instants if i.action in undoing))
    settled = archive.put(found)
    delete_active(storage, (files[instant.time] for instant in instants))
    archive.tidy(settled)
    fold_marks(storage)
    return _leaving(files)


def _leaving(files: Mapping[str, Steps]) -> Work:
    sizes = [status.size for steps in files.values() for status in steps.values()]
    return Work(files_deleted=len(sizes), bytes_deleted=sum(sizes))
