"""Delete blocks of log files: keys, each with the ordering value of its delete.

Invariant: an ordering value is wrapped so that Hudi's readers can compare it with the values of
rows; only ``IntWrapper(0)`` or null is a delete that outranks every ordering value. The values of
several ordering fields are wrapped one by one, in an ``ArrayWrapper``; there 0 is 0, and the lowest
integer of its type stands for a null.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.errors import CorruptFileError, SchemaError, UnsupportedTableError
from hoodie_ds.formats.avro.decoder import DatumReader, arrow_from_raw
from hoodie_ds.formats.avro.encoder import as_scalar, encode_avro, join, joined_bytes, zigzag
from hoodie_ds.formats.avro.schema import UTC_MICROS, normalise_schema
from hoodie_ds.formats.avro.tree import AvroType, Kind
from hoodie_ds.formats.log.log_block import BlockType, HeaderKey, LogBlock, encode_block
from hoodie_ds.formats.log.record_positions import NOWHERE
from hoodie_ds.formats.schema_conversion import conform_column
from hoodie_ds.hints import COPY

_CONTENT_VERSION: Final = 3
_TWO_INTS: Final = struct.Struct(">ii")
_NULL: Final = AvroType(Kind.NULL)
_STRING: Final = AvroType(Kind.STRING)
_OPTIONAL_STRING: Final = AvroType(Kind.UNION, children=(_NULL, _STRING))

_INT_WRAPPER: Final = 2
_ARRAY_WRAPPER: Final = 12
_LOCAL_DATE_WRAPPER: Final = 13
_WRAPPED: Final = {
    1: (AvroType(Kind.BOOLEAN), pa.bool_()),
    _INT_WRAPPER: (AvroType(Kind.INT), pa.int32()),
    3: (AvroType(Kind.LONG), pa.int64()),
    4: (AvroType(Kind.FLOAT), pa.float32()),
    5: (AvroType(Kind.DOUBLE), pa.float64()),
    6: (AvroType(Kind.BYTES), pa.binary()),
    7: (_STRING, pa.string()),
    8: (AvroType(Kind.INT, "date"), pa.date32()),
    9: (AvroType(Kind.BYTES, "decimal", 30, 15), pa.decimal128(30, 15)),
    10: (AvroType(Kind.LONG, "time-micros"), pa.time64("us")),
    11: (AvroType(Kind.LONG, "timestamp-micros"), UTC_MICROS),
}
"""Branches of the union ``HoodieDeleteRecord.orderingVal``: what each wrapper holds."""
_ITEMS: Final = {**_WRAPPED, _LOCAL_DATE_WRAPPER: (AvroType(Kind.INT, "date"), pa.date32())}
"""The same for an ``ArrayWrapper``, which may also hold the last one."""
_MOST_FIELDS: Final = 1000
"""Ordering fields that a delete may have values of; each becomes a column."""
_ENCODED_WRAPPERS: Final = (1, _INT_WRAPPER, 3, 4, 5, 7, 9)
"""Those that Hudi's readers can compare with a row's value; not bytes, for example."""
_LOWEST: Final = {_INT_WRAPPER: -(2**31), 3: -(2**63)}
"""The value for a null among several values: Hudi 1.2 on the JVM fails to read a null."""
_UNCONDITIONAL: Final = b"\4\0"  # branch 2, value 0
_END_OF_ITEMS: Final = b"\0"


def _wrapper(branch: int, value: AvroType) -> AvroType:
    return AvroType(Kind.RECORD, names=(str(branch),), children=(value,))


def _delete_list_type() -> AvroType:
    """The type of the content; a wrapper's field is named by its branch, to tell them apart."""
    wrappers = tuple(_wrapper(branch, value) for branch, (value, _) in _ITEMS.items())
    item = AvroType(Kind.UNION, children=(_NULL, *wrappers))
    items = AvroType(Kind.UNION, children=(_NULL, AvroType(Kind.ARRAY, children=(item,))))
    several = _wrapper(_ARRAY_WRAPPER, items)
    ordering = AvroType(Kind.UNION, children=(_NULL, *wrappers[: len(_WRAPPED)], several))
    record = AvroType(
        Kind.RECORD,
        names=("key", "partition", "ordering"),
        children=(_OPTIONAL_STRING, _OPTIONAL_STRING, ordering),
    )
    return AvroType(Kind.ARRAY, children=(record,))


_DELETE_LIST: Final = _delete_list_type()


def encode_delete_block(
    keys: pa.Array | pa.ChunkedArray,
    partition_paths: pa.Array | pa.ChunkedArray,
    ordering: pa.Array | pa.ChunkedArray | None,
    instant: str,
    avro_schema: str,
    located: Mapping[int, str] = NOWHERE,
) -> bytes:
    """Return a block that deletes keys (``HoodieDeleteRecordList``, content version 3).

    A delete without an ordering value is unconditional, and so are the 32-bit integer 0 and the
    date 1970-01-01, which Hudi cannot tell from no value. Dates and timestamps are stored as
    numbers, which Hudi compares in rows. Several ordering fields are the children of structs, most
    significant first; a null integer, date or timestamp among them is stored as the lowest number
    of its type.

    `avro_schema` has the table's meta fields, and `located` what the header says of positions. A
    `SchemaError` means that Hudi cannot compare values of the type, or that a decimal has more than
    15 digits before or after its point.
    """
    content = _encode_list(keys, partition_paths, ordering) if len(keys) else b"\0"
    header = {HeaderKey.INSTANT_TIME: instant, HeaderKey.SCHEMA: avro_schema, **located}
    head = _TWO_INTS.pack(_CONTENT_VERSION, len(content))
    return encode_block(BlockType.DELETE, header, head + content)


def decode_delete_block(block: LogBlock, name: str) -> pa.Table:
    """Return the deletes of a block.

    The columns are ``record_key`` and ``partition_path`` (string), ``ordering`` and
    ``unconditional`` (bool), true if the delete has no value, ``ordering`` being null then.
    ``ordering`` has the wrapped type, or null without any value: a date or timestamp may be wrapped
    as its number, and ``ordering.cast`` gives it the type of the ordering field. For several
    ordering fields it is a struct with one child per field.

    Damaged content, or ordering values that differ in type or number, are a `CorruptFileError` that
    names the file; content from before Hudi 0.11 is an `UnsupportedTableError`.
    """
    body = _checked_body(memoryview(block.content), name)
    entries = DatumReader(_DELETE_LIST, name).read(body)
    # Loops over deletes, which are few compared with rows.
    wrapped = [_unwrap(entry["ordering"]) for entry in entries]
    return pa.table(
        {
            "record_key": pa.array([entry["key"] for entry in entries], pa.string()),
            "partition_path": pa.array([entry["partition"] for entry in entries], pa.string()),
            "ordering": _ordering(wrapped, name),
            "unconditional": pa.array([branch == 0 for branch, _ in wrapped], pa.bool_()),
        }
    )


def _encode_list(
    keys: pa.Array | pa.ChunkedArray,
    partition_paths: pa.Array | pa.ChunkedArray,
    ordering: pa.Array | pa.ChunkedArray | None,
) -> bytes:
    columns = [
        encode_avro(_as_type(keys, pa.string(), "record key"), _OPTIONAL_STRING, ""),
        encode_avro(_as_type(partition_paths, pa.string(), "partition path"), _OPTIONAL_STRING, ""),
        as_scalar(_UNCONDITIONAL) if ordering is None else _encode_ordering(ordering),
    ]
    count = joined_bytes(zigzag(pa.array([len(keys)]).to_numpy()))
    return b"".join([count, joined_bytes(join(*columns)), b"\0"])


def _encode_ordering(ordering: pa.Array | pa.ChunkedArray) -> pa.Array:
    if not pa.types.is_struct(ordering.type):
        return pc.fill_null(_wrap(ordering)[1], as_scalar(_UNCONDITIONAL))
    chunked = isinstance(ordering, pa.ChunkedArray)
    structs = ordering.combine_chunks() if chunked else ordering
    values = [_fill(*_wrap(column)) for column in structs.flatten()]
    count = joined_bytes(zigzag(np.array([len(values)]))).tobytes()
    head = as_scalar(bytes([2 * _ARRAY_WRAPPER, 2]) + count)
    return pc.if_else(
        structs.is_valid(), join(head, *values, as_scalar(_END_OF_ITEMS)), as_scalar(_UNCONDITIONAL)
    )


def _fill(branch: int, wrapped: pa.Array) -> pa.Array:
    # A null is lower than any value (`hoodie_ds.record.merge.ordering`). Of other types than
    # integers no value has its rank, and Hudi on the JVM cannot read the block.
    missing = b"\0"
    if branch in _LOWEST:
        missing = bytes([2 * branch]) + joined_bytes(zigzag(np.array([_LOWEST[branch]]))).tobytes()
    return pc.fill_null(wrapped, pa.scalar(missing, wrapped.type))


def _wrap(ordering: pa.Array | pa.ChunkedArray) -> tuple[int, pa.Array]:
    """Wrap the values of one field, null without a value; returns the wrapper's branch too."""
    path = "ordering value"
    stored = pa.schema([(path, ordering.type)])
    kind = normalise_schema(stored, stored).field(0).type
    column = _as_type(ordering, kind, path)
    # The wrapper must unwrap to what the reader finds in a row. For dates and timestamps that is
    # the stored number: the JVM fails to compare it with what their own wrappers unwrap to.
    if pa.types.is_date(kind):
        column = column.view(pa.int32())
    elif pa.types.is_timestamp(kind):
        column = column.view(pa.int64())
    elif pa.types.is_decimal(kind):
        column = _as_type(column, pa.decimal128(30, 15), path)
    for branch in _ENCODED_WRAPPERS:
        node, wrapped = _WRAPPED[branch]
        if wrapped == column.type:
            values = encode_avro(column, node, path)
            prefix = pa.scalar(bytes([2 * branch]), values.type)
            return branch, join(prefix, values)
    raise SchemaError(
        f"an ordering value of type {kind} cannot be compared by Hudi; choose an ordering field "
        "that is a boolean, number, string, date or timestamp"
    )


def _as_type(column: pa.Array | pa.ChunkedArray, kind: pa.DataType, path: str) -> pa.Array:
    chunked = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    return pa.concat_arrays(conform_column(chunked, kind, path).chunks)


def _unwrap(ordering: dict[str, Any] | None) -> tuple[int, Any]:
    """Branch and value; branch 0 for a delete without a value."""
    branch, value = _branch(ordering)
    return (0, None) if (branch, value) == (_INT_WRAPPER, 0) else (branch, value)


def _branch(wrapped: dict[str, Any] | None) -> tuple[int, Any]:
    """Branch and value of a wrapper; branch 0 for null."""
    for field, value in (wrapped or {}).items():
        return int(field), value
    return 0, None


def _item(wrapped: dict[str, Any] | None) -> tuple[int, Any]:
    """Branch and value of one of several values; branch 0 for the substitute of a null."""
    branch, value = _branch(wrapped)
    return (0, None) if _LOWEST.get(branch, ...) == value else (branch, value)


def _ordering(wrapped: list[tuple[int, Any]], name: str) -> pa.Array:
    if all(branch != _ARRAY_WRAPPER for branch, _ in wrapped):
        return _column(wrapped, name)
    if any(branch not in (0, _ARRAY_WRAPPER) for branch, _ in wrapped):
        raise _damage(name, "its ordering values are of several types")
    rows = [value or () for _, value in wrapped]
    counts = {len(row) for row, (branch, _) in zip(rows, wrapped, strict=True) if branch}
    if len(counts) > 1 or 0 in counts or max(counts) > _MOST_FIELDS:
        raise _damage(name, "its deletes have ordering values of none or several numbers of fields")
    (count,) = counts
    columns = [
        _column([_item(row[i]) if row else (0, None) for row in rows], name) for i in range(count)
    ]
    missing = pa.array([branch == 0 for branch, _ in wrapped])
    return pa.StructArray.from_arrays(columns, [str(i) for i in range(count)], mask=missing)


def _column(wrapped: list[tuple[int, Any]], name: str) -> pa.Array:
    """The values of one field in the type of their wrapper."""
    branches = {branch for branch, _ in wrapped} - {0}
    if len(branches) > 1:
        # Among the values of several fields, releases after 1.2.0 put the integer 0 for a null.
        wrapped = [(0, None) if item == (_INT_WRAPPER, 0) else item for item in wrapped]
        branches = {branch for branch, _ in wrapped} - {0}
    if len(branches) > 1:
        raise _damage(name, "its ordering values are of several types")
    for branch in branches:
        return arrow_from_raw([value for _, value in wrapped], *_ITEMS[branch], name)
    return pa.nulls(len(wrapped))


def _checked_body(content: memoryview, name: str) -> memoryview:
    if len(content) < _TWO_INTS.size:
        raise _damage(name, "it has no length")
    version, length = _TWO_INTS.unpack_from(content)
    if version != _CONTENT_VERSION:
        raise UnsupportedTableError(
            f"{name}: a delete block has content version {version}, only {_CONTENT_VERSION} is "
            "read; compact the table with Hudi on the JVM first"
        )
    if length != len(content) - _TWO_INTS.size:
        raise _damage(name, f"its length is {length}")
    return content[_TWO_INTS.size :]


def _damage(name: str, what: str) -> CorruptFileError:
    return CorruptFileError(f"{name}: a delete block is damaged: {what}", COPY, name)
