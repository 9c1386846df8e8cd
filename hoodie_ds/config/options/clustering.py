"""The options of clustering: what is rewritten together, and in which order of rows."""

from __future__ import annotations

import re
from typing import Final

from hoodie_ds.config.enums import (
    PartitionFilter,
    PlanStrategy,
    SortOrder,
    UpdatesStrategy,
)
from hoodie_ds.config.linear_pattern import is_linear
from hoodie_ds.config.option import (
    BOOLEAN,
    BYTES,
    MEGABYTES,
    ONE_OR_MORE_NAMES,
    POSITIVE_INT,
    TEXT,
    Kind,
    Option,
    choice,
)

_MB: Final = 1 << 20
_PLAN: Final = "clustering.plan.strategy."


def _count(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else None


SMALL_FILE_LIMIT: Final = Option(
    f"hoodie.{_PLAN}small.file.limit",
    BYTES,
    "File groups whose base file is smaller are rewritten by a clustering.",
    300 * _MB,
    aliases=(f"{_PLAN}small.file.limit",),
    flink_kind=MEGABYTES,
)
TARGET_FILE_BYTES: Final = Option(
    f"hoodie.{_PLAN}target.file.max.bytes",
    BYTES,
    "Size at which a clustering begins the next base file.",
    1024 * _MB,
    aliases=(f"{_PLAN}target.file.max.bytes",),
)
MAX_BYTES_PER_GROUP: Final = Option(
    f"hoodie.{_PLAN}max.bytes.per.group",
    BYTES,
    "Most bytes of base files that are rewritten together; sorted rows of a group are all in "
    "memory.",
    2048 * _MB,
)
MAX_NUM_GROUPS: Final = Option(
    f"hoodie.{_PLAN}max.num.groups",
    POSITIVE_INT,
    "Most such groups of one clustering.",
    30,
    aliases=(f"{_PLAN}max.num.groups",),
)
SINGLE_GROUP: Final = Option(
    f"hoodie.{_PLAN}single.group.clustering.enabled",
    BOOLEAN,
    "Whether a file group is rewritten that no other one comes with. By default only one "
    "with log files or to be sorted is, where Hudi would rewrite the same file each time.",
)
CLUSTERING_COLUMNS: Final = Option(
    f"hoodie.{_PLAN}sort.columns",
    ONE_OR_MORE_NAMES,
    "Columns by which a clustering sorts the rows of each group; by default rows stay in order.",
    aliases=(f"{_PLAN}sort.columns",),
)
SORT_ORDER: Final = Option(
    "hoodie.layout.optimize.strategy",
    choice(SortOrder),
    "How the sort columns make an order: one after the other, or interleaved (a z-order curve).",
    SortOrder.LINEAR,
)
PLAN_STRATEGY: Final = Option(
    f"hoodie.{_PLAN}class",
    choice(PlanStrategy),
    "Hudi's class that plans. The two older ones stand for RECENT_DAYS and SELECTED_PARTITIONS.",
    PlanStrategy.SPARK,
    aliases=(f"{_PLAN}class",),
)
PARTITION_FILTER: Final = Option(
    "hoodie.clustering.plan.partition.filter.mode",
    choice(PartitionFilter),
    "Which partitions are looked at: all, the last ones by name, or those between two names.",
    PartitionFilter.NONE,
    aliases=("clustering.plan.partition.filter.mode",),
)
PARTITION_PATTERN: Final = Option(
    f"hoodie.{_PLAN}partition.regex.pattern",
    Kind(
        "a regular expression without back references and look-around",
        lambda text: text if text.isprintable() and is_linear(text) else None,
    ),
    "Regular expression of the partition paths that are looked at.",
    aliases=(f"{_PLAN}partition.regex.pattern",),
)
PARTITIONS_SELECTED: Final = Option(
    f"hoodie.{_PLAN}partition.selected",
    Kind("a comma-separated list of different partition paths", ONE_OR_MORE_NAMES.parse),
    "Partition paths that are looked at, in place of the regular expression.",
    aliases=(f"{_PLAN}partition.selected",),
)
BEGIN_PARTITION: Final = Option(
    f"hoodie.{_PLAN}cluster.begin.partition",
    TEXT,
    "First partition path of SELECTED_PARTITIONS.",
    aliases=(f"{_PLAN}cluster.begin.partition",),
)
END_PARTITION: Final = Option(
    f"hoodie.{_PLAN}cluster.end.partition",
    TEXT,
    "Last partition path of SELECTED_PARTITIONS.",
    aliases=(f"{_PLAN}cluster.end.partition",),
)
LOOKBACK_PARTITIONS: Final = Option(
    f"hoodie.{_PLAN}daybased.lookback.partitions",
    POSITIVE_INT,
    "How many of the last partitions RECENT_DAYS looks at.",
    2,
    aliases=(f"{_PLAN}daybased.lookback.partitions",),
)
SKIPPED_PARTITIONS: Final = Option(
    f"hoodie.{_PLAN}daybased.skipfromlatest.partitions",
    Kind("a whole number, 0 or more", _count),
    "How many partitions RECENT_DAYS leaves out, the last ones.",
    0,
    aliases=(f"{_PLAN}daybased.skipfromlatest.partitions",),
)
UPDATES_STRATEGY: Final = Option(
    "hoodie.clustering.updates.strategy",
    choice(UpdatesStrategy),
    "What becomes of a write to file groups that a pending clustering is to rewrite: it fails, or "
    "goes on and the clustering is rolled back.",
    UpdatesStrategy.REJECT,
)
ROLLBACK_ON_CONFLICT: Final = Option(
    "hoodie.clustering.rollback.pending.replacecommit.on.conflict",
    BOOLEAN,
    "Must be true with SparkAllowUpdateStrategy, which would lose updates otherwise.",
    False,
)

CLUSTERING_OPTIONS: Final[tuple[Option[object], ...]] = (
    SMALL_FILE_LIMIT,
    TARGET_FILE_BYTES,
    MAX_BYTES_PER_GROUP,
    MAX_NUM_GROUPS,
    SINGLE_GROUP,
    CLUSTERING_COLUMNS,
    SORT_ORDER,
    PLAN_STRATEGY,
    PARTITION_FILTER,
    PARTITION_PATTERN,
    PARTITIONS_SELECTED,
    BEGIN_PARTITION,
    END_PARTITION,
    LOOKBACK_PARTITIONS,
    SKIPPED_PARTITIONS,
    UPDATES_STRATEGY,
    ROLLBACK_ON_CONFLICT,
)
"""Every option of this module, in the order of the option table."""
