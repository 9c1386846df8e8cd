"""The options of a write that concern other writers of the same table."""

from __future__ import annotations

import re
from typing import Final

from hoodie_ds.config.enums import ConcurrencyMode, FailedWritesPolicy, LockProvider
from hoodie_ds.config.option import POSITIVE_INT, Kind, Option, choice


def _count(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else None


CONCURRENCY_MODE: Final = Option(
    "hoodie.write.concurrency.mode",
    choice(ConcurrencyMode),
    "Whether others may write to the table at the same time; all of them have to say so.",
    ConcurrencyMode.SINGLE_WRITER,
)
FAILED_WRITES_POLICY: Final = Option(
    "hoodie.clean.failed.writes.policy",
    choice(FailedWritesPolicy),
    "When unfinished writes are undone: EAGER, by the next batch; LAZY, once their writer's "
    "heartbeat has stopped. The concurrency mode decides.",
    aliases=("hoodie.cleaner.policy.failed.writes",),
)
LOCK_PROVIDER: Final = Option(
    "hoodie.write.lock.provider",
    choice(LockProvider),
    "What keeps several writers from completing commits at the same time; beside another engine "
    "the FileSystemBasedLockProvider alone, the others are not taken by it.",
    LockProvider.STORAGE,
)
LOCK_WAIT_MS: Final = Option(
    "hoodie.write.lock.wait_time_ms",
    POSITIVE_INT,
    "How long a commit waits for the lock.",
    60_000,
)
FILE_LOCK_EXPIRE_MINUTES: Final = Option(
    "hoodie.write.lock.filesystem.expire",
    Kind("a whole number of minutes, 0 for never", _count),
    "Age at which the file of a FileSystemBasedLockProvider is taken to be a dead writer's.",
    0,
)
LEASE_SECONDS: Final = Option(
    "hoodie.write.lock.storage.validity.timeout.secs",
    POSITIVE_INT,
    "Age at which the lock of a StorageBasedLockProvider is taken to be a dead writer's.",
    300,
)
HEARTBEAT_INTERVAL_MS: Final = Option(
    "hoodie.client.heartbeat.interval_in_ms",
    POSITIVE_INT,
    "Time between two heartbeats of a write beside other writers.",
    60_000,
)
HEARTBEAT_MISSES: Final = Option(
    "hoodie.client.heartbeat.tolerable.misses",
    POSITIVE_INT,
    "Intervals without a heartbeat after which a write counts as dead and is undone.",
    10,
)
CONFLICT_RETRIES: Final = Option(
    "hoodie.write.num.retries.on.conflict.failures",
    Kind("a whole number, 0 for never", _count),
    "How often HoodieTable and foreach_batch write a batch again, from its beginning, that "
    "conflicts with another writer's; for OPTIMISTIC_CONCURRENCY_CONTROL. In Spark's own writes "
    "and streams a batch runs again when the write is repeated or the query restarted.",
    0,
)

CONCURRENCY_OPTIONS: Final[tuple[Option[object], ...]] = (
    CONCURRENCY_MODE,
    FAILED_WRITES_POLICY,
    LOCK_PROVIDER,
    LOCK_WAIT_MS,
    FILE_LOCK_EXPIRE_MINUTES,
    LEASE_SECONDS,
    HEARTBEAT_INTERVAL_MS,
    HEARTBEAT_MISSES,
    CONFLICT_RETRIES,
)
"""Every option of this module, in the order of the option table."""
