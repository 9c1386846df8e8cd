"""How `HoodieTable` is read: queries of its rows as they are, as they were, and of what changed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.arguments import Moment, instant_time
from hoodie_ds.config.enums import IncrementalFormat, QueryType
from hoodie_ds.config.options.read import AS_OF, BEGIN, END, INCREMENTAL_FORMAT, QUERY_TYPE
from hoodie_ds.reader.query import Query
from hoodie_ds.reader.scanner import Scanner
from hoodie_ds.timeline.timeline import Timeline

_NAMES_OF_OTHERS: Final = {
    "alias": "upsert(rows) merges rows by key",
    "append": "insert(rows) adds rows, upsert(rows) merges them by key",
    "create_checkpoint": "none is needed; archive() shortens the timeline",
    "current_snapshot": "timeline.completed has the commits",
    "drop": "delete(rows) takes keys, delete_partitions(paths) partitions; the table is its folder",
    "files": "inspect.files() has partitions and file groups with their files",
    "file_uris": "inspect.files() has partitions and file groups with their files",
    "get_add_actions": "inspect.files() has partitions and file groups with their files",
    "history": "inspect.commits() has what each commit did",
    "load_as_version": "read(as_of=...) reads an earlier moment",
    "merge": "upsert(rows) merges rows by key",
    "metadata": "properties and inspect.show() have it",
    "optimize": "compact() merges log files, cluster() rewrites small files",
    "partitions": "inspect.files().partitions has them with their sizes",
    "refs": "savepoint() keeps a commit; timeline.savepoints has them",
    "snapshots": "timeline.completed has the commits",
    "to_arrow": "read() returns an Arrow table",
    "to_polars": "polars.DataFrame(table) takes it",
    "to_pyarrow_dataset": "scan() streams rows, with columns and a filter",
    "to_pyarrow_table": "read() returns an Arrow table",
    "update": "upsert(rows) merges rows by key",
    "vacuum": "clean() deletes old files",
    "version": "timeline.completed has the commits",
}
"""What users of other libraries type, and what does it here."""


class TableReads(ABC):
    """Methods of a table that return rows."""

    if not TYPE_CHECKING:  # which is to know every name

        def __getattr__(self, name: str) -> Any:  # noqa: ANN401
            """Say what a name that another library has for it is called here."""
            error = f"{type(self).__name__!r} object has no attribute {name!r}"
            hint = _NAMES_OF_OTHERS.get(name)
            raise AttributeError(f"{error}; {hint}" if hint else error, name=name, obj=self)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the latest rows as a stream of Arrow's C data interface, as `scan` does."""
        return self.scan().__arrow_c_stream__(requested_schema)

    def count(self, filter: pc.Expression | None = None) -> int:
        """Return the number of latest rows, reading few columns.

        Parameters
        ----------
        filter : pyarrow.compute.Expression, optional
            Which rows count.
        """
        return self.scan(filter=filter).count_rows()

    def head(self, n: int = 5, columns: str | Iterable[str] | None = None) -> pa.Table:
        """Return a few of the latest rows, whichever are read first.

        Parameters
        ----------
        n : int
            How many at most.
        columns : str or iterable of str, optional
            As of `read`.
        """
        scanner, found, rows = self.scan(columns), list[pa.RecordBatch](), 0
        for batch in scanner.to_batches():
            found.append(batch)
            rows += batch.num_rows
            if rows >= n:
                break
        return pa.Table.from_batches(found, scanner.schema).slice(0, max(n, 0))

    def to_pandas(
        self,
        columns: str | Iterable[str] | None = None,
        filter: pc.Expression | None = None,
        as_of: Moment | None = None,
    ) -> Any:  # noqa: ANN401
        """Return the rows of `read` as a pandas DataFrame."""
        return self.read(columns, filter, as_of).to_pandas()

    def read(
        self,
        columns: str | Iterable[str] | None = None,
        filter: pc.Expression | None = None,
        as_of: Moment | None = None,
    ) -> pa.Table:
        """Return the latest rows, or those of an earlier moment.

        Parameters
        ----------
        columns : str or iterable of str, optional
            Columns to return; all, the five ``_hoodie_*`` columns first, if None.
        filter : pyarrow.compute.Expression, optional
            Which rows to return.
        as_of : str, Instant, WriteResult or Savepoint, optional
            Instant time, or date, up to which commits count by the time at which they were begun
            (``as.of.instant``).

        Raises
        ------
        SchemaError
            A column does not exist, or the filter does not fit the columns.
        TimelineError
            What the table was at that moment has been cleaned or archived, or a commit before it
            is incomplete.
        """
        return self.scan(columns, filter, as_of).to_table()

    def scan(
        self,
        columns: str | Iterable[str] | None = None,
        filter: pc.Expression | None = None,
        as_of: Moment | None = None,
    ) -> Scanner:
        """Return the table as it is now, to be read batch by batch, or by another library.

        Partitions, files and row groups that the filter rules out are not opened or read, as far
        as partition paths, buckets and the files' own statistics tell.

        Parameters
        ----------
        columns, filter, as_of
            As of `read`.

        Raises
        ------
        SchemaError
            A column does not exist, or the filter does not fit the columns.
        TimelineError
            See `read`.
        """
        time = None if as_of is None else instant_time("as_of", as_of)
        return Scanner(self._query({AS_OF.key: time}), columns, filter)

    def read_incremental(
        self,
        begin: Moment,
        end: Moment | None = None,
        columns: str | Iterable[str] | None = None,
        filter: pc.Expression | None = None,
    ) -> pa.Table:
        """Return the rows that commits of a range wrote, as they are at its end.

        Deletes do not show.

        Parameters
        ----------
        begin : str, Instant, WriteResult or Savepoint
            A commit, or as text an instant time or date, after which commits count; ``000`` for all
            of them. Of a table of version 6 the times at which they were begun count, of later
            ones those at which they were completed.
        end : str, Instant, WriteResult or Savepoint, optional
            The same of the last ones that count; the newest commit if None.
        columns, filter
            As of `read`.

        Raises
        ------
        SchemaError
            A column does not exist, or the filter does not fit the columns.
        TimelineError
            Files of the range have been cleaned, and
            ``hoodie.datasource.read.incr.fallback.fulltablescan.enable`` does not let the whole
            table be looked through for what is left of its rows.
        """
        asked = {
            QUERY_TYPE.key: QueryType.INCREMENTAL.value,
            BEGIN.key: self._completed("begin", begin),
            END.key: None if end is None else self._completed("end", end),
        }
        return Scanner(self._query(asked), columns, filter).to_table()

    def read_changes(self, begin: Moment, end: Moment | None = None) -> pa.Table:
        """Return the changes that commits of a range made: a row for each row that they changed.

        Parameters
        ----------
        begin : str, Instant, WriteResult or Savepoint
            A commit, or as text an instant time or date, after which commits count; ``000`` for all
            of them. In all versions, as in Hudi, the times at which they were begun count, which
            ``ts_ms`` has.
        end : str, Instant, WriteResult or Savepoint, optional
            The same of the last ones that count; the newest commit if None.

        Returns
        -------
        pyarrow.Table
            ``op`` is ``i``, ``u`` or ``d``; ``ts_ms`` the instant time of the commit; ``before``
            and ``after`` are the row as JSON. An image that is missing is null, or the text
            ``null`` where the commit has logged it so.

        Raises
        ------
        TimelineError
            Files have been cleaned, or commits archived, without which the changes cannot be told.
        """
        asked = {
            QUERY_TYPE.key: QueryType.INCREMENTAL.value,
            INCREMENTAL_FORMAT.key: IncrementalFormat.CDC.value,
            BEGIN.key: instant_time("begin", begin),
            END.key: None if end is None else instant_time("end", end),
        }
        return Scanner(self._query(asked)).to_table()

    def _completed(self, name: str, given: Moment) -> str:
        """Return the time by which the range of an incremental query tells a commit from others."""
        time = instant_time(name, given)
        commit = None if isinstance(given, str) else self.timeline.commit_at(time)
        return time if commit is None else commit.ended

    @property
    def schema(self) -> pa.Schema:
        """Columns of the table, the five ``_hoodie_*`` columns first."""
        return self._query().schema

    @property
    @abstractmethod
    def timeline(self) -> Timeline:
        """The active timeline of the table as it is now."""
        ...

    @abstractmethod
    def _query(self, asked: Mapping[str, str | None] | None = None) -> Query:
        """Open the query that the table's options and those of a call ask for."""
        ...
