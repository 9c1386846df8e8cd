"""Rows of a query, without Spark."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.config.texts import texts
from hoodie_ds.errors import OptionError, SchemaError
from hoodie_ds.meta_columns import RECORD_KEY
from hoodie_ds.reader.query import Query

_READ_THREADS: Final = 4


class Scanner:
    """Some columns of some rows of a query.

    Parameters
    ----------
    query : Query
        What to read.
    columns : str or iterable of str, optional
        Columns to return, meta columns among them if wanted; all if None.
    row_filter : pyarrow.compute.Expression, optional
        Rows to return; may use columns that are not returned.

    Raises
    ------
    SchemaError
        A column does not exist, or the filter does not fit the columns.
    OptionError
        The filter is no expression of Arrow.
    """

    def __init__(
        self,
        query: Query,
        columns: str | Iterable[str] | None = None,
        row_filter: pc.Expression | None = None,
    ) -> None:
        self._query = query
        self._filter = row_filter
        names = query.schema.names
        self._wanted = names if columns is None else list(texts("columns", columns))
        for name in self._wanted:
            if name not in names:
                raise SchemaError(
                    f"column {name!r} is not in the table; its columns are {', '.join(names)}"
                )
        # Without a column Arrow would lose the number of rows on the way.
        some = [name for name in names if name == RECORD_KEY] or names[:1]
        self._fetched = (self._wanted or some) if row_filter is None else names
        self._empty = pa.schema(map(query.schema.field, self._fetched)).empty_table()
        _filtered(self._empty, row_filter)  # refused before anything is read

    def to_table(self) -> pa.Table:
        """Return all rows."""
        plan = self._query.plan()
        with ThreadPoolExecutor(_READ_THREADS, thread_name_prefix="hoodie-reader") as pool:
            read = plan.executor.read
            parts = pool.map(lambda task: list(read(task, self._fetched)), plan.tasks)
            rows = pa.concat_tables([self._empty, *chain.from_iterable(parts)])
        return _filtered(rows, self._filter).select(self._wanted)


def _filtered(rows: pa.Table, row_filter: object) -> pa.Table:
    if row_filter is None:
        return rows
    if not isinstance(row_filter, pc.Expression):
        remedy = 'give an expression of Arrow, such as pyarrow.compute.field("id") == "a"'
        raise OptionError("filter", type(row_filter).__name__, remedy)
    try:
        return rows.filter(row_filter)
    except pa.ArrowException as error:
        raise SchemaError(
            f"the filter {str(row_filter)[:200]} does not fit the table's columns, "
            f"{', '.join(rows.column_names)}: {error}"
        ) from error
