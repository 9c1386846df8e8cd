"""What becomes of a batch that another writer was faster than: told in a sentence, or tried again.

A write that was thought dead is rolled back by the next one: its folders go while it writes to
them, so that any operation may fail. What the user has to know is not which.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from hoodie_ds.config.enums import ConcurrencyMode
from hoodie_ds.config.options.concurrency import CONCURRENCY_MODE
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import StorageError, TimelineError, WriteConflictError
from hoodie_ds.sink.batch import Batch
from hoodie_ds.timeline.instant import Instant, State
from hoodie_ds.transaction.ownership import owner_of

T = TypeVar("T")

_log = logging.getLogger("hoodie_ds")


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
        f"{batch.table.storage.root}: instant {time} was rolled back by another writer while this "
        f"batch was written under it, so the batch is not committed; {remedy(batch.options)}"
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


def again_after_conflicts(options: WriteOptions, write: Callable[[], T]) -> T:
    """Write a batch from its beginning, once more after each conflict as often as options say.

    Parameters
    ----------
    options : WriteOptions
        How to write; a single writer has nobody to go on beside.
    write : callable
        Begins, writes and commits the batch.

    Returns
    -------
    object
        What `write` returned.

    Raises
    ------
    WriteConflictError
        Another writer was faster each time.
    """
    retries = options.concurrency.conflict_retries if options.concurrency.is_shared else 0
    for number in range(retries):
        with suppress(WriteConflictError):
            return write()
        _log.info("%s: conflict %d, the batch is written again", options.base_path, number + 1)
    return write()
