"""What waits on the timeline to be carried out, or has been left there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from hoodie_ds.errors import NotFoundError
from hoodie_ds.table.planned_services import planned_groups
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.clean_metadata import read_plan
from hoodie_ds.timeline.instant import REPLACING, Action, Instant, State
from hoodie_ds.timeline.paths import instant_path
from hoodie_ds.timeline.replace_plan import is_clustering
from hoodie_ds.timeline.rollbacks import target_of
from hoodie_ds.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class PendingRow:
    """A pending instant.

    Parameters
    ----------
    time, action, state : str
        The instant, in Hudi's words.
    service : str
        The table service that it is of: ``compaction``, ``clustering``, ``clean``, ``rollback``,
        ``restore``; ``write`` of what is none.
    file_groups : int
        File groups that its plan rewrites.
    files : int
        Files that its plan deletes.
    target : str
        The instant that a rollback undoes; empty of what is none.
    remedy : str
        The command that carries it out or ends it.
    """

    time: str
    action: str
    state: str
    service: str
    file_groups: int
    files: int
    target: str
    remedy: str


def pending_rows(table: Table, timeline: Timeline) -> Iterator[PendingRow]:
    """Yield the pending instants of a table, the oldest first.

    Parameters
    ----------
    table : Table
        The table.
    timeline : Timeline
        Its active timeline.

    Raises
    ------
    CorruptFileError
        A plan is missing or damaged.
    """
    for instant in timeline.pending:
        service, remedy = _service(table, instant)
        groups = files = 0
        target = ""
        if service in ("compaction", "clustering"):
            groups = len(planned_groups(table.storage, instant))
        elif service == "clean":
            with suppress(NotFoundError):
                files = len(read_plan(table.storage, instant).paths)
        elif service == "rollback":
            target = target_of(table.storage, instant) or ""
        kind, state = instant.action.value, instant.state.value
        yield PendingRow(instant.time, kind, state, service, groups, files, target, remedy)


def _service(table: Table, instant: Instant) -> tuple[str, str]:
    match instant.action:
        case Action.COMPACTION | Action.LOG_COMPACTION:
            return "compaction", "compact"
        case Action.CLEAN:
            return "clean", "clean"
        case Action.ROLLBACK:
            return "rollback", "the next write, or rollback"
        case Action.RESTORE:
            return "restore", "restore"
        case _ if instant.action in REPLACING and _is_planned(table, instant):
            return "clustering", "cluster"
        case _:
            return "write", "rollback, if its writer is dead"


def _is_planned(table: Table, instant: Instant) -> bool:
    path = instant_path(instant.at(State.REQUESTED))
    with suppress(NotFoundError):
        return is_clustering(table.storage.read(path), path)
    return False
