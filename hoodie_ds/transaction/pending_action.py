"""A pending action: what it takes to open, decide, complete and roll back its instant.

Writes and table services are such actions; nothing here depends on rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from hoodie_ds.config.concurrency import Concurrency
from hoodie_ds.config.enums import TableType
from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.errors import TimelineError
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingAction:
    """One action of one process, or of several that work on it together."""

    table: Table
    timeline: Timeline  # a joined instant counts as committed in it
    action: Action
    operation_type: str  # as the inflight file names it, such as ``UPSERT``
    proposed_time: str  # taken if it is still free
    attempt: str  # a string that no other attempt has
    owner: str  # from `owner_entry`
    concurrency: Concurrency
    plan: bytes = b""  # content of the requested file
    creation_ms: int | None = None  # when the action creates its table; None if there is one

    @property
    def storage(self) -> Storage:
        """The table's storage."""
        return self.table.storage

    @property
    def batches_before(self) -> int:
        """How many micro-batches the instant holds already."""
        joined = self.timeline.joined
        return joined.num_batches if joined else 0

    def inflight(self, time: str) -> Instant:
        """Return the action's inflight instant at a time."""
        return self.table.instant(time, self.action, State.INFLIGHT)

    def undone(self, time: str) -> TimelineError:
        """Return the error of an action whose instant another writer rolled back."""
        remedy = self.concurrency.remedy
        return TimelineError(
            f"{self.storage.root}: instant {time} was rolled back by another writer while its "
            f"{self.operation_type} was under way, so nothing of it is committed; {remedy}"
        )


def write_action(properties: TableProperties, *, replaces: bool = False) -> Action:
    """Return the action of a write to a table."""
    if replaces:
        return Action.REPLACE_COMMIT
    cow = properties.table_type is TableType.COPY_ON_WRITE
    return Action.COMMIT if cow else Action.DELTA_COMMIT
