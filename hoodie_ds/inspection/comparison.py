"""A table compared with other rows, by key.

Both sides are read twice, piece by piece: first to hash all rows, then to fetch those whose hash
only one side has, up to a limit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from hoodie_ds.errors import OptionError, SchemaError
from hoodie_ds.extras import remedy, require
from hoodie_ds.inspection.changes import TableDiff, rows_diff
from hoodie_ds.inspection.sql_query import SHOWN, refused
from hoodie_ds.sink.digest.row_hash import Hashes, row_hashes

_QUERY: Final = re.compile(r"\s*(select|with|from)\s", re.IGNORECASE)

Pieces = Callable[[], Iterable[pa.Table]]
"""Reads rows anew each time that it is called."""


@dataclass(frozen=True, slots=True)
class Side:
    """Named rows that are compared."""

    name: str
    schema: pa.Schema
    read: Pieces


def is_query(text: str) -> bool:
    """Whether a string is a query in SQL rather than a path, by its first word."""
    return _QUERY.match(text) is not None


def query_side(query: str) -> Side:
    """Return the rows of a query in DuckDB's SQL, such as ``SELECT * FROM 'trips/*.csv'``.

    The query runs each time that the rows are read.
    """
    require("a comparison with a query", remedy("sql"), "duckdb")
    import duckdb

    def read() -> Iterator[pa.Table]:
        with refused("against", query), duckdb.connect() as session:
            session.execute("SET python_enable_replacements = false")
            reader = pa.RecordBatchReader.from_stream(session.sql(query))
            for batch in reader:
                yield pa.Table.from_batches([batch])

    with refused("against", query), duckdb.connect() as session:
        session.execute("SET python_enable_replacements = false")
        relation = session.sql(query)
        if relation is None:
            raise OptionError("against", query[:SHOWN], "give a SELECT, which has rows")
        schema = pa.RecordBatchReader.from_stream(relation.limit(0)).schema
    return Side("the query", schema, read)


def compare(expected: Side, found: Side, keys: Sequence[str], limit: int) -> TableDiff:
    """Return how rows differ by `keys`, or by all columns without any; `expected` lacks inserts.

    Columns that only one side has are compared too, as nulls of the other. All rows that differ
    are counted, and at most `limit` of each side fetched.
    """
    for side in (expected, found):
        for name in keys:
            if name not in side.schema.names:
                raise SchemaError(f"{side.name} has no column {name!r}, by which rows are compared")
    expected = _with_types(expected, found.schema)
    names = list(keys) or list(found.schema.names)
    old, new = _hashed(expected, names), _hashed(found, names)
    gone, come = ~np.isin(old[0], new[0]), ~np.isin(new[0], old[0])
    old_keys, new_keys = old[1][gone], new[1][come]
    updated = int(np.isin(new_keys, old_keys).sum())
    rows = rows_diff(
        _fetched(expected, old[0][gone], limit), _fetched(found, new[0][come], limit), names
    )
    inserted, deleted = len(new_keys) - updated, int((~np.isin(old_keys, new_keys)).sum())
    return TableDiff(expected.name, found.name, inserted, updated, deleted, rows)


def _with_types(side: Side, schema: pa.Schema) -> Side:
    """Cast the columns of a side to the types of a table."""
    fields = [
        schema.field(field.name) if field.name in schema.names else field for field in side.schema
    ]
    if fields == list(side.schema):
        return side

    def column(rows: pa.Table, field: pa.Field) -> pa.ChunkedArray:
        found = rows.column(field.name)
        try:
            return found.cast(field.type)
        except pa.ArrowException as error:
            raise SchemaError(
                f"column {field.name!r} of {side.name} is {found.type}, which does not become "
                f"{field.type}, as the table has it: {error}"
            ) from error

    def read() -> Iterator[pa.Table]:
        for rows in side.read():
            yield pa.table([column(rows, field) for field in fields], pa.schema(fields))

    return Side(side.name, pa.schema(fields), read)


def _hashed(side: Side, keys: list[str]) -> tuple[Hashes, Hashes]:
    """Return the hashes of the rows of a side, and of their keys."""
    none = np.zeros(0, np.uint64)
    rows, of_keys = [none], [none]
    for piece in side.read():
        if piece.num_rows:
            rows.append(row_hashes(piece))
            of_keys.append(row_hashes(piece.select(keys)))
    return np.concatenate(rows), np.concatenate(of_keys)


def _fetched(side: Side, wanted: Hashes, limit: int) -> pa.Table:
    parts, count = [side.schema.empty_table()], 0
    if len(wanted):
        for piece in side.read():
            if piece.num_rows and count < limit:
                kept = piece.filter(pa.array(np.isin(row_hashes(piece), wanted)))
                kept = kept.slice(0, limit - count)
                count += kept.num_rows
                parts.append(kept)
    return pa.concat_tables(parts, promote_options="permissive")
