"""Texts that end in consecutive numbers, such as the sequence numbers of Hudi's records."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

_BLOCK: Final = 1000
_DIGITS: Final = np.array([list(f"{n:03}".encode()) for n in range(_BLOCK)], np.uint8)
"""The last three digits of the rows of a block."""


def numbered(prefix: str, first: int, count: int) -> pa.StringArray:
    """Return `prefix` with each of `count` numbers behind it, from `first` on.

    In a quarter of the time that Arrow takes to print the numbers and join them, which is felt
    where every row of an append gets such a text.
    """
    parts = [pa.array([], pa.string())]
    start, end = first, first + count
    while start < end:  # numbers with as many digits
        num_digits = len(str(start))
        stop = min(end, 10**num_digits)
        parts.append(_of_one_width(prefix.encode(), start, stop, num_digits))
        start = stop
    return parts[-1] if len(parts) <= 2 else pa.concat_arrays(parts)


def _of_one_width(prefix: bytes, start: int, stop: int, num_digits: int) -> pa.StringArray:
    """Write thousands of rows as copies of one block, then the digits before the last three."""
    width, last = len(prefix) + num_digits, min(3, num_digits)
    block = np.empty((_BLOCK, width), np.uint8)
    block[:, : len(prefix)] = np.frombuffer(prefix, np.uint8)
    block[:, width - last :] = _DIGITS[:, 3 - last :]
    above = np.arange(start // _BLOCK, -(-stop // _BLOCK))
    text = np.tile(block, (len(above), 1, 1))
    for column in range(width - last - 1, len(prefix) - 1, -1):
        text[:, :, column] = (above % 10 + ord("0"))[:, np.newaxis]
        above //= 10
    offsets = np.arange(0, (stop - start + 1) * width, width, dtype=np.int32)
    data = pa.py_buffer(text).slice(start % _BLOCK * width, (stop - start) * width)
    return pa.StringArray.from_buffers(stop - start, pa.py_buffer(offsets), data)
