"""Turns: the order in which several writers decide about instants, whatever becomes of their locks.

A lock alone does not make commits safe: its holder may be stopped for longer than the lock lasts
and go on as if it had it. So every decision, to complete an instant or to roll it back, takes the
next turn by a put-if-absent, which only one writer can win; and nobody takes a turn before the
decision of the one before it is carried out, whoever made it. A writer that was overtaken finds
its turn's name taken. (The fencing token of a lock, made part of the commit.)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from hoodie_ds.errors import (
    CommitOutcomeUnknownError,
    CorruptFileError,
    NotFoundError,
    StorageError,
)
from hoodie_ds.storage.decisive_put import put_decisively
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.paths import TURNS, number_in, numbered_path

_KEPT: Final = 20
"""Turns that are not deleted, so that a late writer's name for its turn is seldom free again."""


class Decision(Enum):
    """What is to become of an instant."""

    COMPLETE = "complete"
    ROLL_BACK = "roll back"
    PREPARE = "prepare"
    """Keep its batches; it waits for further ones, so there is nothing to carry out."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One decision.

    Parameters
    ----------
    number : int
        Its place in the order, from 1.
    decision : Decision
        What was decided.
    instant : Instant
        About which pending instant.
    taken_by : str
        A text that no other attempt to take a turn has.
    carried : mapping of str to str
        What is to outlive the timeline: other engines archive commits, and never a turn.
    """

    number: int
    decision: Decision
    instant: Instant
    taken_by: str
    carried: Mapping[str, str] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """Return the content of the turn's file."""
        body = {
            "decision": self.decision.value,
            "instant": self.instant.time,
            "action": self.instant.action.value,
            "by": self.taken_by,
            "carried": dict(self.carried),
        }
        return json.dumps(body).encode()

    @classmethod
    def from_bytes(cls, number: int, body: bytes, path: str) -> Turn:
        """Read a turn's file.

        Raises
        ------
        CorruptFileError
            It is not what `to_bytes` wrote.
        """
        try:
            found = json.loads(body)
            instant = Instant(str(found["instant"]), Action(found["action"]), State.INFLIGHT)
            carried = {str(key): str(text) for key, text in found["carried"].items()}
            return cls(number, Decision(found["decision"]), instant, str(found["by"]), carried)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise CorruptFileError(f"{path} is not a turn of a writer: {body[:100]!r}") from error


def newest_turn(storage: Storage) -> Turn | None:
    """Return the last turn that was taken; None before the first."""
    while True:
        numbers = _numbers(storage)
        if not numbers:
            return None
        path = numbered_path(TURNS, numbers[-1])
        with suppress(NotFoundError):  # withdrawn, or deleted after many others were taken
            return Turn.from_bytes(numbers[-1], storage.read(path), path)


def following_turn(
    before: Turn | None, decision: Decision, instant: Instant, taken_by: str
) -> Turn:
    """Return the turn after another one, that carries on what it carries."""
    if before is None:
        return Turn(1, decision, instant, taken_by)
    return Turn(before.number + 1, decision, instant, taken_by, before.carried)


def take_turn(storage: Storage, turn: Turn) -> bool:
    """Take a turn, if it is still the next one.

    Returns
    -------
    bool
        False if other writers were faster. Then look again: either the decision does not count, or
        others have found the turn, carried it out and gone on.

    Raises
    ------
    CommitOutcomeUnknownError
        Whether the turn was taken could not be found out.
    """
    path = numbered_path(TURNS, turn.number)
    if not put_decisively(storage, path, turn.to_bytes()):
        return False
    try:
        numbers = _numbers(storage)
    except StorageError as error:
        raise CommitOutcomeUnknownError(
            f"{storage.root}/{path} was put, but whether it is the newest turn could not be read "
            f"({error}); nothing was deleted, the next batch finds out"
        ) from error
    if numbers[-1] != turn.number:
        return False  # perhaps the name was free only since so many turns had followed it
    with suppress(StorageError):  # others will
        for number in numbers[:-_KEPT]:
            storage.delete(numbered_path(TURNS, number))
    return True


def _numbers(storage: Storage) -> list[int]:
    listed = (number_in(status.path) for status in storage.list(TURNS))
    return sorted(number for number in listed if number is not None)
