"""What becomes of a batch whose table another engine changes: a table may be upgraded at any time.

The timeline of later table versions lies elsewhere. What is put into the old place nobody sees, and
nobody undoes: neither this library, which refuses the table, nor the other engine.
"""

from __future__ import annotations

from contextlib import suppress

from hoodie_ds.errors import StorageError, UnsupportedTableError
from hoodie_ds.sink.batch import Batch
from hoodie_ds.table.table import Table, check_unchanged
from hoodie_ds.timeline.instant import Instant, State
from hoodie_ds.timeline.paths import LATER_TIMELINE, instant_path, temp_folder
from hoodie_ds.timeline.timeline import load_timeline
from hoodie_ds.transaction.failed_write import marked_files


def check_table(batch: Batch, instant: Instant) -> None:
    """Refuse to commit to a table that was changed; of an upgraded one, take the files back.

    Parameters
    ----------
    batch : Batch
        The batch.
    instant : Instant
        Its instant.

    Raises
    ------
    HoodieError
        See `check_unchanged`.
    """
    try:
        check_unchanged(batch.table)
    except UnsupportedTableError:
        if batch.timeline.prepared is None:
            with suppress(StorageError):  # what counts is the refusal
                _take_back(batch.table, instant)
        raise


def _take_back(table: Table, instant: Instant) -> None:
    """Delete what an instant left, unless the upgrade has taken the instant along."""
    storage = table.storage
    moved = (status.path.rpartition("/")[2] for status in storage.list(LATER_TIMELINE))
    if any(name.startswith(instant.time) for name in moved):
        return
    if load_timeline(storage).commit_at(instant.time) is not None:
        return
    for path in sorted(marked_files(table, instant.time)):
        storage.delete(path)
    storage.delete(instant_path(instant.at(State.INFLIGHT)))
    storage.delete(instant_path(instant.at(State.REQUESTED)))
    storage.delete(temp_folder(instant.time))
