"""The lock of object stores is that of Hudi on the JVM, whose clients for them are not here."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hoodie_ds import HoodieTable
from hoodie_ds.environment import SystemClock
from hoodie_ds.errors import LockTimeoutError
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.testing import MemoryStorage, SimClock
from hoodie_ds.timeline.paths import TABLE_LOCK
from hoodie_ds.transaction.storage_lock import LockFile, StorageLock
from tests.interop.jvm_hudi import JvmHudi, JvmHudiError, find_installation
from tests.store_server import StoreServer
from tests.tables import TRIPS, found, trips
from tests.tiers import by_day

pytestmark = pytest.mark.jvm

BRIEF = {
    "hoodie.write.lock.storage.validity.timeout.secs": "10",
    "hoodie.write.lock.storage.renew.interval.secs": "1",
}
SHARED = {
    **TRIPS,
    **BRIEF,
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.lock.provider": (
        "org.apache.hudi.client.transaction.lock.StorageBasedLockProvider"
    ),
}
DYING = """
import json, os, signal, sys
from hoodie_ds import HoodieTable
from hoodie_ds.transaction.exclusive_commit import Exclusion
from tests.tables import trips

def killed(*_):
    os.kill(os.getpid(), signal.SIGKILL)

Exclusion.apply_pending = killed  # which a commit calls first under the lock
HoodieTable(sys.argv[1], json.loads(sys.argv[2])).upsert(trips(("a", "x", 2, 2.0)))
"""


def test_hudi_reads_and_writes_the_lock_file_as_we_do(jvm_hudi: JvmHudi) -> None:
    for file in (
        LockFile(False, 1_767_225_600_123, "6f9c1ae2-0d1c-4c6e-9d0e-2f6c1c1f0a11"),
        LockFile(True, 0, "hoodie_ds a"),
    ):
        text = file.to_bytes().decode()
        values, written = jvm_hudi.lock_file(text)
        assert values == [file.is_expired, file.valid_until_ms, file.owner]
        assert written == text
        assert LockFile.from_bytes(written.encode(), None, "f") == file


def test_hudi_refuses_what_we_refuse(jvm_hudi: JvmHudi) -> None:
    for text in ("", "[]", '{"expired":false,"owner":"a"}'):
        with pytest.raises(JvmHudiError, match="StorageLockData"):
            jvm_hudi.lock_file(text)
    values, _ = jvm_hudi.lock_file('{"expired":false,"validUntil":1,"owner":"a","new":{"b":[]}}')
    assert values == [False, 1, "a"]


def test_hudi_reads_a_lock_that_a_writer_of_ours_has_taken_and_released(jvm_hudi: JvmHudi) -> None:
    storage = MemoryStorage()
    clock = SimClock()
    lock = StorageLock(storage, 300_000, 30_000, "a", clock)
    assert lock.try_take()
    taken, _ = jvm_hudi.lock_file(storage.files[TABLE_LOCK].decode())
    lock.release()
    released, _ = jvm_hudi.lock_file(storage.files[TABLE_LOCK].decode())
    until = clock.now_ms() + 300_000
    assert [taken, released] == [[e, until, "hoodie_ds a"] for e in (False, True)]


STORES = ("s3", "gcs", "azurite")


@pytest.fixture(params=STORES)
def server(request: pytest.FixtureRequest) -> StoreServer:
    found: StoreServer = request.getfixturevalue(request.param)
    return found


def test_their_lock_and_ours_exclude_each_other(
    jvm_hudi: JvmHudi, server: StoreServer, tmp_path: Path
) -> None:
    """Hudi's lock, over a client of the tests; clocks of ours stand for the time that passes."""
    storage = open_storage(server.url(tmp_path), server.options)
    now = SystemClock().now_ms()

    def ours(name: str, late_ms: int = 0) -> StorageLock:
        return StorageLock(storage, 300_000, 30_000, name, SimClock(now + late_ms))

    def theirs(takes: bool, name: str = "one") -> bool:
        return jvm_hudi.storage_lock(server, tmp_path, f"{tmp_path} {name}", takes)

    assert theirs(True)
    assert not ours("a").try_take()
    theirs(False)
    lock = ours("b")
    assert lock.try_take()
    assert not theirs(True)
    lock.release()
    assert theirs(True)
    # Their time is up, by a clock of ours: they find that the lock is ours, and leave it.
    assert not ours("c", 299_000).try_take()
    lock = ours("c", 400_000)
    assert lock.try_take()
    with pytest.raises(JvmHudiError, match="FAILED_TO_RELEASE"):
        theirs(False)
    assert lock.is_held()
    assert not theirs(True, "two")
    lock.release()
    # Our time is up, by their clock.
    dead = ours("d", -400_000)
    assert dead.try_take()
    assert theirs(True, "two")
    assert not dead.renew()
    dead.release()
    assert not ours("e").try_take()
    theirs(False, "two")
    last = ours("f")
    assert last.try_take()
    last.release()


@pytest.mark.slow
@pytest.mark.parametrize("server", by_day(STORES, {"s3"}), indirect=True)
def test_a_writer_of_ours_takes_the_lock_of_a_killed_jvm(
    server: StoreServer, tmp_path: Path
) -> None:
    options = {**SHARED, **server.table_options}
    table = HoodieTable(server.url(tmp_path), options)
    table.upsert(trips(("a", "x", 1, 1.0), ("b", "y", 1, 1.0)))
    with (
        JvmHudi(find_installation(os.environ), tmp_path, os.environ) as theirs,
        ThreadPoolExecutor(1) as pool,
    ):
        assert theirs.storage_lock(server, tmp_path, f"{tmp_path}", True, BRIEF)
        with pytest.raises(LockTimeoutError):  # for longer than the lock lasts without renewal
            HoodieTable(
                server.url(tmp_path), {**options, "hoodie.write.lock.wait_time_ms": "15000"}
            ).upsert(trips(("b", "y", 2, 2.0)))
        waiting = pool.submit(table.upsert, trips(("a", "x", 3, 3.0)))
        time.sleep(2)
        assert not waiting.done()
        killed = time.monotonic()
        theirs.kill()
        waiting.result(timeout=60)
        assert time.monotonic() - killed > 5
    assert found(table) == [("a", "x", 3, 3.0), ("b", "y", 1, 1.0)]


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("server", by_day(STORES, {"s3"}), indirect=True)
def test_the_jvm_takes_the_lock_of_a_killed_writer_of_ours(
    jvm_hudi: JvmHudi, server: StoreServer, tmp_path: Path
) -> None:
    path = server.url(tmp_path)
    options = {**SHARED, **server.table_options}
    table = HoodieTable(path, options)
    table.upsert(trips(("a", "x", 1, 1.0)))
    dead = subprocess.run([sys.executable, "-c", DYING, path, json.dumps(options)], check=False)
    assert dead.returncode == -signal.SIGKILL
    killed, takes = time.monotonic(), 0
    while not jvm_hudi.storage_lock(server, tmp_path, f"{tmp_path}", True, BRIEF):
        takes += 1
        assert time.monotonic() - killed < 60
        time.sleep(0.5)
    assert takes > 0
    jvm_hudi.storage_lock(server, tmp_path, f"{tmp_path}", False)
    assert found(table) == [("a", "x", 1, 1.0)]
    table.upsert(trips(("b", "y", 3, 3.0)))
    assert found(table) == [("a", "x", 1, 1.0), ("b", "y", 3, 3.0)]
