"""Versions, formats and sizes of files, and the storage that they lie on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from hoodie_ds.config.enums import LogBlockFormat, ParquetCodec
from hoodie_ds.config.given_options import GivenOptions, OptionGroup
from hoodie_ds.config.option import (
    BOOLEAN,
    BYTES,
    MEGABYTES,
    POSITIVE_INT,
    Kind,
    Option,
    bytes_or_zero,
    choice,
)

if TYPE_CHECKING:
    from typing import Self

STORAGE_OPTION_PREFIX: Final = "hoodie.py.storage.option."
"""Options with this prefix go to the file system; their values are secrets."""

_MB: Final = 1 << 20


def _factor(text: str) -> float | None:
    return float(text) if re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,9})?", text) else None


def _codec(text: str) -> ParquetCodec | None:
    return choice(ParquetCodec).parse("none" if text.lower() == "uncompressed" else text)


@dataclass(frozen=True, kw_only=True)
class FileOptions(OptionGroup):
    """What files look like, and how they are stored; sizes in bytes."""

    table_version: Option[int | None] = Option(
        "hoodie.write.table.version",
        Kind("6, 8 or 9", {"6": 6, "8": 8, "9": 9}.get),
        "Table version of a new table, 6 by default; an existing table keeps its own, and another "
        "one here is refused.",
        aliases=("hoodie.table.version", "write.table.version"),
    )
    timeline_layout: Option[int | None] = Option(
        "hoodie.timeline.layout.version",
        Kind("1 or 2", {"1": 1, "2": 2}.get),
        "Layout of the timeline, which follows from the table version and must agree with it: 1 "
        "of 6, 2 of 8 and 9.",
    )
    metadata_enable: Option[bool | None] = Option(
        "hoodie.metadata.enable",
        BOOLEAN,
        "Whether a metadata table is used: a read lists files by one that there is, unless this "
        "is false. A write keeps it; with false it drops it, and with true makes one that lists "
        "the files, where there is none.",
        aliases=("metadata.enabled",),
    )
    log_block_format: Option[LogBlockFormat | None] = Option(
        "hoodie.logfile.data.block.format",
        choice(LogBlockFormat),
        "How rows are encoded in log files; parquet by default, but avro where rows are ordered "
        "by strings, which Hudi 1.2 on the JVM compares wrongly in parquet blocks.",
    )
    parquet_codec: Option[ParquetCodec] = Option(
        "hoodie.parquet.compression.codec",
        Kind(choice(ParquetCodec).allowed, _codec),
        "Compression of Parquet pages.",
        ParquetCodec.SNAPPY,
    )
    parquet_block_bytes: Option[int] = Option(
        "hoodie.parquet.block.size",
        BYTES,
        "Size of a Parquet row group.",
        120 * _MB,
        aliases=("write.parquet.block.size",),
        flink_kind=MEGABYTES,
    )
    parquet_max_file_bytes: Option[int] = Option(
        "hoodie.parquet.max.file.size",
        BYTES,
        "Size at which inserts begin the next base file; unused with buckets.",
        120 * _MB,
        aliases=("write.parquet.max.file.size",),
        flink_kind=MEGABYTES,
    )
    small_file_bytes: Option[int | None] = Option(
        "hoodie.parquet.small.file.limit",
        bytes_or_zero("to begin new files always"),
        "Base files below this size are filled with inserts first; 100 MB with an index that looks "
        "keys up, 0 without record keys, unused with buckets.",
    )
    record_bytes_estimate: Option[int] = Option(
        "hoodie.copyonwrite.record.size.estimate",
        POSITIVE_INT,
        "Bytes of a stored record, until a commit is large enough for an average.",
        1024,
    )
    record_size_threshold: Option[float] = Option(
        "hoodie.record.size.estimation.threshold",
        Kind("a number, 0 or more", _factor),
        "How many small file limits a commit must have written for its average record size to "
        "count.",
        1.0,
    )
    small_file_candidates: Option[int] = Option(
        "hoodie.merge.small.file.group.candidates.limit",
        POSITIVE_INT,
        "How many small files of a merge-on-read partition a task fills in one batch.",
        1,
    )
    logfile_max_bytes: Option[int] = Option(
        "hoodie.logfile.max.size",
        BYTES,
        "Size at which the next log file is begun.",
        1024 * _MB,
        aliases=("write.log.max.size",),
        flink_kind=MEGABYTES,
    )
    log_block_max_bytes: Option[int] = Option(
        "hoodie.logfile.data.block.max.size",
        BYTES,
        "Size at which the next log block is begun.",
        256 * _MB,
        aliases=("write.log_block.size",),
        flink_kind=MEGABYTES,
    )
    writes_positions: Option[bool] = Option(
        "hoodie.write.record.positions",
        BOOLEAN,
        "Whether log blocks say where in the base file their records are, so that readers need no "
        "record keys: those of changes, merges, and keys looked up (table versions 8 and 9).",
        True,
    )
    batch_bytes: Option[int] = Option(
        "write.batch.size",
        MEGABYTES,
        "Buffered rows of one file group at which they are flushed.",
        256 * _MB,
    )
    task_max_bytes: Option[int] = Option(
        "write.task.max.size",
        MEGABYTES,
        "Buffered rows of one task at which its largest buffer is flushed.",
        1024 * _MB,
    )
    set_null_for_missing_columns: Option[bool] = Option(
        "hoodie.write.set.null.for.missing.columns",
        BOOLEAN,
        "Fill columns that a batch lacks with null. Otherwise rows keep what is stored in columns "
        "that earlier batches added, and a batch that lacks others is refused.",
        False,
    )
    allow_non_atomic_storage: Option[bool] = Option(
        "hoodie.py.storage.allow.non.atomic.put",
        BOOLEAN,
        "Write to a storage without atomic put-if-absent; safe only with one writer at a time.",
        False,
    )


@dataclass(frozen=True, kw_only=True)
class StorageOptions(OptionGroup):
    """How the storage of a table is read."""

    verify_checksums: Option[bool] = Option(
        "hoodie.py.read.verify.checksums",
        BOOLEAN,
        "Compare every data file that is read, also by a write that merges it, with the checksum "
        "in its commit; a read also checks for missing files that commits name, as a write always "
        "does. Base files are then read whole, even for a few columns.",
        True,
    )
    storage_retry_ms: Option[int] = Option(
        "hoodie.py.storage.retry.deadline.ms",
        POSITIVE_INT,
        "How long an operation of a remote storage is retried after a transient error: no answer, "
        "throttling, a server error.",
        60_000,
    )
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """For the file system. Values are secrets and do not appear in the representation."""

    @classmethod
    def of(cls, given: GivenOptions) -> Self:
        """Take the options out of those given, which note what is wrong."""
        secrets = dict(given.with_prefix(STORAGE_OPTION_PREFIX))
        return super().of(given).with_values(storage_options=secrets)
