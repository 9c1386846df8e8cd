"""When a merge-on-read table is compacted, and which file groups are."""

from __future__ import annotations

from dataclasses import dataclass

from hoodie_ds.config.enums import CompactionStrategy, CompactionTrigger
from hoodie_ds.config.given_options import OptionGroup
from hoodie_ds.config.option import POSITIVE_INT, Option, choice, whole


@dataclass(frozen=True, kw_only=True)
class CompactionOptions(OptionGroup):
    """When file groups are compacted, and which. The defaults are Hudi's."""

    trigger: Option[CompactionTrigger] = Option(
        "hoodie.compact.inline.trigger.strategy",
        choice(CompactionTrigger),
        "When a compaction is due: by the number of delta commits, by time, or by both.",
        CompactionTrigger.NUM_COMMITS,
        aliases=("compaction.trigger.strategy",),
    )
    delta_commits: Option[int] = Option(
        "hoodie.compact.inline.max.delta.commits",
        POSITIVE_INT,
        "Delta commits since the last compaction after which one is due.",
        5,
        aliases=("compaction.delta_commits",),
    )
    delta_seconds: Option[int] = Option(
        "hoodie.compact.inline.max.delta.seconds",
        POSITIVE_INT,
        "Seconds since the last compaction, or the first delta commit, after which one is due.",
        3600,
        aliases=("compaction.delta_seconds",),
    )
    strategy: Option[CompactionStrategy] = Option(
        "hoodie.compaction.strategy",
        choice(CompactionStrategy),
        "Which file groups are compacted, and in which order.",
        CompactionStrategy.LOG_FILE_SIZE,
    )
    target_io_mb: Option[int] = Option(
        "hoodie.compaction.target.io",
        POSITIVE_INT,
        "Megabytes that one compaction reads and writes; file groups beyond it wait for the next. "
        "Not for the unbounded strategy.",
        500 * 1024,
        aliases=("compaction.target_io",),
    )
    log_bytes: Option[int] = Option(
        "hoodie.compaction.logfile.size.threshold",
        whole("a whole number of bytes, 0 for none", most=10**18 - 1),
        "Bytes of log files from which LogFileSizeBasedCompactionStrategy takes a file group.",
        0,
    )
    log_files: Option[int] = Option(
        "hoodie.compaction.logfile.num.threshold",
        whole("a whole number, 0 for none", most=10**18 - 1),
        "Number of log files from which LogFileNumBasedCompactionStrategy takes a file group.",
        0,
    )
    max_seconds_per_batch: Option[int] = Option(
        "hoodie.py.compaction.max.seconds.per.batch",
        POSITIVE_INT,
        "Seconds after which a task of a stream's batch takes no further file group of a pending "
        "compaction. The rest is for the next batch.",
        30,
    )
