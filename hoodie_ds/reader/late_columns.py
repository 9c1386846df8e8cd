"""Records of log files that may not fit in memory: compared columns are read first.

The other columns are read later, for the records that are rows of the result only, block by block
(late materialisation: Abadi et al., "Materialization Strategies in a Column-Oriented DBMS", 2007).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import pyarrow as pa

from hoodie_ds.errors import TimelineError
from hoodie_ds.reader.log_reader import BlockRecords
from hoodie_ds.record.merge.merger import RecordSet

_PLACE: Final = "_hoodie_py_place"
_ROW_BITS: Final = 32


@dataclass(frozen=True)
class Places:
    """Places of records: in which block of which log file, and which of its records."""

    _numbers: dict[tuple[str, int], int] = field(default_factory=dict)

    def marked(self, block: BlockRecords) -> RecordSet:
        """Return the records of a block with a column of their places."""
        number = self._numbers.setdefault((block.log.path, block.number), len(self._numbers))
        first = number << _ROW_BITS
        places = pa.array(np.arange(first, first + block.records.num_rows, dtype=np.int64))
        return replace(block.records, rows=block.records.rows.append_column(_PLACE, places))

    def rows(self, blocks: Iterable[BlockRecords], chosen: pa.Table) -> Iterator[pa.Table]:
        """Yield rows with all of their columns, those of a block at a time.

        `blocks` are those of the same log files, read again, and `chosen` rows of `marked` records.
        Raises `TimelineError` if a block is gone since.
        """
        places = np.sort(chosen.column(_PLACE).to_numpy())
        left = len(places)
        for block in blocks:
            number = self._numbers.get((block.log.path, block.number))
            if number is None:
                continue
            ends = [number << _ROW_BITS, (number << _ROW_BITS) + block.records.num_rows]
            start, end = np.searchsorted(places, ends)
            left -= int(end - start)
            rows = block.records.rows
            if end - start < rows.num_rows:
                rows = rows.take(pa.array(places[start:end] - ends[0]))
            yield rows
        if left:
            raise TimelineError(
                f"{left} rows of the log files are gone that were there a moment ago: a rollback, "
                "a restore or a clean came in between; read the table again"
            )
