"""A checksum of rows that costs almost nothing: the sums of their columns.

For tables without record keys, whose rows are only passed through: hashing every value would cost
half as much as storing it. Other rows have other sums, unless values have only changed places
between rows, or letters within a column. Rows may come in any order and batches.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

_MASK: Final = (1 << 64) - 1


def column_sums(rows: pa.Table) -> int:
    """Return a 64-bit checksum of all columns, of the types that `normalise_schema` leaves.

    A missing column counts as one of nulls.
    """
    total = 0
    for name in rows.column_names:
        total += _sum_of(rows.column(name)) * _weight(name)
    return total & _MASK


def _weight(name: str) -> int:
    return xxhash.xxh64_intdigest(name.encode()) | 1


def _sum_of(values: pa.ChunkedArray) -> int:
    """The sum of a column; nulls count for nothing."""
    kind: pa.DataType = values.type
    count: int = len(values) - values.null_count
    if not count:
        return 0
    if pa.types.is_struct(kind):
        fields = zip((field.name for field in kind), values.flatten(), strict=True)
        return count + sum(_sum_of(field) * _weight(name) for name, field in fields)
    if pa.types.is_map(kind):
        keys, items = (
            pa.chunked_array(parts) for parts in zip(*map(_entries, values.chunks), strict=True)
        )
        return count + 3 * _sum_of(keys) + 5 * _sum_of(items)
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        return count + 3 * _sum_of(pc.list_flatten(values))
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        octets = pa.chunked_array([_octets(chunk) for chunk in values.chunks])
        return count + 257 * len(octets) + 65537 * _total(octets)
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return 7 * count + _total(values)
    if pa.types.is_decimal(kind):
        return 7 * count + sum(_sum_of_halves(chunk) for chunk in values.chunks)
    # The bits of floating-point numbers: the sum of the numbers depends on their order.
    whole = pa.int64() if kind.bit_width == 64 else pa.int32()
    return 7 * count + _total(pa.chunked_array([chunk.view(whole) for chunk in values.chunks]))


def _total(numbers: pa.ChunkedArray) -> int:
    return int(pc.sum(numbers).as_py() or 0)


def _entries(values: pa.MapArray) -> tuple[pa.Array, pa.Array]:
    """Keys and items of the maps of an array, without those of others in its buffers."""
    values = values.drop_null()
    if not len(values):
        return values.keys.slice(0, 0), values.items.slice(0, 0)
    first, last = values.offsets[0].as_py(), values.offsets[-1].as_py()
    return values.keys.slice(first, last - first), values.items.slice(first, last - first)


def _octets(values: pa.Array) -> pa.Array:
    """The bytes of all strings of an array, as numbers."""
    if values.null_count:
        values = values.drop_null()
    _, offsets, data = values.buffers()
    if not len(values) or data is None:
        return pa.array([], pa.uint8())
    ends = np.frombuffer(offsets, np.int32)
    first, last = int(ends[values.offset]), int(ends[values.offset + len(values)])
    return pa.Array.from_buffers(pa.uint8(), last - first, [None, data.slice(first, last - first)])


def _sum_of_halves(values: pa.Array) -> int:
    if values.null_count:
        values = values.drop_null()
    words = np.frombuffer(values.buffers()[1], np.uint64)
    return int(words[2 * values.offset : 2 * (values.offset + len(values))].sum())
