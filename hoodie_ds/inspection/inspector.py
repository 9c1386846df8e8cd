"""Queries about a table's state and history, each answered from storage when it is called."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from hoodie_ds.columns.meta_columns import without_meta_columns
from hoodie_ds.environment import SystemClock
from hoodie_ds.errors import CorruptFileError, SchemaError, UnsupportedTableError
from hoodie_ds.filters.given import Filter, predicate_of
from hoodie_ds.filters.predicate import columns_used
from hoodie_ds.filters.rows import matching
from hoodie_ds.index.bucket_index import constant_buckets
from hoodie_ds.inspection.arguments import Moment, instant_time, text
from hoodie_ds.inspection.changes import TableDiff, table_diff
from hoodie_ds.inspection.comparison import Side, compare
from hoodie_ds.inspection.files import TableFiles, table_files
from hoodie_ds.inspection.findings import Finding, Kind
from hoodie_ds.inspection.instants import CommitRow, InstantRow, commit_rows, instant_rows
from hoodie_ds.inspection.keys import KeyEvent, KeyLocation, locate_key, trace_key
from hoodie_ds.inspection.listing import Listing, listed
from hoodie_ds.inspection.overview import Column, TableOverview, columns_of, table_overview
from hoodie_ds.inspection.pending_instants import PendingRow, pending_rows
from hoodie_ds.inspection.report.page import report_html
from hoodie_ds.inspection.schemas import SchemaChange, schema_changes
from hoodie_ds.inspection.source import Source
from hoodie_ds.inspection.sql_query import query_rows
from hoodie_ds.inspection.verify import (
    Verification,
    broken_instants,
    not_to_be_read,
    verify_metadata_table,
    verify_table,
)
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.reader.snapshot import SnapshotQuery
from hoodie_ds.services.context import Progress
from hoodie_ds.table.table import Table, open_table
from hoodie_ds.timeline.paths import HASHING_CONFIGS, INDEX_DEFINITIONS
from hoodie_ds.timeline.timeline import Timeline

_ROWS: Final = 50


@dataclass(frozen=True, slots=True, repr=False)
class Inspector:
    """A table's files, columns and history; changes nothing.

    Parameters
    ----------
    source : Source
        The table.

    Examples
    --------
    >>> inspect = HoodieTable("/tmp/trips").inspect
    >>> inspect.commits(limit=3)
    <Listing commits: 1 rows>
    >>> [column.name for column in inspect.columns()]
    ['uuid', 'city', 'fare', 'note', 'ts']
    """

    source: Source

    def __repr__(self) -> str:
        questions = (name for name in dir(type(self)) if name[0] != "_" and name != "source")
        return f"<Inspector of {self.source.storage.root}: {', '.join(questions)}>"

    def show(self) -> TableOverview:
        """Return the table at a glance; its remarks name what is damaged and hides the rest."""
        return table_overview(*self._opened())

    def timeline(
        self,
        limit: int | None = _ROWS,
        *,
        action: str | None = None,
        state: str | None = None,
        archived: bool = True,
    ) -> Listing[InstantRow]:
        """Return the newest instants, the newest first.

        Parameters
        ----------
        limit : int, optional
            How many; all if None.
        action, state : str, optional
            Only instants of this action, or in this state, in Hudi's words.
        archived : bool
            Whether to go on into the archive.

        Raises
        ------
        OptionError
            There is no such action or state.
        """
        return listed("timeline", self.instants(action, state, archived), limit)

    def instants(
        self, action: str | None = None, state: str | None = None, archived: bool = True
    ) -> Iterator[InstantRow]:
        """Yield the rows of `timeline` one by one."""
        return instant_rows(*self._opened(), action, state, archived)

    def commits(self, limit: int | None = _ROWS, *, archived: bool = True) -> Listing[CommitRow]:
        """Return what the newest completed writes did, the newest first.

        Parameters
        ----------
        limit : int, optional
            How many; all if None.
        archived : bool
            Whether to go on into the archive.
        """
        return listed("commits", self.writes(archived), limit)

    def writes(self, archived: bool = True) -> Iterator[CommitRow]:
        """Yield the rows of `commits` one by one."""
        return commit_rows(*self._opened(), archived)

    def files(self) -> TableFiles:
        """Return partitions and file groups with their sizes, by one listing."""
        return table_files(*self._opened())

    def schema_history(self) -> Listing[SchemaChange]:
        """Return the columns that the table has had, the oldest first."""
        return Listing("schema history", schema_changes(*self._opened()))

    def plans(self) -> Listing[PendingRow]:
        """Return the pending instants, the oldest first."""
        return Listing("pending", tuple(pending_rows(*self._opened())))

    def columns(self) -> Listing[Column]:
        """Return the user's columns of the table."""
        return Listing("columns", columns_of(without_meta_columns(self.schema())))

    def schema(self, at: Moment | None = None) -> pa.Schema:
        """Return the schema of the table, now or at an instant, with the meta columns.

        Parameters
        ----------
        at : str, Instant, WriteResult or Savepoint, optional
            A completed write of the active timeline.
        """
        return self._pinned(at).schema

    def rows(
        self,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
        at: Moment | None = None,
        *,
        meta: bool = True,
    ) -> Iterator[pa.Table]:
        """Yield rows of the table, file group by file group, as it is or was at an instant.

        Parameters
        ----------
        columns : sequence of str, optional
            Columns to return.
        filter : Filter, optional
            Which rows to return, as for `HoodieTable.read`.
        at : str, Instant, WriteResult or Savepoint, optional
            A completed write of the active timeline; now by default.
        meta : bool
            Whether the meta columns are among all columns.

        Raises
        ------
        OptionError
            The filter is refused.
        SchemaError
            A column does not exist, or the filter does not fit the columns.
        TimelineError
            There is no such write, or its files were cleaned.
        """
        pinned = self._pinned(at)
        known = pinned.schema if meta else without_meta_columns(pinned.schema)
        wanted = known.names if columns is None else list(columns)
        for name in wanted:
            if name not in pinned.schema.names:
                raise SchemaError(
                    f"column {name!r} is not in the table; its columns are "
                    f"{', '.join(pinned.schema.names)}"
                )
        predicate = predicate_of(filter, pinned.schema)
        pruner = pinned.pruner(predicate)
        fetched, used = pinned.schema.names, columns_used(predicate)
        if used is not None:
            fetched = [*wanted, *(name for name in fetched if name in used.difference(wanted))]
        reader = pinned.reader()
        for slice_ in pinned.slices(pruner):
            for rows in reader.read(slice_, fetched, pruner=pruner):
                found = matching(rows, predicate).select(wanted)
                if found.num_rows:
                    yield found

    def sql(self, query: str, at: Moment | None = None) -> Iterator[pa.Table]:
        """Yield the rows of a SELECT of DuckDB over the table, which is ``t`` there.

        Only columns that it needs are read, and files that it rules out are not opened. A table
        that it names twice is read twice, as it was at the same instant.

        Parameters
        ----------
        query : str
            Such as ``SELECT city, sum(fare) FROM t GROUP BY city``; meta columns are there, too.
        at : str, Instant, WriteResult or Savepoint, optional
            A completed write of the active timeline; now by default.

        Raises
        ------
        OptionError
            It is not one SELECT, or DuckDB refuses it.
        MissingPackageError
            DuckDB is not installed.
        """
        yield from query_rows(query, SnapshotQuery(self._pinned(at)))

    def _pinned(self, at: Moment | None) -> PinnedTable:
        return self.source.latest() if at is None else self.source.at(instant_time("at", at))

    def locate(self, key: str, partition: str | None = None) -> Listing[KeyLocation]:
        """Return where a record key is.

        Parameters
        ----------
        key : str
            As the column ``_hoodie_record_key`` has it.
        partition : str, optional
            Path of the only partition to look in.

        Raises
        ------
        UnsupportedTableError
            The files of the table have no record keys.
        """
        pinned = self.source.latest()
        buckets = self.source.buckets(pinned)
        found = locate_key(pinned, text("key", key), partition, buckets)
        return Listing(f"key {key}", tuple(found))

    def trace(self, key: str) -> Listing[KeyEvent]:
        """Return the history of a record key, the oldest step first.

        Parameters
        ----------
        key : str
            As the column ``_hoodie_record_key`` has it.

        Raises
        ------
        UnsupportedTableError
            The files of the table have no record keys.
        """
        pinned = self.source.latest()
        buckets = constant_buckets(pinned.table.properties, pinned.table.storage, pinned.timeline)
        return Listing(f"key {key}", tuple(trace_key(pinned, text("key", key), buckets)))

    def diff(self, before: Moment, after: Moment | None = None) -> TableDiff:
        """Return the rows that differ between two instants.

        Parameters
        ----------
        before, after : str, Instant, WriteResult or Savepoint
            Completed writes of the active timeline; the newest if `after` is None.

        Raises
        ------
        TimelineError
            There is no such write, or its files were cleaned.
        UnsupportedTableError
            The files of the table have no record keys.
        """
        first = instant_time("before", before)
        if after is None:
            return table_diff(self.source.at(first), self.source.latest(), (first, "now"))
        last = instant_time("after", after)
        return table_diff(self.source.at(first), self.source.at(last), (first, last))

    def verify(self, progress: Progress | None = None) -> Verification:
        """Check every promise of the table at rest.

        Parameters
        ----------
        progress : callable, optional
            Called with the bytes checked so far, and those of all files.

        Returns
        -------
        Verification
            The findings; true if no promise is broken.
        """
        try:
            pinned = self.source.latest()
        except CorruptFileError:  # the newest commit has the schema, too
            if (broken := broken_instants(*self._opened())) is None:
                raise
            return broken
        except UnsupportedTableError:
            if (refused := not_to_be_read(*self._opened())) is None:
                raise
            return refused
        buckets, found = None, []
        try:
            buckets = self.source.buckets(pinned)
        except CorruptFileError as error:
            found.append(Finding.of(Kind.DAMAGED_FILE, HASHING_CONFIGS, error))
        is_global = False
        try:
            is_global = self.source.keys_are_global(pinned)
        except CorruptFileError as error:
            found.append(Finding.of(Kind.DAMAGED_FILE, INDEX_DEFINITIONS, error))
        return verify_table(pinned, buckets, progress, keys_are_global=is_global, known=found)

    def verify_metadata_table(self) -> Verification:
        """Compare the metadata table with timeline, folders and files, entry by entry.

        `verify` does that too; here no rows are compared with one another.

        Returns
        -------
        Verification
            The findings; true if there are none, as without a metadata table.
        """
        return verify_metadata_table(self.source.latest())

    def report(self, *, verify: bool = True, progress: Progress | None = None) -> str:
        """Return a page about the table, in HTML that loads nothing else.

        Parameters
        ----------
        verify : bool
            Whether to check the table, which reads all of it, and show the findings.
        progress : callable, optional
            See `verify`.

        Examples
        --------
        >>> page = HoodieTable("/tmp/trips").inspect.report()
        >>> size = Path("/tmp/trips.html").write_text(page, "utf-8")
        """
        found = self.verify(progress) if verify else None
        return report_html(*self._opened(), found, SystemClock().now_ms())

    def compare(self, other: Side, limit: int = _ROWS) -> TableDiff:
        """Return how the rows of the table differ from other rows, by its record key.

        Parameters
        ----------
        other : Side
            The rows that are expected.
        limit : int
            How many rows of either side are fetched; all that differ are counted.

        Raises
        ------
        SchemaError
            The other rows lack a column of the record key.
        """
        keys = self.source.latest().table.properties.record_key_fields
        return compare(other, self.as_side(), keys, limit)

    def as_side(self) -> Side:
        """Return the table's rows as one side of a comparison."""
        schema = without_meta_columns(self.schema())
        return Side(self.source.storage.root, schema, lambda: self.rows(meta=False))

    def _opened(self) -> tuple[Table, Timeline]:
        table = open_table(self.source.storage)
        table.properties.check_version()
        return table, table.load_timeline()
