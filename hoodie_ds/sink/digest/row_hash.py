"""A 64-bit hash of every row, over whole Arrow columns.

It is made for accidental differences, not against deliberate collisions. A row's hash depends only
on the names and values of its columns: not on their order, on how rows are batched, on the width of
a number. A null counts for nothing, so a missing column equals one of nulls.

Strings are padded to a few widths, which makes them matrices of machine words.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from hoodie_ds.columns.java_hash import TextBuffer

Hashes = npt.NDArray[np.uint64]

_WIDTHS: Final = (8, 16, 40, 128, 512, 2048)
"""Bytes that strings are padded to; UUIDs fit one. Longer strings are hashed one by one."""

_BLOCK_BYTES: Final = 1 << 18
"""Bytes of padded strings that are hashed together: more would not stay in a core's cache."""

_STEP: Final = np.uint64(0x9E3779B97F4A7C15)
_FACTORS: Final = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_SHIFTS: Final = (np.uint64(32), np.uint64(29))


def row_hashes(rows: pa.Table) -> Hashes:
    """Hash (uint64) each row, of columns of the types that `normalise_schema` leaves."""
    named = zip(rows.column_names, rows.columns, strict=True)
    return _joined(rows.num_rows, ((name, _column_hashes(column)) for name, column in named))


def _column_hashes(column: pa.ChunkedArray) -> Hashes:
    parts = [value_hashes(chunk) for chunk in column.chunks]
    return np.concatenate(parts) if len(parts) != 1 else parts[0]


def _joined(length: int, fields: Iterable[tuple[str, Hashes]]) -> Hashes:
    """Combine the hashes of some fields into one, by their names."""
    total = np.zeros(length, np.uint64)
    for name, hashes in fields:
        total += hashes * np.uint64(xxhash.xxh64_intdigest(name.encode()) | 1)
    return _mixed(total)


def value_hashes(values: pa.Array) -> Hashes:
    """Hash each value; 0 for null."""
    if values.null_count == len(values):
        return np.zeros(len(values), np.uint64)
    hashes = _hashes(values)
    if values.null_count:
        hashes[values.is_null().to_numpy(zero_copy_only=False)] = 0
    return hashes


def _hashes(values: pa.Array) -> Hashes:
    """Hash each value; anything for null."""
    kind = values.type
    if pa.types.is_struct(kind):
        fields = zip((field.name for field in kind), values.flatten(), strict=True)
        return _joined(len(values), ((name, value_hashes(field)) for name, field in fields))
    if pa.types.is_fixed_size_list(kind):
        values = values.cast(pa.list_(kind.value_type))
    if pa.types.is_nested(kind):
        return _list_hashes(values)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _string_hashes(values.view(pa.string()))
    return _mixed(fixed_width_words(values))


def fixed_width_words(values: pa.Array) -> Hashes:
    """View values of a fixed width as words; anything for null."""
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    data, first, last = values.buffers()[1], values.offset, values.offset + len(values)
    if pa.types.is_decimal(values.type):
        halves = np.frombuffer(data, np.uint64)[2 * first : 2 * last]
        return halves[::2] ^ _mixed(halves[1::2])
    width = values.type.bit_width // 8
    if pa.types.is_floating(values.type):
        floats = np.frombuffer(data, f"<f{width}")[first:last]
        return floats.astype(np.float64).view(np.uint64)
    return np.frombuffer(data, f"<i{width}")[first:last].astype(np.int64).view(np.uint64)


def _string_hashes(values: pa.StringArray) -> Hashes:
    lengths = pc.fill_null(pc.binary_length(values), 0).to_numpy(zero_copy_only=False)
    hashes = lengths.astype(np.uint64)
    for below, width in pairwise((0, *_WIDTHS)):
        chosen = np.flatnonzero((lengths > below) & (lengths <= width))
        if len(chosen) == len(values):
            hashes += _padded_hashes(values, width)
        elif len(chosen):
            hashes[chosen] += _padded_hashes(values.take(pa.array(chosen)), width)
    for row in np.flatnonzero(lengths > _WIDTHS[-1]).tolist():
        hashes[row : row + 1] += np.uint64(xxhash.xxh64_intdigest(values[row].as_buffer()))
    return _mixed(hashes)


def _padded_hashes(values: pa.StringArray, width: int) -> Hashes:
    """Hash strings of at most `width` bytes; the caller adds their lengths."""
    weights = np.cumprod(np.full(width // 8, _FACTORS[0]), dtype=np.uint64)
    step = _BLOCK_BYTES // width
    parts = []
    for first in range(0, len(values), step):
        padded = TextBuffer.of(pc.ascii_rpad(values.slice(first, step), width))
        parts.append(_mixed(padded.data.view(np.uint64)).reshape(-1, width // 8) @ weights)
    return np.concatenate(parts)


def _list_hashes(values: pa.ListArray | pa.MapArray) -> Hashes:
    """Hash lists by their elements in order, and maps by their entries in any order."""
    offsets = values.offsets.to_numpy().astype(np.int64)
    first, count = int(offsets[0]), int(offsets[-1] - offsets[0])
    offsets -= first
    if pa.types.is_map(values.type):
        fields = (("key", values.keys), ("value", values.items))
        parts = ((name, value_hashes(field.slice(first, count))) for name, field in fields)
        elements = _joined(count, parts)
    else:
        elements = value_hashes(values.values.slice(first, count))
        positions = np.arange(count) - np.repeat(offsets[:-1], np.diff(offsets))
        elements += positions.astype(np.uint64) * _STEP
    sums = np.zeros(count + 1, np.uint64)
    np.cumsum(_mixed(elements), out=sums[1:])
    lengths = np.diff(offsets).astype(np.uint64)
    return _mixed(sums[offsets[1:]] - sums[offsets[:-1]] + lengths)


def _mixed(words: Hashes) -> Hashes:
    """Make each bit of a word change half of the others (the finaliser of SplitMix64)."""
    words = words + _STEP
    for shift, factor in zip(_SHIFTS, _FACTORS, strict=True):
        words ^= words >> shift
        words *= factor
    words ^= words >> _SHIFTS[0]
    return words
