"""Expressions of SQL over the columns of rows, which DuckDB evaluates."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import pyarrow as pa

from hoodie_ds.errors import OptionError, SchemaError
from hoodie_ds.extras import remedy, require
from hoodie_ds.filters.joined import as_structs

_OF_SEVERAL_ROWS: Final = {"SUBQUERY", "WINDOW"}
_REMEDY: Final = (
    "write an expression of DuckDB's SQL over the columns of one row, without aggregates, windows "
    "and subqueries"
)
_SESSION: Final = {"threads": 1, "enable_external_access": False}
_SHOWN: Final = 200


@dataclass(frozen=True, slots=True)
class SqlExpression:
    """An expression of SQL, made by `expr`."""

    text: str

    def check(self, columns: pa.Schema) -> pa.ChunkedArray:
        """Return no values of its type; `OptionError` unless it has one for each row."""
        try:
            return self._evaluated(columns.empty_table())
        except _RefusedError as error:
            shown = ", ".join(columns.names)
            remedy = f"{error}; {_REMEDY}; the columns are {shown}"
            raise OptionError("expr", self.text[:_SHOWN], remedy) from error

    def of(self, rows: pa.Table, name: str) -> pa.ChunkedArray:
        """Return the value of each row, for a column that errors name."""
        try:
            return self._evaluated(rows)
        except _RefusedError as error:
            raise SchemaError(
                f"expr({self.text[:_SHOWN]!r}) for column {name!r} fails: {error}"
            ) from error

    def _evaluated(self, rows: pa.Table) -> pa.ChunkedArray:
        import duckdb

        with _refused(), closing(_engine(os.getpid()).cursor()) as session:
            # Timestamps come in UTC, and Python's variables are not tables.
            session.execute("SET TimeZone = 'UTC'; SET python_enable_replacements = false")
            self._check_syntax(session)
            one = duckdb.SQLExpression(self.text).alias("value")
            given = session.from_arrow(as_structs(rows))
            made: pa.Table = given.select(one).to_arrow_table()
            if made.num_columns != 1:
                raise _RefusedError("it has several columns")
            given.filter(one.isnull())  # a condition has one value for each row, or is refused
            return made.column(0)

    def _check_syntax(self, session: object) -> None:
        query = "SELECT json_serialize_sql(?)"
        ((said,),) = session.execute(query, [f"SELECT {self.text}"]).fetchall()  # type: ignore[attr-defined]
        found = _OF_SEVERAL_ROWS & {*_classes(json.loads(said))}
        for name in sorted(found):
            raise _RefusedError(f"it has a {name.lower()}")


class _RefusedError(Exception):
    """What DuckDB says of an expression."""


@cache
def _engine(_process: int) -> Any:  # noqa: ANN401
    """An empty database of this process, which takes long to open; no child may inherit it."""
    import duckdb

    return duckdb.connect(config={**_SESSION})


@contextmanager
def _refused() -> Iterator[None]:
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        if isinstance(error, (duckdb.InternalException, duckdb.FatalException)):
            _engine.cache_clear()  # it answers nothing any more
        raise _RefusedError(" ".join(str(error).split("\n\n")[0].split())) from error


def _classes(tree: object) -> Iterator[str]:
    """The kinds of all expressions in a syntax tree."""
    if isinstance(tree, dict):
        if isinstance(tree.get("class"), str):
            yield tree["class"]
        for part in tree.values():
            yield from _classes(part)
    elif isinstance(tree, list):
        for part in tree:
            yield from _classes(part)


def expr(text: str) -> SqlExpression:
    """Return an expression of SQL over a row, as a new value for `update` and for merges.

    DuckDB evaluates it, over the row as it was. What is computed of a null is null, unless a
    function says otherwise, and whole numbers divided by one another are floating-point numbers. In
    a merge the columns are ``source.fare`` and ``target.fare``.

    Parameters
    ----------
    text : str
        Such as ``"fare * 1.1"`` or ``"CASE WHEN fare < 0 THEN 0 ELSE fare END"``;
        no aggregates, windows or subqueries.

    Returns
    -------
    SqlExpression
        What takes the place of a value. A string alone is a value, not SQL.

    Raises
    ------
    MissingPackageError
        DuckDB is not installed. On Spark the workers need it, too.

    Examples
    --------
    >>> table.update({"fare": hoodie_ds.expr("fare * 2")}, "city = oslo").updated
    1
    """
    require("expr", remedy("sql"), "duckdb")
    if not isinstance(text, str) or not text.strip():
        raise OptionError("expr", text, _REMEDY)
    return SqlExpression(text)
