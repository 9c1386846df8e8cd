"""The smallest and largest record key of a file, in the order in which Java compares strings."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_FIRST_ASTRAL_BYTE: Final = 0xF0  # first UTF-8 byte of the characters beyond U+FFFF
_HIGH_CHARACTER: Final = r"[\x{E000}-\x{10FFFF}]"


class KeyRange:
    """Smallest and largest of all added keys, by UTF-16 code units.

    Arrow compares UTF-8 bytes, which is the order of code points. Java's order differs from it only
    between characters beyond U+FFFF, whose surrogates come first, and U+E000 to U+FFFF.
    """

    def __init__(self) -> None:
        self.min: str | None = None
        self.max: str | None = None

    def add(self, keys: pa.ChunkedArray) -> None:
        """Widen the range by a string column; nulls do not count."""
        for chunk in keys.chunks:
            if _has_astral(chunk):
                high = pc.fill_null(pc.match_substring_regex(chunk, _HIGH_CHARACTER), False)
                # The rare fallback: a loop over the keys that have a character from U+E000 on.
                for key in set(chunk.filter(high).to_pylist()):
                    self._widen(key, key)
                chunk = chunk.filter(pc.invert(high))
            bounds = pc.min_max(chunk).as_py()
            if bounds["min"] is not None:
                self._widen(bounds["min"], bounds["max"])

    def _widen(self, low: str, high: str) -> None:
        self.min = low if self.min is None else min(self.min, low, key=_java_order)
        self.max = high if self.max is None else max(self.max, high, key=_java_order)


def _has_astral(keys: pa.Array) -> bool:
    offsets, data = keys.buffers()[1:]
    if not len(keys) or data is None:
        return False
    bounds = np.frombuffer(offsets, np.int32)[[keys.offset, keys.offset + len(keys)]]
    data_bytes = np.frombuffer(data, np.uint8)[bounds[0] : bounds[1]]
    return bool(data_bytes.max(initial=0) >= _FIRST_ASTRAL_BYTE)


def _java_order(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")
