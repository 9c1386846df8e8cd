"""Which query a read asks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import pyarrow as pa

from hoodie_ds.config.enums import IncrementalFormat, QueryType
from hoodie_ds.config.read_options import ReadOptions
from hoodie_ds.filters.predicate import ALL, Predicate
from hoodie_ds.reader.changes import changes
from hoodie_ds.reader.incremental import incremental
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.reader.scan_plan import ScanPlan
from hoodie_ds.reader.snapshot import SnapshotQuery
from hoodie_ds.reader.time_travel import travel
from hoodie_ds.storage.protocol import Storage


class Query(Protocol):
    """A query of a table as it was when the query was opened."""

    @property
    def schema(self) -> pa.Schema:
        """Columns of the rows."""
        ...

    def plan(self, predicate: Predicate = ALL) -> ScanPlan:
        """Return what to read; rows that a predicate rules out need not come, but may."""
        ...


def open_query(
    storage: Storage,
    options: ReadOptions,
    merge_hook: str | Callable[..., object] | None = None,
) -> Query:
    """Open the query of some options, with a merge hook in place of theirs.

    Raises as `PinnedTable.latest`, and `TimelineError` if the table cannot be read as of the
    requested moment.
    """
    hook = merge_hook or options.merge_hook
    metadata = options.metadata_enable is not False
    pinned = PinnedTable.latest(storage, hook, options.verify_checksums, metadata)
    if options.incremental is not None:
        if options.incremental.format is IncrementalFormat.CDC:
            return changes(pinned, options.incremental)
        return incremental(pinned, options.incremental)
    if options.as_of is not None:
        pinned = travel(pinned, options.as_of)
    return SnapshotQuery(pinned, options.query_type is QueryType.READ_OPTIMIZED)
