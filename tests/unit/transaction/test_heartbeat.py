"""Heartbeats go on whatever becomes of one, and their ages are taken by the storage's clock."""

from __future__ import annotations

import logging
import threading

import pytest

from hoodie_ds.errors import StorageError
from hoodie_ds.testing import Effect, Fault, FaultyStorage, Kind, MemoryStorage, Operation, SimClock
from hoodie_ds.transaction.heartbeat import ages_ms, beating, storage_now_ms

TIME = "20250101000000000"


def test_the_storage_time_is_that_of_the_clock_file_alone() -> None:
    clock = SimClock()
    storage = MemoryStorage(clock=clock)
    storage.put_if_absent(".hoodie/.locks/.clock.crc", b"")  # of a Hadoop on a local disk
    clock.advance(5_000)
    assert storage_now_ms(storage) == clock.now_ms()


def test_a_storage_without_modification_times_is_refused_for_several_writers() -> None:
    timeless = MemoryStorage("memory://timeless", clock=SimClock(0))
    with pytest.raises(StorageError, match=r"memory://timeless: .* let a single writer"):
        storage_now_ms(timeless)


def test_a_heartbeat_continues_after_a_failed_beat(caplog: pytest.LogCaptureFixture) -> None:
    clock = SimClock()
    storage = MemoryStorage(clock=clock)
    beats, third = 0, threading.Event()

    def count(operation: Operation) -> None:
        nonlocal beats
        clock.advance(1_000)
        beats += 1
        if beats == 3:
            third.set()

    second_fails = [Fault(Effect.FAILED, kinds=frozenset({Kind.REPLACE}), skip=1)]
    faulty = FaultyStorage(storage, second_fails, before_each=count)
    with caplog.at_level(logging.WARNING, "hoodie_ds"), beating(faulty, TIME, interval_ms=1):
        assert third.wait(60)
    assert caplog.text.count(f"no heartbeat of instant {TIME}") == 1
    assert ages_ms(storage) == {TIME: 0}
    assert not [t for t in threading.enumerate() if t.name == f"hoodie-heartbeat-{TIME}"]
