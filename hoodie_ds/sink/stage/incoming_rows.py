"""The rows of a batch for one file group; merging holds only the columns that it compares.

A file group's rows may exceed a task's memory, which is why some were staged. Only keys, ordering
fields and delete marks decide which of them survive, so those columns are merged; the surviving
rows then pass through memory piece by piece.
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
"""Column: the position of a compared row among all rows."""


class Incoming:
    """Staged rows and rows in memory of one file group, in order of arrival."""

    def __init__(self, plan: WritePlan, parts: Sequence[StagedRows | pa.Table]) -> None:
        self._plan = plan
        self._storage = plan.table.storage
        self._parts = list(parts) or [_no_rows(plan)]
        self._in_memory = plan.merger.needs_complete_rows
        self._num_rows = 0

    def records(self, also: Collection[str] = ()) -> RecordSet:
        """Return the rows as records, complete only if merging needs all columns.

        `also` names further columns that the caller needs.
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
        """Yield the complete rows of some of the `records`, and release them all."""
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
        """Yield rows split by number, in pieces of `piece_bytes`, and release them.

        `placed` has pairs of ascending row positions and their numbers (int64). Rows with several
        numbers are in several pairs.
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
