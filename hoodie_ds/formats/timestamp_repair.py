"""Timestamps that older releases of Hudi labelled wrongly, repaired as Hudi 1.2 does.

Releases 0.14 to 1.0 stored columns of milliseconds under schemas that say microseconds, and local
timestamps under schemas that say long. The table's schema is right in both cases.
"""

from __future__ import annotations

import pyarrow as pa

from hoodie_ds.formats.avro.schema import is_list_like


def relabelled(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return stored rows with the labels that a table's schema gives their integers.

    Columns that need no repair keep their stored type.
    """
    wanted = dict(zip(schema.names, schema.types, strict=True))
    for at, field in enumerate(rows.schema):
        kind = repaired(field.type, wanted.get(field.name, field.type))
        if kind != field.type:
            chunks = [chunk.view(kind) for chunk in rows.column(at).chunks]
            rows = rows.set_column(at, field.name, pa.chunked_array(chunks, kind))
    return rows


def repaired(stored: pa.DataType, wanted: pa.DataType) -> pa.DataType:
    """Return a stored type with the labels of the table's type that Hudi trusts more."""
    types = pa.types
    if stored == wanted:
        return stored
    if types.is_struct(stored) and types.is_struct(wanted):
        kinds = {field.name: field.type for field in wanted}
        return pa.struct([f.with_type(repaired(f.type, kinds.get(f.name, f.type))) for f in stored])
    if types.is_list(stored) and is_list_like(wanted):
        field = stored.value_field
        return pa.list_(field.with_type(repaired(field.type, wanted.value_type)))
    if types.is_map(stored) and types.is_map(wanted):
        field = stored.item_field
        item = field.with_type(repaired(field.type, wanted.item_type))
        return pa.map_(stored.key_field, item, stored.keys_sorted)
    return wanted if _is_mislabelled(stored, wanted) else stored


def _is_mislabelled(stored: pa.DataType, wanted: pa.DataType) -> bool:
    if not pa.types.is_timestamp(wanted):
        return False
    if wanted.tz is None:
        return bool(pa.types.is_int64(stored))
    is_micros = pa.types.is_timestamp(stored) and stored.unit == "us" and stored.tz is not None
    return bool(is_micros and wanted.unit == "ms")
