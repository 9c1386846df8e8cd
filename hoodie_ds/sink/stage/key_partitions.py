"""Stages rows by partitions of their keys, so that few keys at a time are compared later.

A key partition is a function of the key alone: all rows of a key, of whatever task, are in the same
one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa

from hoodie_ds.columns.java_hash import string_hashes
from hoodie_ds.columns.meta_columns import RECORD_KEY
from hoodie_ds.handles.context import WriteContext
from hoodie_ds.sink.messages import StagedRows
from hoodie_ds.sink.records import split
from hoodie_ds.sink.stage.staging import stage
from hoodie_ds.table.file_slice import FileGroupId

UNLOCATED: Final = FileGroupId("", "unplaced")
"""The file group of rows without location."""

_PARTITION_BITS: Final = 4
_KNUTH: Final = np.uint32(2654435769)
"""Spreads similar hashes, as those of one task's keys are, over the upper bits."""


def stage_by_key_partition(context: WriteContext, rows: pa.Table, sequence: int) -> StagedRows:
    """Stage rows without location, one record batch for each key partition."""
    hashes = string_hashes(rows.column(RECORD_KEY)) * _KNUTH
    parts = dict(split(rows, (hashes >> np.uint32(32 - _PARTITION_BITS)).astype(np.int64)))
    ordered = pa.concat_tables([part.combine_chunks() for part in parts.values()])
    staged = stage(context, UNLOCATED, ordered, sequence)
    return replace(staged, nbytes=rows.nbytes, key_partitions=tuple(parts))


def by_key_partitions(parts: Sequence[StagedRows], max_bytes: int) -> Iterator[list[StagedRows]]:
    """Yield the rows in as many groups of key partitions as keep each below `max_bytes`.

    There are at most as many groups as key partitions. Few keys leave key partitions without a row:
    no group is empty, nor any part of one.
    """
    wanted = -(-sum(part.nbytes for part in parts) // max_bytes)
    count = 1 << min(_PARTITION_BITS, max(0, wanted - 1).bit_length())
    for number in range(count):
        chosen = [
            (part, tuple(n for n, k in enumerate(part.key_partitions) if k % count == number))
            for part in parts
        ]
        group = [replace(part, batches=batches) for part, batches in chosen if batches]
        if group:
            yield group
