"""`HoodieTable`: a Hudi table without Spark, Arrow tables in and out.

It uses what the Spark sink uses: the same coordinator, task writer, handles and reader.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from html import escape
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds

from hoodie_ds.api.arrow_input import Rows, arrow_rows
from hoodie_ds.api.names_of_others import NAMES_OF_OTHERS
from hoodie_ds.api.table_alteration import TableAlteration
from hoodie_ds.api.table_merge import TableMerge, merge_here, source_rows
from hoodie_ds.config.enums import IncrementalFormat, Operation, QueryType
from hoodie_ds.config.given_options import strings
from hoodie_ds.config.known_options import check_keys, overridden
from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.config.query_options import IncrementalOptions, QueryOptions
from hoodie_ds.config.read_options import ReadOptions
from hoodie_ds.config.write_options import WriteOptions, check_options, of_call
from hoodie_ds.environment import Clock, IdSource, RandomIds, SystemClock
from hoodie_ds.errors import HoodieError, OptionError
from hoodie_ds.extras import require
from hoodie_ds.filters.given import Filter
from hoodie_ds.inspection.arguments import Moment, instant_time, text
from hoodie_ds.inspection.arguments import options as given_options
from hoodie_ds.inspection.inspector import Inspector
from hoodie_ds.inspection.recorded_files import diverging_partitions
from hoodie_ds.inspection.source import Source
from hoodie_ds.reader.query import Query, open_query
from hoodie_ds.reader.query_dataset import QueryDataset
from hoodie_ds.reader.scanner import Scanner
from hoodie_ds.record.merge.merge_hook import MergeHook
from hoodie_ds.services.archiving import archive
from hoodie_ds.services.cleaning import clean
from hoodie_ds.services.clustering.clusterer import Clusterer
from hoodie_ds.services.compaction.compactor import Compactor
from hoodie_ds.services.context import Progress, ServiceContext
from hoodie_ds.services.metadata_partitions import (
    MetadataChange,
    create_metadata,
    drop_metadata,
    remake_metadata,
)
from hoodie_ds.services.orphans import Orphans, delete_orphans
from hoodie_ds.services.post_commit import followed
from hoodie_ds.services.restore import restore_by_hand
from hoodie_ds.services.results import Cleaning, Clustering, Compaction, ServiceResult
from hoodie_ds.services.rollback import roll_back_by_hand
from hoodie_ds.services.savepoint import Savepoint, delete_savepoint, make_savepoint
from hoodie_ds.services.undoing import Undoing
from hoodie_ds.services.upgrade.properties import VERSIONS
from hoodie_ds.services.upgrade.version_change import (
    VersionChange,
    change_version,
    open_to_change,
)
from hoodie_ds.sink.batch import Batch
from hoodie_ds.sink.bucket_rescale import BucketRescale, BucketRescaler, new_buckets
from hoodie_ds.sink.commit.conflicts import retry_after_conflicts
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.locate.matched_rows import change_by_filter, count_matched, matched_rows
from hoodie_ds.sink.messages import TaskId, WriteResult
from hoodie_ds.sink.row_change import NewValue
from hoodie_ds.sink.row_merge import On
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.storage.connect import storage_to_read, storage_to_write
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.sync.delta.follower import DeltaLog
from hoodie_ds.sync.delta.sync import DeltaSync
from hoodie_ds.sync.results import CatalogSync
from hoodie_ds.sync.run import CatalogEntries
from hoodie_ds.table.table import open_table
from hoodie_ds.timeline.instant import Instant
from hoodie_ds.timeline.timeline import Timeline


class HoodieTable:
    """A Hudi table at a base path, which the first write creates.

    Parameters
    ----------
    path : str or path-like
        Base path: a local folder, with ``~`` for the user's home, or an fsspec URL. It replaces
        the option ``path``.
    options : mapping of str to str, optional
        Options of every write, with Hudi's names; those of a call win over them. They are checked
        here, though the first write creates the table. An unknown key is refused, whatever its
        prefix. The called method decides the operation: a write is refused if
        ``hoodie.datasource.write.operation`` names another one, except ``bulk_insert`` with
        `insert`.
    storage : Storage, optional
        Rooted at the base path, instead of the storage of the path's scheme.
    clock, ids : Clock and IdSource, optional
        Instead of the machine's.
    merge_hook : MergeHook, optional
        Merges rows with one key, in a table with merge mode CUSTOM; the same as the option
        ``hoodie.py.merge.hook``, which names it for other processes.

    Examples
    --------
    >>> table = HoodieTable("/tmp/trips", {"hoodie.table.name": "trips",
    ...     "hoodie.datasource.write.recordkey.field": "uuid",
    ...     "hoodie.datasource.write.precombine.field": "ts"})
    >>> rows = pa.table({"uuid": ["a", "b"], "fare": [9.5, 12.0], "ts": [1, 1]})
    >>> table.upsert(rows)
    WriteResult(instant_time='...', inserted=2, updated=0, deleted=0, ...)
    >>> table.read(columns=["uuid", "fare"], filter="fare > 10").to_pylist()
    [{'uuid': 'b', 'fare': 12.0}]
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        options: Mapping[str, str] | None = None,
        *,
        storage: Storage | None = None,
        clock: Clock | None = None,
        ids: IdSource | None = None,
        merge_hook: MergeHook | None = None,
    ) -> None:
        if not isinstance(path, (str, os.PathLike)):
            raise OptionError("path", path, "give the table's folder, as a string or pathlib.Path")
        self._options = {**given_options(options), "path": os.fspath(path)}
        check_options(self._options)
        self._storage = storage
        self._clock = clock or SystemClock()
        self._ids = ids or RandomIds()
        self._merge_hook = merge_hook

    def __repr__(self) -> str:
        return f"HoodieTable({self._options['path']!r})"

    def _repr_html_(self) -> str:
        """Return an overview of the table for notebooks."""
        try:
            return self.inspect.show()._repr_html_()
        except HoodieError as error:
            return f"<p>{escape(repr(self))}: {escape(str(error))}</p>"

    if not TYPE_CHECKING:  # which must know every name

        def __getattr__(self, name: str) -> Any:  # noqa: ANN401
            """Name the counterpart of a method of another library."""
            error = f"{type(self).__name__!r} object has no attribute {name!r}"
            hint = NAMES_OF_OTHERS.get(name)
            raise AttributeError(f"{error}; {hint}" if hint else error, name=name, obj=self)

    def upsert(self, rows: Rows, options: Mapping[str, str] | None = None) -> WriteResult:
        """Update rows by record key, or insert them; creates the table if there is none.

        Rows whose column ``_hoodie_is_deleted`` is true delete their key.

        Parameters
        ----------
        rows : pyarrow.Table, pandas or Polars frame, or other Arrow data
            Columns of the table; new ones extend it.
        options : mapping of str to str, optional
            Further options of this write.

        Returns
        -------
        WriteResult
            The commit, and how many rows it inserted, updated and deleted.

        Raises
        ------
        HoodieError
            The write was refused or failed; the table is as before.
        """
        return self._write(rows, Operation.UPSERT, options)

    def insert(self, rows: Rows, options: Mapping[str, str] | None = None) -> WriteResult:
        """Append rows, even if their key is stored; creates the table if there is none.

        Parameters
        ----------
        rows : pyarrow.Table, pandas or Polars frame, or other Arrow data
            Columns of the table; new ones extend it.
        options : mapping of str to str, optional
            Further options of this write, such as ``hoodie.datasource.insert.dup.policy``.
        """
        return self._write(rows, Operation.INSERT, options)

    def overwrite(
        self,
        rows: Rows,
        options: Mapping[str, str] | None = None,
        *,
        partitions_only: bool = False,
    ) -> WriteResult:
        """Replace all rows of the table (``insert_overwrite_table``).

        Parameters
        ----------
        rows : pyarrow.Table, pandas or Polars frame, or other Arrow data
            Columns of the table.
        options : mapping of str to str, optional
            Further options of this write.
        partitions_only : bool
            Whether partitions without a row in `rows` stay (``insert_overwrite``).
        """
        operation = (
            Operation.INSERT_OVERWRITE if partitions_only else Operation.INSERT_OVERWRITE_TABLE
        )
        return self._write(rows, operation, options)

    def delete(
        self,
        keys: Rows | None = None,
        options: Mapping[str, str] | None = None,
        *,
        where: Filter | None = None,
        dry: bool = False,
    ) -> WriteResult:
        """Delete rows by record key, or those that match a filter.

        Parameters
        ----------
        keys : pyarrow.Table, pandas or Polars frame, or other Arrow data, optional
            The columns of record key and partition. If the ordering column is there too, a row
            with a greater ordering value survives.
        options : mapping of str to str, optional
            Further options of this write.
        where : Filter, optional
            Which rows to delete, as for `read`; a row of which it is neither true nor false, as
            that of a null, stays. Files that it rules out are not opened. A numbered write is
            recognised by its filter.
        dry : bool
            Whether to change nothing, and only count the rows that match the filter.

        Raises
        ------
        OptionError
            Neither keys nor a filter are given, or both, or a filter without conditions; or keys of
            a table without record keys, or in a dry run.
        WriteConflictError
            Another writer changed a partition that may have such rows.
        HoodieError
            The write was refused or failed; the table is as before.
        """
        if (keys is None) is (where is None):
            raise OptionError("where", where, "give the keys of rows, or a filter")
        if isinstance(keys, str):
            raise OptionError("keys", keys, "give a filter by its name, delete(where=...)")
        if where is not None:
            return self._change(Operation.DELETE, where, None, options, dry)
        if dry:
            raise OptionError("dry", dry, "keys are looked up as they are deleted; give a filter")
        return self._write(keys, Operation.DELETE, options)

    def update(
        self,
        set: Mapping[str, NewValue],
        where: Filter | None = None,
        options: Mapping[str, str] | None = None,
        *,
        dry: bool = False,
    ) -> WriteResult:
        """Set columns of the rows that match a filter to new values.

        Rows that have these values already are not written.

        Parameters
        ----------
        set : mapping of str to value, expression or function
            What each column becomes: a value, an expression of SQL such as ``expr("fare * 2")`` or
            of Arrow such as ``pyarrow.compute.field("fare") * 2``, or a function that takes an
            Arrow table of some rows and returns the column. All of them see the row as it was.
            Columns of the record key and the partition are refused, as in Hudi's UPDATE.
        where : Filter, optional
            Which rows to update, as for `delete`; all by default.
        options : mapping of str to str, optional
            Further options of this write.
        dry : bool
            Whether to change nothing, and only count the rows that would be updated.

        Returns
        -------
        WriteResult
            The commit, and how many rows it updated.

        Raises
        ------
        OptionError
            A column or value is refused, or the filter is; or an ordering field gets a lower value,
            by which the stored row would win.
        SchemaError
            An expression, or what a function returned, does not fit the columns.
        WriteConflictError
            Another writer changed a partition that may have such rows.
        HoodieError
            The write was refused or failed; the table is as before.
        """
        return self._change(Operation.UPSERT, where, set, options, dry)

    def merge(self, source: Rows, on: On) -> TableMerge:
        """Merge a source into the table by clauses, as SQL's MERGE INTO does.

        Nothing is done before `TableMerge.execute`. Of the source, columns of `on` are held in
        memory, and all of it if it is small or a table; the table is read file group by file group,
        and only those are opened that may have rows which match.

        Hudi's MERGE INTO joins by the record key, and combines source rows of one key; here any
        columns match, source rows of one key are refused, and rows of the table that match none can
        be changed, too.

        Parameters
        ----------
        source : pyarrow.Table, pandas or Polars frame, or other Arrow data
            It may have other columns than the table, for conditions and new values.
        on : str, iterable of str, or mapping of str to str
            By which columns rows match: the name of a column of both, such as ``"uuid"``; an
            equality, ``"target.uuid = source.id"``; several of these, as a list or joined by
            ``and``; or a mapping from columns of the table to columns of the source. A null matches
            nothing.

        Returns
        -------
        TableMerge
            What takes the clauses, such as `TableMerge.when_matched_update_all`.

        Raises
        ------
        SchemaError
            The source is no Arrow data, or nothing was committed to the table yet.
        TableNotFoundError
            There is no table.
        """
        begins = partial(self._coordinator, Operation.UPSERT)
        rows = source_rows(source, self.schema)
        return TableMerge(partial(merge_here, begins, self._written, rows, on))

    def alter(self) -> TableAlteration:
        """Change the table's columns without rewriting a file, as ALTER TABLE of Hudi does.

        Nothing is done before `TableAlteration.execute`. From then on the columns have numbers
        (Hudi's schema on read), by which they are found in files that have them under other names
        or types; Hudi on the JVM needs ``hoodie.schema.on.read.enable=true`` for such a table.

        Returns
        -------
        TableAlteration
            What takes the changes, such as `TableAlteration.rename`.
        """
        return TableAlteration(partial(self._coordinator, Operation.UPSERT), self._written)

    def delete_partitions(
        self,
        partitions: str | Iterable[str],
        options: Mapping[str, str] | None = None,
        *,
        exact: bool = False,
    ) -> WriteResult:
        """Delete whole partitions.

        Parameters
        ----------
        partitions : str or iterable of str
            Partition paths, taken literally, with commas and blanks, except that ``*`` stands for
            any string. A path that does not exist is ignored.
        options : mapping of str to str, optional
            Further options of this write.
        exact : bool
            Whether ``*`` stands for itself, for a partition path that contains one.

        Raises
        ------
        OptionError
            No partition is given, or something that is not a string.
        """
        paths = strings("partitions", partitions)
        if not paths:
            raise OptionError("partitions", None, "name the partitions to delete")
        empty = self.schema.empty_table()
        # Not by the option, whose string allows no comma within a path and no outer blank.
        return self._write(empty, Operation.DELETE_PARTITION, options, (paths, exact))

    def read(
        self,
        columns: str | Iterable[str] | None = None,
        filter: Filter | None = None,
        as_of: Moment | None = None,
    ) -> pa.Table:
        """Return the latest rows, or those of an earlier moment.

        Parameters
        ----------
        columns : str or iterable of str, optional
            Columns to return; all, the five ``_hoodie_*`` columns first, if None.
        filter : Filter, optional
            Which rows to return: an expression of Arrow, a string such as ``"city = oslo"``, a
            tuple such as ``("fare", ">=", 10)`` or ``("city", "in", ["oslo", "rome"])``, or a list
            of these, all of which hold. Strings take ``=``, ``!=``, ``<``, ``<=``, ``>``, ``>=``
            and ``is [not] null``, tuples the same signs, ``in`` and ``not in``. In both NaN is the
            greatest number, as in Spark; an expression compares as Arrow does.
        as_of : str, Instant, WriteResult or Savepoint, optional
            Instant time, or date, up to which commits count by their begin (``as.of.instant``).

        Raises
        ------
        OptionError
            The filter is refused.
        SchemaError
            A column does not exist, or the filter does not fit the columns.
        TimelineError
            Files of that moment have been cleaned, or commits archived, or a commit before it is
            incomplete.
        """
        return self.scan(columns, filter, as_of).to_table()

    def scan(
        self,
        columns: str | Iterable[str] | None = None,
        filter: Filter | None = None,
        as_of: Moment | None = None,
    ) -> Scanner:
        """Return the table as it is now, to read batch by batch, or by another library.

        Partitions, files and row groups that the filter rules out, by partition paths, buckets and
        the files' own statistics, are not opened or read.

        Parameters
        ----------
        columns, filter, as_of
            As for `read`.

        Raises
        ------
        OptionError
            The filter is refused.
        SchemaError
            A column does not exist, or the filter does not fit the columns.
        TimelineError
            See `read`.
        """
        time = None if as_of is None else instant_time("as_of", as_of)
        return Scanner(self._query({QueryOptions.as_of.key: time}), columns, filter)

    def to_pyarrow_dataset(self, as_of: Moment | None = None) -> ds.Dataset:
        """Return the table as it is now as a `pyarrow.dataset.Dataset`, for queries by DuckDB.

        DuckDB asks a dataset for the columns that a query needs, and passes filters on: what they
        rule out is not opened. So do `polars.scan_pyarrow_dataset`, whose filters find other rows
        than Polars where values are null or NaN, and `scan_hudi`, whose filters do not.

        Parameters
        ----------
        as_of
            As for `read`.

        Raises
        ------
        TimelineError
            See `read`.

        Examples
        --------
        >>> trips = HoodieTable("/tmp/trips").to_pyarrow_dataset()
        >>> duckdb.sql("SELECT sum(fare) FROM trips WHERE city = 'oslo'").fetchall()
        [(9.5,)]
        """
        time = None if as_of is None else instant_time("as_of", as_of)
        return QueryDataset(self._query({QueryOptions.as_of.key: time}))

    def count(self, filter: Filter | None = None) -> int:
        """Return the number of latest rows; see `Scanner.count_rows`.

        Parameters
        ----------
        filter : Filter, optional
            Which rows count, as for `read`.

        Raises
        ------
        OptionError
            The filter is refused.
        SchemaError
            The filter does not fit the columns.
        """
        return self.scan(filter=filter).count_rows()

    def head(self, n: int = 5, columns: str | Iterable[str] | None = None) -> pa.Table:
        """Return a few of the latest rows, those that are read first.

        Parameters
        ----------
        n : int
            Maximum number.
        columns : str or iterable of str, optional
            As for `read`.

        Raises
        ------
        OptionError
            `n` is no whole number, or negative.
        SchemaError
            A column does not exist.
        """
        return self.scan(columns).head(n)

    def to_pandas(
        self,
        columns: str | Iterable[str] | None = None,
        filter: Filter | None = None,
        as_of: Moment | None = None,
    ) -> Any:  # noqa: ANN401
        """Return the rows of `read`, which has the parameters, as a pandas DataFrame."""
        require("to_pandas", "pip install pandas", "pandas")
        return self.read(columns, filter, as_of).to_pandas()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the latest rows as a stream of Arrow's C data interface, as `scan` does."""
        return self.scan().__arrow_c_stream__(requested_schema)

    def read_incremental(
        self,
        begin: Moment,
        end: Moment | None = None,
        columns: str | Iterable[str] | None = None,
        filter: Filter | None = None,
    ) -> pa.Table:
        """Return the rows that commits of a range wrote, as they are at its end.

        Deletes are not returned.

        Parameters
        ----------
        begin : str, Instant, WriteResult or Savepoint
            A commit, or an instant time or date as a string, after which commits count; ``000`` for
            all of them. Commits count by their begin in a table of version 6, and by their
            completion in later versions.
        end : str, Instant, WriteResult or Savepoint, optional
            The same for the last commit that counts; the newest one if None.
        columns, filter
            As for `read`.

        Raises
        ------
        OptionError
            The filter is refused.
        SchemaError
            A column does not exist, or the filter does not fit the columns.
        TimelineError
            Files of the range have been cleaned, and
            ``hoodie.datasource.read.incr.fallback.fulltablescan.enable`` does not allow to search
            the whole table for the remaining rows.
        """
        asked = {
            QueryOptions.query_type.key: QueryType.INCREMENTAL.value,
            IncrementalOptions.begin.key: self._completed("begin", begin),
            IncrementalOptions.end.key: None if end is None else self._completed("end", end),
        }
        return Scanner(self._query(asked), columns, filter).to_table()

    def read_changes(self, begin: Moment, end: Moment | None = None) -> pa.Table:
        """Return the changes of a range of commits: a row for each changed row.

        Parameters
        ----------
        begin : str, Instant, WriteResult or Savepoint
            A commit, or an instant time or date as a string, after which commits count; ``000`` for
            all of them. Commits count by their begin in all versions, as in Hudi; ``ts_ms`` holds
            it.
        end : str, Instant, WriteResult or Savepoint, optional
            The same for the last commit that counts; the newest one if None.

        Returns
        -------
        pyarrow.Table
            ``op`` is ``i``, ``u`` or ``d``; ``ts_ms`` the instant time of the commit; ``before``
            and ``after`` are the row as JSON. A missing image is null, or the string ``null`` if
            the commit has logged it so.

        Raises
        ------
        TimelineError
            Files that the changes need have been cleaned, or commits archived.
        """
        asked = {
            QueryOptions.query_type.key: QueryType.INCREMENTAL.value,
            IncrementalOptions.format.key: IncrementalFormat.CDC.value,
            IncrementalOptions.begin.key: instant_time("begin", begin),
            IncrementalOptions.end.key: None if end is None else instant_time("end", end),
        }
        return Scanner(self._query(asked)).to_table()

    @property
    def schema(self) -> pa.Schema:
        """Columns of the table, the five ``_hoodie_*`` columns first."""
        return self._query().schema

    @property
    def properties(self) -> TableProperties:
        """The table's properties."""
        return open_table(self._open_to_read()).properties

    @property
    def timeline(self) -> Timeline:
        """The active timeline."""
        table = open_table(self._open_to_read())
        table.properties.check_version()
        return table.load_timeline()

    @property
    def inspect(self) -> Inspector:
        """The table's contents and history, as ``hoodie-py`` shows them."""
        options = ReadOptions.parse(self._options)
        hook = self._merge_hook or options.merge_hook
        known = self._parsed(None)
        return Inspector(Source(self._open_to_read(), hook, options.verify_checksums, known))

    def compact(
        self,
        options: Mapping[str, str] | None = None,
        *,
        dry: bool = False,
        only_if_due: bool = False,
        progress: Progress | None = None,
    ) -> ServiceResult[Compaction]:
        """Merge log files into base files (merge-on-read); the rows do not change.

        Pending compactions, of any engine, are executed first. Writers continue meanwhile.

        Parameters
        ----------
        options : mapping of str to str, optional
            Further options, such as ``hoodie.compaction.strategy``.
        dry : bool
            Whether only to report what would be done.
        only_if_due : bool
            Whether to schedule a compaction only if it is due, by
            ``hoodie.compact.inline.trigger.strategy`` and its thresholds.
        progress : callable, optional
            Called with the numbers of finished and of all file groups of a plan.

        Returns
        -------
        ServiceResult of Compaction
            What was done, or would be; empty and false if there was nothing to do.

        Raises
        ------
        UnsupportedTableError
            The table is not merge-on-read.
        HoodieError
            The compaction failed; the rows are as before, and its plan stays pending.
        """
        context = replace(self._services(options, dry), progress=progress)
        compact = partial(Compactor(context).compact, dry, only_if_due)
        return followed(context, compact)

    def cluster(
        self,
        options: Mapping[str, str] | None = None,
        *,
        dry: bool = False,
        progress: Progress | None = None,
    ) -> ServiceResult[Clustering]:
        """Rewrite small file groups into larger ones, sorted by option; the rows do not change.

        Pending clusterings, of any engine, are executed first. Writers continue meanwhile, except
        those to the same file groups.

        Parameters
        ----------
        options : mapping of str to str, optional
            Further options, such as ``hoodie.clustering.plan.strategy.sort.columns``.
        dry : bool
            Whether only to report what would be done.
        progress : callable, optional
            Called with the numbers of finished and of all groups of a plan.

        Returns
        -------
        ServiceResult of Clustering
            What was done, or would be; empty and false if there was nothing to do.

        Raises
        ------
        OptionError
            An option contradicts the table, or names a partition that it does not have.
        UnsupportedTableError
            The table has a bucket index.
        HoodieError
            The clustering failed; the rows are as before, and its plan stays pending.
        """
        context = replace(self._services(options, dry), progress=progress)
        return followed(context, partial(Clusterer(context).cluster, dry))

    def clean(
        self, options: Mapping[str, str] | None = None, *, dry: bool = False
    ) -> ServiceResult[Cleaning]:
        """Delete old files that are no longer needed, by the options ``hoodie.clean.*``.

        A clean that another process has begun is finished first.

        Parameters
        ----------
        options : mapping of str to str, optional
            Further options, such as ``hoodie.clean.commits.retained``.
        dry : bool
            Whether only to report what would be deleted.

        Returns
        -------
        ServiceResult of Cleaning
            What was deleted, or would be; empty and false if there was nothing.

        Raises
        ------
        HoodieError
            The clean was refused or failed; the next one finishes it.
        """
        return clean(self._services(options, dry), dry=dry)

    def archive(
        self, options: Mapping[str, str] | None = None, *, dry: bool = False
    ) -> ServiceResult[Instant]:
        """Move the oldest instants from the active timeline to Hudi's archive, if it is too long.

        The options ``hoodie.keep.max.commits`` and ``hoodie.keep.min.commits`` say how many may be
        there, and how many remain. Archived commits stay part of the table.

        Parameters
        ----------
        options : mapping of str to str, optional
            Further options, such as those two.
        dry : bool
            Whether to change nothing, and only report what would be archived.

        Returns
        -------
        ServiceResult of Instant
            The instants that were archived, or would be; empty and false if there were none.

        Raises
        ------
        HoodieError
            The archive was refused or failed; the next one finishes it.
        """
        return archive(self._services(options, dry), dry=dry)

    def cleanup(self, *, dry: bool = False) -> Orphans:
        """Delete data files that no commit will ever name: leftovers of late or dead writers.

        Files of pending instants stay, as their writer may be at work; `rollback` deletes them.

        Parameters
        ----------
        dry : bool
            Whether to change nothing, and only report what would be deleted.

        Returns
        -------
        Orphans
            The files; false if there were none.

        Raises
        ------
        TimelineError
            A restore is pending.
        """
        return delete_orphans(self._services(dry=dry), dry=dry)

    def savepoint(
        self,
        instant: Moment | None = None,
        *,
        user: str = "",
        comments: str = "",
        dry: bool = False,
    ) -> Savepoint:
        """Keep the files of a commit, so that `restore` can go back to it.

        No clean deletes them until `delete_savepoint`. An existing savepoint of the commit stays.

        Parameters
        ----------
        instant : str, Instant or WriteResult, optional
            Instant time of a completed commit of the active timeline; the newest by default.
        user, comments : str
            Who makes the savepoint, and why; for later readers.
        dry : bool
            Whether to change nothing, and only report what would be kept.

        Returns
        -------
        Savepoint
            The commit's time, and the files that are kept.

        Raises
        ------
        OptionError
            An argument is malformed.
        TimelineError
            There is no such commit; a clean deleted one of its files, or will; or a restore is
            pending.
        """
        time = None if instant is None else instant_time("instant", instant)
        who, why = text("user", user), text("comments", comments)
        return make_savepoint(self._services(dry=dry), time, who, why, dry=dry)

    def delete_savepoint(self, instant: Moment, *, dry: bool = False) -> Savepoint:
        """Let cleans delete the files of a savepoint again; the commit itself stays.

        If commits after it are archived already (``hoodie.archive.beyond.savepoint``), it is
        archived too, and the file groups that it has replaced are cleaned before that.

        Parameters
        ----------
        instant : str, Instant, WriteResult or Savepoint
            Time of the savepoint.
        dry : bool
            Whether to change nothing, and only report which files would be released.

        Returns
        -------
        Savepoint
            The deleted savepoint.

        Raises
        ------
        OptionError
            It has no time.
        TimelineError
            There is no such savepoint, or a restore is pending; or the commit would have to be
            archived, and the file groups that it has replaced cannot be cleaned yet.
        """
        return delete_savepoint(self._services(dry=dry), instant_time("instant", instant), dry=dry)

    def rollback(self, instant: Moment | None = None, *, dry: bool = False) -> Undoing:
        """Roll back a write: what it inserted, updated and deleted is lost.

        The rows are then as before it, and its micro-batches can be written again: a stream that
        continues without them, as Spark considers them done, is refused (`MissedBatchesError`). The
        plan of a pending compaction or clustering is cancelled.

        Parameters
        ----------
        instant : str, Instant or WriteResult, optional
            Time of the newest completed write, or of a pending one; the newest completed write
            by default, if no other is pending.
        dry : bool
            Whether to change nothing, and only report what would be lost.

        Returns
        -------
        Undoing
            What is lost.

        Raises
        ------
        OptionError
            The argument has no time.
        TimelineError
            There is no such write; none is named, and one is pending; others follow it, completed
            or pending; it has a savepoint; its writer is at work; a clean deleted files that the
            table had before it, or will; a compaction has log files named after it; or a restore is
            pending.
        """
        time = None if instant is None else instant_time("instant", instant)
        context = self._services(dry=dry)
        return followed(context, partial(roll_back_by_hand, context, time, dry=dry))

    def restore(self, to: Moment, *, dry: bool = False) -> Undoing:
        """Go back to an earlier state: all that was written after it is lost.

        Pending writes and plans are rolled back too. The rows, the schema and the known
        micro-batches are as of then: a stream must repeat its batches since then, from an earlier
        copy of its checkpoint or a new one, and is refused otherwise (`MissedBatchesError`). No
        process writes while a restore is pending; the next call or write resumes an interrupted
        one. A pending restore of another engine is completed first.

        Parameters
        ----------
        to : str, Instant, WriteResult or Savepoint
            Instant time of a savepoint or of another completed write of the active timeline, the
            last one that stays.
        dry : bool
            Whether to change nothing, and only report what would be lost, or what a pending restore
            undoes.

        Returns
        -------
        Undoing
            What is lost.

        Raises
        ------
        OptionError
            The argument has no time.
        TimelineError
            There is no such write; one after it has a savepoint, or was archived; or a clean
            deleted files that the table had then, or will.
        """
        context = self._services(dry=dry)
        time = instant_time("to", to)
        return followed(context, partial(restore_by_hand, context, time, dry=dry))

    def rescale_buckets(
        self,
        num_buckets: int,
        rules: str | None = None,
        options: Mapping[str, str] | None = None,
        *,
        dry: bool = False,
        progress: Progress | None = None,
    ) -> BucketRescale:
        """Rewrite a table with a bucket index into other numbers of buckets, as one commit.

        The rows do not change; to incremental queries they are new, as after an overwrite. Writers
        that began before are refused; those that name a number of buckets must name the new one.

        Parameters
        ----------
        num_buckets : int
            Buckets of each partition.
        rules : str, optional
            Partitions with another number, as ``regex,number;regex,number``. By default there are
            none, even if the table has rules.
        options : mapping of str to str, optional
            Further options of this write.
        dry : bool
            Whether only to report what would be done.
        progress : callable, optional
            Called with the bytes read so far, and the bytes of all file groups.

        Returns
        -------
        BucketRescale
            What was done, or would be; false if the table has these buckets.

        Raises
        ------
        OptionError
            The number or the rules are malformed.
        UnsupportedTableError
            The table has no bucket index, or its options for keys are unknown.
        TimelineError
            A compaction or clustering is pending.
        HoodieError
            The write failed; the table is as before.
        """
        buckets, expressions = new_buckets(num_buckets, rules)
        parsed = replace(self._parsed(options), operation=None)
        storage = self._storage or storage_to_write(parsed)
        coordinator = Coordinator(parsed, storage, self._clock, self._ids)
        rescaler = BucketRescaler.of(coordinator, buckets, expressions, progress)
        return retry_after_conflicts(parsed, partial(rescaler.rescale, dry=dry))

    def upgrade(self, to: int, *, dry: bool = False) -> VersionChange:
        """Make the table one of a later version, by Hudi's rules; the rows do not change.

        First, dead writes are rolled back, pending clusterings and cleans are executed, and a
        merge-on-read table is compacted. A metadata table stays from version 8 to 9, and is made
        again from version 6 on; with ``hoodie.metadata.enable=false`` it is dropped. Stop the
        writers: one that is at work is refused when it commits. The same call resumes an
        interrupted one, and no process writes before that; readers continue. Savepoints stay
        readable; a restore or rollback to before the upgrade is refused. A merge-on-read table of
        version 6 with an ordering field is ordered by it from then on, whatever its standard
        payload class; if that changes the order, a warning says so, and savepoints must be deleted
        before.

        Parameters
        ----------
        to : int
            8 or 9. A table of this version is not changed.
        dry : bool
            Whether to change nothing, and only report what would be.

        Returns
        -------
        VersionChange
            The versions before and after, and the properties that change.

        Raises
        ------
        OptionError
            There is no such version, the table has a later one, or it has a metadata table that
            cannot be kept and that the options do not drop.
        TimelineError
            A pending action must be finished first.
        UnsupportedTableError
            Rows would be merged differently in the other version.
        """
        return self._change_version("upgrade", to, dry)

    def downgrade(self, to: int, *, dry: bool = False) -> VersionChange:
        """Make the table one of an earlier version, by Hudi's rules; the rows do not change.

        The rules of `upgrade` apply here too. For a merge-on-read table with savepoints version 6
        is refused: their log files would become slices of their own, with other rows. In version 6
        Hudi on the JVM finds out by the modification times of the timeline's files which log files
        a compaction has merged. They are set on a local disk; an object store does not allow that,
        and such log files must be cleaned there before.

        Parameters
        ----------
        to : int
            6 or 8. A table of this version is not changed.
        dry : bool
            Whether to change nothing, and only report what would be.

        Returns
        -------
        VersionChange
            The versions before and after, and the properties that change.

        Raises
        ------
        OptionError
            There is no such version, or the table has an earlier one.
        TimelineError, UnsupportedTableError
            As `upgrade`.
        """
        return self._change_version("downgrade", to, dry)

    def create_metadata_table(
        self, options: Mapping[str, str] | None = None, *, dry: bool = False
    ) -> MetadataChange:
        """Give the table a metadata table, or one that is there the partitions that it lacks.

        It lists the table's files. ``hoodie.metadata.index.column.stats.enable``,
        ``hoodie.metadata.index.partition.stats.enable``,
        ``hoodie.metadata.index.bloom.filter.enable`` and ``hoodie.metadata.record.index.enable``
        add partitions, for which each data file is read. Every write keeps them from then on. After
        a call that was killed, the next one makes the partitions that are missing.

        Parameters
        ----------
        options : mapping of str to str, optional
            Further options, such as those four.
        dry : bool
            Whether to change nothing, and only report what would be made.

        Returns
        -------
        MetadataChange
            The partitions that were made, or would be; false if all are there.

        Raises
        ------
        OptionError
            The metadata table has partitions that this release does not keep, or a column that was
            named has no statistics.
        WriteConflictError
            A write is pending.
        """
        return create_metadata(self._services(options, dry), dry=dry)

    def drop_metadata_table(
        self, partitions: Iterable[str] | None = None, *, dry: bool = False
    ) -> MetadataChange:
        """Drop the metadata table, or some of its partitions, with a warning in the log.

        Parameters
        ----------
        partitions : iterable of str, optional
            Their names, such as ``bloom_filters``; all by default. Without ``files`` there are no
            others, and without ``column_stats`` no ``partition_stats``.
        dry : bool
            Whether to change nothing, and only report what would be dropped.

        Returns
        -------
        MetadataChange
            The partitions that were dropped, or would be; false if there are none.

        Raises
        ------
        OptionError
            The metadata table has no such partition.
        WriteConflictError
            A writer of another engine may be using it.
        """
        names = None if partitions is None else tuple(partitions)
        return drop_metadata(self._services(dry=dry), names, dry=dry)

    def repair_metadata_table(self, *, dry: bool = False) -> MetadataChange:
        """Make the partitions of the metadata table anew in which something is wrong.

        `inspect.verify_metadata_table` says what is wrong. With the list of files all partitions
        are made anew. After a call that was killed in between they are missing, and
        `create_metadata_table` makes them.

        Parameters
        ----------
        dry : bool
            Whether to change nothing, and only report what would be done.

        Returns
        -------
        MetadataChange
            The partitions that were made anew, or would be; false if nothing is wrong.

        Raises
        ------
        OptionError
            The metadata table has partitions that this release does not keep.
        WriteConflictError
            A write is pending.
        """
        names = diverging_partitions(self.inspect.source.latest())
        return remake_metadata(self._services(dry=dry), names, dry=dry)

    def sync_catalog(
        self, options: Mapping[str, str] | None = None, *, dry: bool = False
    ) -> CatalogSync:
        """Update a Hive metastore or AWS Glue with what it lacks of the table.

        Parameters
        ----------
        options : mapping of str to str, optional
            Further options, such as ``hoodie.datasource.hive_sync.metastore.uris``.
        dry : bool
            Whether only to report the changes to the catalog.

        Returns
        -------
        CatalogSync
            The changes, made or not; false if the catalog is up to date.

        Raises
        ------
        CatalogError
            The catalog cannot be reached or refuses, or partitions do not fit its columns.
        MissingPackageError
            The extra ``hive`` or ``glue`` is not installed.
        """
        context = self._services(options)
        table = open_table(context.storage)
        table.properties.check_readable()
        return CatalogEntries(context.options.catalog).repair(table, dry=dry)

    def sync_delta(
        self, options: Mapping[str, str] | None = None, *, dry: bool = False
    ) -> DeltaSync:
        """Make a Delta log next to the table, or bring it up to date.

        The whole table is compared with the whole log, so that missing and excess entries are
        corrected; a new log begins with the table as it is now.

        Parameters
        ----------
        options : mapping of str to str, optional
            Further options.
        dry : bool
            Whether to change nothing, and only report what would be done.

        Returns
        -------
        DeltaSync
            The version of the log, and what it added and removed; false if there was nothing to do.

        Raises
        ------
        SchemaError
            Delta lacks the type of a column.
        DeltaSyncError
            There is a Delta log that another library made, or that is damaged.
        """
        context = self._services(options)
        table = open_table(context.storage)
        table.properties.check_version()
        return DeltaLog(context.clock, context.ids).repair(table, dry=dry)

    def _write(
        self,
        rows: Rows,
        operation: Operation,
        options: Mapping[str, str] | None,
        partitions: tuple[tuple[str, ...], bool] | None = None,
    ) -> WriteResult:
        reader, coordinator = arrow_rows(rows), self._coordinator(operation, options)
        parsed = coordinator.options
        if partitions is not None:
            paths, exact = partitions
            parsed = replace(parsed, partitions_to_delete=paths, exact_partitions=exact)
            coordinator = replace(coordinator, options=parsed)
        if parsed.concurrency.is_shared and parsed.concurrency.conflict_retries:
            reader = reader.read_all()  # a reader that is read once cannot be written again
        return retry_after_conflicts(parsed, partial(self._write_once, coordinator, reader))

    def _write_once(self, coordinator: Coordinator, rows: Rows) -> WriteResult:
        reader = arrow_rows(rows)
        return self._written(coordinator, coordinator.begin(reader.schema), reader)

    def _change(
        self,
        operation: Operation,
        where: Filter | None,
        values: Mapping[str, NewValue] | None,
        options: Mapping[str, str] | None,
        dry: bool,
    ) -> WriteResult:
        """Write what becomes of the rows that match a filter, or count them alone."""
        coordinator = self._coordinator(operation, options)
        change_of = partial(change_by_filter, where, values)
        if dry:
            plan = coordinator.preview_change(change_of)
            return WriteResult() if plan is None else count_matched(plan)

        def change() -> WriteResult:
            batch = coordinator.begin_change(change_of)
            if batch is None:
                return WriteResult()
            return self._written(coordinator, batch, matched_rows(batch.plan))

        return retry_after_conflicts(coordinator.options, change)

    def _coordinator(self, operation: Operation, options: Mapping[str, str] | None) -> Coordinator:
        """Return what begins and commits a write by the called method."""
        parsed = of_call(self._parsed(options), operation)
        storage = self._storage or storage_to_write(parsed)
        return Coordinator(parsed, storage, self._clock, self._ids)

    def _written(
        self, coordinator: Coordinator, batch: Batch, rows: Iterable[pa.RecordBatch]
    ) -> WriteResult:
        message = write_task(
            batch, TaskId(), batch.given_id, rows, sole_writer=True, clock=self._clock
        )
        return coordinator.commit_or_abort([message])

    def _query(self, asked: Mapping[str, str | None] | None = None) -> Query:
        said = {key: text for key, text in (asked or {}).items() if text is not None}
        options = ReadOptions.parse(overridden(self._options, said))
        return open_query(self._open_to_read(), options, self._merge_hook)

    def _services(
        self, options: Mapping[str, str] | None = None, dry: bool = False
    ) -> ServiceContext:
        parsed = self._parsed(options)
        storage = self._storage or storage_to_write(parsed)
        return ServiceContext(parsed, storage, self._clock, self._ids, is_dry=dry)

    @cached_property
    def _own_options(self) -> WriteOptions:
        return WriteOptions.parse(self._options)

    def _parsed(self, options: Mapping[str, str] | None) -> WriteOptions:
        """Return the table's options with those of a call, which win."""
        parsed = self._own_options
        if options is not None:
            call = given_options(options)
            check_keys(call)
            parsed = WriteOptions.parse(overridden(self._options, call))
        if self._merge_hook is None:
            return parsed
        return replace(parsed, merge_hook=self._merge_hook)

    def _open_to_read(self) -> Storage:
        return self._storage or storage_to_read(self._own_options)

    def _completed(self, name: str, given: Moment) -> str:
        """Return the time of a commit in the range of an incremental query."""
        time = instant_time(name, given)
        commit = None if isinstance(given, str) else self.timeline.commit_at(time)
        return time if commit is None else commit.ended

    def _change_version(self, method: str, to: int, dry: bool) -> VersionChange:
        known = VERSIONS[1:] if method == "upgrade" else VERSIONS[:-1]
        if type(to) is not int or to not in known:  # 8.0 is equal, and formatted differently
            raise OptionError("to", to, f"give {' or '.join(map(str, known))}, as a number")
        context = self._services(dry=dry)
        # The table's options may name the version and the order of rows before or after.
        options = replace(context.options, table_version=None, merge_mode=None, payload_class=None)
        context = replace(context, options=options)
        found = open_to_change(context).properties.version
        if found > to if method == "upgrade" else found < to:
            raise OptionError("to", to, f"the table has version {found}; call the other method")
        return followed(context, partial(change_version, context, to, dry=dry))
