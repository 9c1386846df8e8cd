"""Which file groups a clustering rewrites together, by Hudi's rules.

These are those of ``SparkSizeBasedClusteringPlanStrategy``: file groups with a small base file, the
largest first, are grouped up to a size. File groups of other services and pending writes are not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from hoodie_ds.config.clustering_options import ClusteringOptions
from hoodie_ds.config.enums import PartitionFilter, SortOrder
from hoodie_ds.config.linear_pattern import is_found
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import OptionError, SchemaError, UnsupportedTableError
from hoodie_ds.index.bucket_index import BucketIndex
from hoodie_ds.index.choice import choose_index
from hoodie_ds.services.clustering.sort_order import check_sortable
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.file_name import BaseFileName, LogFileName
from hoodie_ds.table.file_slice import FileGroupId, FileSlice
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.table.live_files import check_nothing_is_missing
from hoodie_ds.table.planned_services import planned_groups
from hoodie_ds.table.table import Table
from hoodie_ds.table.table_schema import table_schema
from hoodie_ds.timeline.bodies.clustering_plan import (
    ClusteringGroup,
    ClusteringPlan,
    ClusteringSlice,
)
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction.failed_write import announced
from hoodie_ds.transaction.temporary_files import left_over

_MB: Final = 1 << 20
_IGNORING_CASE: Final = "(?i)"
_SHOWN: Final = 5
"""Maximum number of partitions in a message."""


@dataclass(frozen=True)
class ClusteringPlanner:
    """Plans clusterings of one table."""

    table: Table
    options: WriteOptions

    def plan(self, timeline: Timeline) -> ClusteringPlan | None:
        """Choose what to cluster; None if there is nothing.

        Raises `UnsupportedTableError` for a table with buckets, and `OptionError` if an option
        names a partition that the table does not have.
        """
        columns = table_schema(self.table, timeline)
        if columns is None or timeline.first_commit is None:
            return None
        _check_no_buckets(self.table, self.options, timeline)
        try:
            check_sortable(columns, self._clustering.sort_columns)
        except SchemaError as error:
            raise SchemaError(f"option {ClusteringOptions.sort_columns.key!r}: {error}") from error
        groups: list[ClusteringGroup] = []
        missing = []
        by_partition = self._eligible(timeline)
        for path in _chosen(self._clustering, by_partition):
            found = list(self._packed(by_partition[path]))
            room = self._clustering.max_groups - len(groups)
            groups += found[:room]
            if len(found) > room:
                missing.append(path)
        if not groups:
            return None
        params = strategy_params(self._clustering)
        return ClusteringPlan(tuple(groups), strategy_params=params, missing_partitions=(*missing,))

    @property
    def _clustering(self) -> ClusteringOptions:
        return self.options.clustering

    def _eligible(self, timeline: Timeline) -> dict[str, list[FileSlice]]:
        """Latest slices with a small base file, or none, by partition path."""
        storage = self.table.storage
        view = FileSystemView(storage, timeline, self.options.verify_checksums)
        files = view.data_files()
        check_nothing_is_missing(storage, timeline, {file.path for file in files})
        taken = set(_in_use(storage, timeline))
        limit = self._clustering.small_file_bytes
        found: dict[str, list[FileSlice]] = {}
        slices = list(view.slices_among(files))
        self._check_selected({slice_.group.partition_path for slice_ in slices})
        for slice_ in slices:
            size = slice_.base.size if slice_.base else 0
            if size < limit and slice_.group not in taken:
                found.setdefault(slice_.group.partition_path, []).append(slice_)
        return found

    def _check_selected(self, known: Collection[str]) -> None:
        """Refuse selected partitions that do not exist: the name may be mistyped."""
        selected = self._clustering.partitions_selected or ()
        unknown = [path for path in selected if path not in known]
        if unknown:
            some = ", ".join(sorted(known)[:_SHOWN]) + (", ..." if len(known) > _SHOWN else "")
            raise OptionError(
                ClusteringOptions.partitions_selected.key,
                ",".join(unknown),
                f"table {self.table.properties.name!r} has no such partition; it has "
                f"{some or 'none'}",
            )

    def _packed(self, slices: Sequence[FileSlice]) -> Iterator[ClusteringGroup]:
        """Group the slices of a partition, the largest first."""
        unknown = self.options.parquet_max_file_bytes
        sized = [(slice_.base.size if slice_.base else unknown, slice_) for slice_ in slices]
        sized.sort(key=lambda one: -one[0])
        together: list[FileSlice] = []
        total = 0
        for size, slice_ in sized:
            if together and total + size > self._clustering.max_group_bytes:
                yield self._group(together, total)
                together, total = [], 0
            together.append(slice_)
            total += size
        if len(together) > 1 or (together and self._is_rewritten_alone(together[0])):
            yield self._group(together, total)

    def _is_rewritten_alone(self, slice_: FileSlice) -> bool:
        """Whether rewriting a slice alone changes it."""
        wanted = self._clustering.single_group
        if wanted is None:
            sorts = bool(self._clustering.sort_columns)
            return sorts or slice_.base is None or bool(slice_.logs)
        return wanted

    def _group(self, slices: Sequence[FileSlice], total: int) -> ClusteringGroup:
        target = self._clustering.target_file_bytes
        planned = tuple(
            ClusteringSlice(
                slice_.group.partition_path,
                slice_.group.file_id,
                str(slice_.base.name) if slice_.base else "",
                tuple(log.file_name for log in reversed(slice_.logs)),
            )
            for slice_ in slices
        )
        metrics = self._metrics(slices)
        return ClusteringGroup(planned, -(-total // target), metrics)

    def _metrics(self, slices: Sequence[FileSlice]) -> dict[str, float]:
        """Hudi's figures of a group (``FileSliceMetricUtils``), in whole megabytes but for one."""
        logs = [log.size for slice_ in slices for log in slice_.logs]
        bases = [slice_.base.size if slice_.base else 0 for slice_ in slices]
        read = (sum(logs) + sum(bases)) // _MB
        written = sum(size or self.options.parquet_max_file_bytes for size in bases) // _MB
        return {
            "TOTAL_LOG_FILES": float(len(logs)),
            "TOTAL_IO_MB": float(read + written),
            "TOTAL_IO_READ_MB": float(read),
            "TOTAL_LOG_FILES_SIZE": float(sum(logs)),
            "TOTAL_IO_WRITE_MB": float(written),
        }


def strategy_params(options: ClusteringOptions) -> dict[str, str]:
    """Return the strategy parameters of a plan, under Hudi's names."""
    if not options.sort_columns:
        return {}
    params = {ClusteringOptions.sort_columns.key: ",".join(options.sort_columns)}
    if options.sort_order is not SortOrder.LINEAR:
        params[ClusteringOptions.sort_order.key] = options.sort_order.value
    return params


def _check_no_buckets(table: Table, options: WriteOptions, timeline: Timeline) -> None:
    """Refuse a table with a bucket index: clustering would move rows out of their buckets."""
    if not table.properties.record_key_fields:
        return
    if isinstance(choose_index(table.properties, options, table, timeline), BucketIndex):
        raise UnsupportedTableError(
            f"table {table.properties.name!r} has a bucket index, whose file groups must not be "
            "rewritten into others; its number of buckets decides how large they are"
        )


def _in_use(storage: Storage, timeline: Timeline) -> Iterator[FileGroupId]:
    """File groups that other services will rewrite, and those that pending writes change.

    The latter would be refused at their commits. Their markers say which, as they precede the
    files.
    """
    for instant in timeline.pending:
        yield from planned_groups(storage, instant)
    for time, paths in left_over(storage).items():
        if timeline.is_pending(time):
            for path in announced(time, paths):
                partition, _, name = path.rpartition("/")
                file = BaseFileName.parse(name) or LogFileName.parse(name)
                if file is not None:
                    yield FileGroupId(partition, file.file_id)


def _chosen(options: ClusteringOptions, paths: Iterable[str]) -> list[str]:
    """Partition paths to cluster, in order (Hudi's ``ClusteringPlanPartitionFilter``)."""
    found = sorted(paths)
    if options.partitions_selected is not None:
        found = [path for path in found if path in options.partitions_selected]
    elif options.partition_pattern is not None:
        pattern = _whole(options.partition_pattern)
        found = [path for path in found if is_found(pattern, path)]
    match options.partition_filter:
        case PartitionFilter.RECENT_DAYS:
            last = found[::-1][options.skipped_partitions :][: options.lookback_partitions]
            return sorted(last)
        case PartitionFilter.SELECTED_PARTITIONS:
            begin, end = options.begin_partition, options.end_partition
            found = [p for p in found if begin is None or p >= begin]
            return [p for p in found if end is None or p <= end]
        case _:
            return found


def _whole(pattern: str) -> str:
    """The expression as one that matches only a whole string."""
    bare = pattern.removeprefix(_IGNORING_CASE)
    flags = _IGNORING_CASE if bare != pattern else ""
    return f"{flags}^(?:{bare})$"
