"""The options of writes and reads that concern the storage, one `Option` each."""

from __future__ import annotations

from typing import Final

from hoodie_ds.config.option import BOOLEAN, POSITIVE_INT, Option

ALLOW_NON_ATOMIC_STORAGE: Final = Option(
    "hoodie.py.storage.allow.non.atomic.put",
    BOOLEAN,
    "Write to a storage without atomic put-if-absent; safe only with one writer at a time.",
    False,
)
VERIFY_CHECKSUMS: Final = Option(
    "hoodie.py.read.verify.checksums",
    BOOLEAN,
    "Compare every data file that is read, also by a write that merges it, with the checksum in "
    "its commit; a read also looks whether a file that a commit names is missing, as a write "
    "always does. Base files are then read whole, also for a few columns.",
    True,
)
RETRY_DEADLINE_MS: Final = Option(
    "hoodie.py.storage.retry.deadline.ms",
    POSITIVE_INT,
    "How long an operation of a remote storage is tried again that fails for now: no answer, "
    "throttling, a server's error.",
    60_000,
)

STORAGE_OPTIONS: Final[tuple[Option[object], ...]] = (
    ALLOW_NON_ATOMIC_STORAGE,
    VERIFY_CHECKSUMS,
    RETRY_DEADLINE_MS,
)
"""In the order of the option table."""
