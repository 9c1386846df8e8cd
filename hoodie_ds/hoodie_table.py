"""`HoodieTable`: a Hudi table without Spark, Arrow tables in and out.

It takes the same way as the Spark sink: the same coordinator, task writer, handles and reader.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from html import escape

from hoodie_ds.arguments import options as given_options
from hoodie_ds.arrow_input import Rows, arrow_rows
from hoodie_ds.config.checked import check_options
from hoodie_ds.config.enums import Operation
from hoodie_ds.config.given_options import check_keys, overridden
from hoodie_ds.config.options.write import OPERATION
from hoodie_ds.config.properties.table_properties import TableProperties
from hoodie_ds.config.read_options import ReadOptions
from hoodie_ds.config.texts import texts
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.environment import Clock, IdSource, RandomIds, SystemClock
from hoodie_ds.errors import HoodieError, OptionError, WriteConflictError
from hoodie_ds.inspection.inspector import Inspector
from hoodie_ds.inspection.moments import Source
from hoodie_ds.reader.query import Query, open_query
from hoodie_ds.record.merge.merge_hook import MergeHook
from hoodie_ds.services.cleaning import clean
from hoodie_ds.services.context import Progress, ServiceContext
from hoodie_ds.services.results import Cleaning, ServiceResult
from hoodie_ds.sink.bucket_rescale import BucketRescale, BucketRescaler, new_buckets
from hoodie_ds.sink.commit.conflicts import retry_after_conflicts
from hoodie_ds.sink.coordinator import Coordinator
from hoodie_ds.sink.messages import TaskId, WriteResult
from hoodie_ds.sink.task_writer import write_task
from hoodie_ds.storage.connect import storage_to_read, storage_to_write
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.table import open_table
from hoodie_ds.table_reads import TableReads
from hoodie_ds.table_services import TableServices
from hoodie_ds.table_syncs import TableSyncs
from hoodie_ds.timeline.timeline import Timeline


class HoodieTable(TableServices, TableSyncs, TableReads):
    """A Hudi table at a base path, which the first write creates.

    Parameters
    ----------
    path : str or path-like
        Base path: a local folder, in which ``~`` is the user's, or an fsspec URL. It takes the
        place of the option ``path``.
    options : mapping of str to str, optional
        Options of every write, with Hudi's names; those of a call win over them. They are
        checked here, though a table that does not exist yet is created by the first write. A key
        that is not known is refused, whatever its prefix. The method that is called says the
        operation: a write is refused if ``hoodie.datasource.write.operation`` says another one,
        but `insert` takes ``bulk_insert``.
    storage : Storage, optional
        Rooted at the base path, in place of the one that the path's scheme gives.
    clock, ids : Clock and IdSource, optional
        In place of the machine's.
    merge_hook : MergeHook, optional
        Merges rows with one key, in a table with merge mode CUSTOM; as the option
        ``hoodie.py.merge.hook``, by which other processes name it.

    Examples
    --------
    >>> table = HoodieTable("/tmp/trips", {"hoodie.table.name": "trips",
    ...     "hoodie.datasource.write.recordkey.field": "uuid",
    ...     "hoodie.datasource.write.precombine.field": "ts"})
    >>> table.upsert(rows)  # doctest: +SKIP
    >>> table.read(columns=["uuid", "fare"])  # doctest: +SKIP
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
            raise OptionError("path", path, "give the table's folder, as text or pathlib.Path")
        self._options = {**given_options(options), "path": os.fspath(path)}
        check_options(self._options)
        self._storage = storage
        self._clock = clock or SystemClock()
        self._ids = ids or RandomIds()
        self._merge_hook = merge_hook

    def __repr__(self) -> str:
        return f"HoodieTable({self._options['path']!r})"

    def _repr_html_(self) -> str:
        """Return the table at a glance, as notebooks show it."""
        try:
            return self.inspect.show()._repr_html_()
        except HoodieError as error:
            return f"<p>{escape(repr(self))}: {escape(str(error))}</p>"

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
        """Append rows, also such whose key is stored; creates the table if there is none.

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
        """Put rows in place of all that is there (``insert_overwrite_table``).

        Parameters
        ----------
        rows : pyarrow.Table, pandas or Polars frame, or other Arrow data
            Columns of the table.
        options : mapping of str to str, optional
            Further options of this write.
        partitions_only : bool
            Whether partitions that `rows` have no row of stay (``insert_overwrite``).
        """
        operation = (
            Operation.INSERT_OVERWRITE if partitions_only else Operation.INSERT_OVERWRITE_TABLE
        )
        return self._write(rows, operation, options)

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
            Partition paths, taken letter by letter, with commas and blanks; but ``*`` stands for
            any text. A path that is not there is passed over.
        options : mapping of str to str, optional
            Further options of this write.
        exact : bool
            Whether ``*`` stands for itself, as in the path of a partition that holds one.

        Raises
        ------
        OptionError
            No partition is given, or something that is no text.
        """
        paths = texts("partitions", partitions)
        if not paths:
            raise OptionError("partitions", None, "name the partitions to delete")
        empty = self.schema.empty_table()
        # Not by way of the option, whose text knows no comma within a path and no outer blank.
        return self._write(empty, Operation.DELETE_PARTITION, options, (paths, exact))

    def delete(self, keys: Rows, options: Mapping[str, str] | None = None) -> WriteResult:
        """Delete rows by record key.

        Parameters
        ----------
        keys : pyarrow.Table, pandas or Polars frame, or other Arrow data
            The columns of record key and partition. If the ordering column is there too, a row
            with a greater ordering value survives.
        options : mapping of str to str, optional
            Further options of this write.
        """
        return self._write(keys, Operation.DELETE, options)

    def clean(
        self, options: Mapping[str, str] | None = None, *, dry: bool = False
    ) -> ServiceResult[Cleaning]:
        """Delete old files that nobody needs any more, by the options ``hoodie.clean.*``.

        A clean that another process has begun is finished first.

        Parameters
        ----------
        options : mapping of str to str, optional
            Further options, such as ``hoodie.clean.commits.retained``.
        dry : bool
            Whether to say only what would be deleted.

        Returns
        -------
        ServiceResult of Cleaning
            What was deleted, or would be; empty and false if there was nothing.

        Raises
        ------
        HoodieError
            The clean was refused or failed; what was begun the next one finishes.
        """
        return clean(self._services(options, dry), dry=dry)

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

        The rows stay as they are; to incremental queries they are new, as after an overwrite.
        Writers that began before are refused; those that name a number of buckets have to name
        the new one.

        Parameters
        ----------
        num_buckets : int
            Buckets of each partition.
        rules : str, optional
            Partitions with another number, as ``regex,number;regex,number``; none if not given,
            whatever rules the table has.
        options : mapping of str to str, optional
            Further options of this write.
        dry : bool
            Whether only to say what would be done.
        progress : callable, optional
            Is told how many bytes of the file groups are read, and of how many.

        Returns
        -------
        BucketRescale
            What was done, or would be; false if the table has these buckets.

        Raises
        ------
        OptionError
            The number or the rules are malformed.
        UnsupportedTableError
            The table has no bucket index, or options for keys that are not known.
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
        """What the table is made of and what has happened to it, as ``hoodie-py`` shows it."""
        options = ReadOptions.parse(self._options)
        hook = self._merge_hook or options.merge_hook
        known = self._parsed(None)
        return Inspector(Source(self._open_to_read(), hook, options.verify_checksums, known))

    def _write(
        self,
        rows: Rows,
        operation: Operation,
        options: Mapping[str, str] | None,
        partitions: tuple[tuple[str, ...], bool] | None = None,
    ) -> WriteResult:
        parsed = self._parsed(options)
        reader = arrow_rows(rows)
        parsed = replace(parsed, operation=_agreed(operation, parsed.operation))
        if partitions is not None:
            paths, exact = partitions
            parsed = replace(parsed, partitions_to_delete=paths, exact_partitions=exact)
        storage = self._storage or storage_to_write(parsed)
        coordinator = Coordinator(parsed, storage, self._clock, self._ids)
        if parsed.concurrency.is_shared and parsed.concurrency.conflict_retries:
            reader = reader.read_all()  # what can be read once cannot be written again
        return retry_after_conflicts(parsed, partial(self._write_once, coordinator, reader))

    def _write_once(self, coordinator: Coordinator, rows: Rows) -> WriteResult:
        reader = arrow_rows(rows)
        batch = coordinator.begin(reader.schema)
        message = write_task(
            batch, TaskId(), batch.given_id, reader, sole_writer=True, clock=self._clock
        )
        try:
            return coordinator.commit([message])
        except WriteConflictError:
            coordinator.abort([message])  # else it looks alive to others until it is old
            raise

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

    def _parsed(self, options: Mapping[str, str] | None) -> WriteOptions:
        """Return the table's options with those of a call, which win."""
        call = given_options(options)
        check_keys(call)
        parsed = WriteOptions.parse(overridden(self._options, call))
        if self._merge_hook is None:
            return parsed
        return replace(parsed, merge_hook=self._merge_hook)

    def _open_to_read(self) -> Storage:
        return self._storage or storage_to_read(WriteOptions.parse(self._options))


def _agreed(called: Operation, said: Operation | None) -> Operation:
    """Return the operation of the method that was called, which the option may not contradict."""
    if said is None or said is called:
        return called
    if called is Operation.INSERT and said is Operation.BULK_INSERT:
        return said
    raise OptionError(
        OPERATION.key,
        said.value,
        f"the method that was called does {called.value}; leave the option out, or call the "
        "method that does what it says",
    )
