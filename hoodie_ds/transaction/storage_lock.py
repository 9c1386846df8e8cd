"""Hudi's lock on object stores: a file that is replaced only as the version that was read."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, cast

from hoodie_ds.environment import Clock
from hoodie_ds.errors import AlreadyExistsError, CorruptFileError, HoodieError, NotFoundError
from hoodie_ds.log import Log
from hoodie_ds.storage.protocol import FileStatus, ReplacesVersions, Storage, Version
from hoodie_ds.timeline.paths import LOCKS, TABLE_LOCK

if TYPE_CHECKING:
    from typing import Self

_DRIFT_MS: Final = 500
"""By how much clocks of writers may differ, as Hudi assumes."""


@dataclass(frozen=True, slots=True)
class LockFile:
    """The content of Hudi's lock on object stores (``StorageLockData``), and its version."""

    is_expired: bool
    """Whether its holder has released the lock."""
    valid_until_ms: int
    """By the clock of its holder."""
    owner: str
    version: Version = None

    @classmethod
    def from_bytes(cls, data: bytes, version: Version, path: str) -> Self:
        """Read a file; properties of other releases are passed over, as Hudi does."""
        try:
            found = json.loads(data)
            owner, until = str(found["owner"]), int(found["validUntil"])
            return cls(bool(found["expired"]), until, owner, version)
        except (ValueError, TypeError, LookupError) as error:
            remedy = "delete it while no process writes to the table"
            raise CorruptFileError(f"{path} is no lock of Hudi's ({error!r})", remedy) from error

    def to_bytes(self) -> bytes:
        """Write the file as Hudi does."""
        until, owner = self.valid_until_ms, self.owner
        content = {"expired": self.is_expired, "validUntil": until, "owner": owner}
        return json.dumps(content, separators=(",", ":")).encode()


class StorageLock:
    """Hudi's ``StorageBasedLockProvider``: the writer that a file names holds the lock.

    A writer replaces only the version of the file that it has read, so one of several takes a lock
    that is released or no longer valid. A thread of the holder renews it. Times are those of the
    writers' clocks, as in Hudi.
    """

    def __init__(
        self, storage: Storage, validity_ms: int, renew_ms: int, owner: str, clock: Clock
    ) -> None:
        self._storage = cast(ReplacesVersions, storage)
        self._validity_ms = validity_ms
        self._renew_ms = renew_ms
        self._owner = f"hoodie_ds {owner}"
        self._clock = clock
        self._mine: LockFile | None = None  # as last put; no longer valid if it may not be there
        self._guard = threading.Lock()
        self._stopped = threading.Event()
        self._renewals = threading.Thread(target=self._keep_renewing, daemon=True)

    def try_take(self) -> bool:
        """Take the lock if it is free."""
        found = self._read()
        if found is not None and self._is_valid(found):
            return False
        if not self._extend(found.version if found else None):
            return False
        self._renewals.start()
        return True

    def is_held(self) -> bool:
        """Whether this writer still holds the lock, and for long enough to commit.

        One that is about to expire, or did, is renewed: that succeeds only if nobody has taken it.
        """
        with self._guard:
            if self._mine is None:
                return False
            left_ms = self._mine.valid_until_ms - self._clock.now_ms()
            # More is left than was taken if the clock was set back.
            is_fresh = self._renew_ms < left_ms <= self._validity_ms
            return is_fresh or self._extend(self._mine.version)

    def renew(self) -> bool:
        """Renew the lock; returns False if another writer has taken it."""
        with self._guard:
            return self._mine is not None and self._extend(self._mine.version)

    def release(self) -> None:
        """Mark the lock as expired if this writer holds it, or may hold it."""
        self._stopped.set()
        if self._renewals.ident is not None:
            self._renewals.join()
        if self._mine is not None:
            self._put(True, self._mine.valid_until_ms, self._mine.version)

    def file(self) -> FileStatus | None:
        """Return the file, if it is there."""
        return next((s for s in self._storage.list(LOCKS) if s.path == TABLE_LOCK), None)

    def _keep_renewing(self) -> None:
        while not self._stopped.wait(self._renew_ms / 1000) and self._try_to_renew():
            pass

    def _try_to_renew(self) -> bool:
        log = Log(self._storage.root)
        try:
            if self.renew():
                return True
        except HoodieError as error:
            log.warning("the lock was not renewed: %s", error)
            return True  # the next renewal may be in time
        log.warning("another writer has taken the lock")
        return False

    def _read(self) -> LockFile | None:
        with suppress(NotFoundError):
            content, version = self._storage.read_version(TABLE_LOCK)
            return LockFile.from_bytes(content, version, f"{self._storage.root}/{TABLE_LOCK}")
        return None

    def _is_valid(self, found: LockFile) -> bool:
        late = self._clock.now_ms() > found.valid_until_ms + _DRIFT_MS
        return not found.is_expired and not late

    def _extend(self, version: Version) -> bool:
        """Take or renew the lock, if the file still has a version."""
        return self._put(False, self._clock.now_ms() + self._validity_ms, version)

    def _put(self, is_expired: bool, valid_until_ms: int, version: Version) -> bool:
        """Put the file over a version of it; None if there is no file.

        Over another version of this writer's own, too: it has put that, and the answer was lost.
        """
        new = LockFile(is_expired, valid_until_ms, self._owner, version)
        self._mine = self._mine or replace(new, valid_until_ms=0)  # until there is an answer
        for _ in range(2):
            with suppress(AlreadyExistsError, NotFoundError):
                if new.version is None:
                    self._storage.put_if_absent(TABLE_LOCK, new.to_bytes())
                else:
                    put = self._storage.replace_version(TABLE_LOCK, new.to_bytes(), new.version)
                    self._mine = replace(new, version=put)
                    return True
            found = self._read()
            if found is None or found.owner != self._owner:
                break
            new = replace(new, version=found.version)
            if found == new:
                self._mine = new
                return True
        self._mine = None
        return False
