"""Heartbeats: they show that the writer of a pending instant is alive.

As in Hudi, a file named after the instant is rewritten at intervals, and its age counts. Ages are
measured by the storage's clock, as clocks of machines may differ by more than an interval.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from hoodie_ds.errors import StorageError
from hoodie_ds.log import Log
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.paths import HEARTBEATS, LOCKS, STORAGE_CLOCK, heartbeat_path


def storage_now_ms(storage: Storage) -> int:
    """Return the time of a storage's clock in milliseconds, that of a file written now."""
    storage.replace(STORAGE_CLOCK, b"")
    for status in storage.list(LOCKS):
        if status.path == STORAGE_CLOCK and status.modified_ms:
            return status.modified_ms
    raise StorageError(
        f"{storage.root}: this storage does not report modification times, so several writers "
        "cannot detect a dead one; let a single writer work on the table"
    )


def beat(storage: Storage, time: str) -> None:
    """Show that the writer of an instant is alive."""
    storage.replace(heartbeat_path(time), b"")


def stop(storage: Storage, time: str) -> None:
    """Delete the heartbeat of an instant that has ended; one that cannot be deleted expires."""
    with suppress(StorageError):
        storage.delete(heartbeat_path(time))


def living(storage: Storage, timeout_ms: int) -> frozenset[str]:
    """Return the times of the instants whose heartbeat is younger than a timeout."""
    return frozenset(time for time, age_ms in ages_ms(storage).items() if age_ms < timeout_ms)


def ages_ms(storage: Storage) -> dict[str, int]:
    """Return the ages of all heartbeats, in milliseconds, by instant time."""
    beats = storage.list(HEARTBEATS)
    now_ms = storage_now_ms(storage) if beats else 0
    return {status.path.rpartition("/")[2]: now_ms - status.modified_ms for status in beats}


@contextmanager
def beating(storage: Storage, time: str, interval_ms: int) -> Iterator[None]:
    """Beat once, and then at intervals on a thread until the block is left.

    A beat that fails is logged and skipped: if the instant is rolled back, its commit fails.
    """
    stopped = threading.Event()

    def run() -> None:
        while not stopped.wait(interval_ms / 1000):
            _try_to_beat(storage, time)

    beat(storage, time)
    thread = threading.Thread(target=run, name=f"hoodie-heartbeat-{time}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


def _try_to_beat(storage: Storage, time: str) -> None:
    try:
        beat(storage, time)
    except StorageError as error:
        Log(storage.root, time).warning("no heartbeat of instant %s: %s", time, error)
