"""What a clustering rewrites together, and in which order of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from hoodie_ds.config.enums import PartitionFilter, PlanStrategy, SortOrder, UpdatesStrategy
from hoodie_ds.config.given_options import GivenOptions, OptionGroup
from hoodie_ds.config.linear_pattern import is_linear
from hoodie_ds.config.option import (
    BOOLEAN,
    BYTES,
    MEGABYTES,
    ONE_OR_MORE_NAMES,
    PARTITION_PATHS,
    POSITIVE_INT,
    TEXT,
    Kind,
    Option,
    choice,
    whole,
)

if TYPE_CHECKING:
    from typing import Self

_MB: Final = 1 << 20
_PLAN: Final = "clustering.plan.strategy."
_FILTERS_OF: Final = {
    PlanStrategy.RECENT_DAYS: PartitionFilter.RECENT_DAYS,
    PlanStrategy.SELECTED_PARTITIONS: PartitionFilter.SELECTED_PARTITIONS,
}
"""What Hudi's older classes stand for (``ClusteringPlanStrategy`` there)."""


@dataclass(frozen=True, kw_only=True)
class ClusteringOptions(OptionGroup):
    """Which file groups a clustering rewrites, and how; sizes in bytes. The defaults are Hudi's."""

    small_file_bytes: Option[int] = Option(
        f"hoodie.{_PLAN}small.file.limit",
        BYTES,
        "File groups whose base file is smaller are rewritten by a clustering.",
        300 * _MB,
        aliases=(f"{_PLAN}small.file.limit",),
        flink_kind=MEGABYTES,
    )
    target_file_bytes: Option[int] = Option(
        f"hoodie.{_PLAN}target.file.max.bytes",
        BYTES,
        "Size at which a clustering begins the next base file.",
        1024 * _MB,
        aliases=(f"{_PLAN}target.file.max.bytes",),
    )
    max_group_bytes: Option[int] = Option(
        f"hoodie.{_PLAN}max.bytes.per.group",
        BYTES,
        "Most bytes of base files in one group of a clustering; the rows of a group that is "
        "sorted are all in memory.",
        2048 * _MB,
    )
    max_groups: Option[int] = Option(
        f"hoodie.{_PLAN}max.num.groups",
        POSITIVE_INT,
        "Most groups of one clustering.",
        30,
        aliases=(f"{_PLAN}max.num.groups",),
    )
    single_group: Option[bool | None] = Option(
        f"hoodie.{_PLAN}single.group.clustering.enabled",
        BOOLEAN,
        "Whether a group of a single file group is rewritten. By default only if it has log files "
        "or is to be sorted, whereas Hudi rewrites the same file each time.",
    )
    sort_columns: Option[tuple[str, ...]] = Option(
        f"hoodie.{_PLAN}sort.columns",
        ONE_OR_MORE_NAMES,
        "Columns by which a clustering sorts the rows of each group; by default rows stay in "
        "order.",
        (),
        aliases=(f"{_PLAN}sort.columns",),
    )
    sort_order: Option[SortOrder] = Option(
        "hoodie.layout.optimize.strategy",
        choice(SortOrder),
        "How the sort columns make an order: one after the other, or interleaved (a z-order "
        "curve).",
        SortOrder.LINEAR,
    )
    plan_strategy: ClassVar[Option[PlanStrategy]] = Option(
        f"hoodie.{_PLAN}class",
        choice(PlanStrategy),
        "Hudi's class that plans a clustering. The two older ones stand for RECENT_DAYS and "
        "SELECTED_PARTITIONS.",
        PlanStrategy.SPARK,
        aliases=(f"{_PLAN}class",),
    )
    partition_filter: Option[PartitionFilter] = Option(
        "hoodie.clustering.plan.partition.filter.mode",
        choice(PartitionFilter),
        "Which partitions a clustering considers: all, the last ones by name, or those between "
        "two names.",
        PartitionFilter.NONE,
        aliases=("clustering.plan.partition.filter.mode",),
    )
    partition_pattern: Option[str | None] = Option(
        f"hoodie.{_PLAN}partition.regex.pattern",
        Kind(
            "a regular expression without back references and look-around",
            lambda text: text if text.isprintable() and is_linear(text) else None,
        ),
        "Regular expression of the partition paths that a clustering considers.",
        aliases=(f"{_PLAN}partition.regex.pattern",),
    )
    partitions_selected: Option[tuple[str, ...] | None] = Option(
        f"hoodie.{_PLAN}partition.selected",
        PARTITION_PATHS,
        "Partition paths that a clustering considers, instead of a regular expression.",
        aliases=(f"{_PLAN}partition.selected",),
    )
    begin_partition: Option[str | None] = Option(
        f"hoodie.{_PLAN}cluster.begin.partition",
        TEXT,
        "First partition path of SELECTED_PARTITIONS.",
        aliases=(f"{_PLAN}cluster.begin.partition",),
    )
    end_partition: Option[str | None] = Option(
        f"hoodie.{_PLAN}cluster.end.partition",
        TEXT,
        "Last partition path of SELECTED_PARTITIONS.",
        aliases=(f"{_PLAN}cluster.end.partition",),
    )
    lookback_partitions: Option[int] = Option(
        f"hoodie.{_PLAN}daybased.lookback.partitions",
        POSITIVE_INT,
        "How many of the last partitions RECENT_DAYS considers.",
        2,
        aliases=(f"{_PLAN}daybased.lookback.partitions",),
    )
    skipped_partitions: Option[int] = Option(
        f"hoodie.{_PLAN}daybased.skipfromlatest.partitions",
        whole("a whole number, 0 or more"),
        "How many of the last partitions RECENT_DAYS leaves out.",
        0,
        aliases=(f"{_PLAN}daybased.skipfromlatest.partitions",),
    )
    updates_strategy: ClassVar[Option[UpdatesStrategy]] = Option(
        "hoodie.clustering.updates.strategy",
        choice(UpdatesStrategy),
        "What a write does to file groups of a pending clustering: it fails, or it continues and "
        "the clustering is rolled back.",
        UpdatesStrategy.REJECT,
    )
    rollback_on_conflict: ClassVar[Option[bool]] = Option(
        "hoodie.clustering.rollback.pending.replacecommit.on.conflict",
        BOOLEAN,
        "Must be true with SparkAllowUpdateStrategy, which would lose updates otherwise.",
        False,
    )
    gives_way: bool = False
    """Whether a pending clustering is rolled back by a write to its file groups."""

    @classmethod
    def of(cls, given: GivenOptions) -> Self:
        """Take the options out of those given, which note what is wrong."""
        gives_way = given.get(cls.updates_strategy) is UpdatesStrategy.ALLOW
        if gives_way and not given.get_or_default(cls.rollback_on_conflict):
            remedy = f"set {cls.rollback_on_conflict.key} = true too, or updates would be lost"
            given.refuse_value(cls.updates_strategy, remedy)
        options = super().of(given)
        of_class = _FILTERS_OF.get(given.get_or_default(cls.plan_strategy))
        if of_class is not None and given.get(cls.partition_filter) not in (None, of_class):
            named = given.written(cls.plan_strategy)[0][0]
            remedy = (
                f"the class that {named} names stands for {of_class.value}; leave one of them out"
            )
            given.refuse_value(cls.partition_filter, remedy)
        partition_filter = of_class or options.partition_filter
        return options.with_values(gives_way=gives_way, partition_filter=partition_filter)
