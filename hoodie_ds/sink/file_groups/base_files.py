"""The next base file of a file group, or its first: from incoming and staged rows.

Copy-on-write allows one new base file per file group and commit. If several tasks may have rows of
a group, each task stages its rows, and the commit merges them, once per group.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa

from hoodie_ds.config.enums import TableType
from hoodie_ds.handles.append_handle import AppendHandle, LogTarget
from hoodie_ds.handles.context import WriteContext, WriteStatus
from hoodie_ds.handles.create_handle import CreateHandle
from hoodie_ds.handles.merge_handle import merge_base_file
from hoodie_ds.record.merge.merger import RecordSet
from hoodie_ds.sink.locate.key_locations import apply_policy
from hoodie_ds.sink.messages import StagedRows
from hoodie_ds.sink.records import to_records
from hoodie_ds.sink.stage.incoming_rows import Incoming
from hoodie_ds.sink.stage.staging import rows_of
from hoodie_ds.sink.write_plan import WritePlan
from hoodie_ds.table.file_slice import FileGroupId, FileSlice


def merge_staged(
    plan: WritePlan,
    context: WriteContext,
    staged: Sequence[StagedRows],
    latest: FileSlice | None,
    has_logs: bool = False,
) -> list[WriteStatus]:
    """Merge all staged rows of one file group into its next base file.

    `latest` is None for a new group. A new group of a merge-on-read table begins as it would if one
    task had all of its rows, unless tasks with more rows have begun it with log files (`has_logs`).
    """
    ordered = sorted(staged, key=lambda part: (part.task_partition, part.sequence))
    incoming = Incoming(plan, [part for part in ordered if not part.are_inserts])
    inserts = [part for part in ordered if part.are_inserts]
    group = staged[0].group
    if latest is None and plan.table.properties.table_type is TableType.MERGE_ON_READ:
        if not has_logs:
            return begin_slice(plan, context, group, incoming)
        target = LogTarget(group, context.instant_time, "", 1, is_new=True)
        parts = (to_records(plan, rows) for rows in rows_of(plan, ordered))
        return [_write_log(context, target, map(plan.merger.combine, parts))]
    status = write_merged(plan, context, group, incoming, latest, inserts)
    return [] if status is None else [status]


def begin_slice(
    plan: WritePlan, context: WriteContext, group: FileGroupId, incoming: Incoming
) -> list[WriteStatus]:
    """Begin a merge-on-read group with a base file; deletes follow in a log file, as tombstones."""
    combined = plan.merger.combine(incoming.records())
    status = create_base_file(context, group, combined, incoming)
    statuses = [] if status is None else [status]
    if combined.deleted.any():
        base_file = "" if status is None else status.stat.path.rpartition("/")[2]
        tombstones = combined.take(combined.deleted.nonzero()[0])
        target = LogTarget(group, context.instant_time, base_file, 1, is_new=status is None)
        statuses.append(_write_log(context, target, [tombstones]))
    return statuses


def _write_log(context: WriteContext, target: LogTarget, parts: Iterable[RecordSet]) -> WriteStatus:
    handle = AppendHandle(context, target)
    try:
        for records in parts:
            handle.write(records)
    except BaseException as error:
        handle.discard(error)
        raise
    return handle.close()


def write_merged(
    plan: WritePlan,
    context: WriteContext,
    group: FileGroupId,
    incoming: Incoming,
    latest: FileSlice | None,
    inserts: Sequence[StagedRows | pa.Table] = (),
) -> WriteStatus | None:
    """Write the next base file of a file group, or its first; None if there is nothing to write.

    `inserts` are combined rows of keys that the group, which has a base file, does not have.
    """
    records = apply_policy(plan, incoming.records(), latest)
    combined = plan.merger.combine(records)
    if latest is not None and latest.base is not None:
        return merge_base_file(
            context,
            latest.base,
            combined,
            plan.merger,
            plan.ordering_fields,
            incoming.complete_rows,
            rows_of(plan, inserts) if inserts else None,
        )
    assert not inserts, group
    return create_base_file(context, group, combined, incoming)


def create_base_file(
    context: WriteContext, group: FileGroupId, combined: RecordSet, incoming: Incoming
) -> WriteStatus | None:
    """Write the first base file of a file group; None if no row is live.

    `combined` has one record per key of `incoming`.
    """
    live = combined.live_rows()
    if not live.num_rows:
        return None
    handle = CreateHandle(context, group)
    for rows in incoming.complete_rows(live):
        handle.write(rows)
    return handle.close()


def commit_context(context: WriteContext, number: int) -> WriteContext:
    """Return a context with its own write token for one merge of the commit."""
    # Beyond the numbers of tasks, so that row numbers differ too.
    return replace(context, task_partition=1_000_000 + number)
