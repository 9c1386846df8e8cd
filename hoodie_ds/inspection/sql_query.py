"""A query in DuckDB's SQL over a table, which it calls ``t``.

DuckDB asks Arrow's datasets for columns, and passes them filters on. So the table is one of these:
what the query does not need is not read, and files that it rules out are not opened.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa

from hoodie_ds.errors import HoodieError, OptionError
from hoodie_ds.extras import remedy, require
from hoodie_ds.reader.query import Query
from hoodie_ds.reader.query_dataset import QueryDataset
from hoodie_ds.reader.scanner import Scanner

SHOWN: Final = 200
"""Characters of a query that errors show."""


def query_rows(sql: str, query: Query) -> Iterator[pa.Table]:
    """Yield the rows of one SELECT over the rows of a table's query, piece by piece."""
    require("a query in SQL", remedy("sql"), "duckdb")
    import duckdb

    table = _Table(query)
    try:
        with refused("sql", sql), duckdb.connect() as session:
            session.execute("SET python_enable_replacements = false; SET TimeZone = 'UTC'")
            kinds = [statement.type for statement in session.extract_statements(sql)]
            if kinds != [duckdb.StatementType.SELECT]:
                raise OptionError("sql", sql[:SHOWN], "write one SELECT: the table is only read")
            session.register("t", table)
            for batch in pa.RecordBatchReader.from_stream(session.sql(sql)):
                yield pa.Table.from_batches([batch])
    except OptionError as error:
        for ours in table.errors:
            raise ours from error
        raise


@contextmanager
def refused(option: str, sql: str) -> Iterator[None]:
    """Turn what DuckDB says of a query into an `OptionError` of an option."""
    import duckdb

    try:
        yield
    except (duckdb.Error, OSError) as error:  # Arrow's, once the first rows have come
        said = str(error).partition("\n\n")[0]
        raise OptionError(option, sql[:SHOWN], f"DuckDB refuses it: {said}") from error


class _Table(QueryDataset):
    """The rows of a query, and why some could not be read, of which DuckDB passes only words on."""

    def __init__(self, query: Query) -> None:
        super().__init__(query)
        self.errors: Final = list[HoodieError]()

    def scanner(self, *given: Any, **named: Any) -> Any:  # noqa: ANN401
        """Return what reads some columns of the rows for which a filter is true."""
        return _NotingErrors(super().scanner(*given, **named), self.errors)


class _NotingErrors:
    """A scanner as DuckDB takes it."""

    def __init__(self, scanner: Scanner, errors: list[HoodieError]) -> None:
        self._scanner: Final = scanner
        self._errors: Final = errors

    @property
    def projected_schema(self) -> pa.Schema:
        """The columns of the rows."""
        return self._scanner.schema

    def to_reader(self) -> pa.RecordBatchReader:
        """Return a reader of the rows."""
        return pa.RecordBatchReader.from_batches(self._scanner.schema, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._scanner.to_batches()
        except HoodieError as error:
            self._errors.append(error)
            raise
