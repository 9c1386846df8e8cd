"""The options of a write that concern the sizes of base files, one `Option` each."""

from __future__ import annotations

import re
from typing import Final

from hoodie_ds.config.option import BYTES, MEGABYTES, POSITIVE_INT, Kind, Option

_MB: Final = 1 << 20


def _limit(text: str) -> int | None:
    return 0 if re.fullmatch(r"-?0+|-[0-9]{1,19}", text) else BYTES.parse(text)


def _factor(text: str) -> float | None:
    return float(text) if re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,9})?", text) else None


PARQUET_MAX_FILE_BYTES: Final = Option(
    "hoodie.parquet.max.file.size",
    BYTES,
    "Size at which inserts begin the next base file, unless buckets say where they go.",
    120 * _MB,
    aliases=("write.parquet.max.file.size",),
    flink_kind=MEGABYTES,
)
SMALL_FILE_BYTES: Final = Option(
    "hoodie.parquet.small.file.limit",
    Kind(f"{BYTES.allowed}, or 0 to begin new files always", _limit),
    "Base files below this size are filled with inserts first; 100 MB with an index that looks "
    "keys up, 0 without record keys, unused with buckets.",
)
RECORD_BYTES_ESTIMATE: Final = Option(
    "hoodie.copyonwrite.record.size.estimate",
    POSITIVE_INT,
    "Bytes of a stored record, until a commit is large enough to tell.",
    1024,
)
RECORD_SIZE_THRESHOLD: Final = Option(
    "hoodie.record.size.estimation.threshold",
    Kind("a number, 0 or more", _factor),
    "A commit tells the size of a record if it wrote more than so many small file limits.",
    1.0,
)
SMALL_FILE_CANDIDATES: Final = Option(
    "hoodie.merge.small.file.group.candidates.limit",
    POSITIVE_INT,
    "Small files of a merge-on-read partition that a task fills in one batch.",
    1,
)

SMALL_FILE_OPTIONS: Final[tuple[Option[object], ...]] = (
    PARQUET_MAX_FILE_BYTES,
    SMALL_FILE_BYTES,
    RECORD_BYTES_ESTIMATE,
    RECORD_SIZE_THRESHOLD,
    SMALL_FILE_CANDIDATES,
)
"""Every option of this module, in the order of the option table."""
