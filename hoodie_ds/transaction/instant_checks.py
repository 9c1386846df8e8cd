"""Checks whether an action's instant ended, or its table changed, while the action was at work.

A write that seemed dead is rolled back by the next one. Its folders disappear while it writes to
them, so any operation may fail; the error then says that the write was rolled back.
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
from hoodie_ds.timeline.loading import load_timeline
from hoodie_ds.timeline.paths import LAYOUTS, instant_path
from hoodie_ds.transaction.completion import find_completed
from hoodie_ds.transaction.failed_write import marked_files
from hoodie_ds.transaction.ownership import owner_of
from hoodie_ds.transaction.pending_action import PendingAction
from hoodie_ds.transaction.temporary_files import delete_temporary


@contextmanager
def translate_rollback_errors(pending: PendingAction, time: str) -> Iterator[None]:
    """Turn a storage error into that of a rolled back instant, if the instant was rolled back."""
    try:
        yield
    except StorageError as error:
        with suppress(StorageError):
            if owner_of(pending.storage, pending.inflight(time)) != pending.owner:
                raise pending.undone(time) from error
        raise


@contextmanager
def no_late_files(pending: PendingAction, time: str, files: Collection[str]) -> Iterator[None]:
    """Delete the data files that the block wrote if their instant has ended since.

    A process may be stopped inside a write while others complete its instant or roll it back. Both
    delete the markers, so no process would find a later file. No commit names such files, as tasks
    and commits report files only after this block, and no other attempt has files of these names.

    Raises an error that says how the instant ended.
    """
    try:
        yield
    except Exception:
        with suppress(StorageError):  # the first error is reported
            if _ended(pending, time) is not None:
                _delete(pending, files)
        raise
    ended = _ended(pending, time)
    if ended is not None:
        _delete(pending, files)
        raise ended


def check_table_unchanged(pending: PendingAction, instant: Instant) -> None:
    """Refuse to commit to a table that was changed; delete the instant's files if it was upgraded.

    An upgrade or a downgrade moves the timeline. No engine sees an instant of the old timeline, so
    none would roll it back.
    """
    try:
        check_unchanged(pending.table)
    except UnsupportedTableError:
        if not pending.batches_before:
            with suppress(StorageError):  # the refusal is reported
                _delete_instant(pending.table, instant)
        raise


def _ended(pending: PendingAction, time: str) -> HoodieError | None:
    """The error that says how the instant ended; None if it is still open.

    Call it after the last file is put. A rollback deletes the inflight file first and then the
    announced files; a completion puts the completed file first.
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
    """Delete the files of an instant, unless the upgrade moved the instant too."""
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
