"""Hadoop's MurmurHash2 of many strings at once.

Invariant: every hash equals that of ``org.apache.hadoop.util.hash.MurmurHash``, whose tail differs
from the original's: it is read from the end, each byte with its sign.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie_ds.columns.arrow_columns import Numbers

UInts = npt.NDArray[np.uint32]

_M = np.uint32(0x5BD1E995)


@dataclass(frozen=True, slots=True)
class _SameLength:
    """Strings of one length, split into words."""

    at: Numbers  # their positions among all strings
    length: np.uint32  # bytes of each
    words: UInts  # four-byte words by position, mixed already: that needs no seed
    tail: UInts | None  # the bytes after the words, if any

    def hashes(self, seeds: UInts) -> UInts:
        found = seeds ^ self.length
        for words in self.words:
            found *= _M
            found ^= words
        if self.tail is not None:
            found ^= self.tail
            found *= _M
        found ^= found >> np.uint32(13)
        found *= _M
        found ^= found >> np.uint32(15)
        return found


class Murmur:
    """Strings (without nulls) to hash with one seed after another, as a bloom filter does."""

    def __init__(self, strings: pa.Array) -> None:
        self._count = len(strings)
        self._parts = _by_length(strings) if len(strings) else []

    def hashes(self, seeds: UInts) -> UInts:
        """Hash every string with its own seed."""
        found = np.empty(self._count, np.uint32)
        for part in self._parts:
            found[part.at] = part.hashes(seeds[part.at])
        return found


def _by_length(strings: pa.Array) -> list[_SameLength]:
    strings = pa.concat_arrays([strings.cast(pa.large_string())])  # only the rows of a slice
    offsets, data = strings.buffers()[1:]
    bounds = np.frombuffer(offsets, np.int64)[strings.offset : strings.offset + len(strings) + 1]
    raw = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    lengths = np.diff(bounds)
    order = np.argsort(lengths, kind="stable")
    firsts = np.flatnonzero(np.diff(lengths[order], prepend=-1))
    # A loop over distinct lengths, of which keys have few.
    return [
        _same_length(raw, bounds[at], at, int(lengths[at[0]])) for at in np.split(order, firsts[1:])
    ]


def _same_length(
    raw: npt.NDArray[np.uint8], starts: Numbers, at: Numbers, length: int
) -> _SameLength:
    text = np.empty((len(starts), 0), np.uint8)
    if length:
        # Whole strings at a time: an index of every byte would take eight times their memory.
        text = np.lib.stride_tricks.sliding_window_view(raw, length)[starts]
    whole = length & ~3
    words = np.ascontiguousarray(text[:, :whole]).view("<u4").T.astype(np.uint32)
    words *= _M
    words ^= words >> np.uint32(24)
    words *= _M
    tail = None
    for back in range(1, length - whole + 1):
        # Each byte with its sign, as Java's are.
        byte = text[:, length - back].view(np.int8).astype(np.int32) << (8 * (back - 1))
        tail = byte.view(np.uint32) if tail is None else tail ^ byte.view(np.uint32)
    return _SameLength(at, np.uint32(length), words, tail)
