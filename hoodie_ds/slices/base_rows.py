"""The rows of a slice's base file that count, in pieces of the size that merging needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.arrow_columns import Mask, Numbers, one_chunk
from hoodie_ds.columns.meta_columns import COMMIT_TIME, RECORD_KEY
from hoodie_ds.formats.parquet.base_file_reader import BaseFileReader
from hoodie_ds.record.merge.merger import matching
from hoodie_ds.slices.key_groups import row_groups_with

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

    def stays(
        self, columns: Sequence[str], keys: pa.ChunkedArray, keep: Callable[[pa.Table], Mask]
    ) -> Iterator[Mask]:
        """Yield which of the rows that count stay, in order, where only rows with some keys may go.

        `keep` decides of rows with `columns`. Row groups without such keys, as the file's footer
        shows, are not read.
        """
        reader = self.reader
        for may_go, run in self._runs(keys):
            if may_go or self.only_commits is not None:
                yield from map(keep, replace(self, row_groups=run).large_pieces(columns))
            elif reader is not None:
                yield np.ones(sum(map(reader.rows_in, run)), dtype=np.bool_)

    def merged(
        self,
        columns: Sequence[str],
        compared: Sequence[str],
        keys: pa.ChunkedArray,
        keep: Callable[[pa.Table], Mask],
    ) -> Iterator[tuple[pa.Table, Mask]]:
        """Yield the rows that count, and which of them stay, as `stays` does.

        They have the columns `compared` where there may be rows with the keys, `columns` elsewhere.
        """
        for may_go, run in self._runs(keys):
            for rows in replace(self, row_groups=run).pieces(compared if may_go else columns):
                yield rows, keep(rows) if may_go else np.ones(rows.num_rows, dtype=np.bool_)

    def _runs(self, keys: pa.ChunkedArray) -> Iterator[tuple[bool, list[int]]]:
        """Row groups that follow one another, and whether they may have rows with some keys."""
        if self.reader is None:
            return
        numbers = self.row_groups
        numbers = range(self.reader.num_row_groups) if numbers is None else numbers
        found = row_groups_with(self.reader, keys, numbers)
        for may_go, run in groupby(numbers, found.__contains__):
            yield may_go, [*run]

    def positions(self, keys: pa.ChunkedArray) -> Numbers:
        """Return the position of each key in the file, -1 of one that is in no row or in several.

        Only row groups are read that may have some of the keys.
        """
        positions, counts = np.full(len(keys), -1), np.zeros(len(keys), np.int64)
        reader, wanted, start = self.reader, one_chunk(keys), 0
        if reader is None:
            return positions
        groups = range(reader.num_row_groups)
        found_in = row_groups_with(reader, keys, groups)
        for number in groups:
            if number in found_in:
                at = start
                for rows in reader.pieces([RECORD_KEY], [number]):
                    found, which = matching(rows, wanted)
                    positions[which] = at + found
                    counts += np.bincount(which, minlength=len(counts))
                    at += rows.num_rows
            start += reader.rows_in(number)
        positions[counts != 1] = -1
        return positions

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
