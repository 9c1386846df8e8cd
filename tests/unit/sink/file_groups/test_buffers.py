"""The thread that writes mini-batches out beside a task."""

from __future__ import annotations

from threading import Event

import pytest

from hoodie_ds.environment import SystemClock
from hoodie_ds.errors import StorageError
from hoodie_ds.sink.file_groups.buffers import Flusher
from hoodie_ds.sink.messages import WriteMetrics


def fail() -> None:
    raise StorageError("the disk is gone")


class Blocked:
    """A flush that says when it has begun, by when those before it are done, and waits."""

    def __init__(self) -> None:
        self.begun, self.let_on = Event(), Event()

    def __call__(self) -> None:
        self.begun.set()
        assert self.let_on.wait(10)


def test_finished_flushes_no_longer_count_and_others_are_not_awaited() -> None:
    flusher, blocked = Flusher(SystemClock(), WriteMetrics()), Blocked()
    flusher.submit(lambda: None, 10)
    flusher.submit(blocked, 7)
    assert blocked.begun.wait(10)
    assert flusher.in_flight_bytes == 17
    flusher.collect()
    assert flusher.in_flight_bytes == 7
    blocked.let_on.set()
    flusher.close()
    assert flusher.in_flight_bytes == 0
    flusher.wait_for_one()  # there is none, so it returns


def test_a_failure_is_raised_as_soon_as_flushes_are_collected() -> None:
    flusher, blocked = Flusher(SystemClock(), WriteMetrics()), Blocked()
    flusher.submit(fail, 10)
    flusher.submit(blocked, 7)
    assert blocked.begun.wait(10)
    with pytest.raises(StorageError, match="the disk is gone"):
        flusher.collect()
    blocked.let_on.set()
    flusher.discard()
