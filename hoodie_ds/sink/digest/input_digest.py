"""The digest of a batch's rows that a commit stores, to recognise the batch if it comes again."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import xxhash

from hoodie_ds.sink.digest.column_sums import column_sums
from hoodie_ds.sink.digest.row_hash import row_hashes
from hoodie_ds.sink.digest.row_sums import row_sums

_TEXT: Final = re.compile(r"([0-9]{1,19})([-+])([0-9a-f]{16})")
_PIECE_ROWS: Final = 1 << 15
"""Rows that are hashed together: hashes of more would not stay in a core's cache."""

_MASK: Final = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class InputDigest:
    """The number of some rows and a sum over them.

    It depends neither on their order nor on their distribution over Arrow batches and tasks: the
    digests of parts add up to the digest of the whole.
    """

    num_rows: int = 0
    checksum: int = 0
    """Sum of the hashes of their keys, modulo 2**64, or of their columns without keys."""
    values: int | None = None
    """Checksum of keys and values; None for rows without keys, and in older releases."""

    @classmethod
    def of(cls, rows: pa.Table) -> InputDigest:
        """Return the digest of all columns; see `row_hashes`."""
        firsts = range(0, rows.num_rows, _PIECE_ROWS)
        sums = (row_hashes(rows.slice(n, _PIECE_ROWS)).sum(dtype=np.uint64) for n in firsts)
        return cls(rows.num_rows, sum(map(int, sums)) & _MASK)

    @classmethod
    def of_keyed(cls, rows: pa.Table, keys: pa.Table) -> InputDigest:
        """Return the digest of all columns of rows that have keys; see `row_sums`."""
        total = cls()
        for first in range(0, rows.num_rows, _PIECE_ROWS):
            piece = rows.slice(first, _PIECE_ROWS)
            hashes = row_hashes(keys.slice(first, _PIECE_ROWS))
            checksum = int(hashes.sum(dtype=np.uint64))
            total += cls(piece.num_rows, checksum, row_sums(piece, hashes))
        return total

    @classmethod
    def of_columns(cls, rows: pa.Table) -> InputDigest:
        """Return the digest of rows that are too many to hash; see `column_sums`."""
        return cls(rows.num_rows, column_sums(rows))

    @classmethod
    def parse(cls, text: str) -> InputDigest:
        """Read what `to_text` wrote; `ValueError` for anything else."""
        match = _TEXT.fullmatch(text)
        if match is None:
            raise ValueError(f"{text[:100]!r} is no digest of rows")
        number = int(match[3], 16)
        return cls(int(match[1]), *((0, number) if match[2] == "+" else (number, None)))

    def to_text(self) -> str:
        """Return the digest as a commit carries it; see `as_kept`."""
        if self.values is None:
            return f"{self.num_rows}-{self.checksum:016x}"
        return f"{self.num_rows}+{self.values:016x}"

    def of_operation(self, name: str) -> InputDigest:
        """Return the digest of the same rows for an operation other than the usual one.

        The same rows under the same number are another batch if they are to be deleted. The
        checksum that earlier releases stored of rows with keys does not depend on the operation.
        """
        if not self.num_rows:
            return self
        number = xxhash.xxh64_intdigest(name.encode())
        if self.values is None:
            return replace(self, checksum=self.checksum + number & _MASK)
        return replace(self, values=self.values + number & _MASK)

    def as_kept(self) -> InputDigest:
        """Return the part of the digest that `to_text` keeps."""
        return self if self.values is None else replace(self, checksum=0)

    def like(self, stored: InputDigest) -> InputDigest:
        """Return the part of the digest that is comparable with one in a commit."""
        return replace(self, values=None) if stored.values is None else self.as_kept()

    def __add__(self, other: InputDigest) -> InputDigest:
        values = None
        if self.values is not None or other.values is not None:
            values = (self.values or 0) + (other.values or 0) & _MASK
        checksum = self.checksum + other.checksum & _MASK
        return InputDigest(self.num_rows + other.num_rows, checksum, values)

    def __str__(self) -> str:
        shown = self.checksum if self.values is None else self.values
        return f"{self.num_rows} rows with checksum {shown:016x}"
