"""Several writers on one table: what the user said about them.

The defaults are Hudi's, but for the lock provider: Hudi's needs a ZooKeeper, the one here no more
than the table's own storage.
"""

from __future__ import annotations

from dataclasses import dataclass

from hoodie_ds.config.enums import ConcurrencyMode, FailedWritesPolicy, LockProvider
from hoodie_ds.config.given_options import GivenOptions
from hoodie_ds.config.options import concurrency as concurrency_keys
from hoodie_ds.errors import OptionError


@dataclass(frozen=True, slots=True, kw_only=True)
class Concurrency:
    """How a writer lives beside others; times in milliseconds.

    Parameters
    ----------
    is_shared : bool
        Whether others may write to the table at the same time.
    lock_provider : LockProvider
        What keeps their commits apart.
    lock_wait_ms : int
        How long a commit waits for the lock.
    lease_ms : int
        Age at which a lock is taken to be a dead writer's; 0 for never.
    heartbeat_interval_ms : int
        Time between heartbeats.
    heartbeat_timeout_ms : int
        Time after the last heartbeat at which a write counts as dead.
    conflict_retries : int
        How often a batch is written again that conflicts with another writer's.
    """

    is_shared: bool = False
    lock_provider: LockProvider = LockProvider.STORAGE
    lock_wait_ms: int = 60_000
    lease_ms: int = 300_000
    heartbeat_interval_ms: int = 60_000
    heartbeat_timeout_ms: int = 600_000
    conflict_retries: int = 0

    @property
    def remedy(self) -> str:
        """What is to be done so that writers do not undo one another's work."""
        again = "it runs again when the write is repeated or the query restarted"
        if self.is_shared:
            return again
        shared = ConcurrencyMode.OPTIMISTIC_CONCURRENCY_CONTROL.value
        return (
            f"{again}; if several writers are meant to write to the table, each of them has to set "
            f"{concurrency_keys.CONCURRENCY_MODE.key}={shared}"
        )

    @classmethod
    def of(cls, given: GivenOptions) -> Concurrency:
        """Take the options out of those given, which note what is wrong."""
        mode = given.get_or_default(concurrency_keys.CONCURRENCY_MODE)
        shared = mode is ConcurrencyMode.OPTIMISTIC_CONCURRENCY_CONTROL
        policy = given.get(concurrency_keys.FAILED_WRITES_POLICY)
        if policy is not None and (policy is FailedWritesPolicy.LAZY) is not shared:
            key, text = given.written(concurrency_keys.FAILED_WRITES_POLICY)[0]
            remedy = (
                f"{concurrency_keys.CONCURRENCY_MODE.key} = {mode.value} decides when failed "
                "writes are undone; leave this out"
            )
            given.refuse(OptionError(key, text, remedy))
        provider = given.get_or_default(concurrency_keys.LOCK_PROVIDER)
        lease_ms = given.get_or_default(concurrency_keys.LEASE_SECONDS) * 1000
        if provider is LockProvider.FILE_SYSTEM:
            lease_ms = given.get_or_default(concurrency_keys.FILE_LOCK_EXPIRE_MINUTES) * 60_000
        interval_ms = given.get_or_default(concurrency_keys.HEARTBEAT_INTERVAL_MS)
        return cls(
            is_shared=shared,
            lock_provider=provider,
            lock_wait_ms=given.get_or_default(concurrency_keys.LOCK_WAIT_MS),
            lease_ms=lease_ms,
            heartbeat_interval_ms=interval_ms,
            heartbeat_timeout_ms=interval_ms
            * given.get_or_default(concurrency_keys.HEARTBEAT_MISSES),
            conflict_retries=given.get_or_default(concurrency_keys.CONFLICT_RETRIES),
        )
