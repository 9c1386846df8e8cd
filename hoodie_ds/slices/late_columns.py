"""Records of log files that may not fit in memory: compared columns are read first.

The other columns are read later, for the records that are rows of the result only, block by block
(late materialisation: Abadi et al., "Materialization Strategies in a Column-Oriented DBMS", 2007).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import pyarrow as pa

from hoodie_ds.errors import TimelineError
from hoodie_ds.record.merge.merger import RecordSet
from hoodie_ds.slices.log_reader import BlockRecords
from hoodie_ds.slices.merge_outcomes import BlockId, Positions

_PLACE: Final = "_hoodie_py_place"
_ROW_BITS: Final = 32


@dataclass(frozen=True)
class Places:
    """Places of records: in which block of which log file, and which of its records.

    Rows of `hidden` blocks only hide others: they were read without all of their columns.
    """

    hidden: set[BlockId] = field(default_factory=set)
    _numbers: dict[BlockId, int] = field(default_factory=dict)

    def marked(self, block: BlockRecords) -> RecordSet:
        """Return the records of a block with a column of their places."""
        number = self._numbers.setdefault((block.log.path, block.number), len(self._numbers))
        first = number << _ROW_BITS
        places = pa.array(np.arange(first, first + block.records.num_rows, dtype=np.int64))
        return replace(block.records, rows=block.records.rows.append_column(_PLACE, places))

    def of(self, chosen: pa.Table) -> Positions:
        """Return the places of rows of `marked` records, by block."""
        places = np.sort(chosen.column(_PLACE).to_numpy())
        found = {}
        for block, number in self._numbers.items():
            start, end = np.searchsorted(places, [number << _ROW_BITS, (number + 1) << _ROW_BITS])
            if start < end:
                found[block] = (places[start:end] - (number << _ROW_BITS)).astype(np.int32)
        return found

    def shown(self, rows: pa.Table) -> pa.Table:
        """Return those of `marked` rows that are of no hidden block."""
        numbers = [number for block, number in self._numbers.items() if block in self.hidden]
        if not numbers:
            return rows
        of_rows = rows.column(_PLACE).to_numpy() >> _ROW_BITS
        return rows.filter(pa.array(~np.isin(of_rows, numbers)))


def rows_at(
    blocks: Iterable[BlockRecords], places: Positions, skipped: Collection[BlockId] = ()
) -> Iterator[pa.Table]:
    """Yield the rows at some places of log files, those of a block at a time.

    Raises `TimelineError` if a block is gone since its places were found, unless it was skipped.
    """
    left = set(places)
    for block in blocks:
        at = places.get((block.log.path, block.number))
        if at is None:
            continue
        left.remove((block.log.path, block.number))
        rows = block.records.rows
        yield rows if len(at) == rows.num_rows else rows.take(pa.array(at))
    left.difference_update(skipped)
    if left:
        raise TimelineError(
            f"{sum(len(places[block]) for block in left)} rows of the log files are gone that were "
            "there a moment ago: a rollback, a restore or a clean came in between; read the table "
            "again"
        )
