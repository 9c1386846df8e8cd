"""The messages of tasks to the coordinator (RFC-24's ``WriteMetadataEvent``), and its result."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from hoodie_ds.handles.context import WriteStatus
from hoodie_ds.services.failures import ServiceFailure
from hoodie_ds.sink.batch import Batch
from hoodie_ds.sink.digest.input_digest import InputDigest
from hoodie_ds.sink.metrics import WriteMetrics
from hoodie_ds.sink.replay_guard import BatchId
from hoodie_ds.table.file_slice import FileGroupId


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
