"""The rows of a slice's base file that count, in pieces of the size that merging needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.arrow_columns import Mask
from hoodie_ds.columns.meta_columns import COMMIT_TIME
from hoodie_ds.formats.parquet.base_file_reader import BaseFileReader

_AHEAD_ROWS: Final = 1 << 20
"""Rows of a base file whose keys are compared at a time."""


@dataclass(frozen=True, slots=True)
class BaseRows:
    """The base file of a slice, if it has one; the row groups and commits that count."""

    reader: BaseFileReader | None
    row_groups: Sequence[int] | None
    only_commits: tuple[str, ...] | None

    def pieces(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield the rows that count piece by piece, in order."""
        if self.reader is None:
            return
        if self.only_commits is None:
            yield from self.reader.pieces(list(columns), self.row_groups)
            return
        times = pa.array(self.only_commits, pa.string())
        fetched = list(dict.fromkeys([*columns, COMMIT_TIME]))
        for rows in self.reader.pieces(fetched, self.row_groups):
            counted = pc.is_in(rows.column(COMMIT_TIME), value_set=times)
            yield rows.filter(counted).select(list(columns))

    def staying(self, columns: Sequence[str], stays: Mask) -> Iterator[pa.Table]:
        """Yield the rows that stay, by the rows of the whole file; nothing else is read."""
        if self.reader is None:
            return
        ends = np.cumsum([0, *map(self.reader.rows_in, range(self.reader.num_row_groups))])
        for number in range(len(ends) - 1) if self.row_groups is None else self.row_groups:
            start, end = ends[number : number + 2]
            if not stays[start:end].any():
                continue
            for rows in self.reader.pieces(list(columns), [number]):
                keep = stays[start : start + rows.num_rows]
                start += rows.num_rows
                yield rows if keep.all() else rows.filter(pa.array(keep))

    def large_pieces(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield the same rows in pieces of about `_AHEAD_ROWS`."""
        held: list[pa.Table] = []
        for rows in self.pieces(columns):
            held.append(rows)
            if sum(part.num_rows for part in held) >= _AHEAD_ROWS:
                yield pa.concat_tables(held)
                held = []
        if held:
            yield pa.concat_tables(held)
