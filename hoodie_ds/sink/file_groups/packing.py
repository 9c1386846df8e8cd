"""Combines the inserts of one partition and distributes them over small files and new file groups.

At most one task of a batch fills a small file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa

from hoodie_ds.errors import AlreadyExistsError
from hoodie_ds.handles.context import WriteContext, WriteStatus
from hoodie_ds.handles.create_handle import create_files
from hoodie_ds.index.write_profile import SmallFile, WriteProfile
from hoodie_ds.sink.messages import StagedRows
from hoodie_ds.sink.stage.incoming_rows import Incoming
from hoodie_ds.sink.stage.staging import stage
from hoodie_ds.sink.write_plan import WritePlan
from hoodie_ds.table.file_slice import FileGroupId, FileSlice
from hoodie_ds.timeline.paths import reservation_path

Fill = Callable[[SmallFile, pa.Table], None]
"""Adds rows to a small file."""


def pack(
    plan: WritePlan,
    context: WriteContext,
    partition_path: str,
    incoming: Incoming,
    small_files: Sequence[SmallFile],
    fill: Fill,
) -> list[WriteStatus]:
    """Combine inserts, fill small files by `fill`, and begin file groups with the rest.

    No other task fills `small_files` in this batch.
    """
    combined = plan.merger.combine(incoming.records())
    pieces = (rows for rows in incoming.complete_rows(combined.live_rows()) if rows.num_rows)
    rest = _after_filling(pieces, small_files, fill)
    return create_files(context, partition_path, rest, plan.options.parquet_max_file_bytes)


@dataclass(frozen=True, slots=True)
class MergedInserts:
    """The result of staged inserts: new file groups, and rows staged for small files."""

    statuses: list[WriteStatus]
    staged: list[StagedRows]


def merge_inserts(
    plan: WritePlan,
    context: WriteContext,
    staged: Sequence[StagedRows],
    free: Sequence[FileSlice],
) -> MergedInserts:
    """Combine the inserts that tasks staged for one partition, and pack them.

    `free` are the latest slices, of any partition, that no task wrote to.
    """
    ordered = sorted(staged, key=lambda part: (part.task_partition, part.sequence))
    path = staged[0].group.partition_path
    filled: list[StagedRows] = []

    def fill(small: SmallFile, rows: pa.Table) -> None:
        part = stage(context, small.slice.group, rows, len(filled), are_inserts=True)
        filled.append(part)

    small_files: list[SmallFile] = []
    if plan.operation.fills_small_files:
        here = [slice_ for slice_ in free if slice_.group.partition_path == path]
        profile = WriteProfile(plan.table, plan.timeline, plan.options)
        small_files = profile.small_files(here)
    statuses = pack(plan, context, path, Incoming(plan, ordered), small_files, fill)
    return MergedInserts(statuses, filled)


def _after_filling(
    pieces: Iterator[pa.Table], small_files: Sequence[SmallFile], fill: Fill
) -> Iterator[pa.Table]:
    waiting = list(reversed(small_files))
    room = waiting[-1].num_rows if waiting else 0
    for rows in pieces:
        while waiting and rows.num_rows:
            part = rows.slice(0, room)
            fill(waiting[-1], part)
            rows, room = rows.slice(part.num_rows), room - part.num_rows
            if not room:
                waiting.pop()
                room = waiting[-1].num_rows if waiting else 0
        if rows.num_rows:
            yield rows


def reserve(context: WriteContext, small_files: Sequence[SmallFile]) -> list[SmallFile]:
    """Reserve the first small file that no other task has, for a batch that only inserts.

    A second attempt of a task finds the reservation of the first and fills another file; the commit
    does not name what the first attempt wrote.
    """
    for small in small_files:
        if _reserve(context, small.slice.group):
            return [small]
    return []


def _reserve(context: WriteContext, group: FileGroupId) -> bool:
    path = reservation_path(
        context.instant_time, context.batch_number, group.partition_path, group.file_id
    )
    with suppress(AlreadyExistsError):
        context.storage.put_if_absent(path, context.write_token.encode())
        return True
    return False
