"""What a query reads: tasks that any process can execute, each by itself.

A query makes a plan, on the driver if there is one. A plan's executor turns each task into rows in
any process: both can be pickled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from hoodie_ds.table.file_slice import FileSlice


@dataclass(frozen=True, slots=True)
class ScanTask:
    """The piece of a plan that reads a file slice."""

    slice: FileSlice

    @property
    def partition_path(self) -> str:
        """The partition of its rows."""
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
    """Part `part`, from 0, of the row groups of a base file without log files."""

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

    `schema` has every column that can be requested. The tasks can be iterated over once, and may be
    computed meanwhile.
    """

    schema: pa.Schema
    executor: Executor
    tasks: Iterable[ScanTask]
