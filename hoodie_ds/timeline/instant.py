"""Instants: what was done to a table, when, and how far it has come."""

from __future__ import annotations

from dataclasses import dataclass, replace
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
    CLUSTERING = "clustering"


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
        Action.CLUSTERING,
    }
)
"""Actions that bring data files into the table."""


REPLACING: Final = frozenset({Action.REPLACE_COMMIT, Action.CLUSTERING})
"""Actions that replace file groups by others."""


COMPLETES_AS: Final = {
    Action.COMPACTION: Action.COMMIT,
    Action.LOG_COMPACTION: Action.DELTA_COMMIT,
    Action.CLUSTERING: Action.REPLACE_COMMIT,
}
"""Actions that are called otherwise once they have completed."""


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
        For an open instant with a manifest, as the writer sees it that joins it: how many
        micro-batches the manifest is of. To that writer they count as committed. 0 otherwise.
    layout : int
        Version of the timeline layout that it lies in, which says what its files are called.
    completion_time : str
        When it was completed, where the layout has it in the name; empty otherwise.
    """

    time: str
    action: Action
    state: State
    num_batches: int = 0
    layout: int = 1
    completion_time: str = ""

    @property
    def counts(self) -> bool:
        """Whether what was done counts: to all, or to the writer that joins the open instant."""
        return self.state is State.COMPLETED or self.num_batches > 0

    @property
    def ended(self) -> str:
        """When a completed instant was completed; where that is not known, when it began."""
        return self.completion_time or self.time

    def at(self, state: State) -> Instant:
        """Return the same instant in another state, of which no completion time is known."""
        return Instant(self.time, self.action, state, layout=self.layout)

    def completed(self, completion_time: str) -> Instant:
        """Return the same instant as it is completed, by the action that it then has.

        Parameters
        ----------
        completion_time : str
            When; empty in layouts whose names do not have it.
        """
        action = COMPLETES_AS.get(self.action, self.action)
        done = replace(self.at(State.COMPLETED), action=action)
        return replace(done, completion_time=completion_time)

    def __str__(self) -> str:
        return f"{self.time} {self.action.value} {self.state.value}"
