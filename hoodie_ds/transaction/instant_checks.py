"""Checks of an action whose instant ends, or whose table changes, while the action is at work.

A write that was thought dead is rolled back by the next one. Its folders disappear while it writes
to them, so any operation may fail; the error says that it was rolled back, not which one failed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from itertools import chain

from hoodie_ds.errors import (
    HoodieError,
    StorageError,
    TimelineError,
    UnsupportedTableError,
)
from hoodie_ds.table.table import Table, check_unchanged
from hoodie_ds.timeline.instant import Instant, State
from hoodie_ds.timeline.layout import LAYOUTS
from hoodie_ds.timeline.loading import load_timeline
from hoodie_ds.timeline.paths import instant_path
from hoodie_ds.transaction.completion import find_completed
from hoodie_ds.transaction.failed_write import marked_files
from hoodie_ds.transaction.ownership import owner_of
from hoodie_ds.transaction.pending_action import PendingAction
from hoodie_ds.transaction.temporary_files import delete_temporary


@contextmanager
def translate_rollback_errors(pending: PendingAction, time: str) -> Iterator[None]:
    """Say that an instant was rolled back where that is why a storage operation failed."""
    try:
        yield
    except StorageError as error:
        with suppress(StorageError):
            if owner_of(pending.storage, pending.inflight(time)) != pending.owner:
                raise pending.undone(time) from error
        raise


@contextmanager
def no_late_files(pending: PendingAction, time: str, files: Collection[str]) -> Iterator[None]:
    """Delete the data files of the block if their instant has ended when it is left.

    A process may be stopped inside a write, for as long as it takes others to complete its instant
    or to roll it back. Both delete the markers, so nobody would find a file that comes later. No
    commit can name such files: a task and a commit name what they have written after this only.
    Their names are this attempt's own, so that they are nobody else's files either.

    Raises what says how the instant ended.
    """
    try:
        yield
    except Exception:
        with suppress(StorageError):  # what went wrong first is what is reported
            if _ended(pending, time) is not None:
                _delete(pending, files)
        raise
    ended = _ended(pending, time)
    if ended is not None:
        _delete(pending, files)
        raise ended


def check_table_unchanged(pending: PendingAction, instant: Instant) -> None:
    """Refuse to commit to a table that was changed; of an upgraded one, take the files back.

    An upgrade or a downgrade moves the timeline. What is put into the old place nobody sees, and
    nobody undoes: neither this library nor the other engine.
    """
    try:
        check_unchanged(pending.table)
    except UnsupportedTableError:
        if not pending.batches_before:
            with suppress(StorageError):  # what counts is the refusal
                _delete_instant(pending.table, instant)
        raise


def _ended(pending: PendingAction, time: str) -> HoodieError | None:
    """What says how the instant ended; None if it is still open.

    To be looked at after the last file. Who rolls back deletes the inflight file first, and then
    what markers announce; who completes puts the completed file first.
    """
    storage, instant = pending.storage, pending.inflight(time)
    if owner_of(storage, instant) != pending.owner:
        try:
            check_table_unchanged(pending, instant)  # an upgrade moves the timeline away
        except HoodieError as error:
            return error
        return pending.undone(time)
    if find_completed(storage, instant) is None:
        return None
    return TimelineError(
        f"{storage.root}: instant {time} was completed while files of this batch were written "
        "under it, so they do not count; the batch can be run again"
    )


def _delete(pending: PendingAction, files: Collection[str]) -> None:
    for path in files:
        pending.storage.delete(path)


def _delete_instant(table: Table, instant: Instant) -> None:
    """Delete what an instant left, unless the upgrade has taken the instant along."""
    storage = table.storage
    elsewhere = [layout.folder for layout in LAYOUTS.values() if layout.version != instant.layout]
    listed = chain.from_iterable(map(storage.list, elsewhere))
    moved = (status.path.rpartition("/")[2] for status in listed)
    if any(name.startswith(instant.time) for name in moved):
        return
    if load_timeline(storage, instant.layout).commit_at(instant.time) is not None:
        return
    for path in sorted(marked_files(table, instant.time)):
        storage.delete(path)
    storage.delete(instant_path(instant.at(State.INFLIGHT)))
    storage.delete(instant_path(instant.at(State.REQUESTED)))
    delete_temporary(storage, instant.time)
