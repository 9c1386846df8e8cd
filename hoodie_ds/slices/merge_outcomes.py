"""What merging a file slice came to, kept for later queries of the same process.

Which rows of a base file stay, and which records of its log files are rows, depends on the slice
and the merge rule, not on the columns or the filter of a query. With both known, a query reads no
record keys: it reads its own columns, of base rows that stay and of records by their places.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hoodie_ds.columns.arrow_columns import Mask
from hoodie_ds.environment import forget_at_fork
from hoodie_ds.storage.protocol import Storage

_TABLES: Final = 8
_HELD_BYTES: Final = 32 << 20
"""Memory that the outcomes of one table may take."""
_ENTRY_BYTES: Final = 2_000

BlockId: TypeAlias = tuple[str, int]
"""The path of a log file, and the number of a block among all of its blocks."""
Positions: TypeAlias = Mapping[BlockId, npt.NDArray[np.int32]]
"""Positions of records in their blocks, ascending."""


@dataclass(frozen=True, slots=True)
class MergeOutcome:
    """The rows of a slice by their positions."""

    packed: npt.NDArray[np.uint8]  # a bit for each row of the base file: whether it stays
    num_rows: int  # of the base file
    records: Positions

    @classmethod
    def of(cls, staying: Sequence[Mask], records: Positions) -> MergeOutcome:
        """Return an outcome; `staying` is by rows of the base file, piece by piece."""
        stays = np.concatenate([np.zeros(0, np.bool_), *staying])
        return cls(np.packbits(stays), len(stays), records)

    def staying(self) -> Mask:
        """Return which rows of the base file stay, in the order of the file."""
        return np.unpackbits(self.packed, count=self.num_rows).view(np.bool_)

    @property
    def num_live(self) -> int:
        """The number of rows of the slice."""
        return int(self.staying().sum()) + sum(map(len, self.records.values()))

    @property
    def nbytes(self) -> int:
        """About how much memory it takes."""
        return _ENTRY_BYTES + self.packed.nbytes + sum(p.nbytes for p in self.records.values())


class MergeOutcomes:
    """The outcomes of the slices of one table that were used last."""

    def __init__(self) -> None:
        self._found: OrderedDict[Hashable, MergeOutcome] = OrderedDict()
        self._held_bytes = 0
        self._lock = Lock()

    def get(self, key: Hashable) -> MergeOutcome | None:
        """Return an outcome; None if it is not known."""
        with self._lock:
            found = self._found.get(key)
            if found is not None:
                self._found.move_to_end(key)
            return found

    def put(self, key: Hashable, outcome: MergeOutcome) -> None:
        """Keep an outcome, in place of those that were not used for longest."""
        with self._lock:
            if key in self._found:
                return
            self._found[key] = outcome
            self._held_bytes += outcome.nbytes
            while self._held_bytes > _HELD_BYTES:
                _, dropped = self._found.popitem(last=False)
                self._held_bytes -= dropped.nbytes


@lru_cache(maxsize=_TABLES)
def merge_outcomes(storage: Storage) -> MergeOutcomes:
    """Return the outcomes of a table that this process keeps."""
    return MergeOutcomes()


forget_at_fork(merge_outcomes.cache_clear)
