"""Decisions about instants among several writers, and what they ask for.

Before a decision is taken that of the turn before it is carried out, by whoever comes next; so at
most the newest one is still to be carried out, and everybody can.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from hoodie_ds.config.clock import Clock
from hoodie_ds.errors import CorruptFileError
from hoodie_ds.services.prepared import complete_from_manifest, newest_manifest
from hoodie_ds.services.rollback import finish_rollback, is_undone, roll_back, target_of
from hoodie_ds.table import heartbeat
from hoodie_ds.table.opened import Table
from hoodie_ds.table.turns import Decision, Turn, following_turn, newest_turn, take_turn
from hoodie_ds.timeline.commit_metadata import TURN_KEY, CommitMetadata
from hoodie_ds.timeline.instant import Action, Instant
from hoodie_ds.timeline.paths import manifest_path, temp_folder
from hoodie_ds.timeline.timeline import load_timeline

_RECOVERY: Final = "recovery"
"""Who takes the turns of recoveries: several that decide the same at once may all go on."""


def settle(table: Table, clock: Clock) -> Turn | None:
    """Carry out the newest decision, and return its turn; None if there was none yet."""
    turn = newest_turn(table.storage)
    if turn is not None:
        carry_out(table, turn, clock)
    return turn


def carry_out(table: Table, turn: Turn, clock: Clock) -> None:
    """Do what was decided, if it is not done yet; any process may, several at a time too.

    Raises
    ------
    CorruptFileError
        An instant is to be completed whose manifest is lost.
    """
    if not _is_pending(table, turn.instant):
        return  # completed, or gone
    if turn.decision is Decision.COMPLETE:
        completed = complete_from_manifest(table.storage, turn.instant)
        # Else its writer completed it, and threw the manifest away, since the timeline was loaded.
        if not completed and _is_pending(table, turn.instant):
            raise CorruptFileError(
                f"{table.storage.root}: turn {turn.number} decided to complete instant "
                f"{turn.instant.time}, but {temp_folder(turn.instant.time)} holds no whole "
                "manifest of it; restore the folder"
            )
    else:
        _undo(table, turn.instant, clock)
    heartbeat.stop(table.storage, turn.instant.time)


def decide(table: Table, instant: Instant, clock: Clock, *, may_complete: bool = False) -> None:
    """Decide about a dead writer's instant, unless others did meanwhile, and carry it out.

    Parameters
    ----------
    table : Table
        The table.
    instant : Instant
        A pending write.
    clock : Clock
        For the time of the rollback's own instant.
    may_complete : bool
        Whether to complete it, if its manifest is whole and nothing was decided since its writer
        looked for conflicts; otherwise it is rolled back.
    """
    while True:
        before = settle(table, clock)
        timeline = load_timeline(table.storage)
        if not any(found.time == instant.time for found in timeline.pending):
            return
        turn = following_turn(before, Decision.ROLL_BACK, instant, _RECOVERY)
        if may_complete and not is_undone(table.storage, timeline, instant):
            turn = _completing(table, turn)
        if take_turn(table.storage, turn):
            carry_out(table, turn, clock)
            return


def _completing(table: Table, turn: Turn) -> Turn:
    """Turn a decision against an instant into one for it, where its manifest allows that.

    One of several micro-batches says no turn: Spark has moved past those, so they stay.
    """
    found = newest_manifest(table.storage, turn.instant.time)
    if found is None:
        return turn
    number, body = found
    commit = CommitMetadata.from_bytes(body, manifest_path(turn.instant.time, number))
    looked_after = commit.extra.get(TURN_KEY)
    if looked_after is not None and looked_after != str(turn.number - 1):
        return turn
    return replace(turn, decision=Decision.COMPLETE, carried=commit.guard_entries)


def _is_pending(table: Table, instant: Instant) -> bool:
    return any(found.time == instant.time for found in load_timeline(table.storage).pending)


def _undo(table: Table, instant: Instant, clock: Clock) -> None:
    """Roll an instant back, going on with a rollback of it that was killed."""
    for pending in load_timeline(table.storage).pending:
        if pending.action is Action.ROLLBACK and target_of(table.storage, pending) == instant.time:
            finish_rollback(table, pending, clock)
            return
    roll_back(table, instant, clock)
