"""What all handles of one task and one instant share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from hoodie_ds.config.kinds import LogBlockFormat
from hoodie_ds.formats.bloom_filter import BloomParams
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.file_slice import FileGroupId
from hoodie_ds.timeline.commit_metadata import WriteStat

_WRITERS_PER_BATCH: Final = 10_000_000


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
    write_token : str
        ``<task partition>-<stage>-<attempt>``; no other attempt has it.
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
    batch_number : int
        How many micro-batches the instant holds before this one.
    """

    storage: Storage
    instant_time: str
    task_partition: int
    write_token: str
    schema: pa.Schema
    avro_schema: str
    codec: str
    row_group_bytes: int
    log_block_bytes: int
    log_block_format: LogBlockFormat
    bloom: BloomParams | None = None
    has_keys: bool = True
    batch_number: int = 0
    row_numbers: RowNumbers = field(default_factory=RowNumbers)

    @property
    def writer(self) -> int:
        """Number of the task, another one in each micro-batch of the instant."""
        return self.batch_number * _WRITERS_PER_BATCH + self.task_partition


@dataclass(frozen=True, slots=True)
class WriteStatus:
    """One file that a handle wrote and made durable.

    Parameters
    ----------
    stat : WriteStat
        What the commit's metadata will say of it.
    checksum : str
        xxh64 of its bytes, 16 hexadecimal digits.
    """

    stat: WriteStat
    checksum: str

    @property
    def group(self) -> FileGroupId:
        """The file group that the file belongs to."""
        return FileGroupId(self.stat.partition_path, self.stat.file_id)
