"""Java's hash codes of strings and of lists of strings, over whole Arrow columns.

Hudi routes a key to its bucket by ``List<String>.hashCode``; one wrong bit sends a row to the wrong
file. The invariant: every hash equals the JVM's for every valid Unicode string, and the work is a
fixed number of NumPy passes over the bytes, however long or uneven the strings are.

The polynomial hash of a slice ``[s, e)`` of a string follows from a running sum: with ``v`` the
inverse of 31 modulo 2**32 and ``P[j] = sum(unit[i] * v**(i+1) for i < j)``, ``hash = (P[e] - P[s])
* 31**e``. One prefix sum thus serves all strings of a block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie_ds.errors import RecordKeyError

UInts = npt.NDArray[np.uint32]
Offsets = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

# Large enough to drown NumPy's cost per call, small enough to stay in a core's cache.
_BLOCK_BYTES = 1 << 17
_INVERSE_OF_31 = pow(31, -1, 1 << 32)


@dataclass(frozen=True, slots=True)
class TextBuffer:
    """The UTF-8 bytes of a string column: row ``i`` is ``data[bounds[i]:bounds[i + 1]]``."""

    data: Bytes
    bounds: Offsets

    @classmethod
    def of(cls, values: pa.Array) -> TextBuffer:
        """View a string or large_string array, without copying its bytes."""
        _, offsets, data = values.buffers()
        if offsets is None or len(values) == 0:
            return cls(np.empty(0, np.uint8), np.zeros(len(values) + 1, np.int64))
        width = np.int64 if pa.types.is_large_string(values.type) else np.int32
        raw = np.frombuffer(offsets, width)[values.offset : values.offset + len(values) + 1]
        text = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
        bounds = raw.astype(np.int64)
        return cls(text[bounds[0] : bounds[-1]], bounds - bounds[0])


def string_hashes(values: pa.Array | pa.ChunkedArray) -> UInts:
    """``String.hashCode`` of each row, as an unsigned 32-bit number; 0 for null.

    `values` are of any string type, or a dictionary of one. `RecordKeyError` if one is not UTF-8.
    """
    if isinstance(values, pa.ChunkedArray):
        parts = [string_hashes(chunk) for chunk in values.chunks]
        return np.concatenate(parts) if parts else np.empty(0, np.uint32)
    if pa.types.is_dictionary(values.type):
        codes = values.indices.fill_null(0).to_numpy(zero_copy_only=False)
        table = string_hashes(values.dictionary)
        hashes = table[codes] if len(table) else np.zeros(len(values), np.uint32)
    else:
        text = values if _has_offsets(values.type) else values.cast(pa.large_string())
        buffer = TextBuffer.of(text)
        hashes = slice_hashes(buffer.data, buffer.bounds[:-1], buffer.bounds[1:])
    if values.null_count:
        hashes[values.is_null().to_numpy(zero_copy_only=False)] = 0
    return hashes


def list_hashes(element_hashes: Sequence[UInts]) -> UInts:
    """``List<String>.hashCode`` of each row from the hashes of its elements, first to last.

    At least one element is needed: without any, the number of rows is unknown.
    """
    assert element_hashes
    folded = np.ones(len(element_hashes[0]), np.uint32)
    for hashes in element_hashes:
        folded = folded * np.uint32(31) + hashes
    return folded


def slice_hashes(data: Bytes, starts: Offsets, ends: Offsets) -> UInts:
    """``String.hashCode`` of the slices ``data[starts[i]:ends[i]]`` of one UTF-8 buffer.

    Slices begin and end between two characters; `starts` and `ends` must not decrease.
    """
    hashes = np.zeros(len(starts), np.uint32)
    longest = int((ends - starts).max(initial=0))
    powers = _POWERS if longest <= _LONGEST_USUAL else _Powers.up_to(_BLOCK_BYTES + longest)
    first = 0
    while first < len(starts):
        # A block is as many slices as begin within _BLOCK_BYTES: always at least one.
        begin = starts[first]
        last = int(np.searchsorted(starts, begin + _BLOCK_BYTES, side="left"))
        hashes[first:last] = _block_hashes(
            data[begin : ends[last - 1]],
            starts[first:last] - begin,
            ends[first:last] - begin,
            powers,
        )
        first = last
    return hashes


@dataclass(frozen=True, slots=True)
class _Powers:
    """Powers of 31 and of its inverse, modulo 2**32, from exponent 0."""

    of_31: UInts
    of_inverse: UInts

    @classmethod
    def up_to(cls, exponent: int) -> _Powers:
        return cls(_geometric(31, exponent + 1), _geometric(_INVERSE_OF_31, exponent + 1))


def _geometric(ratio: int, terms: int) -> UInts:
    series = np.full(terms, ratio, np.uint32)
    series[:1] = 1
    return np.cumprod(series, dtype=np.uint32)


_LONGEST_USUAL = 4096
_POWERS = _Powers.up_to(_BLOCK_BYTES + _LONGEST_USUAL)


def _block_hashes(data: Bytes, starts: Offsets, ends: Offsets, powers: _Powers) -> UInts:
    """Hash the slices of one block by one prefix sum over its UTF-16 units."""
    units: npt.NDArray[np.uint8] | npt.NDArray[np.uint16] = data
    if data.max(initial=0) >= 0x80:
        units, starts, ends = _as_utf16(data, starts, ends)
    sums = np.zeros(len(units) + 1, np.uint32)
    weighted = np.multiply(units, powers.of_inverse[1 : len(units) + 1], dtype=np.uint32)
    np.cumsum(weighted, dtype=np.uint32, out=sums[1:])
    return (sums[ends] - sums[starts]) * powers.of_31[ends]


def _as_utf16(
    data: Bytes, starts: Offsets, ends: Offsets
) -> tuple[npt.NDArray[np.uint16], Offsets, Offsets]:
    """Turn UTF-8 bytes into UTF-16 units, and byte positions into unit positions."""
    try:
        units = np.frombuffer(data.tobytes().decode("utf-8").encode("utf-16-le"), np.dtype("<u2"))
    except UnicodeDecodeError as error:
        shown = data.tobytes()[max(0, error.start - 20) : error.end + 20]
        raise RecordKeyError(
            f"a record key is not valid UTF-8 near {shown!r}; cast the key column to valid text"
        ) from error
    # A lead byte makes one unit, a lead byte of four-byte characters two, the others none.
    made = ((data & 0xC0) != 0x80).astype(np.int64) + (data >= 0xF0)
    before = np.zeros(len(data) + 1, np.int64)
    np.cumsum(made, out=before[1:])
    return units, before[starts], before[ends]


def _has_offsets(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
