"""Decisions about instants among several writers, and what they ask for.

Before a decision is taken that of the turn before it is carried out, by whoever comes next; so at
most the newest one is still to be carried out, and everybody can.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from typing import Final

from hoodie_ds.environment import Clock
from hoodie_ds.errors import CorruptFileError
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.commit_metadata import TURN_KEY, CommitMetadata
from hoodie_ds.timeline.instant import Action, Instant
from hoodie_ds.timeline.instant_time import padded
from hoodie_ds.timeline.paths import manifest_path, temp_folder
from hoodie_ds.timeline.rollbacks import is_undone, refuse_restore, target_of
from hoodie_ds.timeline.timeline import Timeline, load_timeline, read_commit
from hoodie_ds.transaction import heartbeat
from hoodie_ds.transaction.decision_log import (
    Decision,
    Turn,
    following_turn,
    newest_turn,
    take_turn,
)
from hoodie_ds.transaction.manifest import Judge, complete_from_manifest, never, newest_manifest
from hoodie_ds.transaction.rollback import finish_rollback, roll_back

_RECOVERY: Final = "recovery"
"""Who takes the turns of recoveries: several that decide the same at once may all go on."""


def settle(
    table: Table, clock: Clock, known: Timeline | None = None
) -> tuple[Turn | None, Timeline]:
    """Carry out the newest decision, if that is not done yet.

    Parameters
    ----------
    table : Table
        The table.
    clock : Clock
        For the time of a rollback's own instant.
    known : Timeline, optional
        Is not loaded again if it shows the newest commit: then it shows those before it too.

    Returns
    -------
    tuple of Turn or None, and Timeline
        The newest turn, None if there was none yet; and the timeline with all that was decided.

    Raises
    ------
    CorruptFileError
        An instant is to be completed whose manifest is lost.
    TimelineError
        There is something to carry out, and another engine's restore is pending.
    """
    turn = newest_turn(table.storage)
    if known is not None and (turn is None or known.commit_at(turn.instant.time)):
        return turn, known
    timeline = load_timeline(table.storage)
    if turn is None or turn.decision is Decision.PREPARE:
        return turn, timeline
    if not timeline.is_pending(turn.instant.time):
        return turn, timeline
    refuse_restore(table.storage.root, timeline)
    _carry_out(table, turn, clock)
    return turn, load_timeline(table.storage)


def decide(table: Table, instant: Instant, clock: Clock, *, may_complete: Judge = never) -> None:
    """Decide about a dead writer's instant, unless others did meanwhile, and carry it out.

    Parameters
    ----------
    table : Table
        The table.
    instant : Instant
        A pending write.
    clock : Clock
        For the time of the rollback's own instant.
    may_complete : callable
        Says of the timeline as it is whether to complete the instant, if its manifest is whole
        and nothing was decided since its writer looked for conflicts; otherwise it is rolled back.
    """
    while True:
        before, timeline = settle(table, clock)
        if not timeline.is_pending(instant.time):
            return
        turn = following_turn(before, Decision.ROLL_BACK, instant, _RECOVERY)
        is_free = not is_undone(table.storage, timeline, instant.time)
        if is_free and may_complete(table, timeline, instant):
            turn = _completing(table, turn, timeline)
        if take_turn(table.storage, turn):
            _carry_out(table, turn, clock)
            return


def _carry_out(table: Table, turn: Turn, clock: Clock) -> None:
    """Do what was decided; any process may, several at a time too."""
    time = turn.instant.time
    if turn.decision is Decision.COMPLETE:
        completed = complete_from_manifest(table.storage, turn.instant)
        # Else its writer completed it, and threw the manifest away, since the timeline was loaded.
        if not completed and load_timeline(table.storage).is_pending(time):
            raise CorruptFileError(
                f"{table.storage.root}: turn {turn.number} decided to complete instant {time}, "
                f"but {temp_folder(time)} holds no whole manifest of it; restore the folder"
            )
    else:
        _undo(table, turn.instant, clock)
    heartbeat.stop(table.storage, time)


def _completing(table: Table, turn: Turn, timeline: Timeline) -> Turn:
    """Turn a decision against an instant into one for it, where its manifest allows that.

    One of several micro-batches says no turn: Spark has moved past those, so they stay.
    """
    found = newest_manifest(table.storage, turn.instant)
    if found is None:
        return turn
    number, body = found
    commit = CommitMetadata.from_bytes(body, manifest_path(turn.instant.time, number))
    looked_after = commit.extra.get(TURN_KEY)
    if looked_after is not None and (
        looked_after != str(turn.number - 1) or _foreign_later(table, timeline, turn.instant)
    ):
        return turn
    return replace(turn, decision=Decision.COMPLETE, carried=commit.guard_entries)


def _foreign_later(table: Table, timeline: Timeline, instant: Instant) -> bool:
    """Whether another engine, which takes no turns, committed under a later time than an instant.

    It may have rewritten the same file groups or changed the schema since the manifest was put.
    """
    later = takewhile(
        lambda found: padded(found.time) > padded(instant.time), timeline.commits_backwards()
    )
    return any(TURN_KEY not in read_commit(table.storage, i).extra for i in later)


def _undo(table: Table, instant: Instant, clock: Clock) -> None:
    """Roll an instant back, going on with a rollback of it that was killed."""
    for pending in load_timeline(table.storage).pending:
        if pending.action is Action.ROLLBACK and target_of(table.storage, pending) == instant.time:
            finish_rollback(table, pending, clock)
            return
    roll_back(table, instant, clock)
