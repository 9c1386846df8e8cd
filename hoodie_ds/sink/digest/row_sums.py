"""A checksum of keyed rows: which key has which values, at a fraction of the cost of hashes.

Each value counts times the hash of its row's key. So rows with the same keys and other values
differ, and so do rows whose values have only changed places. Rows may come in any order and
batches. A null counts for nothing, so a missing column equals one of nulls.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from hoodie_ds.sink.digest.row_hash import fixed_width_words, value_hashes

Words = npt.NDArray[np.uint64]

_MASK: Final = (1 << 64) - 1
_HALF: Final = np.uint64(32)
_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
_LENGTH_FACTOR: Final = np.uint64(0xD6E8FEB86659FD93)
"""For a string's length: with `_FACTOR` one more byte would count like another first word."""

_WORD_BYTES: Final = 8
_LONGEST: Final = 256
"""Bytes of a string that are read word by word; the rest is hashed string by string."""

_KEPT: Final = np.array([(1 << 8 * count) - 1 for count in range(9)], np.uint64)
"""Mask of the first bytes of a word, by their number; 0 if a string has none."""

_WEIGHTS: Final = np.cumprod(np.full(_LONGEST // _WORD_BYTES, _FACTOR), dtype=np.uint64)


def row_sums(rows: pa.Table, keys: Words) -> int:
    """Return a 64-bit checksum of rows, given the hashes of their keys.

    Columns are of the types that `normalise_schema` leaves.
    """
    total = int(keys.sum(dtype=np.uint64))
    odd = keys | np.uint64(1)  # an even factor would drop a bit of the value
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        first, summed = 0, 0
        for chunk in column.chunks:
            summed += int(_words(chunk) @ odd[first : first + len(chunk)])
            first += len(chunk)
        total += summed * (xxhash.xxh64_intdigest(name.encode()) | 1)
    return total & _MASK


def _words(values: pa.Array) -> Words:
    """A word for each value; 0 for null."""
    if values.null_count == len(values):
        return np.zeros(len(values), np.uint64)
    if pa.types.is_nested(values.type):
        return value_hashes(values)
    if pa.types.is_string(values.type) or pa.types.is_binary(values.type):
        words = _string_words(values)
    else:
        words = _folded(fixed_width_words(values)) + _FACTOR  # zero is not null
    if values.null_count:
        words[values.is_null().to_numpy(zero_copy_only=False)] = 0
    return words


def _folded(words: Words) -> Words:
    """Fold the high bits into the low ones, as a product modulo 2**64 would lose them."""
    return words ^ (words >> _HALF)


def _string_words(values: pa.Array) -> Words:
    """A word for each string; anything for null."""
    known = pc.fill_null(pc.binary_length(values), 0)
    lengths: npt.NDArray[np.int32] = known.to_numpy(zero_copy_only=False)
    words: Words = (lengths.astype(np.uint64) + np.uint64(1)) * _LENGTH_FACTOR
    longest = int(lengths.max())
    if not longest:
        return words
    _, offsets, data = values.buffers()
    ends = np.frombuffer(offsets, np.int32)[values.offset : values.offset + len(values) + 1]
    first, last = int(ends[0]), int(ends[-1])
    octets = np.zeros((last - first) // _WORD_BYTES * _WORD_BYTES + 3 * _WORD_BYTES, np.uint8)
    octets[: last - first] = np.frombuffer(data, np.uint8)[first:last]
    starts = (ends[:-1] - first).astype(np.int64)
    rows: slice | npt.NDArray[np.int64] = slice(None)
    for number, done in enumerate(range(0, min(longest, _LONGEST), _WORD_BYTES)):
        if done:
            rows = np.flatnonzero(lengths > done)
        left = np.minimum(lengths[rows] - done, _WORD_BYTES)
        read = _read(octets.view(np.uint64), starts[rows] + done)
        words[rows] += _folded(read & _KEPT[left]) * _WEIGHTS[number]
    for row in np.flatnonzero(lengths > _LONGEST).tolist():
        begin = int(starts[row])
        tail = octets[begin + _LONGEST : begin + int(lengths[row])]
        words[row : row + 1] += np.uint64(xxhash.xxh64_intdigest(tail.tobytes()))
    return words


def _read(aligned: Words, positions: npt.NDArray[np.int64]) -> Words:
    """Read the words that begin at some bytes, by two aligned reads each, which are fast."""
    at = positions >> 3
    shift = ((positions & 7) << 3).astype(np.uint64)
    above = (aligned[at + 1] << np.uint64(1)) << (np.uint64(63) - shift)
    read: Words = (aligned[at] >> shift) | above
    return read
