"""Packs the tasks of a scan, so that neither one file nor 100,000 make a bad number of them."""

from __future__ import annotations

import heapq
import os
from collections.abc import Sequence
from typing import Final

from hoodie_ds.reader.scan_plan import PartTask, ScanTask

PACK_BYTES: Final = 64 << 20
"""Bytes of files that one Python task reads at most, if there are several files."""

PART_BYTES: Final = 32 << 20
"""Bytes of a base file that justify a task of their own."""

_SPLITS_PER_CORE: Final = 2
"""Splits for each core of the driver's machine, the only number known of the cluster."""


def packed_for_all_cores(
    tasks: Sequence[ScanTask], *, may_divide: bool = False
) -> list[tuple[ScanTask, ...]]:
    """Distribute tasks so that every core of a machine like the driver's has some.

    With `may_divide`, for tasks that a `SliceExecutor` reads, large base files are divided.
    """
    cores = (os.cpu_count() or 1) * _SPLITS_PER_CORE
    return packed(divided(tasks, cores) if may_divide else tasks, cores)


def divided(tasks: Sequence[ScanTask], at_least: int) -> list[ScanTask]:
    """Divide large base files by row groups, so that `at_least` cores are busy.

    Slices with log files stay whole.
    """
    total = sum(task.size for task in tasks)
    wanted = min(PACK_BYTES, max(PART_BYTES, -(-total // at_least)))
    found: list[ScanTask] = []
    for task in tasks:
        parts = round(task.size / wanted) if task.is_base_only else 1
        if parts > 1:
            found += (PartTask(task.slice, part, parts) for part in range(parts))
        else:
            found.append(task)
    return found


def packed(tasks: Sequence[ScanTask], at_least: int) -> list[tuple[ScanTask, ...]]:
    """Distribute tasks evenly by bytes over few packs, none empty, that keep `at_least` cores busy.

    A Spark task costs as much as some thousands of rows.
    """
    total = sum(task.size for task in tasks)
    # A multiple, so that cores that finish first do not wait for the last packs.
    number = min(len(tasks), max(1, -(-total // (PACK_BYTES * at_least))) * at_least)
    packs: list[list[ScanTask]] = [[] for _ in range(number)]
    loads = [(0, at) for at in range(number)]
    for task in sorted(tasks, key=lambda task: task.size, reverse=True):
        load, at = heapq.heappop(loads)
        packs[at].append(task)
        heapq.heappush(loads, (load + max(task.size, 1), at))
    return [tuple(pack) for pack in packs]
