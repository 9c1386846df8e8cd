"""How a writer shares a table with other writers.

The defaults are Hudi's, but for the lock provider: Hudi's needs a ZooKeeper, the one here no more
than the table's own storage, of whatever kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from hoodie_ds.config.base_path import scheme_of
from hoodie_ds.config.enums import ConcurrencyMode, FailedWritesPolicy, Isolation, LockProvider
from hoodie_ds.config.given_options import GivenOptions, OptionGroup
from hoodie_ds.config.option import POSITIVE_INT, Kind, Option, choice, whole
from hoodie_ds.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

_OBJECT_STORES: Final = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss"})
"""Where Hudi's `StorageBasedLockProvider` works, and no other provider of Hudi's on storage."""

_PROVIDERS: Final = choice(LockProvider)
_PROVIDER: Final = Kind(
    f"{_PROVIDERS.allowed}. Where writers on the JVM lock by ZooKeeper, DynamoDB or Hive, let all "
    "writers set the first one on an object store, the second one elsewhere",
    _PROVIDERS.parse,
)

_LEAST_VALIDITY_SECONDS: Final = 10
_LEAST_RENEWALS: Final = 10


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
    lock_provider: Option[LockProvider | None] = Option(
        "hoodie.write.lock.provider",
        _PROVIDER,
        "What keeps several writers from completing commits at the same time; by default a lock "
        "that works on every storage, and that no other engine takes. With another engine the "
        "StorageBasedLockProvider on S3, Google Cloud Storage and Azure, and elsewhere the "
        "FileSystemBasedLockProvider.",
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
        "For how long the default lock, and that of a StorageBasedLockProvider, is valid after it "
        "was taken or renewed; then it is taken to be a dead writer's.",
        300,
    )
    renew_seconds: ClassVar[Option[int]] = Option(
        "hoodie.write.lock.storage.renew.interval.secs",
        POSITIVE_INT,
        "Time between two renewals of the lock of a StorageBasedLockProvider, at most a tenth of "
        "the time for which it is valid.",
        30,
        aliases=("hoodie.write.lock.storage.heartbeat.poll.secs",),
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
    isolation: Option[Isolation] = Option(
        "hoodie.py.change.isolation",
        choice(Isolation),
        "What conflicts with a change by a filter or a merge: serializable, also a commit of rows "
        "that it would have found; snapshot, only one that changes a file group or inserts a key "
        "which it does, too.",
        Isolation.SERIALIZABLE,
    )
    is_shared: bool = False
    """Whether others may write to the table at the same time."""
    lease_ms: int = lease_seconds.default * 1000
    """Age at which a lock is taken to be a dead writer's; 0 for never."""
    renew_ms: int = renew_seconds.default * 1000
    """Time between two renewals of a `StorageBasedLockProvider`."""
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

    def is_common(self, root: str) -> bool:
        """Whether the lock of a table at `root` is one that writers of other engines can take."""
        if self.lock_provider is LockProvider.FILE_SYSTEM:
            return scheme_of(root) not in _OBJECT_STORES
        return self.lock_provider is LockProvider.STORAGE

    @classmethod
    def common_provider(cls, root: str) -> LockProvider:
        """Return the lock provider for several engines that write to a table at `root`."""
        is_object_store = scheme_of(root) in _OBJECT_STORES
        return LockProvider.STORAGE if is_object_store else LockProvider.FILE_SYSTEM

    def problems(self, root: str) -> Iterator[OptionError]:
        """Yield what is wrong with the lock of a table at `root`."""
        if not self.is_shared or self.lock_provider is not LockProvider.STORAGE:
            return
        cls, scheme = type(self), scheme_of(root)
        if scheme not in _OBJECT_STORES | {"memory"}:
            yield OptionError(
                cls.lock_provider.key,
                self.lock_provider.value,
                f"it locks tables on {', '.join(sorted(_OBJECT_STORES))}, as in Hudi, and this one "
                f"is on {scheme}: leave the option out, or set {LockProvider.FILE_SYSTEM.value} in "
                "all writers if some of them are of another engine",
            )
        least_ms = max(_LEAST_VALIDITY_SECONDS * 1000, _LEAST_RENEWALS * self.renew_ms)
        if self.lease_ms < least_ms:
            yield OptionError(
                cls.lease_seconds.key,
                self.lease_ms // 1000,
                f"at least {least_ms // 1000}: Hudi wants {_LEAST_VALIDITY_SECONDS} s, and "
                f"{_LEAST_RENEWALS} times {cls.renew_seconds.key} = {self.renew_ms // 1000}",
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
            is_shared=shared,
            lease_ms=lease_ms,
            renew_ms=given.get_or_default(cls.renew_seconds) * 1000,
            heartbeat_timeout_ms=timeout_ms,
        )
