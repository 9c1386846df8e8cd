"""How a writer shares a table with other writers.

The defaults are Hudi's, but for the lock provider: Hudi's needs a ZooKeeper, the one here no more
than the table's own storage.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from hoodie_ds.config.enums import ConcurrencyMode, FailedWritesPolicy, LockProvider
from hoodie_ds.config.given_options import GivenOptions, OptionGroup
from hoodie_ds.config.option import POSITIVE_INT, Option, choice, whole

if TYPE_CHECKING:
    from typing import Self


@dataclass(frozen=True, kw_only=True)
class Concurrency(OptionGroup):
    """How a writer shares a table; times in milliseconds."""

    mode: ClassVar[Option[ConcurrencyMode]] = Option(
        "hoodie.write.concurrency.mode",
        choice(ConcurrencyMode),
        "Whether other writers may write to the table at the same time; each of them has to set "
        "it.",
        ConcurrencyMode.SINGLE_WRITER,
    )
    failed_writes: ClassVar[Option[FailedWritesPolicy | None]] = Option(
        "hoodie.clean.failed.writes.policy",
        choice(FailedWritesPolicy),
        "When failed writes are rolled back: EAGER, by the next batch; LAZY, once their writer's "
        "heartbeat has stopped. The concurrency mode decides.",
        aliases=("hoodie.cleaner.policy.failed.writes",),
    )
    lock_provider: Option[LockProvider] = Option(
        "hoodie.write.lock.provider",
        choice(LockProvider),
        "What keeps several writers from completing commits at the same time; with another engine "
        "only the FileSystemBasedLockProvider, since it does not take the other two.",
        LockProvider.STORAGE,
    )
    lock_wait_ms: Option[int] = Option(
        "hoodie.write.lock.wait_time_ms",
        POSITIVE_INT,
        "How long a commit waits for the lock.",
        60_000,
    )
    file_lock_expire_minutes: ClassVar[Option[int]] = Option(
        "hoodie.write.lock.filesystem.expire",
        whole("a whole number of minutes, 0 for never"),
        "Age at which the file of a FileSystemBasedLockProvider is taken to be a dead writer's.",
        0,
    )
    lease_seconds: ClassVar[Option[int]] = Option(
        "hoodie.write.lock.storage.validity.timeout.secs",
        POSITIVE_INT,
        "Age at which the lock of a StorageBasedLockProvider is taken to be a dead writer's.",
        300,
    )
    heartbeat_interval_ms: Option[int] = Option(
        "hoodie.client.heartbeat.interval_in_ms",
        POSITIVE_INT,
        "Time between two heartbeats of a write, where there are several writers.",
        60_000,
    )
    heartbeat_misses: ClassVar[Option[int]] = Option(
        "hoodie.client.heartbeat.tolerable.misses",
        POSITIVE_INT,
        "Intervals without a heartbeat after which a write counts as failed and is rolled back.",
        10,
    )
    conflict_retries: Option[int] = Option(
        "hoodie.write.num.retries.on.conflict.failures",
        whole("a whole number, 0 for never"),
        "How often HoodieTable and foreach_batch retry a batch, from its beginning, that "
        "conflicts with another writer's; for OPTIMISTIC_CONCURRENCY_CONTROL. In Spark's own "
        "writes and streams a batch runs again when the write is repeated or the query restarted.",
        0,
    )
    is_shared: bool = False
    """Whether others may write to the table at the same time."""
    lease_ms: int = lease_seconds.default * 1000
    """Age at which a lock is taken to be a dead writer's; 0 for never."""
    heartbeat_timeout_ms: int = heartbeat_interval_ms.default * heartbeat_misses.default
    """Time after the last heartbeat at which a write counts as dead."""

    @property
    def remedy(self) -> str:
        """What is to be done so that writers do not undo one another's work."""
        again = "it runs again when the write is repeated or the query restarted"
        if self.is_shared:
            return again
        shared = ConcurrencyMode.OPTIMISTIC_CONCURRENCY_CONTROL.value
        return (
            f"{again}; if several writers are meant to write to the table, each of them has to set "
            f"{type(self).mode.key}={shared}"
        )

    @classmethod
    def of(cls, given: GivenOptions) -> Self:
        """Take the options out of those given, which note what is wrong."""
        mode, policy = given.get_or_default(cls.mode), given.get(cls.failed_writes)
        shared = mode is ConcurrencyMode.OPTIMISTIC_CONCURRENCY_CONTROL
        if policy is not None and (policy is FailedWritesPolicy.LAZY) is not shared:
            remedy = (
                f"{cls.mode.key} = {mode.value} decides when failed writes are undone; leave this "
                "out"
            )
            given.refuse_value(cls.failed_writes, remedy)
        options = super().of(given)
        lease_ms = given.get_or_default(cls.lease_seconds) * 1000
        if options.lock_provider is LockProvider.FILE_SYSTEM:
            lease_ms = given.get_or_default(cls.file_lock_expire_minutes) * 60_000
        timeout_ms = options.heartbeat_interval_ms * given.get_or_default(cls.heartbeat_misses)
        return options.with_values(
            is_shared=shared, lease_ms=lease_ms, heartbeat_timeout_ms=timeout_ms
        )
