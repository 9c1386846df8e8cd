"""Arrow columns to Avro binary, whole columns at a time.

Each column becomes an array of byte strings, one per row; a record is the row-wise join of its
fields, a list the join of its elements. There is no loop over rows, and null in Avro (a union's
branch) is null in Arrow until the union is encoded.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.arrow_columns import Numbers
from hoodie_ds.columns.vectors import bytes_of, is_vector
from hoodie_ds.errors import SchemaError
from hoodie_ds.formats.avro.schema import decimal_bytes
from hoodie_ds.formats.avro.tree import AvroType, Kind
from hoodie_ds.formats.schema_conversion import map_as_lists

_BINARY: Final = pa.large_binary()
_END_OF_BLOCKS: Final = b"\0"
_DECIMAL_BYTES: Final = 16


def encode_avro(array: pa.Array, node: AvroType, path: str) -> pa.Array:
    """Encode a column, of the Arrow type that `avro_to_arrow` gives for `node`, by an Avro type.

    Returns a large binary array of one datum per row, null if the value is null and `node` is no
    union. A value that does not fit is a `SchemaError` that names `path`.
    """
    match node.kind:
        case Kind.UNION:
            return _encode_union(array, node, path)
        case Kind.RECORD:
            return _encode_record(array, node, path)
        case Kind.ARRAY:
            lists = array
            elements = encode_avro(lists.flatten(), node.children[0], f"{path}.element")
            return _encode_list(lists, _required(elements, f"{path}.element"))
        case Kind.MAP:
            return _encode_map(array, node, path)
        case Kind.STRING | Kind.BYTES if not node.precision:
            return _prefixed(array.cast(_BINARY))
        case Kind.BOOLEAN | Kind.FLOAT | Kind.DOUBLE:
            return _fixed_width(array, _WIDTHS[node.kind])
        case Kind.INT | Kind.LONG | Kind.ENUM:
            return _encode_integer(array, node, path)
        case _ if node.precision:
            return _encode_decimal(array, node, path)
    if is_vector(array.type):
        return bytes_of(array, path).cast(_BINARY)
    lengths = pc.binary_length(array)
    if pc.any(pc.not_equal(lengths, node.size)).as_py():
        raise SchemaError(f"column {path!r} needs values of {node.size} bytes; pad or cut them")
    return array.cast(_BINARY)


_WIDTHS: Final = {Kind.BOOLEAN: pa.uint8(), Kind.FLOAT: pa.float32(), Kind.DOUBLE: pa.float64()}


def zigzag(numbers: Numbers) -> pa.Array:
    """Return each number as Avro writes an int or long: zigzag, seven bits a byte, low first."""
    rest = ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)
    widths = np.ones(len(rest), np.int64)
    for bits in range(7, 64, 7):
        widths += rest >= np.uint64(1 << bits)
    offsets = _offsets(widths)
    data = np.empty(int(offsets[-1]), np.uint8)
    for byte in range(int(widths.max(initial=0))):
        rows = np.flatnonzero(widths > byte)
        low = (rest[rows] >> np.uint64(7 * byte)).astype(np.uint8) & 0x7F
        more = (widths[rows] > byte + 1).astype(np.uint8) << 7
        data[offsets[rows] + byte] = low | more
    return _binary(offsets, data)


@cache
def as_scalar(value: bytes | None) -> pa.Scalar:
    """Return a scalar that `join` repeats for every row.

    It is not made at import: the first scalar of a process makes Arrow import pandas, which
    processes of a Spark application that handle no rows do not need.
    """
    return pa.scalar(value, _BINARY)


def join(*parts: pa.Array | pa.Scalar) -> pa.Array:
    """Return the row-wise concatenation of binary columns; null where any part is null."""
    return pc.binary_join_element_wise(*parts, as_scalar(b""))


def joined_bytes(encoded: pa.Array) -> memoryview:
    """Return all rows of a binary column without nulls as contiguous bytes, not copied."""
    ends = np.frombuffer(encoded.buffers()[1], np.int64)[encoded.offset :]
    return memoryview(encoded.buffers()[2] or b"").cast("B")[ends[0] : ends[len(encoded)]]


def _offsets(widths: Numbers) -> Numbers:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(widths, dtype=np.int64)])


def _binary(offsets: Numbers, data: npt.NDArray[np.uint8] | pa.Buffer) -> pa.Array:
    buffers = [None, pa.py_buffer(np.ascontiguousarray(offsets)), pa.py_buffer(data)]
    return pa.Array.from_buffers(_BINARY, len(offsets) - 1, buffers)


def _rows(matrix: npt.NDArray[np.uint8], array: pa.Array) -> pa.Array:
    """One byte string per row of a matrix, null where `array` is."""
    count, width = matrix.shape
    data = np.ascontiguousarray(matrix).reshape(-1)
    return _nulls_of(array, _binary(np.arange(count + 1, dtype=np.int64) * width, data))


def _nulls_of(array: pa.Array, encoded: pa.Array) -> pa.Array:
    return pc.if_else(array.is_valid(), encoded, as_scalar(None)) if array.null_count else encoded


def _required(encoded: pa.Array, path: str) -> pa.Array:
    if encoded.null_count:
        raise SchemaError(f"column {path!r} has nulls, which the table's schema does not allow")
    return encoded


def _prefixed(values: pa.Array) -> pa.Array:
    lengths = pc.fill_null(pc.binary_length(values), 0).cast(pa.int64())
    return join(zigzag(lengths.to_numpy()), values)


def _encode_union(array: pa.Array, node: AvroType, path: str) -> pa.Array:
    kinds = [child.kind for child in node.children]
    at = 1 if kinds[0] is Kind.NULL and len(kinds) > 1 else 0
    values = encode_avro(array, node.children[at], path)
    encoded = join(pa.scalar(bytes([2 * at]), _BINARY), values)
    if Kind.NULL not in kinds:
        return encoded
    return pc.fill_null(encoded, pa.scalar(bytes([2 * (1 - at)]), _BINARY))


def _encode_record(array: pa.StructArray, node: AvroType, path: str) -> pa.Array:
    names = [array.type.field(i).name for i in range(array.type.num_fields)]
    columns = dict(zip(names, array.flatten(), strict=True))
    fields = zip(node.names, node.children, strict=True)
    prefix = f"{path}." if path else ""
    encoded = [encode_avro(columns[name], child, prefix + name) for name, child in fields]
    for name, column in zip(node.names, encoded, strict=True):
        # A field of a null struct is null, whatever its type; elsewhere it must have a value.
        if column.null_count and pc.any(pc.and_(column.is_null(), array.is_valid())).as_py():
            _required(column, prefix + name)
    return _nulls_of(array, join(*encoded))


def _encode_list(lists: pa.Array, elements: pa.Array) -> pa.Array:
    counts = pc.fill_null(lists.value_lengths(), 0).cast(pa.int64()).to_numpy()
    ends = np.frombuffer(elements.buffers()[1], np.int64)[elements.offset :]
    data = elements.buffers()[2] or pa.py_buffer(b"")
    items = _binary(ends[_offsets(counts)], data)
    blocks = join(zigzag(counts), items, as_scalar(_END_OF_BLOCKS))
    return _nulls_of(lists, pc.if_else(pa.array(counts > 0), blocks, as_scalar(_END_OF_BLOCKS)))


def _encode_map(array: pa.MapArray, node: AvroType, path: str) -> pa.Array:
    lists = map_as_lists(array)
    keys, items = lists.flatten().flatten()
    values = _required(encode_avro(items, node.children[0], f"{path}.value"), f"{path}.value")
    return _encode_list(lists, join(_prefixed(keys.cast(_BINARY)), values))


def _encode_integer(array: pa.Array, node: AvroType, path: str) -> pa.Array:
    if node.kind is Kind.ENUM:
        numbers = pc.index_in(array, pa.array(node.names))
        if numbers.null_count > array.null_count:
            raise SchemaError(f"column {path!r} has a value that is none of {node.names[:20]}")
    else:
        numbers = array.view(pa.int32() if node.kind is Kind.INT else pa.int64())
    filled = pc.fill_null(numbers.cast(pa.int64()), 0)
    return _nulls_of(array, zigzag(filled.to_numpy()))


def _fixed_width(array: pa.Array, width: pa.DataType) -> pa.Array:
    filled: npt.NDArray[Any] = pc.fill_null(array.cast(width), 0).to_numpy()
    return _rows(filled.view(np.uint8).reshape(len(filled), filled.itemsize), array)


def _encode_decimal(array: pa.Array, node: AvroType, path: str) -> pa.Array:
    big_endian = _decimal_matrix(array)
    if node.kind is Kind.BYTES:
        return _prefixed(_rows(big_endian, array))
    if node.size < decimal_bytes(node.precision):
        raise SchemaError(
            f"column {path!r} has {node.precision} digits, which {node.size} bytes do not hold"
        )
    pad = np.where(big_endian[:, :1] >> 7, 0xFF, 0).astype(np.uint8)
    wide = np.hstack([np.repeat(pad, max(0, node.size - _DECIMAL_BYTES), axis=1), big_endian])
    return _rows(wide[:, wide.shape[1] - node.size :], array)


def _decimal_matrix(array: pa.Array) -> npt.NDArray[np.uint8]:
    raw = np.frombuffer(array.buffers()[1] or b"", np.uint8)
    start = array.offset * _DECIMAL_BYTES
    rows = raw[start : start + len(array) * _DECIMAL_BYTES].reshape(len(array), _DECIMAL_BYTES)
    return rows[:, ::-1]
