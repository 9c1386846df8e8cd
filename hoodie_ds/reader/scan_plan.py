"""What a query reads: tasks that any process can carry out, each by itself.

A query makes a plan, on the driver where there is one. A plan's executor turns each task into
rows, wherever that is done: both can be pickled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from hoodie_ds.table.file_slice import FileSlice


@dataclass(frozen=True, slots=True)
class ScanTask:
    """One piece of work of a plan.

    Parameters
    ----------
    slice : FileSlice
        The files to read.
    """

    slice: FileSlice

    @property
    def partition_path(self) -> str:
        """Where its rows are."""
        return self.slice.group.partition_path

    @property
    def is_base_only(self) -> bool:
        """Whether its rows are those of one base file, with nothing to be merged."""
        return self.slice.base is not None and not self.slice.logs

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return self.slice.size


@dataclass(frozen=True, slots=True)
class PartTask(ScanTask):
    """A part of the row groups of a base file that no log files lie on.

    Parameters
    ----------
    part, parts : int
        Which part, from 0, and of how many.
    """

    part: int
    parts: int

    @property
    def size(self) -> int:
        """Bytes of the part, about."""
        return self.slice.size // self.parts


class Executor(Protocol):
    """What makes rows of the tasks of a plan."""

    def read(self, task: ScanTask, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield the rows of a task, piece by piece, with these columns in this order."""
        ...


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """What a query reads.

    Parameters
    ----------
    schema : pyarrow.Schema
        Every column that can be asked for.
    executor : Executor
        Makes rows of the tasks.
    tasks : iterable of ScanTask
        The work, which may be found out only when it is iterated over, and once.
    """

    schema: pa.Schema
    executor: Executor
    tasks: Iterable[ScanTask]
