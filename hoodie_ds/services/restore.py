"""Restore by hand: back to a savepoint, or to another completed write of the active timeline.

The start of a restore is a decision of the log. A writer in the middle of its commit finds it there
and gives up; the next process resumes an interrupted restore.
"""

from __future__ import annotations

from typing import Final

from hoodie_ds.errors import TimelineError
from hoodie_ds.log import Log
from hoodie_ds.services.context import Decided, ServiceContext
from hoodie_ds.services.earlier_state import check_files_are_kept, later_writes, table_archive
from hoodie_ds.services.rollback import carried_without, check_no_savepoint
from hoodie_ds.services.undoing import Loss, Undoing, check_written_since
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.bodies.restore_metadata import RestoreRequest
from hoodie_ds.timeline.instant import WRITE_ACTIONS, Action, Instant, State
from hoodie_ds.timeline.instant_time import padded
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction.decision_log import Outcome
from hoodie_ds.transaction.resolution import apply_pending
from hoodie_ds.transaction.restore import finish_restore, request_of
from hoodie_ds.transaction.rollback import finish_rollback

_LENGTHS: Final = (14, 17)


def restore_by_hand(context: ServiceContext, to: str, *, dry: bool = False) -> Undoing:
    """Remove all writes after one from a table; see `HoodieTable.restore`."""
    table = context.open_table()
    storage = table.storage
    begun = table.load_timeline().pending_restores
    if not begun:  # one that was interrupted once decided may not be on the timeline yet
        begun = apply_pending(table, context.clock)[1].pending_restores
    if dry and begun:
        return _pending(table, begun[0])
    for restore in begun:
        undoing = _pending(table, restore)
        finish_restore(table, restore, context.clock)
        Log(storage.root, restore.time).info("restored %s", undoing)
        if undoing.target == to:
            return undoing
    if dry:
        return _checked(table, context.current_timeline(table), to)
    found: list[Undoing] = []

    def decide(timeline: Timeline) -> Decided | None:
        found[:] = [_checked(table, timeline, to)]
        if not found[0].losses:
            return None
        restore = table.instant(
            context.claim_time(table, timeline), Action.RESTORE, State.REQUESTED
        )
        instants = tuple((loss.time, loss.action) for loss in found[0].losses)
        plan = RestoreRequest(instants, found[0].target).to_bytes()
        lost = (i for i in later_writes(timeline, found[0].target) if i.state is State.COMPLETED)
        carried = carried_without(storage, timeline, lost, found[0].target)
        return Decided(Outcome.SCHEDULE, restore, plan, carried)

    for rollback in table.load_timeline().rollbacks:
        if rollback.state is not State.COMPLETED:
            finish_rollback(table, rollback, context.clock)
    timeline = context.decide(table, Action.RESTORE, decide)
    for restore in timeline.pending_restores:
        finish_restore(table, restore, context.clock)
    Log(storage.root).info("restored %s", found[0])
    return found[0]


def _pending(table: Table, restore: Instant) -> Undoing:
    """What is left for a pending restore to remove."""
    storage = table.storage
    request = request_of(storage, restore)
    timeline = table.load_timeline()
    known = {i.time: i for i in timeline.instants if i.action in WRITE_ACTIONS}
    losses = (Loss.of(storage, known[time]) for time in request.times if time in known)
    return Undoing(request.target, tuple(losses))


def _checked(table: Table, timeline: Timeline, to: str) -> Undoing:
    """Compute what would be lost, and refuse a restore that is not possible."""
    storage = table.storage
    target = _target(storage, timeline, to)
    later = later_writes(timeline, target)
    what = f"a restore to {target}"
    check_no_savepoint(table, timeline, {instant.time for instant in later})
    if later:
        check_written_since(storage, (instant.time for instant in later))
        _check_nothing_archived(table, timeline, target)
        check_files_are_kept(table, timeline, target, what)
    return Undoing(target, tuple(Loss.of(storage, instant) for instant in later))


def _target(storage: Storage, timeline: Timeline, to: str) -> str:
    if not (len(to) in _LENGTHS and to.isascii() and to.isdigit()):
        raise TimelineError(
            f"{storage.root}: {to!r} is not an instant time (yyyyMMddHHmmssSSS); name a "
            "savepoint or a completed write of the active timeline"
        )
    earlier = None
    later: Instant | None = None
    for write in timeline.commits_backwards():
        if padded(write.time) == padded(to):
            return write.time
        if padded(write.time) < padded(to):
            earlier = write
            break
        later = write
    around = f"the write before it is {_named(earlier)}, the one after it {_named(later)}"
    raise TimelineError(
        f"{storage.root}: {to} is the time of no completed write of the active timeline; {around}; "
        "name the write that is to be the last one to stay"
    )


def _named(write: Instant | None) -> str:
    return write.time if write else "(none)"


def _check_nothing_archived(table: Table, timeline: Timeline, target: str) -> None:
    """Refuse if writes after the target are archived: their files are not known any more.

    Archiving passes over commits with savepoints, by option, so archived writes may be later.
    """
    storage = table.storage
    if not timeline.starts_after(target):
        return
    archived = table_archive(table).newest_write()
    if archived and padded(archived) > padded(target):
        raise TimelineError(
            f"{storage.root}: writes after {target} have been archived, {archived} among them, so "
            "what they wrote is not known any more; restore to a later write"
        )
