"""Which partitions a metadata table has."""

from __future__ import annotations

from dataclasses import dataclass

from hoodie_ds.config.given_options import OptionGroup
from hoodie_ds.config.option import BOOLEAN, ONE_OR_MORE_NAMES, POSITIVE_INT, Option


@dataclass(frozen=True, kw_only=True)
class MetadataOptions(OptionGroup):
    """The partitions of a metadata table besides the list of files.

    A write makes those that are missing and switched on, and drops those that are switched off,
    where there is a metadata table or one is made.
    """

    column_stats: Option[bool | None] = Option(
        "hoodie.metadata.index.column.stats.enable",
        BOOLEAN,
        "Whether the metadata table has statistics of columns: with true a write makes those that "
        "are missing, with false it drops them.",
    )
    columns: Option[tuple[str, ...] | None] = Option(
        "hoodie.metadata.index.column.stats.column.list",
        ONE_OR_MORE_NAMES,
        "Columns whose statistics are made; the first 32 by default.",
    )
    partition_stats: Option[bool | None] = Option(
        "hoodie.metadata.index.partition.stats.enable",
        BOOLEAN,
        "Whether the metadata table has statistics of partitions; by default they are made with "
        "those of columns, if the table has partitions.",
    )
    bloom_filters: Option[bool | None] = Option(
        "hoodie.metadata.index.bloom.filter.enable",
        BOOLEAN,
        "Whether the metadata table has the bloom filters of base files.",
    )
    record_index: Option[bool | None] = Option(
        "hoodie.metadata.global.record.level.index.enable",
        BOOLEAN,
        "Whether the metadata table has a record index, the place of each record key; by default "
        "it is made for hoodie.index.type=RECORD_INDEX.",
        aliases=("hoodie.metadata.record.index.enable",),
    )
    partition_index: Option[bool | None] = Option(
        "hoodie.metadata.record.level.index.enable",
        BOOLEAN,
        "Whether the metadata table has a record index of each partition by itself, where a record "
        "key may be in several partitions; by default it is made for "
        "hoodie.index.type=RECORD_LEVEL_INDEX. From table version 8 on.",
    )
    expression_index: Option[bool | None] = Option(
        "hoodie.metadata.index.expression.enable",
        BOOLEAN,
        "Whether indexes of expressions stay. Writes here cannot keep them: with true a table that "
        "has one is refused, else a write drops them alone, as Hudi does by default.",
    )
    record_index_groups: Option[int] = Option(
        "hoodie.metadata.global.record.level.index.min.filegroup.count",
        POSITIVE_INT,
        "File groups of a record index that is made; more for tens of millions of rows.",
        10,
        aliases=("hoodie.metadata.record.index.min.filegroup.count",),
    )
    record_index_most: Option[int] = Option(
        "hoodie.metadata.global.record.level.index.max.filegroup.count",
        POSITIVE_INT,
        "Most file groups of a record index that is made, however many rows there are.",
        10_000,
        aliases=("hoodie.metadata.record.index.max.filegroup.count",),
    )
    partition_index_groups: Option[int] = Option(
        "hoodie.metadata.record.level.index.min.filegroup.count",
        POSITIVE_INT,
        "File groups of the record index of a partition that is made; more for tens of millions of "
        "rows. The table's properties keep the number, for the partitions that come later.",
        1,
        aliases=("hoodie.metadata.partitioned.record.index.min.filegroup.count",),
    )
    partition_index_most: Option[int] = Option(
        "hoodie.metadata.record.level.index.max.filegroup.count",
        POSITIVE_INT,
        "Most file groups of the record index of a partition that is made.",
        10,
        aliases=("hoodie.metadata.partitioned.record.index.max.filegroup.count",),
    )
    column_stats_groups: Option[int] = Option(
        "hoodie.metadata.index.column.stats.file.group.count",
        POSITIVE_INT,
        "File groups of statistics of columns that are made.",
        2,
    )
    partition_stats_groups: Option[int] = Option(
        "hoodie.metadata.index.partition.stats.file.group.count",
        POSITIVE_INT,
        "File groups of statistics of partitions that are made.",
        1,
    )
    bloom_filter_groups: Option[int] = Option(
        "hoodie.metadata.index.bloom.filter.file.group.count",
        POSITIVE_INT,
        "File groups of bloom filters that are made.",
        4,
    )
    drops: Option[bool] = Option(
        "hoodie.metadata.auto.delete.partitions",
        BOOLEAN,
        "Whether partitions that are switched off are dropped; with false they stay, and "
        "hoodie.metadata.enable=false is refused for a table with a metadata table.",
        True,
    )
    delta_commits: Option[int | None] = Option(
        "hoodie.metadata.compact.max.delta.commits",
        POSITIVE_INT,
        "Delta commits of the metadata table after which it is compacted, 10 by default. The "
        "table's properties keep the number, for all writers.",
        aliases=("metadata.compaction.delta_commits",),
    )
