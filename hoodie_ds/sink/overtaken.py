"""What a writer is told whose instant another one has taken away from it.

A write that was thought dead is rolled back by the next one: its folders go while it writes to
them, so that any operation may fail. What the user has to know is not which.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from hoodie_ds.config.concurrency_catalog import CONCURRENCY_MODE
from hoodie_ds.config.kinds import ConcurrencyMode
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import StorageError, TimelineError
from hoodie_ds.sink.batch import Batch
from hoodie_ds.timeline.instant import Instant, State
from hoodie_ds.timeline.owner import owner_of


def remedy(options: WriteOptions) -> str:
    """Return what is to be done so that writers do not undo one another's work."""
    if options.concurrency.is_shared:
        return "it runs again when the write is repeated or the query restarted"
    shared = ConcurrencyMode.OPTIMISTIC_CONCURRENCY_CONTROL.value
    return (
        "it runs again when the write is repeated or the query restarted; if several writers are "
        f"meant to write to the table, each of them has to set {CONCURRENCY_MODE.key}={shared}"
    )


def undone(batch: Batch, time: str) -> TimelineError:
    """Return the error of a batch whose instant was rolled back under it."""
    return TimelineError(
        f"{batch.table.storage.root}: another writer rolled instant {time} back, which was rolled "
        f"back while this batch was written under it, so the batch is not committed; "
        f"{remedy(batch.options)}"
    )


@contextmanager
def told_if_undone(batch: Batch, time: str) -> Iterator[None]:
    """Say that an instant was rolled back where that is why a storage operation failed.

    Raises
    ------
    TimelineError
        The instant is not the batch's any more.
    """
    try:
        yield
    except StorageError as error:
        with suppress(StorageError):
            inflight = Instant(time, batch.action, State.INFLIGHT)
            if owner_of(batch.table.storage, inflight) != batch.owner:
                raise undone(batch, time) from error
        raise
