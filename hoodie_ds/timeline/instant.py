"""Instants: the names of the files that make up a Hudi timeline (layout 1, table version 6).

An instant is ``<time>.<action>[.<state>]``. Two names are irregular and live only here: the
inflight file of a ``commit`` has no action in it, and a compaction completes under the name of a
commit (a log compaction under that of a delta commit).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final


class Action(str, Enum):
    """What an instant does to the table."""

    COMMIT = "commit"
    DELTA_COMMIT = "deltacommit"
    REPLACE_COMMIT = "replacecommit"
    COMPACTION = "compaction"
    LOG_COMPACTION = "logcompaction"
    CLEAN = "clean"
    ROLLBACK = "rollback"
    SAVEPOINT = "savepoint"
    RESTORE = "restore"
    INDEXING = "indexing"
    SCHEMA_COMMIT = "schemacommit"


class State(str, Enum):
    """How far an instant has come."""

    REQUESTED = "requested"
    INFLIGHT = "inflight"
    COMPLETED = "completed"


WRITE_ACTIONS: Final = frozenset(
    {
        Action.COMMIT,
        Action.DELTA_COMMIT,
        Action.REPLACE_COMMIT,
        Action.COMPACTION,
        Action.LOG_COMPACTION,
    }
)
"""Actions that bring data files into the table."""


@dataclass(frozen=True, slots=True, order=True)
class Instant:
    """One step of one action on the timeline.

    Parameters
    ----------
    time : str
        Requested time, ``yyyyMMddHHmmssSSS`` (14 digits, without milliseconds, in old tables).
    action : Action
        What it does.
    state : State
        How far it has come.
    num_batches : int
        For an instant that takes several micro-batches and is still pending: how many are in it.
        Those are prepared, so to the writer that goes on with it they count as committed.
    """

    time: str
    action: Action
    state: State
    num_batches: int = 0

    @classmethod
    def parse(cls, name: str) -> Instant | None:
        """Read a file name of the timeline folder; None for a file that is not an instant."""
        time, _, form = name.partition(".")
        found = _FORMS.get(form)
        # Digits in other scripts are digits to Python: such a name is not an instant.
        if found is None or len(time) not in (14, 17) or not (time.isascii() and time.isdigit()):
            return None
        return cls(time, *found)

    @property
    def file_name(self) -> str:
        """Name of the file that records this step."""
        if self.state is State.REQUESTED:
            return f"{self.time}.{self.action.value}.requested"
        if self.state is State.INFLIGHT:
            middle = "" if self.action is Action.COMMIT else f".{self.action.value}"
            return f"{self.time}{middle}.inflight"
        match self.action:
            case Action.COMPACTION:
                return f"{self.time}.commit"
            case Action.LOG_COMPACTION:
                return f"{self.time}.deltacommit"
            case _:
                return f"{self.time}.{self.action.value}"

    def at(self, state: State) -> Instant:
        """Return the same instant in another state."""
        return Instant(self.time, self.action, state)

    def __str__(self) -> str:
        return f"{self.time} {self.action.value} {self.state.value}"


# A compaction never completes under its own name: the names that it shares are others' already.
_FORMS: Final[dict[str, tuple[Action, State]]] = {}
for _action in Action:
    for _state in State:
        _FORMS.setdefault(Instant("", _action, _state).file_name[1:], (_action, _state))
