"""What a write does that finds its rows by a filter, and not by their keys."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

from hoodie_ds.filters.predicate import Predicate
from hoodie_ds.filters.rows import to_arrow


@dataclass(frozen=True, slots=True)
class RowChange:
    """Deletes the rows of a table that match a filter."""

    where: Predicate

    @property
    def statement(self) -> bytes:
        """The change itself, by which a repeated one is recognised: its rows are gone by then."""
        return pickle.dumps(to_arrow(self.where))
