"""What all handles of one task and one instant share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import xxhash

from hoodie_ds.columns.meta_columns import FILE_NAME, META_COLUMNS
from hoodie_ds.config.enums import LogBlockFormat, SupplementalLogging
from hoodie_ds.formats.column_ranges import ColumnRange, ColumnRanges
from hoodie_ds.formats.parquet.base_file_reader import MadeColumn
from hoodie_ds.formats.parquet.bloom_filter import BloomParams
from hoodie_ds.metadata_table.task_keys import TaskKeys
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.file_slice import FileGroupId
from hoodie_ds.table.schema_on_read import ALL_AS_NOW, ColumnHistory
from hoodie_ds.timeline.bodies.commit_metadata import FOOTER, WriteStat

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
    """Where a task's handles write, and what they need to know of table, batch and attempt."""

    storage: Storage
    instant_time: str
    task_partition: int  # part of every row's ``_hoodie_commit_seqno``
    batch_attempt: str  # unique to this attempt to write the batch
    task_attempt: str  # unique to this attempt of the task, or of the commit, in the batch
    schema: pa.Schema  # the five meta columns first
    avro_schema: str
    codec: str
    row_group_bytes: int  # closes a row group
    log_block_bytes: int  # closes a log block
    log_block_format: LogBlockFormat
    bloom: BloomParams | None = None  # of the bloom filters in base files
    has_keys: bool = True
    virtual_keys: MadeColumn | None = None  # makes record keys if the meta columns are empty
    indexed: tuple[str, ...] = ()  # columns with statistics in the metadata table
    logging: SupplementalLogging | None = None  # change data of rewritten base files; None for none
    shares_log_files: bool = True  # whether a log file may hold blocks of several instants
    history: ColumnHistory = ALL_AS_NOW  # under which names stored files have the columns
    batch_number: int = 0  # micro-batches of the instant before this one
    row_numbers: RowNumbers = field(default_factory=RowNumbers)
    files: list[str] = field(default_factory=list)  # paths of the data files begun so far
    new_keys: TaskKeys | None = None  # takes the keys that files add to their file groups

    @property
    def kept_columns(self) -> list[str]:
        """Columns that rewritten rows keep; `fill_file_name` adds the others."""
        left_out = (FILE_NAME,) if self.virtual_keys is None else META_COLUMNS
        return [name for name in self.schema.names if name not in left_out]

    def new_ranges(self) -> ColumnRanges | None:
        """Return what gathers the statistics of a file; None if nobody needs them."""
        return ColumnRanges(self.indexed) if self.indexed else None

    @property
    def writer(self) -> int:
        """Number of the task, different in each micro-batch of the instant."""
        return self.batch_number * _WRITERS_PER_BATCH + self.task_partition

    @property
    def write_token(self) -> str:
        """Write token of the attempt's base files; no other attempt has it."""
        return self.log_token(0)

    def log_token(self, version: int) -> str:
        """Return the write token of the attempt's log file of a version.

        It begins with the number of the task, which orders the log files of one version. The rest
        is a hash: the name of a log file in table version 6 does not hold its writer's instant, and
        the numbers of stages and attempts restart with each driver. Each version has its own token,
        since Hudi on the JVM names its next log file after the token of the newest one.
        """
        identity = f"{self.batch_attempt} {self.task_attempt} {version}"
        digest = xxhash.xxh3_64_intdigest(identity.encode())
        return f"{self.writer}-{digest >> 33}-{digest & _JAVA_INT_MAX}"


@dataclass(frozen=True, slots=True)
class WriteStatus:
    """One file that a handle wrote and made durable, with its xxh64 in hexadecimal."""

    stat: WriteStat
    checksum: str
    change_checksums: tuple[str, ...] = ()  # of its files of change data
    footer: str | None = None  # of a base file's footer
    ranges: Mapping[str, ColumnRange] = field(default_factory=dict)  # of indexed columns, if known

    @classmethod
    def of(cls, stat: WriteStat, checksums: Mapping[str, str]) -> WriteStatus:
        """Return the status of a file from its write stat and the checksums by path."""
        first, *more = (checksums[path] for path in stat.paths)
        return cls(stat, first, tuple(more), checksums.get(stat.path + FOOTER))

    @property
    def checksums(self) -> dict[str, str]:
        """The checksums of all written files by path, and that of a footer."""
        found = dict(zip(self.stat.paths, (self.checksum, *self.change_checksums), strict=True))
        return found if self.footer is None else {**found, self.stat.path + FOOTER: self.footer}

    @property
    def group(self) -> FileGroupId:
        """The file group that the file belongs to."""
        return FileGroupId(self.stat.partition_path, self.stat.file_id)


def new_group(context: WriteContext, partition_path: str, number: int) -> FileGroupId:
    """Return the task's `number`-th new file group of a partition, the same in every attempt."""
    identity = (context.instant_time, partition_path, str(context.writer), str(number))
    digits = xxhash.xxh3_128_hexdigest("\0".join(identity).encode())
    parts = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
    return FileGroupId(partition_path, "-".join(parts) + "-0")
