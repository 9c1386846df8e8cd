"""Files that are written for an instant which ends meanwhile: their writer takes them away.

A process may be stopped inside a write, for as long as it takes others to complete its instant
or to roll it back. Both delete the markers, so nobody would find a file that comes later.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from hoodie_ds.errors import HoodieError, NotFoundError, StorageError, TimelineError
from hoodie_ds.handles.context import WriteContext
from hoodie_ds.sink.batch import Batch
from hoodie_ds.sink.overtaken import undone
from hoodie_ds.sink.table_changes import check_table
from hoodie_ds.timeline.instant import Instant, State
from hoodie_ds.timeline.paths import instant_path
from hoodie_ds.transaction.ownership import owner_of


@contextmanager
def no_late_files(batch: Batch, context: WriteContext) -> Iterator[None]:
    """Delete the data files of the block if their instant has ended when it is left.

    No commit can name them: a task and a commit name what they have written after this only. Their
    names are this attempt's own, so that they are nobody else's files either.

    Parameters
    ----------
    batch : Batch
        The batch.
    context : WriteContext
        Task and instant; knows the files.

    Raises
    ------
    HoodieError
        The instant was rolled back, or completed without these files, or the table was changed:
        see `check_table`.
    """
    try:
        yield
    except Exception:
        with suppress(StorageError):  # what went wrong first is what is reported
            if _ended(batch, context) is not None:
                _delete(context)
        raise
    ended = _ended(batch, context)
    if ended is not None:
        _delete(context)
        raise ended


def _ended(batch: Batch, context: WriteContext) -> HoodieError | None:
    """What says how the instant ended; None if it is still open.

    To be looked at after the last file. Who rolls back deletes the inflight file first, and then
    what markers announce; who completes puts the completed file first.
    """
    storage, time = context.storage, context.instant_time
    instant = Instant(time, batch.action, State.INFLIGHT)
    if owner_of(storage, instant) != batch.owner:
        try:
            check_table(batch, instant)  # an upgrade moves the timeline away
        except HoodieError as error:
            return error
        return undone(batch, time)
    try:
        storage.read(instant_path(instant.at(State.COMPLETED)))
    except NotFoundError:
        return None
    return TimelineError(
        f"{storage.root}: instant {time} was completed while files of this batch were written "
        "under it, so they do not count; the batch can be run again"
    )


def _delete(context: WriteContext) -> None:
    for path in context.files:
        context.storage.delete(path)
