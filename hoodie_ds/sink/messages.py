"""The messages of tasks to the coordinator (RFC-24's ``WriteMetadataEvent``), and its result."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from hoodie_ds.handles.context import WriteStatus
from hoodie_ds.services.failures import ServiceFailure
from hoodie_ds.sink.batch import Batch
from hoodie_ds.sink.digest.input_digest import InputDigest
from hoodie_ds.sink.replay_guard import BatchId
from hoodie_ds.table.file_slice import FileGroupId
from hoodie_ds.timeline.bodies.key_files import KeyFiles

METRICS_KEY: Final = "_hoodie_ds_metrics"
"""Key in a commit's extra metadata: JSON object of the fields of `WriteMetrics`."""


@dataclass(frozen=True, slots=True)
class TaskId:
    """One attempt of one task."""

    partition: int = 0
    stage: int = 0
    attempt: int = 0  # unique in the application


@dataclass(frozen=True, slots=True)
class StagedRows:
    """Rows of a file group, staged for the commit to merge with those of other tasks."""

    group: FileGroupId
    path: str  # Arrow IPC file, relative to the base path
    task_partition: int  # staged rows are merged in this order
    sequence: int  # of the files of one task for one group
    are_inserts: bool = False  # combined rows of keys that the group does not have
    checksum: str = ""  # xxh64, 16 hexadecimal digits
    nbytes: int = 0  # Arrow bytes, of rows staged by key partition
    key_partitions: tuple[int, ...] = ()  # of each record batch, of such rows
    batches: tuple[int, ...] | None = None  # only these record batches; None for all


@dataclass(slots=True)
class WriteMetrics:
    """What a task cost, or all tasks of a batch, as recorded in its commit."""

    num_flushes: int = 0  # mini-batches written before their task had all its rows
    flushed_bytes: int = 0
    max_buffered_bytes: int = 0  # in Arrow; bytes being flushed count twice
    write_ms: int = 0  # taking rows, and waiting for them
    flush_ms: int = 0  # in the thread that flushes
    close_ms: int = 0  # finishing the files
    num_compacted: int = 0  # file groups compacted by the batch
    num_failed_services: int = 0  # tasks whose part of a table service failed
    service_ms: int = 0

    @classmethod
    def total(cls, parts: Iterable[WriteMetrics]) -> WriteMetrics:
        """Add tasks up; of the largest buffers, take the largest."""
        total = WriteMetrics()
        for part in parts:
            largest = max(total.max_buffered_bytes, part.max_buffered_bytes)
            sums = {name: getattr(total, name) + getattr(part, name) for name in cls.__slots__}
            total = WriteMetrics(**{**sums, "max_buffered_bytes": largest})
        return total

    @classmethod
    def from_json(cls, text: str) -> WriteMetrics:
        """Read what `to_json` wrote."""
        return cls(**{name: int(value) for name, value in json.loads(text).items()})

    def to_json(self) -> str:
        """Return the metrics as a commit carries them."""
        return json.dumps({name: getattr(self, name) for name in self.__slots__}, sort_keys=True)


@dataclass(frozen=True, slots=True)
class TaskCommitMessage:
    """Outcome of one task."""

    batch: Batch
    batch_id: BatchId | None = None
    instant_time: str | None = None  # None without rows
    statuses: tuple[WriteStatus, ...] = ()  # of durable files
    staged: tuple[StagedRows, ...] = ()
    digest: InputDigest = field(default_factory=InputDigest)
    formerly: InputDigest | None = None
    """Digest of the rows in the table's types, as earlier releases stored it, of a replay."""
    partitions: tuple[str, ...] = ()  # of the rows of a partition delete
    metrics: WriteMetrics = field(default_factory=WriteMetrics)
    already_committed: bool = False  # nothing was written
    owns_keys: bool = False  # no other task has rows of the same keys
    assigned_by: int | None = None
    """Digest of the view by which rows were assigned to file groups; None if they were not."""
    failed_services: tuple[ServiceFailure, ...] = ()
    key_files: KeyFiles = field(default_factory=dict)
    """The task's files with entries of the record index."""

    @property
    def num_rows(self) -> int:
        """Rows received."""
        return self.digest.num_rows


@dataclass(frozen=True, slots=True)
class WriteResult:
    """What a write did.

    Rows are counted as in the commit's write statistics, as in Hudi: a row in a log file counts as
    updated, whether its key was there or not, and rows whose whole file group is replaced, by an
    overwrite or a partition delete, are not counted.

    Parameters
    ----------
    instant_time : str or None
        The commit; None if there was nothing to write, or it was written before under another
        instant.
    inserted, updated, deleted : int
        Rows.
    already_committed : bool
        Whether the batch was found in the table; then nothing was changed.
    failed_services : tuple of ServiceFailure
        Table services that failed; the commit is complete, and a later batch tries them again.
    """

    instant_time: str | None = None
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    already_committed: bool = False
    failed_services: tuple[ServiceFailure, ...] = ()

    @classmethod
    def of(cls, instant_time: str, statuses: Iterable[WriteStatus] | None) -> WriteResult:
        """Return the result of a commit; `statuses` are None if it was complete before."""
        if statuses is None:
            return cls(instant_time, already_committed=True)
        stats = [status.stat for status in statuses]
        return cls(
            instant_time,
            sum(stat.num_inserts for stat in stats),
            sum(stat.num_update_writes for stat in stats),
            sum(stat.num_deletes for stat in stats),
        )
