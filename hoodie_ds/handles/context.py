"""What all handles of one task and one instant share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import xxhash

from hoodie_ds.columns.meta_columns import FILE_NAME, META_COLUMNS
from hoodie_ds.config.enums import LogBlockFormat, SupplementalLogging
from hoodie_ds.formats.parquet.base_file_reader import MadeColumn
from hoodie_ds.formats.parquet.bloom_filter import BloomParams
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.file_slice import FileGroupId
from hoodie_ds.timeline.bodies.commit_metadata import WriteStat

_WRITERS_PER_BATCH: Final = 10_000_000
_JAVA_INT_MAX: Final = 0x7FFF_FFFF
"""Hudi on the JVM reads each part of a write token as an int."""


@dataclass(slots=True)
class RowNumbers:
    """Numbers the rows that a task writes, for ``_hoodie_commit_seqno``."""

    next_row: int = 0

    def reserve(self, count: int) -> int:
        """Take `count` numbers; returns the first of them."""
        first = self.next_row
        self.next_row += count
        return first


@dataclass(frozen=True, slots=True)
class WriteContext:
    """Where and as what a task's handles write.

    Parameters
    ----------
    storage : Storage
        Rooted at the table's base path.
    instant_time : str
        Time of the instant that the files belong to.
    task_partition : int
        Number of the task, part of every row's ``_hoodie_commit_seqno``.
    batch_attempt : str
        Identity of the attempt to write the batch; no other attempt has it.
    task_attempt : str
        Identity of the task attempt, or of the attempt to commit, within that.
    schema : pyarrow.Schema
        The table's columns, the five meta columns first.
    avro_schema : str
        The same as Avro JSON.
    codec : str
        Parquet compression.
    row_group_bytes, log_block_bytes : int
        Sizes at which a row group and a log block are closed.
    log_block_format : LogBlockFormat
        How rows are encoded in log files.
    bloom : BloomParams or None
        Of the bloom filters in base files.
    has_keys : bool
        Whether the table has record keys.
    virtual_keys : MadeColumn or None
        Makes the record keys of stored rows, where files have no meta columns filled in; see
        `hoodie_ds.table.virtual_keys`.
    logging : SupplementalLogging or None
        What is logged of the changes to a base file that is written anew; None where nothing is.
    shares_log_files : bool
        Whether a log file may hold blocks of several instants, as in layout 1; see
        `hoodie_ds.table.slicing`.
    batch_number : int
        How many micro-batches the instant holds before this one.
    files : list of str
        Paths of the data files that were begun so far.
    """

    storage: Storage
    instant_time: str
    task_partition: int
    batch_attempt: str
    task_attempt: str
    schema: pa.Schema
    avro_schema: str
    codec: str
    row_group_bytes: int
    log_block_bytes: int
    log_block_format: LogBlockFormat
    bloom: BloomParams | None = None
    has_keys: bool = True
    virtual_keys: MadeColumn | None = None
    logging: SupplementalLogging | None = None
    shares_log_files: bool = True
    batch_number: int = 0
    row_numbers: RowNumbers = field(default_factory=RowNumbers)
    files: list[str] = field(default_factory=list)

    @property
    def kept_columns(self) -> list[str]:
        """Columns that rows keep when they are written again; `keep` in `stamp` adds the rest."""
        left_out = (FILE_NAME,) if self.virtual_keys is None else META_COLUMNS
        return [name for name in self.schema.names if name not in left_out]

    @property
    def writer(self) -> int:
        """Number of the task, another one in each micro-batch of the instant."""
        return self.batch_number * _WRITERS_PER_BATCH + self.task_partition

    @property
    def write_token(self) -> str:
        """Write token of the attempt's base files; no other attempt has it, ever."""
        return self.log_token(0)

    def log_token(self, version: int) -> str:
        """Return the write token of the attempt's log file with a version.

        It begins with the number of the task, which orders the log files of one version. The rest
        is a hash: the name of a log file in table version 6 does not hold its writer's instant,
        and the numbers of stages and attempts begin anew with each driver. Each version has a
        token of its own, since Hudi on the JVM names its next log file after the token of the
        newest one.
        """
        identity = f"{self.batch_attempt} {self.task_attempt} {version}"
        digest = xxhash.xxh3_64_intdigest(identity.encode())
        return f"{self.writer}-{digest >> 33}-{digest & _JAVA_INT_MAX}"


@dataclass(frozen=True, slots=True)
class WriteStatus:
    """One file that a handle wrote and made durable.

    Parameters
    ----------
    stat : WriteStat
        What the commit's metadata will say of it.
    checksum : str
        xxh64 of its bytes, 16 hexadecimal digits.
    change_checksums : tuple of str
        The same of the files of change data beside it.
    """

    stat: WriteStat
    checksum: str
    change_checksums: tuple[str, ...] = ()

    @classmethod
    def of(cls, stat: WriteStat, checksums: Mapping[str, str]) -> WriteStatus:
        """Return what a commit says of a file, from its stat and the checksums by path."""
        first, *more = (checksums[path] for path in stat.paths)
        return cls(stat, first, tuple(more))

    @property
    def checksums(self) -> dict[str, str]:
        """The checksums of all files that were written, by path."""
        return dict(zip(self.stat.paths, (self.checksum, *self.change_checksums), strict=True))

    @property
    def group(self) -> FileGroupId:
        """The file group that the file belongs to."""
        return FileGroupId(self.stat.partition_path, self.stat.file_id)


def new_group(context: WriteContext, partition_path: str, number: int) -> FileGroupId:
    """Return a new file group, the same when a second attempt does the same work again.

    Parameters
    ----------
    context : WriteContext
        Task and instant.
    partition_path : str
        Partition of the group.
    number : int
        Number of the group among those that the task begins in the partition.
    """
    identity = (context.instant_time, partition_path, str(context.writer), str(number))
    digits = xxhash.xxh3_128_hexdigest("\0".join(identity).encode())
    parts = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
    return FileGroupId(partition_path, "-".join(parts) + "-0")
