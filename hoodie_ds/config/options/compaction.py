"""The options of the compaction of merge-on-read tables."""

from __future__ import annotations

import re
from typing import Final

from hoodie_ds.config.enums import CompactionStrategy, CompactionTrigger
from hoodie_ds.config.option import POSITIVE_INT, Kind, Option, choice


def _count(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else None


COMPACTION_TRIGGER: Final = Option(
    "hoodie.compact.inline.trigger.strategy",
    choice(CompactionTrigger),
    "When a compaction is due: by the number of delta commits, by time, or by both.",
    CompactionTrigger.NUM_COMMITS,
    aliases=("compaction.trigger.strategy",),
)
COMPACTION_DELTA_COMMITS: Final = Option(
    "hoodie.compact.inline.max.delta.commits",
    POSITIVE_INT,
    "Delta commits since the last compaction after which one is due.",
    5,
    aliases=("compaction.delta_commits",),
)
COMPACTION_DELTA_SECONDS: Final = Option(
    "hoodie.compact.inline.max.delta.seconds",
    POSITIVE_INT,
    "Seconds since the last compaction, or the first delta commit, after which one is due.",
    3600,
    aliases=("compaction.delta_seconds",),
)
COMPACTION_STRATEGY: Final = Option(
    "hoodie.compaction.strategy",
    choice(CompactionStrategy),
    "Which file groups are compacted, and in which order.",
    CompactionStrategy.LOG_FILE_SIZE,
)
COMPACTION_TARGET_IO_MB: Final = Option(
    "hoodie.compaction.target.io",
    POSITIVE_INT,
    "Megabytes that one compaction reads and writes; file groups beyond it wait for the next. "
    "Not for the unbounded strategy.",
    500 * 1024,
    aliases=("compaction.target_io",),
)
LOG_FILE_SIZE_THRESHOLD: Final = Option(
    "hoodie.compaction.logfile.size.threshold",
    Kind("a whole number of bytes, 0 for none", _count),
    "Bytes of log files from which the strategy by their size takes a file group.",
    0,
)
LOG_FILE_NUM_THRESHOLD: Final = Option(
    "hoodie.compaction.logfile.num.threshold",
    Kind("a whole number, 0 for none", _count),
    "Number of log files from which the strategy by their number takes a file group.",
    0,
)
COMPACTION_SECONDS_PER_BATCH: Final = Option(
    "hoodie.py.compaction.max.seconds.per.batch",
    POSITIVE_INT,
    "Seconds after which a task of a stream's batch takes no further file group of a pending "
    "compaction. The rest is for the next batch.",
    30,
)

COMPACTION_OPTIONS: Final[tuple[Option[object], ...]] = (
    COMPACTION_TRIGGER,
    COMPACTION_DELTA_COMMITS,
    COMPACTION_DELTA_SECONDS,
    COMPACTION_STRATEGY,
    COMPACTION_TARGET_IO_MB,
    LOG_FILE_SIZE_THRESHOLD,
    LOG_FILE_NUM_THRESHOLD,
    COMPACTION_SECONDS_PER_BATCH,
)
"""Every option of this module, in the order of the option table."""
