"""Restore by hand: back to a savepoint, or to another completed write of the active timeline.

That a restore begins is a decision of the log. A writer in the middle of its commit finds it there
and gives up; whoever comes next goes on with a restore that was killed.
"""

from __future__ import annotations

import logging
from typing import Final

from hoodie_ds.errors import TimelineError
from hoodie_ds.services.context import Decided, ServiceContext
from hoodie_ds.services.losses import Loss, Undoing, check_written_since
from hoodie_ds.services.past import check_files_are_kept, later_writes, table_archive
from hoodie_ds.services.rollback import carried_without, check_no_savepoint
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

_log = logging.getLogger("hoodie_ds")


def restore_by_hand(context: ServiceContext, to: str, *, dry: bool = False) -> Undoing:
    """Take all writes after one off a table.

    Parameters
    ----------
    context : ServiceContext
        Where and how.
    to : str
        Instant time of the last write that stays.
    dry : bool
        Whether to change nothing, and only say what would be lost.

    Returns
    -------
    Undoing

    Raises
    ------
    TimelineError
        It cannot be restored to that time: see `HoodieTable.restore`.
    """
    table = context.open_table()
    storage = table.storage
    begun = table.load_timeline().pending_restores
    if not begun:  # one that was killed once it was decided may not be on the timeline yet
        begun = apply_pending(table, context.clock)[1].pending_restores
    if dry and begun:
        return _pending(table, begun[0])
    for restore in begun:
        undoing = _pending(table, restore)
        finish_restore(table, restore, context.clock)
        _log.info("%s: restored %s", storage.root, undoing)
        if undoing.target == to:
            return undoing
    if dry:
        return _checked(table, context.look(table), to)
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
    _log.info("%s: restored %s", storage.root, found[0])
    return found[0]


def _pending(table: Table, restore: Instant) -> Undoing:
    """What a restore that was begun takes off the table, as far as that is still there."""
    storage = table.storage
    request = request_of(storage, restore)
    timeline = table.load_timeline()
    known = {i.time: i for i in timeline.instants if i.action in WRITE_ACTIONS}
    losses = (Loss.of(storage, known[time]) for time in request.times if time in known)
    return Undoing(request.target, tuple(losses))


def _checked(table: Table, timeline: Timeline, to: str) -> Undoing:
    """Find out what would be lost, and refuse where there is no way back."""
    storage = table.storage
    target = _target(storage, timeline, to)
    later = later_writes(timeline, target)
    what = f"a restore to {target}"
    check_no_savepoint(storage, timeline, {instant.time for instant in later})
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
    """Refuse where writes after the target are archived: what they wrote is not known any more.

    Archiving passes over commits with savepoints, by option, so these may lie behind.
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
