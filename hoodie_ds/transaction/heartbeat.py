"""Heartbeats: how a writer shows others that its unfinished instant is not a dead one's.

As in Hudi, a file named after the instant is written again and again, and its age counts. Ages are
taken by the storage's own clock, since clocks of machines differ by more than heartbeats should.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from hoodie_ds.errors import StorageError
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.paths import HEARTBEATS, LOCKS, STORAGE_CLOCK, heartbeat_path

_log = logging.getLogger("hoodie_ds")


def storage_now_ms(storage: Storage) -> int:
    """Return the time of a storage's clock, in milliseconds: that of a file written just now."""
    storage.replace(STORAGE_CLOCK, b"")
    for status in storage.list(LOCKS):
        if status.path == STORAGE_CLOCK and status.modified_ms:
            return status.modified_ms
    raise StorageError(
        f"{storage.root}: this storage does not tell when a file was written, without which none "
        "of several writers can tell a dead one; let a single writer work on the table"
    )


def beat(storage: Storage, time: str) -> None:
    """Show that the writer of an instant lives."""
    storage.replace(heartbeat_path(time), b"")


def stop(storage: Storage, time: str) -> None:
    """Take the heartbeat of an instant away: it is finished or undone.

    One that cannot be deleted grows old.
    """
    with suppress(StorageError):
        storage.delete(heartbeat_path(time))


def living(storage: Storage, timeout_ms: int) -> frozenset[str]:
    """Return the times of the instants whose heartbeat is younger than a time-out."""
    return frozenset(time for time, age_ms in ages_ms(storage).items() if age_ms < timeout_ms)


def ages_ms(storage: Storage) -> dict[str, int]:
    """Return the ages of all heartbeats, in milliseconds, by instant time."""
    beats = storage.list(HEARTBEATS)
    now_ms = storage_now_ms(storage) if beats else 0
    return {status.path.rpartition("/")[2]: now_ms - status.modified_ms for status in beats}


@contextmanager
def beating(storage: Storage, time: str, interval_ms: int) -> Iterator[None]:
    """Beat once, and on until the block is left, on a thread.

    A heartbeat that cannot be written is left out: what it protects fails where it does any harm.
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
        _log.warning("%s: no heartbeat of instant %s: %s", storage.root, time, error)
