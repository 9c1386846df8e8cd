"""What a task tells the coordinator (RFC-24's ``WriteMetadataEvent``), and it its caller."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from hoodie_ds.handles.context import WriteStatus
from hoodie_ds.services.boundary import ServiceFailure
from hoodie_ds.sink.batch import Batch
from hoodie_ds.sink.digest.input_digest import InputDigest
from hoodie_ds.sink.metrics import WriteMetrics
from hoodie_ds.sink.replay_guard import BatchId
from hoodie_ds.table.file_slice import FileGroupId


@dataclass(frozen=True, slots=True)
class TaskId:
    """One attempt of one task.

    Parameters
    ----------
    partition : int
        Number of the task.
    stage : int
        Number of the stage.
    attempt : int
        A number that no other attempt of the application has.
    """

    partition: int = 0
    stage: int = 0
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class StagedRows:
    """Rows of a file group that other tasks may have rows of too, kept for the commit to merge.

    Parameters
    ----------
    group : FileGroupId
        Where the rows belong.
    path : str
        Arrow IPC file, relative to the base path.
    task_partition : int
        Task that staged them; staged rows are merged in this order.
    sequence : int
        Order among the files that one task staged for one group.
    are_inserts : bool
        Combined rows of keys that the group does not have.
    checksum : str
        xxh64 of the file, 16 hexadecimal digits.
    nbytes : int
        Arrow bytes of the rows, where somebody asks for them.
    key_partitions : tuple of int
        The key partition of each record batch, where rows were staged by key partition.
    batches : tuple of int or None
        The record batches that are meant; all if None.
    """

    group: FileGroupId
    path: str
    task_partition: int
    sequence: int
    are_inserts: bool = False
    checksum: str = ""
    nbytes: int = 0
    key_partitions: tuple[int, ...] = ()
    batches: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class TaskCommitMessage:
    """Outcome of one task.

    Parameters
    ----------
    batch : Batch
        What the task was given.
    batch_id : BatchId or None
        The micro-batch; None outside streaming.
    instant_time : str or None
        The instant that it wrote under; None if it had no rows.
    statuses : tuple of WriteStatus
        Files written, all durable.
    staged : tuple of StagedRows
        Rows left for the commit to merge.
    digest : InputDigest
        Of the rows received.
    partitions : tuple of str
        Partition paths of the rows, where a partition delete takes no more of them.
    metrics : WriteMetrics
        What writing cost.
    already_committed : bool
        The batch was found committed; nothing was written.
    owns_keys : bool
        No other task should have rows of the same keys.
    assigned_by : int or None
        Digest of the view by which the rows were assigned to file groups upstream; None if they
        were not.
    failed_services : tuple of ServiceFailure
        What kept the task from its part of a table service.
    """

    batch: Batch
    batch_id: BatchId | None = None
    instant_time: str | None = None
    statuses: tuple[WriteStatus, ...] = ()
    staged: tuple[StagedRows, ...] = ()
    digest: InputDigest = field(default_factory=InputDigest)
    partitions: tuple[str, ...] = ()
    metrics: WriteMetrics = field(default_factory=WriteMetrics)
    already_committed: bool = False
    owns_keys: bool = False
    assigned_by: int | None = None
    failed_services: tuple[ServiceFailure, ...] = ()

    @property
    def num_rows(self) -> int:
        """Rows received."""
        return self.digest.num_rows


@dataclass(frozen=True, slots=True)
class WriteResult:
    """What a write did.

    Rows are counted as in the commit's write statistics, which Hudi keeps too: a row that goes to
    a log file counts as updated, whether its key was there or not, and rows whose whole file group
    is replaced, by an overwrite or a partition delete, are not counted.

    Parameters
    ----------
    instant_time : str or None
        The commit; None where there is none, as nothing was to be written, or as it was written
        before under another instant.
    inserted, updated, deleted : int
        Rows.
    already_committed : bool
        Whether the batch was found in the table; then nothing was changed.
    failed_services : tuple of ServiceFailure
        Table services that failed beside the commit, which stands; a later batch tries again.
    """

    instant_time: str | None = None
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    already_committed: bool = False
    failed_services: tuple[ServiceFailure, ...] = ()

    @classmethod
    def of(cls, instant_time: str, statuses: Iterable[WriteStatus] | None) -> WriteResult:
        """Return the result of a commit.

        Parameters
        ----------
        instant_time : str
            Its time.
        statuses : iterable of WriteStatus or None
            Its files; None if it was complete before.
        """
        if statuses is None:
            return cls(instant_time, already_committed=True)
        stats = [status.stat for status in statuses]
        return cls(
            instant_time,
            sum(stat.num_inserts for stat in stats),
            sum(stat.num_update_writes for stat in stats),
            sum(stat.num_deletes for stat in stats),
        )
