"""Rewriting the rows of one group of a plan into new file groups.

The rows are those that a snapshot query returns of the group, by the same reader. They keep their
commit times and sequence numbers. To be sorted, the rows of a group are in memory together, which
the plan's maximum group size bounds; otherwise they are streamed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain

import pyarrow as pa

from hoodie_ds.config.clustering_options import ClusteringOptions
from hoodie_ds.config.enums import SortOrder
from hoodie_ds.errors import AlreadyExistsError, CorruptFileError, NotFoundError
from hoodie_ds.handles.context import WriteContext, WriteStatus, new_group
from hoodie_ds.handles.create_handle import CreateHandle, create_files
from hoodie_ds.index.choice import bloom_params, has_bloom_filter
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.services.clustering.inputs import GroupInput
from hoodie_ds.services.clustering.sort_order import check_sortable, in_order
from hoodie_ds.services.context import ServiceContext
from hoodie_ds.services.rewriting import rewrite_context, take_back_if_late
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.bodies.clustering_plan import CLUSTER, ClusteringPlan
from hoodie_ds.timeline.bodies.commit_metadata import CHECKSUMS_KEY, CommitMetadata
from hoodie_ds.timeline.paths import clustered_path
from hoodie_ds.timeline.timeline import Timeline


@dataclass(frozen=True)
class ClusteringExecutor:
    """Rewrites groups of one plan; several may do so at the same time."""

    context: ServiceContext
    table: Table
    time: str  # of the plan's instant
    plan: ClusteringPlan
    timeline: Timeline  # the plan is pending on it

    def execute(self, number: int, given: GroupInput) -> None:
        """Rewrite the group with a number, from 0, unless that is done already.

        Raises `SchemaError` if a sort column is missing or its values have no order.
        """
        storage, path = self.table.storage, clustered_path(self.time, number, given.digest)
        if read_result(storage, path) is not None:
            return
        partition = next((s.partition_path for s in self.plan.groups[number].slices), "")
        statuses = self._rewritten(self._write_context(number, partition), partition, given)
        try:
            storage.put_if_absent(
                path, _result(statuses).to_bytes(self.table.properties.layout_version)
            )
        except AlreadyExistsError:
            first = read_result(storage, path)
            _delete(storage, {s.stat.path for s in statuses} - first.file_paths if first else ())
        take_back_if_late(self.table, self.time, [status.stat.path for status in statuses])

    def _rewritten(
        self, context: WriteContext, partition: str, given: GroupInput
    ) -> list[WriteStatus]:
        reader = PinnedTable(
            self.table,
            self.timeline,
            context.schema,
            self.context.options.merge_hook,
            self.context.options.verify_checksums,
            history=context.history,
        ).reader()
        columns = context.kept_columns
        pieces = chain.from_iterable(reader.read(slice_, columns) for slice_ in given.slices)
        rows, most = self._in_order(pieces), self._target_bytes
        written = create_files(context, partition, rows, most, CreateHandle.keep)
        # To the file group all rows are new.
        return [replace(s, stat=replace(s.stat, num_inserts=s.stat.num_writes)) for s in written]

    def _in_order(self, pieces: Iterable[pa.Table]) -> Iterator[pa.Table]:
        columns = self._sort_columns
        if not columns:
            yield from pieces
            return
        held = [rows for rows in pieces if rows.num_rows]
        if held:
            rows = pa.concat_tables(held)
            check_sortable(rows.schema, columns)
            yield from in_order(rows, columns, self._sort_order)

    @property
    def _target_bytes(self) -> int:
        return self.context.options.clustering.target_file_bytes

    @property
    def _sort_columns(self) -> tuple[str, ...]:
        named = self.plan.strategy_params.get(ClusteringOptions.sort_columns.key) or ""
        return tuple(name.strip() for name in named.split(",") if name.strip())

    @property
    def _sort_order(self) -> SortOrder:
        """The sort order of the plan; for Hudi's plans that of the options."""
        named = self.plan.strategy_params.get(ClusteringOptions.sort_order.key)
        return SortOrder(named) if named else self.context.options.clustering.sort_order

    def _write_context(self, number: int, partition: str) -> WriteContext:
        context = rewrite_context(self.context, self.table, self.timeline, self.time, number)
        options, group = self.context.options, new_group(context, partition, 0)
        if has_bloom_filter(group, self.table.properties, options):
            return replace(context, bloom=bloom_params(options))
        return context


def read_result(storage: Storage, path: str) -> CommitMetadata | None:
    """Return which files a group was rewritten into; None if there is no whole result."""
    with suppress(NotFoundError, CorruptFileError):
        found = CommitMetadata.from_bytes(storage.read(path), path)
        is_whole = CHECKSUMS_KEY in found.extra and found.file_paths <= found.checksums.keys()
        return found if is_whole else None
    return None


def _result(statuses: Iterable[WriteStatus]) -> CommitMetadata:
    ordered = sorted(statuses, key=lambda status: status.stat.path)
    checksums = {path: sum_ for status in ordered for path, sum_ in status.checksums.items()}
    stats = tuple(status.stat for status in ordered)
    return CommitMetadata(stats, CLUSTER, {CHECKSUMS_KEY: json.dumps(checksums)})


def _delete(storage: Storage, paths: Iterable[str]) -> None:
    for path in sorted(paths):
        storage.delete(path)
