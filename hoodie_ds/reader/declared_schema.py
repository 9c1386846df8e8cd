"""The schema that a user declares for a read: a choice of columns by name, in types of theirs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from hoodie_ds.errors import SchemaError
from hoodie_ds.formats.schema_conversion import conform
from hoodie_ds.record.schema import evolve


def check_declared(stored: pa.Schema, declared: pa.Schema) -> None:
    """Raise `SchemaError` unless every declared column is stored, in a type that may be narrower.

    Columns may be in any order; there must be one.
    """
    if not declared.names:
        raise SchemaError("the declared schema has no column; name one, or leave the schema out")
    for field in declared:
        if field.name not in stored.names:
            raise SchemaError(
                f"column {field.name!r} of the declared schema is not in the table; its columns "
                f"are {', '.join(stored.names)}"
            )
        own = stored.field(field.name)
        if not _holds(own, field):
            raise SchemaError(
                f"column {field.name!r} is {own.type} in the table and {field.type} in the "
                "declared schema; declare the table's type, and cast the column afterwards"
            )


def as_declared(rows: pa.Table, declared: pa.Schema) -> pa.Table:
    """Return rows in the types of a schema that passes `check_declared`.

    Raises `SchemaError` if a column that is declared without nulls has one.
    """
    for field in declared:
        if not field.nullable and rows.column(field.name).null_count:
            raise SchemaError(
                f"column {field.name!r} is declared NOT NULL and has nulls; leave NOT NULL out"
            )
    return conform(rows, declared)


def declared_batches(
    pieces: Iterable[pa.Table], declared: pa.Schema, batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """Yield rows as `as_declared` returns them, in record batches of at most `batch_rows` rows."""
    for rows in pieces:
        yield from as_declared(rows, declared).to_batches(max_chunksize=batch_rows)


def _holds(stored: pa.Field, declared: pa.Field) -> bool:
    if stored.type == declared.type:
        return True
    try:
        wider = evolve(pa.schema([stored]), pa.schema([declared]), allow_missing=False)
    except SchemaError:
        return False
    return bool(wider.field(0).type == declared.type)
