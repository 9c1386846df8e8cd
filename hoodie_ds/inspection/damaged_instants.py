"""Damaged instants of the active timeline: unreadable, empty or lost files.

Files are read anew, whatever this process has read before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Final

from hoodie_ds.errors import CorruptFileError, NotFoundError
from hoodie_ds.formats.avro.container import read_record
from hoodie_ds.hints import COPY, given_up, lost_savepoint
from hoodie_ds.inspection.findings import Finding, Kind
from hoodie_ds.services.orphans import find_orphans
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.table.planned_services import plan_error
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.bodies.clean_metadata import CleanerPlan, CleanMetadata
from hoodie_ds.timeline.bodies.restore_metadata import RestoreRequest
from hoodie_ds.timeline.bodies.rollback_metadata import rolled_back_time
from hoodie_ds.timeline.bodies.savepoint_metadata import savepointed_files
from hoodie_ds.timeline.instant import WRITE_ACTIONS, Action, Instant, State
from hoodie_ds.timeline.loading import parse_commit
from hoodie_ds.timeline.paths import LAYOUTS, commit_path, instant_path
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction.decision_log import Decision, damaged_decisions
from hoodie_ds.transaction.lost_instants import lost_error, lost_instants, vanished_instants

_Parse = Callable[[bytes, str], object]
"""Parses the content of a file with a path, or raises `CorruptFileError`."""

_COMPLETED: Final[dict[Action, _Parse]] = {
    Action.CLEAN: CleanMetadata.from_bytes,
    Action.ROLLBACK: read_record,
    Action.RESTORE: read_record,
}
_REQUESTED: Final[dict[Action, _Parse]] = {
    Action.CLEAN: CleanerPlan.from_bytes,
    Action.ROLLBACK: rolled_back_time,
    Action.RESTORE: RestoreRequest.from_bytes,
}


def damaged_instants(table: Table, timeline: Timeline) -> Iterator[Finding]:
    """Yield unreadable writes, cleans, rollbacks, restores: which files count is unknown then.

    Of `empty_instants`, only writes.
    """
    storage = table.storage
    for commit in timeline.commits:
        parse, remedy = partial(parse_commit, storage, commit), _remedy(table, commit)
        yield from _damage(storage, commit_path(commit), parse, remedy)
    for instant in _services(timeline):
        if instant.state is State.COMPLETED:
            yield from _damage(storage, instant_path(instant), _COMPLETED[instant.action])
        requested = instant_path(instant.at(State.REQUESTED))
        yield from _damage(storage, requested, _REQUESTED[instant.action])


def damaged_savepoints(table: Table, timeline: Timeline) -> Iterator[Finding]:
    """Yield unreadable savepoints: which files they keep is unknown then."""
    for instant in timeline.savepoints:
        if instant.state is State.COMPLETED:
            yield from _damage(table.storage, instant_path(instant), savepointed_files)


def damaged_plans(table: Table, timeline: Timeline) -> Iterator[Finding]:
    """Yield unreadable plans of pending compactions and clusterings."""
    for instant in timeline.pending:
        error = plan_error(table.storage, instant)
        if error is not None:
            path = instant_path(instant.at(State.REQUESTED))
            yield Finding.of(Kind.DAMAGED_INSTANT, path, error)


def empty_instants(table: Table) -> Iterator[Finding]:
    """Yield the completed instants whose files are empty, by one listing."""
    layout = LAYOUTS[table.layout]
    for status in table.storage.list(layout.folder):
        instant = None if status.size else layout.parse(status.path.rpartition("/")[2])
        if instant is not None and instant.state is State.COMPLETED:
            yield _empty(status.path, _remedy(table, instant))


def _empty(path: str, remedy: str) -> Finding:
    return Finding(Kind.DAMAGED_INSTANT, path, "the file is empty", remedy)


def _remedy(table: Table, instant: Instant) -> str:
    """Return the remedy for a damaged completed file, which errors name too."""
    if instant.action is Action.SAVEPOINT:
        return lost_savepoint(table.command("savepoint", instant.time, "--delete"))
    if instant.action not in WRITE_ACTIONS:
        return COPY
    return given_up(table.command("rollback", instant.time))


def lost_findings(table: Table) -> Iterator[Finding]:
    """Yield the instants of `lost_by_time`, or the damage of the decision log."""
    damaged = damaged_decisions(table.storage)
    for path, error in damaged.items():
        yield Finding.of(Kind.DAMAGED_INSTANT, path, error)
    if not damaged:
        yield from lost_by_time(table).values()


def lost_by_time(table: Table) -> dict[str, Finding]:
    """Return the completed instants that the timeline has as pending, as their file is lost."""
    return {
        decision.instant.time: Finding.of(
            Kind.DAMAGED_INSTANT, instant_path(decision.completed), lost_error(table, decision)
        )
        for decision in lost_instants(table)
    }


def vanished_writes(table: Table, timeline: Timeline) -> list[Decision]:
    """Return the decisions of `vanished_instants` whose data files are there."""
    known = vanished_instants(table, timeline)
    if not known:
        return []
    files = FileSystemView(table.storage, timeline).data_files()
    _, vanished = find_orphans(table, table.load_timeline(), files)
    return [decision for decision in vanished if decision.instant.time in known]


def vanished_finding(decision: Decision) -> Finding:
    """Return the finding for a completed write that the timeline has no file of."""
    action, time = decision.instant.action.value, decision.instant.time
    return Finding(
        Kind.DAMAGED_INSTANT,
        instant_path(decision.completed),
        f"{action} {time} was completed, as the decision log says, and all its files on the "
        "timeline are gone, so its rows are left out",
        "restore them from a copy",
    )


def _services(timeline: Timeline) -> Iterable[Instant]:
    pending = (i for i in timeline.pending if i.action in _REQUESTED)
    completed = {*timeline.deletions, *timeline.rollbacks}
    return sorted({*completed, *pending}, key=lambda instant: (instant.time, instant.action))


def _damage(
    storage: Storage, path: str, parse: _Parse, empty: str | None = None
) -> Iterator[Finding]:
    """Yield the damage of a file; `empty` is the remedy for an empty one, None if it may be."""
    try:
        with suppress(NotFoundError):  # archived since
            data = storage.read(path)
            if data:
                parse(data, path)
            elif empty is not None:
                yield _empty(path, empty)
    except CorruptFileError as error:
        yield Finding.of(Kind.DAMAGED_INSTANT, path, error)
