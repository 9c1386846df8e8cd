"""Where rows of a batch go, and what decides it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from hoodie_ds.sink.assignment import Numbers
from hoodie_ds.table.file_slice import FileGroupId, FileSlice


@dataclass(frozen=True, slots=True)
class Target:
    """A file group that rows belong to.

    Parameters
    ----------
    group : FileGroupId
        The file group; its file id is empty for rows that begin groups of their own.
    latest : FileSlice or None
        Its latest slice; None for a new group.
    """

    group: FileGroupId
    latest: FileSlice | None

    @property
    def begins_groups(self) -> bool:
        """Whether the rows are inserts that new file groups are to be made for."""
        return not self.group.file_id


class Router(Protocol):
    """Decides where rows go (RFC-24's bucket assigner)."""

    def route(
        self, rows: pa.Table, places: Numbers | None = None
    ) -> Iterator[tuple[Target, pa.Table]]:
        """Part rows of the table's user columns by target, keeping their order within each.

        The parts have ``_hoodie_record_key`` too. `places` is what an assigner found out before.
        """
        ...
