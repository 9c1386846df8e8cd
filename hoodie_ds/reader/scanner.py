"""Rows of a query, without Spark."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from operator import index
from typing import Final, SupportsIndex

import pyarrow as pa

from hoodie_ds.columns.meta_columns import COMMIT_TIME
from hoodie_ds.config.given_options import strings
from hoodie_ds.errors import OptionError, SchemaError
from hoodie_ds.filters.given import Filter, predicate_of
from hoodie_ds.filters.predicate import ALL, Predicate, columns_used
from hoodie_ds.filters.rows import matching
from hoodie_ds.reader.query import Query
from hoodie_ds.reader.scan_plan import ScanPlan, ScanTask

_READ_THREADS: Final = 4
_STREAMED_AT_ONCE: Final = 2
"""Files that a stream holds open: each may take the memory of a row group."""


def chosen_columns(
    schema: pa.Schema, columns: str | Iterable[str] | None, predicate: Predicate
) -> tuple[list[str], list[str]]:
    """Return the columns to return, by default all, and those to read, of the filter too.

    Raises `SchemaError` if a column does not exist, or comes twice.
    """
    names = schema.names
    wanted = names if columns is None else list(strings("columns", columns))
    for name in wanted:
        if name not in names:
            raise SchemaError(
                f"column {name!r} is not in the table; its columns are {', '.join(names)}"
            )
        if wanted.count(name) > 1:
            raise SchemaError(f"column {name!r} is requested more than once; name it once")
    used = columns_used(predicate)
    if used is None:  # an expression may name columns by their positions in the table
        return wanted, names
    fetched = [*wanted, *(name for name in names if name in used.difference(wanted))]
    # Without a column batches would lose the number of rows.
    return wanted, fetched or [name for name in names if name == COMMIT_TIME] or names[:1]


class Scanner:
    """Some columns of some rows of a query; DuckDB, Polars and others read from it as it is.

    The table is looked at as it was when the scanner was made, each time that rows are asked for.

    Parameters
    ----------
    query : Query
        What to read.
    columns : str or iterable of str, optional
        Columns to return, meta columns among them if wanted; all if None.
    row_filter : Filter, optional
        Rows to return, as for `HoodieTable.read`; may use columns that are not returned.

    Raises
    ------
    SchemaError
        A column does not exist, or the filter does not fit the columns.
    OptionError
        The filter is refused.

    Examples
    --------
    >>> trips = HoodieTable("/tmp/trips").scan(["uuid", "fare"])
    >>> duckdb.sql("SELECT sum(fare) FROM trips").fetchall()
    [(21.5,)]
    """

    def __init__(
        self,
        query: Query,
        columns: str | Iterable[str] | None = None,
        row_filter: Filter | None = None,
    ) -> None:
        self._query = query
        self._predicate = predicate_of(row_filter, query.schema)
        self._wanted, self._fetched = chosen_columns(query.schema, columns, self._predicate)

    @property
    def schema(self) -> pa.Schema:
        """Columns that are returned."""
        return pa.schema(map(self._query.schema.field, self._wanted))

    @property
    def projected_schema(self) -> pa.Schema:
        """The same, as scanners of Arrow call it."""
        return self.schema

    def to_table(self) -> pa.Table:
        """Return all rows."""
        plan = self._plan()
        with ThreadPoolExecutor(_READ_THREADS, thread_name_prefix="hoodie-reader") as pool:
            parts = pool.map(lambda task: list(self._rows(plan, task, self._fetched)), plan.tasks)
            empty = pa.schema(map(plan.schema.field, self._fetched)).empty_table()
            return pa.concat_tables([empty, *chain.from_iterable(parts)]).select(self._wanted)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in batches, in memory that does not grow with the table.

        It grows with what is not streamed: of two files at a time a row group, and, where log files
        are merged, their bytes and the newest record of each key. Rows of a file come in order; of
        two files they are mixed.
        """
        for rows in self._streamed(self._fetched):
            yield from rows.select(self._wanted).to_batches()

    def to_reader(self) -> pa.RecordBatchReader:
        """Return a reader of the rows, which reads as it is read from; see `to_batches`."""
        return pa.RecordBatchReader.from_batches(self.schema, self.to_batches())

    def head(self, num_rows: int) -> pa.Table:
        """Return the rows that are read first, `num_rows` at most, and read no further.

        Raises `OptionError` if that is no number of rows.
        """
        if not isinstance(num_rows, SupportsIndex) or index(num_rows) < 0:
            raise OptionError("head", num_rows, "give a whole number of rows, 0 or more")
        plan, left = self._plan(), num_rows
        found = [pa.schema(map(plan.schema.field, self._fetched)).empty_table()]
        pieces = (self._rows(plan, task, self._fetched) for task in plan.tasks)
        rows = chain.from_iterable(pieces)
        while left > 0 and (piece := next(rows, None)) is not None:
            found.append(piece.slice(0, left))
            left -= found[-1].num_rows
        return pa.concat_tables(found).select(self._wanted)

    def count_rows(self) -> int:
        """Return the number of rows, reading few columns.

        Without a filter none is read of a file that has no log files: its footer has the number,
        and its checksum is not compared.
        """
        counted = Scanner(self._query, (), self._predicate)
        columns = [] if self._predicate == ALL else counted._fetched
        return sum(int(rows.num_rows) for rows in counted._streamed(columns))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the rows as a stream of Arrow's C data interface."""
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def _plan(self) -> ScanPlan:
        return self._query.plan(self._predicate)

    def _rows(self, plan: ScanPlan, task: ScanTask, columns: Sequence[str]) -> Iterator[pa.Table]:
        for rows in plan.executor.read(task, columns):
            yield matching(rows, self._predicate)

    def _streamed(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """The rows of a few tasks at a time in turn, each one piece ahead."""
        plan = self._plan()
        tasks = iter(plan.tasks)
        with ThreadPoolExecutor(_STREAMED_AT_ONCE, thread_name_prefix="hoodie-reader") as pool:
            ahead: deque[tuple[Iterator[pa.Table], Future[pa.Table | None]]] = deque()

            def go_on(rows: Iterator[pa.Table]) -> None:
                ahead.append((rows, pool.submit(next, rows, None)))

            for task in islice(tasks, _STREAMED_AT_ONCE):
                go_on(self._rows(plan, task, columns))
            while ahead:
                rows, piece = ahead.popleft()
                found = piece.result()
                if found is None:
                    for task in islice(tasks, 1):
                        go_on(self._rows(plan, task, columns))
                    continue
                go_on(rows)
                if found.num_rows:
                    yield found
