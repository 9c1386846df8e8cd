"""The lock of object stores is that of Hudi on the JVM, whose client for S3 is not here."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_ds.environment import SystemClock
from hoodie_ds.storage.connect import open_storage
from hoodie_ds.testing import MemoryStorage, SimClock
from hoodie_ds.timeline.paths import TABLE_LOCK
from hoodie_ds.transaction.storage_lock import LockFile, StorageLock
from tests.interop.jvm_hudi import JvmHudi, JvmHudiError
from tests.s3_server import S3Server

pytestmark = pytest.mark.jvm


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


def test_their_lock_and_ours_exclude_each_other(
    jvm_hudi: JvmHudi, s3: S3Server, tmp_path: Path
) -> None:
    """Hudi's lock, over a client of the tests; clocks of ours stand for the time that passes."""
    storage = open_storage(s3.url(tmp_path), s3.options)
    url = f"{s3.endpoint}/tables{tmp_path}"
    now = SystemClock().now_ms()

    def ours(name: str, late_ms: int = 0) -> StorageLock:
        return StorageLock(storage, 300_000, 30_000, name, SimClock(now + late_ms))

    def theirs(takes: bool, name: str = "one") -> bool:
        return jvm_hudi.storage_lock(url, f"{tmp_path} {name}", takes)

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
