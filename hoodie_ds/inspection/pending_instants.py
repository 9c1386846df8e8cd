"""Pending instants: planned services, open writes, and what ends each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from hoodie_ds.errors import CorruptFileError, NotFoundError, TimelineError
from hoodie_ds.index.bucket_clustering import obstacle_to
from hoodie_ds.inspection.damaged_instants import (
    lost_by_time,
    vanished_finding,
    vanished_writes,
)
from hoodie_ds.inspection.findings import Finding
from hoodie_ds.table.planned_services import plan_error, planned_groups
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.bodies.clean_metadata import read_plan
from hoodie_ds.timeline.bodies.replace_plan import is_pending_clustering
from hoodie_ds.timeline.instant import REPLACING, Action, Instant
from hoodie_ds.timeline.rollbacks import target_of
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction.restore import request_of

LOST: Final = "lost"
"""State of a completed write that the timeline has no file of."""


@dataclass(frozen=True, slots=True)
class PendingRow:
    """A pending instant, or a completed write that is lost."""

    time: str
    action: str
    state: str
    service: str  # compaction, clustering, clean, rollback, restore or write
    file_groups: int  # that its plan rewrites
    files: int  # that its plan deletes
    target: str  # the instant that a rollback undoes
    remedy: str  # what carries it out or ends it, with the command to paste into a shell


def pending_rows(table: Table, timeline: Timeline) -> Iterator[PendingRow]:
    """Yield the pending instants of a table, the oldest first, then writes that are lost."""
    lost = lost_by_time(table)
    for instant in timeline.pending:
        service, remedy = _ends(table, instant, lost)
        groups = files = 0
        target = ""
        if service in ("compaction", "clustering"):
            with suppress(CorruptFileError):
                groups = len(planned_groups(table.storage, instant))
        elif service == "clean":
            with suppress(NotFoundError):
                files = len(read_plan(table.storage, instant).paths)
        elif service == "rollback":
            target = target_of(table.storage, instant) or ""
        kind, state = instant.action.value, instant.state.value
        yield PendingRow(instant.time, kind, state, service, groups, files, target, remedy)
    for decision in vanished_writes(table, timeline):
        instant, found = decision.instant, vanished_finding(decision)
        remedy = f"{found.message}; {found.remedy}"
        yield PendingRow(instant.time, instant.action.value, LOST, "write", 0, 0, "", remedy)


def _ends(table: Table, instant: Instant, lost: Mapping[str, Finding]) -> tuple[str, str]:
    """Return the service of a pending instant, and what ends it."""
    if (found := lost.get(instant.time)) is not None:
        return "write", f"{found.message}; {found.remedy}"
    if (error := plan_error(table.storage, instant)) is not None:
        return "clustering" if instant.action in REPLACING else "compaction", str(error)
    match instant.action:
        case Action.COMPACTION | Action.LOG_COMPACTION:
            return "compaction", f"{table.command('compact')} carries it out"
        case Action.CLEAN:
            return "clean", f"{table.command('clean')} carries it out"
        case Action.ROLLBACK:
            return "rollback", "the next write completes it"
        case Action.RESTORE:
            try:
                target = request_of(table.storage, instant).target
            except TimelineError as error:
                return "restore", str(error)
            ends = f"{table.command('restore', target)} does" if target else "its engine does"
            return "restore", f"no process can write before it is completed: {ends}"
        case _ if is_pending_clustering(table.storage, instant):
            ends = f"{table.command('cluster')} carries it out"
            return "clustering", obstacle_to(table, instant) or ends
        case _:
            undo = table.command("rollback", instant.time)
            return "write", f"if its writer is dead, the next write ends it, or {undo} undoes it"
