"""Types that Parquet and Avro have, but Arrow's columns here do not: ``fixed`` and required.

Hudi's Avro readers request the types of the table's schema from Parquet, and fail on a column that
is nullable but must not be, or has bytes of any length instead of a fixed one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.vectors import is_vector
from hoodie_ds.errors import SchemaError
from hoodie_ds.formats.avro.encoder import encode_avro
from hoodie_ds.formats.avro.tree import AvroType, Kind, parse_avro
from hoodie_ds.formats.schema_conversion import rebuild_list, rebuild_map


@lru_cache(maxsize=64)
def stored_schemas(
    schema: pa.Schema, avro: str
) -> tuple[pa.Schema, pa.Schema, Mapping[str, AvroType]]:
    """Return columns as Parquet stores them, without and with required, and enum columns by name.

    Required columns cannot be null, at any depth; `as_stored` returns such columns.
    """
    record = parse_avro(avro, "table schema")
    nodes = dict(zip(record.names, record.children, strict=True))
    loose, strict = (
        pa.schema([_stored_field(f, nodes.get(f.name), required=required) for f in schema])
        for required in (False, True)
    )
    enums = {name: nodes[name] for name in schema.names if name in nodes and _has_enum(nodes[name])}
    return loose, strict, enums


def as_stored(table: pa.Table, schema: pa.Schema, enums: Mapping[str, AvroType]) -> pa.Table:
    """Return rows with the columns of the second schema of `stored_schemas`.

    A `SchemaError` names a column with a null that is not allowed, or a value that is none of its
    enum's.
    """
    for name, node in enums.items():
        _check_symbols(table.column(name), node, name)
    columns = [_as_required(*pair) for pair in zip(table.columns, schema, strict=True)]
    return pa.Table.from_arrays(columns, schema=schema)


def _stored_field(field: pa.Field, node: AvroType | None, *, required: bool) -> pa.Field:
    if node is None:
        return field
    nullable = True
    if node.kind is not Kind.UNION:
        nullable = not required
    elif node.optional is None:
        node, nullable = node.children[0], not required
    else:
        node = node.optional
    return pa.field(field.name, _stored_type(field.type, node, required), nullable)


def _stored_type(kind: pa.DataType, node: AvroType, required: bool) -> pa.DataType:
    types = pa.types
    if types.is_struct(kind):
        below = dict(zip(node.names, node.children, strict=True))
        fields = [kind.field(i) for i in range(kind.num_fields)]
        return pa.struct([_stored_field(f, below.get(f.name), required=required) for f in fields])
    if types.is_list(kind):
        return pa.list_(_stored_field(kind.value_field, node.children[0], required=required))
    if types.is_map(kind):
        item = _stored_field(kind.item_field, node.children[0], required=required)
        return pa.map_(kind.key_type, item)
    if (types.is_binary(kind) or is_vector(kind)) and node.kind is Kind.FIXED:
        return pa.binary(node.size)
    return kind


def _as_required(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    """Return a column marked as what it is: without nulls wherever they must not be."""
    if not field.nullable and column.null_count:
        raise _missing(field.name)
    if column.type == field.type:
        return column
    chunks = [_marked(chunk, field.type, field.name) for chunk in column.chunks]
    return pa.chunked_array(chunks, field.type)


def _check_symbols(column: pa.ChunkedArray, node: AvroType, path: str) -> None:
    """Refuse an enum's value that the table's schema does not list.

    Parquet has no enums here, so Hudi would find it when it writes the row into a log.
    """
    for chunk in column.chunks:
        plain = chunk.cast(pa.string()) if pa.types.is_dictionary(chunk.type) else chunk
        encode_avro(plain, node, path)


def _has_enum(node: AvroType) -> bool:
    return node.kind is Kind.ENUM or any(_has_enum(child) for child in node.children)


def _marked(array: pa.Array, target: pa.DataType, path: str) -> pa.Array:
    types = pa.types
    if array.type == target:
        return array
    if types.is_struct(target):
        return _marked_struct(array, target, path)
    if types.is_list(target):
        values = _marked_items(array.flatten(), target.value_field, f"{path}.element")
        lengths = pc.fill_null(array.value_lengths(), 0).to_numpy(zero_copy_only=False)
        offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        return rebuild_list(array, offsets, values, target)
    ends = array.offsets.to_numpy()
    first, count = int(ends[0]), int(ends[-1] - ends[0])
    items = _marked_items(array.items.slice(first, count), target.item_field, f"{path}.value")
    return rebuild_map(array, ends - first, array.keys.slice(first, count), items, target)


def _marked_items(items: pa.Array, field: pa.Field, path: str) -> pa.Array:
    if not field.nullable and items.null_count:
        raise _missing(path)
    return _marked(items, field.type, path)


def _marked_struct(array: pa.StructArray, target: pa.StructType, path: str) -> pa.Array:
    children = []
    valid = array.is_valid()
    for number, child in enumerate(array.flatten()):
        field = target.field(number)
        below = f"{path}.{field.name}"
        marked = _marked(child, field.type, below)
        if not field.nullable and child.null_count:  # it is null where the struct is
            if pc.any(pc.and_(child.is_null(), valid)).as_py():
                raise _missing(below)
            marked = _without_nulls(marked)
        children.append(marked)
    nulls = None
    if array.null_count:
        nulls = pa.array(valid.to_numpy(zero_copy_only=False)).buffers()[1]
    return pa.Array.from_buffers(target, len(array), [nulls], children=children)


def _without_nulls(array: pa.Array) -> pa.Array:
    """The same without its nulls: no reader sees their values, since the struct is null there."""
    if pa.types.is_struct(array.type):
        fields = [array.field(i) for i in range(array.type.num_fields)]
        return pa.Array.from_buffers(array.type, len(array), [None], children=fields)
    nested = pa.types.is_list(array.type) or pa.types.is_map(array.type)
    children = [array.values] if nested else []
    buffers = [None, *array.buffers()[1 : array.type.num_buffers]]
    return pa.Array.from_buffers(
        array.type, len(array), buffers, offset=array.offset, children=children
    )


def _missing(path: str) -> SchemaError:
    return SchemaError(
        f"column {path!r} has nulls, which the table's schema does not allow; fill them, or let "
        "Hudi on the JVM make the column nullable first"
    )
