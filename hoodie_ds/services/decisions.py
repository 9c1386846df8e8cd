"""Decisions about instants among several writers, and what they ask for.

Before a decision is taken that of the turn before it is carried out, by whoever comes next; so at
most the newest one is still to be carried out, and everybody can.
"""

from __future__ import annotations

from hoodie_ds.config.clock import Clock
from hoodie_ds.errors import CorruptFileError
from hoodie_ds.services.prepared import complete_from_manifest
from hoodie_ds.services.rollback import finish_rollback, roll_back, target_of
from hoodie_ds.table import heartbeat
from hoodie_ds.table.opened import Table
from hoodie_ds.table.turns import Decision, Turn, newest_turn, take_turn
from hoodie_ds.timeline.instant import Action, Instant
from hoodie_ds.timeline.paths import temp_folder
from hoodie_ds.timeline.timeline import load_timeline


def settle(table: Table, clock: Clock) -> int:
    """Carry out the newest decision.

    Returns
    -------
    int
        Number of its turn; 0 if there was none yet.
    """
    turn = newest_turn(table.storage)
    if turn is None:
        return 0
    carry_out(table, turn, clock)
    return turn.number


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


def decide_to_roll_back(table: Table, instant: Instant, taken_by: str, clock: Clock) -> None:
    """Roll a dead writer's instant back, unless it is completed meanwhile.

    Parameters
    ----------
    table : Table
        The table.
    instant : Instant
        A pending write.
    taken_by : str
        A text that no other attempt to take a turn has.
    clock : Clock
        For the time of the rollback's own instant.
    """
    while True:
        number = settle(table, clock) + 1
        if not _is_pending(table, instant):
            return
        turn = Turn(number, Decision.ROLL_BACK, instant, taken_by)
        if take_turn(table.storage, turn):
            carry_out(table, turn, clock)
            return


def _is_pending(table: Table, instant: Instant) -> bool:
    return any(found.time == instant.time for found in load_timeline(table.storage).pending)


def _undo(table: Table, instant: Instant, clock: Clock) -> None:
    """Roll an instant back, going on with a rollback of it that was killed."""
    for pending in load_timeline(table.storage).pending:
        if pending.action is Action.ROLLBACK and target_of(table.storage, pending) == instant.time:
            finish_rollback(table, pending, clock)
            return
    roll_back(table, instant, clock)
