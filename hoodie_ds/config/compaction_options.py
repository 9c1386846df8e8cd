"""Compaction of merge-on-read tables: what the user said about it. The defaults are Hudi's."""

from __future__ import annotations

from dataclasses import dataclass

from hoodie_ds.config.enums import CompactionStrategy, CompactionTrigger
from hoodie_ds.config.given_options import GivenOptions
from hoodie_ds.config.options import compaction as keys


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionOptions:
    """When file groups are compacted, and which.

    Parameters
    ----------
    trigger : CompactionTrigger
        By what a compaction is due.
    delta_commits, delta_seconds : int
        What the trigger compares with.
    strategy : CompactionStrategy
        Chooses file groups.
    target_io_mb : int
        Megabytes that one compaction reads and writes.
    log_bytes, log_files : int
        From how many bytes, or log files, the strategies by these take a file group.
    max_seconds_per_batch : int
        After how many a task of a stream's batch takes no further file group.
    """

    trigger: CompactionTrigger = CompactionTrigger.NUM_COMMITS
    delta_commits: int = 5
    delta_seconds: int = 3600
    strategy: CompactionStrategy = CompactionStrategy.LOG_FILE_SIZE
    target_io_mb: int = 500 * 1024
    log_bytes: int = 0
    log_files: int = 0
    max_seconds_per_batch: int = 30

    @classmethod
    def of(cls, given: GivenOptions) -> CompactionOptions:
        """Take the options out of those given, which note what is wrong."""
        return cls(
            trigger=given.get_or_default(keys.COMPACTION_TRIGGER),
            delta_commits=given.get_or_default(keys.COMPACTION_DELTA_COMMITS),
            delta_seconds=given.get_or_default(keys.COMPACTION_DELTA_SECONDS),
            strategy=given.get_or_default(keys.COMPACTION_STRATEGY),
            target_io_mb=given.get_or_default(keys.COMPACTION_TARGET_IO_MB),
            log_bytes=given.get_or_default(keys.LOG_FILE_SIZE_THRESHOLD),
            log_files=given.get_or_default(keys.LOG_FILE_NUM_THRESHOLD),
            max_seconds_per_batch=given.get_or_default(keys.COMPACTION_SECONDS_PER_BATCH),
        )
