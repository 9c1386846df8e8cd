"""Packs the tasks of a scan, so that neither one file nor 100,000 make a bad number of them."""

from __future__ import annotations

import heapq
import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from hoodie_ds.datasource.task import in_worker
from hoodie_ds.reader.scan_plan import PartTask, ScanTask

PACK_BYTES: Final = 64 << 20
"""Bytes of files that one Python task reads at most, if there are several files."""

PART_BYTES: Final = 32 << 20
"""Bytes of a base file that justify a task of their own."""

_SPLITS_PER_CORE: Final = 2
"""Splits for each core of the driver's machine, the only number known of the cluster."""

_TASKS_OF_CONNECT: Final = 8
"""Tasks that keep an unknown server busy."""

T = TypeVar("T")
Pack = Sequence[ScanTask]
"""The tasks of a scan that one Spark task executes."""


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


def parallelism(spark: SparkSession) -> int:
    """Return how many tasks keep the cores of a session busy."""
    if hasattr(spark, "_jvm"):
        return int(spark.sparkContext.defaultParallelism)
    return _TASKS_OF_CONNECT


def in_tasks(
    spark: SparkSession,
    packs: Sequence[T],
    work: Callable[[T], Iterator[pa.RecordBatch]],
    schema: StructType | str,
) -> DataFrame:
    """Return the rows that `work` yields of each pack, in a Spark task of its own."""
    numbers = spark.range(0, len(packs), 1, max(1, len(packs)))
    return numbers.mapInArrow(_PackedWork(work, tuple(map(pickle.dumps, packs))), schema)


@dataclass(frozen=True)
class _PackedWork:
    """A function for ``mapInArrow``: from numbers of packs to the rows of their tasks.

    Every Spark task gets all packs, pickled, and unpickles only its own.
    """

    work: Callable[[Any], Iterator[pa.RecordBatch]]
    packs: tuple[bytes, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows, batch by batch."""
        with in_worker():
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    yield from self.work(pickle.loads(self.packs[number]))  # noqa: S301  ours
