"""Arrow batches split where their strings and lists become too large.

A table's strings have 32-bit offsets, so that one array holds less than 2 GiB; incoming arrays may
hold more, or become larger when a dictionary is decoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.arrow_columns import Numbers, as_numpy

_TYPES: Final = pa.types
_VIEW_WORDS: Final = 4
"""32-bit words of an element of a view, the first of which is its length."""


def cut(batch: pa.RecordBatch, most: int) -> Iterator[pa.RecordBatch]:
    """Yield a batch in parts of at most `most` bytes, or of one row.

    Dictionaries and views count as decoded.
    """
    if batch.nbytes <= most and not any(_hides_bytes(field.type) for field in batch.schema):
        yield batch
        return
    ends = sum((_ends(column) for column in batch.columns), np.zeros(batch.num_rows + 1, np.int64))
    start = 0
    while start < batch.num_rows:
        stop = int(np.searchsorted(ends, ends[start] + most, side="right")) - 1
        stop = max(stop, start + 1)
        yield batch.slice(start, stop - start)
        start = stop


def _hides_bytes(kind: pa.DataType) -> bool:
    """Whether values may share bytes, which are repeated when the values are decoded."""
    if _TYPES.is_dictionary(kind) or _is_view(kind):
        return True
    return any(_hides_bytes(kind.field(i).type) for i in range(kind.num_fields))


def _is_view(kind: pa.DataType) -> bool:
    return bool(
        _TYPES.is_string_view(kind)
        or _TYPES.is_binary_view(kind)
        or _TYPES.is_list_view(kind)
        or _TYPES.is_large_list_view(kind)
    )


def _ends(array: pa.Array) -> Numbers:
    """Bytes of all rows before each, and of all; approximate for small types."""
    kind = array.type
    if _TYPES.is_dictionary(kind):
        lengths = np.append(np.diff(_ends(array.dictionary)), 0)  # the last is that of null
        indices = as_numpy(pc.fill_null(array.indices.cast(pa.int64()), -1))
        return _summed(lengths[np.minimum(indices, len(lengths) - 1)])
    if _TYPES.is_struct(kind):
        fields = (_ends(array.field(i)) for i in range(kind.num_fields))
        return sum(fields, np.zeros(len(array) + 1, np.int64))
    if _TYPES.is_map(kind):
        offsets = as_numpy(array.offsets)
        return _between(_ends(array.keys) + _ends(array.items), offsets[:-1], offsets[1:])
    if _TYPES.is_list(kind) or _TYPES.is_large_list(kind):
        offsets = as_numpy(array.offsets)
        return _between(_ends(array.values), offsets[:-1], offsets[1:])
    if _TYPES.is_fixed_size_list(kind):
        starts = (np.arange(len(array), dtype=np.int64) + array.offset) * kind.list_size
        return _between(_ends(array.values), starts, starts + kind.list_size)
    if _TYPES.is_list_view(kind) or _TYPES.is_large_list_view(kind):
        starts = as_numpy(array.offsets)
        return _between(_ends(array.values), starts, starts + as_numpy(array.sizes))
    if _is_view(kind):
        words = np.frombuffer(array.buffers()[1] or b"", np.int32)[array.offset * _VIEW_WORDS :]
        lengths = words[: len(array) * _VIEW_WORDS : _VIEW_WORDS].astype(np.int64)
        return _summed(np.where(as_numpy(array.is_valid()), lengths, 0))
    if _TYPES.is_large_string(kind) or _TYPES.is_large_binary(kind):
        return _text_ends(array, np.int64)
    if _TYPES.is_string(kind) or _TYPES.is_binary(kind):
        return _text_ends(array, np.int32)
    width = 0 if _TYPES.is_null(kind) else -(-kind.bit_width // 8)
    return np.arange(len(array) + 1, dtype=np.int64) * width


def _text_ends(array: pa.Array, width: type[np.signedinteger[Any]]) -> Numbers:
    offsets = np.frombuffer(array.buffers()[1] or bytes(8), width)
    rows = offsets[array.offset : array.offset + len(array) + 1].astype(np.int64)
    return rows - rows[0] if len(array) else np.zeros(1, np.int64)


def _between(ends: Numbers, starts: Numbers, stops: Numbers) -> Numbers:
    """Sizes of rows that are ranges of elements."""
    return _summed(ends[stops] - ends[starts] + np.dtype(np.int32).itemsize)


def _summed(lengths: Numbers) -> Numbers:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
