"""What the user said about clustering; the defaults are Hudi's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hoodie_ds.config.enums import (
    PartitionFilter,
    PlanStrategy,
    SortOrder,
    UpdatesStrategy,
)
from hoodie_ds.config.given_options import GivenOptions
from hoodie_ds.config.options import clustering as keys
from hoodie_ds.errors import OptionError

_FILTERS_OF: Final = {
    PlanStrategy.RECENT_DAYS: PartitionFilter.RECENT_DAYS,
    PlanStrategy.SELECTED_PARTITIONS: PartitionFilter.SELECTED_PARTITIONS,
}
"""What Hudi's older classes stand for (``ClusteringPlanStrategy`` there)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteringOptions:
    """Which file groups a clustering rewrites, and how; sizes in bytes.

    Parameters
    ----------
    small_file_bytes : int
        File groups with a smaller base file are rewritten.
    target_file_bytes : int
        Size at which the next base file is begun.
    max_group_bytes, max_groups : int
        How much is rewritten together, and how many such groups there are.
    single_group : bool or None
        Whether one file group alone is rewritten; None if only one with log files, or to be sorted,
        is.
    sort_columns : tuple of str
        Columns by which rows are sorted; none to keep their order.
    sort_order : SortOrder
        How the sort columns make an order.
    partition_filter : PartitionFilter
        Which partitions are looked at, of those that `partition_pattern` matches or
        `partitions_selected` names.
    begin_partition, end_partition : str or None
        For SELECTED_PARTITIONS.
    lookback_partitions, skipped_partitions : int
        For RECENT_DAYS.
    gives_way : bool
        Whether a pending clustering is rolled back by a write to its file groups.
    """

    small_file_bytes: int = 300 << 20
    target_file_bytes: int = 1024 << 20
    max_group_bytes: int = 2048 << 20
    max_groups: int = 30
    single_group: bool | None = None
    sort_columns: tuple[str, ...] = ()
    sort_order: SortOrder = SortOrder.LINEAR
    partition_filter: PartitionFilter = PartitionFilter.NONE
    partition_pattern: str | None = None
    partitions_selected: tuple[str, ...] | None = None
    begin_partition: str | None = None
    end_partition: str | None = None
    lookback_partitions: int = 2
    skipped_partitions: int = 0
    gives_way: bool = False

    @classmethod
    def of(cls, given: GivenOptions) -> ClusteringOptions:
        """Take the options out of those given, which note what is wrong."""
        strategy = given.get_or_default(keys.UPDATES_STRATEGY)
        rolls_back = given.get_or_default(keys.ROLLBACK_ON_CONFLICT)
        if strategy is UpdatesStrategy.ALLOW and not rolls_back:
            key, text = given.written(keys.UPDATES_STRATEGY)[0]
            remedy = f"set {keys.ROLLBACK_ON_CONFLICT.key} = true too, lest updates be lost"
            given.refuse(OptionError(key, text, remedy))
        return cls(
            small_file_bytes=given.get_or_default(keys.SMALL_FILE_LIMIT),
            target_file_bytes=given.get_or_default(keys.TARGET_FILE_BYTES),
            max_group_bytes=given.get_or_default(keys.MAX_BYTES_PER_GROUP),
            max_groups=given.get_or_default(keys.MAX_NUM_GROUPS),
            single_group=given.get(keys.SINGLE_GROUP),
            sort_columns=given.get(keys.CLUSTERING_COLUMNS) or (),
            sort_order=given.get_or_default(keys.SORT_ORDER),
            partition_filter=_partition_filter(given),
            partition_pattern=given.get(keys.PARTITION_PATTERN),
            partitions_selected=given.get(keys.PARTITIONS_SELECTED),
            begin_partition=given.get(keys.BEGIN_PARTITION),
            end_partition=given.get(keys.END_PARTITION),
            lookback_partitions=given.get_or_default(keys.LOOKBACK_PARTITIONS),
            skipped_partitions=given.get_or_default(keys.SKIPPED_PARTITIONS),
            gives_way=strategy is UpdatesStrategy.ALLOW,
        )


def _partition_filter(given: GivenOptions) -> PartitionFilter:
    """Return which partitions are looked at, which some classes say by their name."""
    said = given.get(keys.PARTITION_FILTER)
    of_class = _FILTERS_OF.get(given.get_or_default(keys.PLAN_STRATEGY))
    if of_class is not None and said not in (None, of_class):
        key, text = given.written(keys.PARTITION_FILTER)[0]
        named = given.written(keys.PLAN_STRATEGY)[0][0]
        remedy = f"the class that {named} names stands for {of_class.value}; leave one of them out"
        given.refuse(OptionError(key, text, remedy))
    return of_class or said or PartitionFilter.NONE
