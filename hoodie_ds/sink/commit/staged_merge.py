"""Merges the rows that tasks staged, file group by file group, in the commit.

Several tasks may have rows of a file group, or of a key, so that none could write the final file.
That is as correct as a shuffle, only slower.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Final

from hoodie_ds.environment import SystemClock
from hoodie_ds.handles.context import WriteContext, WriteStatus
from hoodie_ds.metadata_table.task_keys import TaskKeys
from hoodie_ds.sink.batch import Batch, task_context
from hoodie_ds.sink.file_groups.base_files import commit_context, merge_staged
from hoodie_ds.sink.file_groups.global_locations import write_located
from hoodie_ds.sink.file_groups.packing import merge_inserts
from hoodie_ds.sink.hidden_columns import TaskOwnership
from hoodie_ds.sink.messages import StagedRows, WriteMetrics
from hoodie_ds.sink.stage.key_partitions import UNLOCATED
from hoodie_ds.sink.write_plan import WritePlan
from hoodie_ds.table.file_slice import FileGroupId, FileSlice
from hoodie_ds.table.live_files import naming_remedies
from hoodie_ds.timeline.bodies.key_files import KeyFiles
from hoodie_ds.transaction.instant_checks import no_late_files

_MERGE_THREADS: Final = 2


def merge_all_staged(
    batch: Batch,
    time: str,
    staged: Sequence[StagedRows],
    written: Sequence[WriteStatus],
    attempt: str,
) -> tuple[list[WriteStatus], KeyFiles]:
    """Merge staged rows into their file groups, or begin new ones.

    Returns the new files, and those with entries of the record index. `written` are the files of
    tasks. No other attempt to commit has the same `attempt`.
    """
    if not staged:
        return [], {}
    context = task_context(batch, time, 0, f"commit {attempt}")
    with (
        naming_remedies(context.storage, batch.plan.timeline),
        no_late_files(batch.pending, time, context.files),
    ):
        statuses = _merge(batch.plan, context, staged, written)
        return statuses, _key_files(batch.plan, context.new_keys, statuses, written)


def _key_files(
    plan: WritePlan,
    keys: TaskKeys | None,
    statuses: Sequence[WriteStatus],
    written: Sequence[WriteStatus],
) -> KeyFiles:
    """Put entries of the record index of the keys in merged base files.

    They share no file group with tasks, which may have files of keys that these file groups lose.
    """
    if keys is None:
        return {}
    others = [status.stat for status in written if plan.may_move_keys]
    if not (plan.operation.replaces or (others and plan.secondary)):
        merged = [status.stat for status in statuses if status.stat.log is None]
        keys.find(merged, lambda: plan.metadata, plan.avro_schema, plan.may_move_keys, others)
    return keys.close()


def _merge(
    plan: WritePlan,
    context: WriteContext,
    staged: Sequence[StagedRows],
    written: Sequence[WriteStatus],
) -> list[WriteStatus]:
    numbers = count()
    statuses, staged = _locate_staged(plan, commit_context(context, next(numbers)), staged)
    groups: dict[FileGroupId, list[StagedRows]] = {}
    for part in staged:
        groups.setdefault(part.group, []).append(part)
    latest = _latest_slices(plan, groups)
    taken = {status.group for status in [*written, *statuses]}
    free = [slice_ for slice_ in latest.values() if slice_.group not in taken]
    for group in [group for group in groups if not group.file_id]:
        inserts = merge_inserts(
            plan, commit_context(context, next(numbers)), groups.pop(group), free
        )
        statuses += inserts.statuses
        for part in inserts.staged:
            groups.setdefault(part.group, []).append(part)
    with ThreadPoolExecutor(_MERGE_THREADS, thread_name_prefix="hoodie-merge") as pool:
        merged = pool.map(
            lambda job: merge_staged(
                plan,
                commit_context(context, job[0]),
                groups[job[1]],
                latest.get(job[1]),
                has_logs=job[1] in taken,
            ),
            zip(numbers, groups, strict=False),
        )
        return [*statuses, *(status for found in merged for status in found)]


def _locate_staged(
    plan: WritePlan, context: WriteContext, staged: Sequence[StagedRows]
) -> tuple[list[WriteStatus], list[StagedRows]]:
    """Write the rows that no task could locate; return those that have a file group."""
    parts = [part for part in staged if part.group == UNLOCATED]
    others = [part for part in staged if part.group != UNLOCATED]
    if not parts:
        return [], others
    parts.sort(key=lambda part: (part.task_partition, part.sequence))
    owns = TaskOwnership(groups=not others, keys=True)
    statuses, more = write_located(plan, context, parts, SystemClock(), WriteMetrics(), owns)
    return statuses, [*others, *more]


def _latest_slices(
    plan: WritePlan, groups: dict[FileGroupId, list[StagedRows]]
) -> dict[FileGroupId, FileSlice]:
    view = plan.view
    partitions = {group.partition_path for group in groups}
    return {
        found.group: found
        for partition in sorted(partitions)
        for found in view.latest_slices(partition)
    }
