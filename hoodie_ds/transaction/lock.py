"""Locks: keep several writers of a table from completing commits at the same time.

They save writers wasted work, and exclude other engines that take the same lock. Among writers of
this library correctness does not depend on them: see `decision_log`. Another engine knows no
decisions, so a writer checks that it holds the lock before it logs one.
"""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final, Protocol

from hoodie_ds.config.concurrency import Concurrency
from hoodie_ds.config.enums import LockProvider
from hoodie_ds.environment import Clock, Pauses
from hoodie_ds.errors import AlreadyExistsError, LockTimeoutError, NotFoundError, StorageError
from hoodie_ds.log import Log
from hoodie_ds.storage.probe import check_versions_obeyed
from hoodie_ds.storage.protocol import FileStatus, Storage
from hoodie_ds.timeline.instant_time import format_time
from hoodie_ds.timeline.paths import FILE_LOCK, HOODIE, LEASES, number_in, numbered_path
from hoodie_ds.transaction.heartbeat import storage_now_ms
from hoodie_ds.transaction.storage_lock import StorageLock

_FIRST_PAUSE_MS: Final = 20
_LONGEST_PAUSE_MS: Final = 1_000
_SHOWN: Final = 200
"""Characters of an owner in a message."""


class Lock(Protocol):
    """A lock of at most one writer; not reentrant."""

    def try_take(self) -> bool:
        """Take the lock if it is free."""
        ...

    def release(self) -> None:
        """Release the lock if this writer still holds it."""
        ...

    def file(self) -> FileStatus | None:
        """Return the file of the current holder; None if there is none."""
        ...

    def is_held(self) -> bool:
        """Whether this writer, which took the lock, still holds it, as far as can be found out."""
        return True


@contextmanager
def held(
    storage: Storage, concurrency: Concurrency, owner: str, clock: Clock, pauses: Pauses
) -> Iterator[Lock]:
    """Hold a table's lock."""
    lock = _lock(storage, concurrency, owner, clock)
    started, waited, longest = clock.now_ms(), 0, _FIRST_PAUSE_MS
    try:  # an attempt that fails may have taken the lock, too
        while not lock.try_take():
            spent = max(clock.now_ms() - started, waited)
            if spent >= concurrency.lock_wait_ms:
                raise LockTimeoutError(
                    f"{storage.root}: other writers held the lock for {spent} ms "
                    f"({Concurrency.lock_wait_ms.key} = {concurrency.lock_wait_ms}); nothing was "
                    f"committed, run the batch again{_holder(lock, storage, concurrency)}"
                )
            waited += pauses.pause(min(longest, concurrency.lock_wait_ms - spent))
            longest = min(2 * longest, _LONGEST_PAUSE_MS)
        yield lock
    finally:
        _let_go(lock, storage.root)


def _holder(lock: Lock, storage: Storage, concurrency: Concurrency) -> str:
    """Say who holds a lock, since when, and how to end it if that writer is dead."""
    with suppress(StorageError):
        if (file := lock.file()) is not None:
            age_s = (storage_now_ms(storage) - file.modified_ms) // 1000
            owner = storage.read(file.path).decode(errors="replace")[:_SHOWN]
            return (
                f". The lock is {storage.root}/{file.path}, {age_s} s old, of {owner}; if that "
                f"writer is dead, {_end(concurrency)}"
            )
    return ""


def _end(concurrency: Concurrency) -> str:
    is_file = concurrency.lock_provider is LockProvider.FILE_SYSTEM
    option = Concurrency.file_lock_expire_minutes if is_file else Concurrency.lease_seconds
    if not concurrency.lease_ms:
        return f"delete the file, which never expires ({option.key} = 0)"
    expiry = f"it expires at {concurrency.lease_ms // 1000} s"
    return f"delete the file, or wait: {expiry} ({option.key})"


def _let_go(lock: Lock, root: str) -> None:
    """Release a lock; a failure is only logged, as the work under it is done."""
    try:
        lock.release()
    except StorageError as error:
        Log(root).warning("the lock stays until it is too old: %s", error)


def _lock(storage: Storage, concurrency: Concurrency, owner: str, clock: Clock) -> Lock:
    match concurrency.lock_provider:
        case LockProvider.IN_PROCESS:
            return InProcessLock(storage.root)
        case LockProvider.FILE_SYSTEM:
            return FileLock(storage, concurrency.lease_ms, owner, clock)
        case LockProvider.STORAGE:
            check_versions_obeyed(storage, owner)
            return StorageLock(storage, concurrency.lease_ms, concurrency.renew_ms, owner, clock)
        case _:
            return LeaseLock(storage, concurrency.lease_ms, owner)


class InProcessLock(Lock):
    """Hudi's ``InProcessLockProvider``: writers that are threads of one process."""

    _locks: Final[defaultdict[str, threading.Lock]] = defaultdict(threading.Lock)

    def __init__(self, root: str) -> None:
        self._lock = self._locks[root]
        self._is_mine = False

    def try_take(self) -> bool:
        """Take the lock if it is free."""
        self._is_mine = self._lock.acquire(blocking=False)
        return self._is_mine

    def release(self) -> None:
        """Release the lock if this writer holds it."""
        if self._is_mine:
            self._lock.release()
            self._is_mine = False

    def file(self) -> FileStatus | None:
        """Return None: the lock is in memory alone."""
        return None


class FileLock(Lock):
    """Hudi's ``FileSystemBasedLockProvider``: the writer that created ``.hoodie/lock`` holds it.

    Writers on the JVM take the same one. They delete it without checking its owner, and any writer
    deletes an expired one.
    """

    def __init__(self, storage: Storage, expire_ms: int, owner: str, clock: Clock) -> None:
        self._storage = storage
        self._expire_ms = expire_ms
        now = format_time(clock.now_ms(), utc=True)
        info = {"lockCreateTime": now, "lockThreadName": f"hoodie_ds {owner}"}
        self._body = json.dumps(info).encode()

    def try_take(self) -> bool:
        """Take the lock if it is free."""
        with suppress(AlreadyExistsError):
            self._storage.put_if_absent(FILE_LOCK, self._body)
            return True
        if self._expire_ms and self._age_ms() > self._expire_ms:
            self._storage.delete(FILE_LOCK)
        return False

    def release(self) -> None:
        """Release the lock if this writer still holds it."""
        with suppress(NotFoundError):
            if self._storage.read(FILE_LOCK) == self._body:
                self._storage.delete(FILE_LOCK)

    def file(self) -> FileStatus | None:
        """Return the file, if it is there."""
        return next((s for s in self._storage.list(HOODIE) if s.path == FILE_LOCK), None)

    def _age_ms(self) -> int:
        file = self.file()
        return 0 if file is None else storage_now_ms(self._storage) - file.modified_ms


class LeaseLock(Lock):
    """A lock of leases, which works on any storage and expires if its holder dies.

    Each holder takes the next lease by a put-if-absent, once the one before it is released or
    expired. The growing number of a lease is what the literature calls a fencing token.
    """

    _OVER: Final = b"over"

    def __init__(self, storage: Storage, lease_ms: int, owner: str) -> None:
        self._storage = storage
        self._lease_ms = lease_ms
        self._body = owner.encode()
        self._number = 0

    def try_take(self) -> bool:
        """Take the next lease if the last one is over."""
        leases = self._leases()
        newest = max(leases, default=0)
        if newest and not self._is_over(leases[newest]):
            return False
        self._number = newest + 1
        try:
            self._storage.put_if_absent(numbered_path(LEASES, self._number), self._body)
        except AlreadyExistsError:
            return False
        with suppress(StorageError):  # the next holder deletes them
            for number in sorted(leases)[:-1]:
                self._storage.delete(numbered_path(LEASES, number))
        return max(self._leases()) == self._number

    def release(self) -> None:
        """Release the lease if it is still the last one."""
        path = numbered_path(LEASES, self._number)
        with suppress(NotFoundError):
            if self._storage.read(path) == self._body:
                self._storage.replace(path, self._OVER)

    def file(self) -> FileStatus | None:
        """Return the file of the last lease."""
        leases = self._leases()
        return leases[max(leases)] if leases else None

    def _leases(self) -> dict[int, FileStatus]:
        """Files of the leases, by number."""
        listed = ((number_in(s.path), s) for s in self._storage.list(LEASES))
        return {number: status for number, status in listed if number is not None}

    def _is_over(self, lease: FileStatus) -> bool:
        with suppress(NotFoundError):
            if self._storage.read(lease.path) == self._OVER:
                return True
            return storage_now_ms(self._storage) - lease.modified_ms > self._lease_ms
        return True
