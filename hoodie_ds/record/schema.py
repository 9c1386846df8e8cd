"""How a batch's schema meets the table's: evolution, and refusal of what does not fit.

Schemas here are those of user columns (no ``_hoodie_*`` meta columns) and already in the form in
which the table stores them; conversion to and from Avro lies in ``formats``.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from hoodie_ds.errors import SchemaError

_WIDER: Final = {
    pa.int32(): (pa.int64(), pa.float64()),
    pa.float32(): (pa.float64(),),
}
"""Type changes that lose nothing and that Avro's schema resolution reads from older files."""


def evolve(table: pa.Schema, batch: pa.Schema, allow_missing: bool) -> pa.Schema:
    """Return the table's schema after a batch.

    Columns that only the batch has are added at the end; numbers widen; a narrower number in the
    batch keeps the table's type.

    Parameters
    ----------
    table, batch : pyarrow.Schema
        User columns of the table and of the batch.
    allow_missing : bool
        Whether the batch may lack columns of the table, which are then null
        (``hoodie.write.set.null.for.missing.columns``).

    Raises
    ------
    SchemaError
        A column changed its type incompatibly or is missing; names the column.
    """
    return pa.schema(_evolve_fields("", list(table), list(batch), allow_missing))


def _evolve_fields(
    parent: str, table: list[pa.Field], batch: list[pa.Field], allow_missing: bool
) -> list[pa.Field]:
    incoming = {field.name: field for field in batch}
    fields = []
    for field in table:
        path = f"{parent}{field.name}"
        new = incoming.pop(field.name, None)
        if new is None and not allow_missing:
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
