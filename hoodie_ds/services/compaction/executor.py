"""Merging one file slice of a plan into a new base file.

The rows are those that a snapshot query returns, by the same reader. They keep their commit times
and sequence numbers. Base files are streamed, and so are log files that may not fit into memory;
see `hoodie_ds.slices.late_columns`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice

import pyarrow as pa

from hoodie_ds.config.enums import MergeMode
from hoodie_ds.errors import AlreadyExistsError, CorruptFileError
from hoodie_ds.handles.change_log import ChangeLog, open_change_log
from hoodie_ds.handles.context import WriteContext, WriteStatus
from hoodie_ds.handles.create_handle import CreateHandle
from hoodie_ds.index.choice import bloom_params, has_bloom_filter
from hoodie_ds.record.merge.hook_merger import merger_of
from hoodie_ds.services.compaction.planned_slices import PlannedSlices
from hoodie_ds.services.compaction.result import CompactionResult, read_result, result_path
from hoodie_ds.services.context import ServiceContext
from hoodie_ds.services.rewriting import rewrite_context, take_back_if_late
from hoodie_ds.slices.file_slice_reader import FileSliceReader, MergeCounts
from hoodie_ds.table.file_slice import FileGroupId, FileSlice
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.bodies.compaction_plan import CompactionOperation
from hoodie_ds.timeline.timeline import Timeline


@dataclass(frozen=True)
class CompactionExecutor:
    """Carries out operations of one plan; several may do so at the same time."""

    context: ServiceContext
    table: Table
    time: str  # of the plan's instant
    timeline: Timeline  # the plan is pending on it

    @cached_property
    def planned(self) -> PlannedSlices:
        """The slices to merge."""
        verify = self.context.options.verify_checksums
        return PlannedSlices(FileSystemView(self.table.storage, self.timeline, verify), self.time)

    def execute(self, operation: CompactionOperation) -> CompactionResult:
        """Merge one file slice, unless that is done already. Raises as `PlannedSlices.check`."""
        storage = self.table.storage
        known = read_result(storage, self.time, operation)
        if known is not None:
            return known
        result = self._result(operation)
        try:
            storage.put_if_absent(result_path(self.time, operation), result.to_bytes())
        except AlreadyExistsError:
            first = read_result(storage, self.time, operation)
            if first is not None and first != result:
                for path in _paths(result):
                    storage.delete(path)
                return first
        take_back_if_late(self.table, self.time, _paths(result))
        return result

    def _result(self, operation: CompactionOperation) -> CompactionResult:
        partition, view = operation.partition_path, self.planned.view
        group = FileGroupId(partition, operation.file_id)
        listed, slices = self.planned.listing(partition)
        slice_ = slices.get(group)
        if slice_ is None and group.file_id in view.replaced_ids(partition):
            slice_ = self.planned.replaced(operation, listed)
            return CompactionResult() if slice_ is None else self._merged(slice_)
        if slice_ is None:
            raise CorruptFileError(
                f"{view.storage.root}: file group {group}, which compaction {self.time} is to "
                "merge, has no committed file",
                "restore its files from a copy",
            )
        self.planned.check(operation, slice_)
        return self._merged(slice_)

    def _merged(self, slice_: FileSlice) -> CompactionResult:
        return CompactionResult(self._write(slice_), self.planned.merged(slice_))

    def _write(self, slice_: FileSlice) -> WriteStatus:
        context, counts = self._write_context(slice_.group), MergeCounts()
        if slice_.base is None:  # all rows are new, as the base file itself shows
            context = replace(context, logging=None)
        group = slice_.group
        with open_change_log(context, group.partition_path, group.file_id) as changes:
            status = self._write_base(context, slice_, counts, changes)
        stat = replace(
            status.stat,
            prev_commit=slice_.base_instant,
            prev_base_file=str(slice_.base.name) if slice_.base else "",
            num_update_writes=counts.updates,
            num_deletes=counts.deletes,
            total_log_blocks=counts.log_blocks,
            total_log_records=counts.log_records,
            total_updated_records_compacted=counts.merged_records,
            total_log_files_compacted=len(slice_.logs),
            total_log_size_compacted=sum(log.size for log in slice_.logs),
            change_files=() if changes is None else changes.stat,
        )
        checksums = () if changes is None else changes.checksums
        return WriteStatus(stat, status.checksum, checksums, status.footer)

    def _write_base(
        self,
        context: WriteContext,
        slice_: FileSlice,
        counts: MergeCounts,
        changes: ChangeLog | None,
    ) -> WriteStatus:
        reader = FileSliceReader(
            self.planned.view,
            context.schema,
            merger_of(self.table.properties, self.context.options.merge_hook),
            self._ordering_fields,
            self.table.properties.delete_marker,
            context.virtual_keys,
            history=context.history,
        )
        columns = context.kept_columns
        pieces = reader.read(slice_, columns, counts, keep_dictionaries=True, changes=changes)
        first = [*islice(pieces, 1)]
        stored = (field for rows in first for field in rows.schema)
        dictionaries = [field.name for field in stored if pa.types.is_dictionary(field.type)]
        handle = CreateHandle(context, slice_.group, dictionaries)
        try:
            for rows in chain(first, pieces):
                handle.keep(rows)
        except BaseException as error:
            handle.discard(error)
            raise
        return handle.close()

    @property
    def _ordering_fields(self) -> tuple[str, ...]:
        properties = self.table.properties
        by_event_time = properties.merge_mode is MergeMode.EVENT_TIME_ORDERING
        return properties.ordering_fields if by_event_time else ()

    def _write_context(self, group: FileGroupId) -> WriteContext:
        context = rewrite_context(self.context, self.table, self.timeline, self.time, 0)
        options = self.context.options
        if has_bloom_filter(group, self.table.properties, options):
            return replace(context, bloom=bloom_params(options))
        return context


def _paths(result: CompactionResult) -> list[str]:
    return [] if result.status is None else list(result.status.stat.paths)
