"""The lock file of object stores is that of Hudi on the JVM, whose client for S3 is not here."""

from __future__ import annotations

import pytest

from hoodie_ds.testing import MemoryStorage, SimClock
from hoodie_ds.timeline.paths import TABLE_LOCK
from hoodie_ds.transaction.storage_lock import LockFile, StorageLock
from tests.interop.jvm_hudi import JvmHudi, JvmHudiError

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
