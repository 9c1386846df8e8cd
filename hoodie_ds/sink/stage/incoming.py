"""The rows that a batch has for one file group, of which merging holds no more than it compares.

A file group's rows may be more than a task may hold, which is why some were set aside. Which of
them survive depends on keys, ordering fields and delete marks alone, so those columns are merged;
the survivors then pass through memory piece by piece.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from hoodie_ds.columns.arrow_columns import Numbers
from hoodie_ds.columns.meta_columns import IS_DELETED, RECORD_KEY, ROW_OPERATION
from hoodie_ds.record.merge.merger import RecordSet
from hoodie_ds.sink.messages import StagedRows
from hoodie_ds.sink.records import split, to_records
from hoodie_ds.sink.stage.staging import read_part
from hoodie_ds.sink.write_plan import WritePlan

POSITION: Final = "_hoodie_ds_position"
"""Column that says where a compared row is among all of them."""


class Incoming:
    """Rows of one file group, in order of arrival.

    Parameters
    ----------
    plan : WritePlan
        The write.
    parts : sequence of StagedRows and pyarrow.Table
        Rows set aside, and rows in memory: user columns and ``_hoodie_record_key``.
    """

    def __init__(self, plan: WritePlan, parts: Sequence[StagedRows | pa.Table]) -> None:
        self._plan = plan
        self._storage = plan.table.storage
        self._parts = list(parts) or [_no_rows(plan)]
        self._in_memory = plan.merger.needs_complete_rows
        self._num_rows = 0

    def records(self, also: Collection[str] = ()) -> RecordSet:
        """Return the rows as records, complete only where merging needs all columns.

        Parameters
        ----------
        also : collection of str
            Columns that the caller needs beside those that merging compares.
        """
        if self._in_memory:
            return to_records(self._plan, pa.concat_tables(self._pieces(None)))
        fields = {path.partition(".")[0] for path in self._plan.ordering_fields}
        names = self._plan.schema.names
        marker = self._plan.table.properties.delete_marker
        wanted = {
            RECORD_KEY,
            IS_DELETED,
            ROW_OPERATION,
            *(marker[:1] if marker else ()),
            *also,
            *fields,
            *(set(self._plan.ordering_fields) & set(names)),
        }
        rows = pa.concat_tables(self._pieces(wanted))
        self._num_rows = rows.num_rows
        position = pa.array(np.arange(rows.num_rows))
        return to_records(self._plan, rows.append_column(POSITION, position))

    def complete_rows(self, chosen: pa.Table) -> Iterator[pa.Table]:
        """Yield the complete rows of some of the records, and forget them all.

        Parameters
        ----------
        chosen : pyarrow.Table
            Rows of what `records` gave, or of what became of it.
        """
        if self._in_memory:
            self._parts.clear()
            yield chosen
            return
        wanted = np.zeros(self._num_rows, dtype=np.bool_)
        wanted[chosen.column(POSITION).to_numpy()] = True
        start = 0
        while self._parts:
            for rows in read_part(self._storage, self._parts.pop(0), None):
                here = wanted[start : start + rows.num_rows]
                start += rows.num_rows
                yield rows if here.all() else rows.filter(pa.array(here))

    def parted(
        self, placed: Sequence[tuple[Numbers, Numbers]], piece_bytes: int
    ) -> Iterator[tuple[int, pa.Table]]:
        """Yield rows parted by a number for each, piece by piece, and forget them.

        Parameters
        ----------
        placed : sequence of tuple of numpy.ndarray and numpy.ndarray
            Positions of rows (int64), ascending, and a number (int64) for each. Rows that have
            several numbers are named several times.
        piece_bytes : int
            Size of the pieces.
        """
        start = 0
        while self._parts:
            for rows in read_part(self._storage, self._parts.pop(0), None):
                step = max(1, rows.num_rows * piece_bytes // max(1, rows.nbytes))
                for first in range(0, rows.num_rows, step):
                    piece = rows.slice(first, step)
                    for at, codes in placed:
                        low, high = np.searchsorted(at, [start, start + piece.num_rows])
                        some = piece.take(pa.array(at[low:high] - start))
                        yield from split(some, codes[low:high])
                    start += piece.num_rows

    def _pieces(self, wanted: set[str] | None) -> Iterator[pa.Table]:
        for part in self._parts:
            yield from read_part(self._storage, part, wanted)


def _no_rows(plan: WritePlan) -> pa.Table:
    keyed = plan.schema.append(pa.field(RECORD_KEY, pa.string()))
    return keyed.empty_table()
