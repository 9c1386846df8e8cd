"""What is remembered of the rows of a batch, to know them when the batch comes again."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from hoodie_ds.sink.column_sums import column_sums
from hoodie_ds.sink.row_hash import row_hashes

_TEXT: Final = re.compile(r"([0-9]{1,19})-([0-9a-f]{16})")
_PIECE_ROWS: Final = 1 << 15
"""Rows that are hashed together: the hashes of more would not stay in a core's cache."""

_MASK: Final = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class InputDigest:
    """Number of some rows and a sum over them.

    It does not depend on their order, nor on how they are dealt out over Arrow batches and tasks:
    the digests of parts add up to that of the whole.

    Parameters
    ----------
    num_rows : int
        How many there are.
    checksum : int
        Sum of their hashes, or of their columns, modulo 2**64.
    """

    num_rows: int = 0
    checksum: int = 0

    @classmethod
    def of(cls, rows: pa.Table) -> InputDigest:
        """Return the digest of all columns; see `row_hashes`."""
        firsts = range(0, rows.num_rows, _PIECE_ROWS)
        sums = (row_hashes(rows.slice(n, _PIECE_ROWS)).sum(dtype=np.uint64) for n in firsts)
        return cls(rows.num_rows, sum(map(int, sums)) & _MASK)

    @classmethod
    def of_columns(cls, rows: pa.Table) -> InputDigest:
        """Return the digest of rows that are too many to be hashed; see `column_sums`."""
        return cls(rows.num_rows, column_sums(rows))

    @classmethod
    def parse(cls, text: str) -> InputDigest:
        """Read what `to_text` wrote.

        Raises
        ------
        ValueError
            The text is none of it.
        """
        match = _TEXT.fullmatch(text)
        if match is None:
            raise ValueError(f"{text[:100]!r} is no digest of rows")
        return cls(int(match[1]), int(match[2], 16))

    def to_text(self) -> str:
        """Return the digest as a commit carries it."""
        return f"{self.num_rows}-{self.checksum:016x}"

    def __add__(self, other: InputDigest) -> InputDigest:
        return InputDigest(self.num_rows + other.num_rows, self.checksum + other.checksum & _MASK)

    def __str__(self) -> str:
        return f"{self.num_rows} rows with checksum {self.checksum:016x}"
