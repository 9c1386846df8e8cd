"""How a batch's schema meets the table's: evolution, and refusal of what does not fit.

Schemas here are those of user columns (no ``_hoodie_*`` meta columns), normalised to the types that
the table stores; conversion to and from Avro is in ``formats``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

import pyarrow as pa

from hoodie_ds.columns.meta_columns import IS_DELETED, META_COLUMNS
from hoodie_ds.errors import SchemaError
from hoodie_ds.record.field_path import resolve

_WIDER: Final = {
    pa.int32(): (pa.int64(), pa.float64()),
    pa.float32(): (pa.float64(),),
}
"""Lossless type changes that Avro's schema resolution applies to older files."""

_AS_DOUBLE: Final = (pa.int32(), pa.float32())
"""Types of a batch whose every value is exactly one double."""


def evolve(table: pa.Schema, batch: pa.Schema, allow_missing: bool) -> pa.Schema:
    """Return the table's schema after a batch.

    Columns that only the batch has are added at the end; numbers widen; a narrower number in the
    batch keeps the table's type. With `allow_missing`
    (``hoodie.write.set.null.for.missing.columns``) the batch may lack columns, which are then null.
    A `SchemaError` names a column that is missing or changed its type incompatibly.
    """
    return pa.schema(_evolve_fields("", list(table), list(batch), allow_missing))


def check_case(table: pa.Schema, batch: pa.Schema) -> None:
    """Refuse columns that engines which ignore case, Spark and Hive, cannot tell apart.

    A `SchemaError` names a column of the batch, or a field of a struct at any depth, that differs
    only by case from another one, of the batch, of the table or a meta column. Columns that the
    table already has are not refused.
    """
    held = {*META_COLUMNS, *_paths(list(table), "")}
    seen = {path.lower(): path for path in held}
    for path in _paths(list(batch), ""):
        twin = seen.setdefault(path.lower(), path)
        if path not in held and twin != path:
            raise SchemaError(
                f"columns {twin!r} and {path!r} differ in nothing but case, which Spark and "
                "Hive do not tell apart; rename one of them"
            )


def check_exact(table: pa.Schema, batch: pa.Schema, fields: Iterable[str], what: str) -> None:
    """Refuse a batch whose numbers would change the values that rows are found or ordered by.

    Integers may widen. A change between integers and floating point numbers, or of the width of the
    latter, writes the same value as another string (``1`` as ``1.0``): keys, partitions and buckets
    would differ, and a null would have another rank. `fields` are paths; `what` names their purpose
    in the error.
    """
    for path in fields:
        stored, arriving = _type_of(table, path), _type_of(batch, path)
        if stored == arriving or (stored == pa.float64() and arriving in _AS_DOUBLE):
            continue
        if stored is None or arriving is None:
            continue  # a new column, or one that deletes may do without
        if pa.types.is_floating(stored) or pa.types.is_floating(arriving):
            raise SchemaError(
                f"{what} column {path!r} is {stored} in the table and {arriving} in the batch, "
                "which would store the same values as others (1 as 1.0, say); cast it to "
                f"{stored} before the write{_pandas_hint(stored, arriving)}"
            )


@lru_cache(maxsize=256)
def _type_of(schema: pa.Schema, path: str) -> pa.DataType | None:
    try:
        return resolve(schema.empty_table(), path).type
    except SchemaError:
        return None


def _pandas_hint(stored: pa.DataType, arriving: pa.DataType) -> str:
    if not (pa.types.is_integer(stored) and pa.types.is_floating(arriving)):
        return ""
    return (
        "; pandas makes whole numbers floating point where a column has had a null: use its type "
        f"'{'Int32' if stored == pa.int32() else 'Int64'}'"
    )


def _paths(fields: list[pa.Field], parent: str) -> Iterator[str]:
    """Path of every column and of every struct field below it."""
    for field in fields:
        yield f"{parent}{field.name}"
        yield from _inner_paths(field.type, f"{parent}{field.name}")


def _inner_paths(kind: pa.DataType, path: str) -> Iterator[str]:
    if pa.types.is_struct(kind):
        yield from _paths([kind.field(i) for i in range(kind.num_fields)], f"{path}.")
    elif pa.types.is_list(kind):
        yield from _inner_paths(kind.value_type, f"{path}[]")
    elif pa.types.is_map(kind):
        yield from _inner_paths(kind.item_type, f"{path}[]")


def _evolve_fields(
    parent: str, table: list[pa.Field], batch: list[pa.Field], allow_missing: bool
) -> list[pa.Field]:
    incoming = {field.name: field for field in batch}
    fields = []
    for field in table:
        path = f"{parent}{field.name}"
        new = incoming.pop(field.name, None)
        if new is None and not allow_missing and path != IS_DELETED:
            raise SchemaError(
                f"column {path!r} of the table is missing in the batch; add it, or set "
                "'hoodie.write.set.null.for.missing.columns' to true to write nulls"
            )
        kind = (
            field.type if new is None else _evolve_type(path, field.type, new.type, allow_missing)
        )
        fields.append(pa.field(field.name, kind))
    return fields + [pa.field(field.name, field.type) for field in incoming.values()]


def _evolve_type(
    path: str, table: pa.DataType, batch: pa.DataType, allow_missing: bool
) -> pa.DataType:
    if table == batch or table in _WIDER.get(batch, ()):
        return table
    if batch in _WIDER.get(table, ()):
        return batch
    types = pa.types
    if types.is_struct(table) and types.is_struct(batch):
        return pa.struct(_evolve_fields(f"{path}.", list(table), list(batch), allow_missing))
    if types.is_list(table) and types.is_list(batch):
        return pa.list_(
            _evolve_type(f"{path}.element", table.value_type, batch.value_type, allow_missing)
        )
    if types.is_map(table) and types.is_map(batch):
        return pa.map_(
            pa.string(),
            _evolve_type(f"{path}.value", table.item_type, batch.item_type, allow_missing),
        )
    if types.is_decimal(table) and types.is_decimal(batch) and _holds(table, batch):
        return table
    raise SchemaError(
        f"column {path!r} is {table} in the table and {batch} in the batch, which cannot be "
        "stored in it; cast the column, or write it under another name"
    )


def _holds(table: pa.DataType, batch: pa.DataType) -> bool:
    whole_digits = table.precision - table.scale >= batch.precision - batch.scale
    return bool(whole_digits and table.scale >= batch.scale)
