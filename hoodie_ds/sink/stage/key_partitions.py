"""Rows set aside by shares of their keys, so that few keys at a time are compared later.

A share is a function of the key alone: all rows of a key, of whatever task, are in the same one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa

from hoodie_ds.handles.context import WriteContext
from hoodie_ds.index.java_hash import string_hashes
from hoodie_ds.meta_columns import RECORD_KEY
from hoodie_ds.sink.messages import StagedRows
from hoodie_ds.sink.records import split
from hoodie_ds.sink.stage.staging import stage
from hoodie_ds.table.file_slice import FileGroupId

UNPLACED: Final = FileGroupId("", "unplaced")
"""Stands for the file groups of rows that are yet to be placed."""

_SHARE_BITS: Final = 4
_KNUTH: Final = np.uint32(2654435769)
"""Spreads hashes that are alike, as those of one task's keys are, over the upper bits."""


def stage_by_share(context: WriteContext, rows: pa.Table, sequence: int) -> StagedRows:
    """Stage rows that are yet to be placed, one record batch for each share; see `stage`."""
    hashes = string_hashes(rows.column(RECORD_KEY)) * _KNUTH
    parts = dict(split(rows, (hashes >> np.uint32(32 - _SHARE_BITS)).astype(np.int64)))
    ordered = pa.concat_tables([part.combine_chunks() for part in parts.values()])
    staged = stage(context, UNPLACED, ordered, sequence)
    return replace(staged, nbytes=rows.nbytes, shares=tuple(parts))


def by_shares(parts: Sequence[StagedRows], max_bytes: int) -> Iterator[list[StagedRows]]:
    """Yield the rows in as many groups of shares as are needed for each to be that small.

    Parameters
    ----------
    parts : sequence of StagedRows
        Of `stage_by_share`, in order of arrival.
    max_bytes : int
        Size of a group, as far as there are shares enough.
    """
    wanted = -(-sum(part.nbytes for part in parts) // max_bytes)
    count = 1 << min(_SHARE_BITS, max(0, wanted - 1).bit_length())
    for number in range(count):
        yield [
            replace(
                part, batches=tuple(n for n, s in enumerate(part.shares) if s % count == number)
            )
            for part in parts
        ]
