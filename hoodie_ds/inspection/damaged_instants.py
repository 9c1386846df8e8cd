"""Instants of the active timeline whose files cannot be read now, whatever was read before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Final

from hoodie_ds.errors import CorruptFileError, NotFoundError
from hoodie_ds.formats.avro.container import read_record
from hoodie_ds.inspection.promises import Finding, Kind
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.bodies.clean_metadata import CleanerPlan, CleanMetadata
from hoodie_ds.timeline.bodies.commit_metadata import CommitMetadata
from hoodie_ds.timeline.bodies.restore_metadata import RestoreRequest
from hoodie_ds.timeline.bodies.rollback_metadata import rolled_back_time
from hoodie_ds.timeline.bodies.savepoint_metadata import savepointed_files
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.layout import LAYOUTS
from hoodie_ds.timeline.paths import commit_path, instant_path
from hoodie_ds.timeline.timeline import Timeline

_Parse = Callable[[bytes, str], object]
"""Takes the content of a file and its path; raises `CorruptFileError`."""

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


def damaged_instants(storage: Storage, timeline: Timeline) -> Iterator[Finding]:
    """Yield the writes, cleans, rollbacks and restores that cannot be read.

    Which files count is not known then.

    Parameters
    ----------
    storage : Storage
        Rooted at the table's base path.
    timeline : Timeline
        The table.
    """
    for commit in timeline.commits:
        yield from _damage(storage, commit_path(commit), CommitMetadata.from_bytes)
    for instant in _services(timeline):
        if instant.state is State.COMPLETED:
            yield from _damage(storage, instant_path(instant), _COMPLETED[instant.action])
        requested = instant_path(instant.at(State.REQUESTED))
        # Hudi leaves some requested files empty.
        yield from _damage(storage, requested, _REQUESTED[instant.action], may_be_empty=True)


def damaged_savepoints(storage: Storage, timeline: Timeline) -> Iterator[Finding]:
    """Yield the savepoints that cannot be read: what they keep is not known.

    Parameters
    ----------
    storage, timeline
        See `damaged_instants`.
    """
    for instant in timeline.savepoints:
        if instant.state is State.COMPLETED:
            yield from _damage(storage, instant_path(instant), savepointed_files)


def empty_instants(table: Table) -> Iterator[Finding]:
    """Yield the completed instants whose files are of no bytes, by one listing.

    Parameters
    ----------
    table : Table
        The table.
    """
    layout = LAYOUTS[table.layout]
    for status in table.storage.list(layout.folder):
        instant = None if status.size else layout.parse(status.path.rpartition("/")[2])
        if instant is not None and instant.state is State.COMPLETED:
            yield _empty(status.path)


def _empty(path: str) -> Finding:
    remedy = "restore it from a copy"
    return Finding(Kind.DAMAGED_INSTANT, path, "the file is empty", remedy)


def _services(timeline: Timeline) -> Iterable[Instant]:
    pending = (i for i in timeline.pending if i.action in _REQUESTED)
    completed = {*timeline.deletions, *timeline.rollbacks}
    return sorted({*completed, *pending}, key=lambda instant: (instant.time, instant.action))


def _damage(
    storage: Storage, path: str, parse: _Parse, *, may_be_empty: bool = False
) -> Iterator[Finding]:
    try:
        with suppress(NotFoundError):  # archived since
            data = storage.read(path)
            if data:
                parse(data, path)
            elif not may_be_empty:
                yield _empty(path)
    except CorruptFileError as error:
        yield Finding.of(Kind.DAMAGED_INSTANT, path, error)
