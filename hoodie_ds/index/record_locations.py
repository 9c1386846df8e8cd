"""The result of a lookup: the file slices in which record keys are stored."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hoodie_ds.columns.arrow_columns import Mask, Numbers, ranks


@dataclass(frozen=True, slots=True)
class RecordLocations:
    """The file slices in which keys are stored; a key may be in several.

    Apache Hudi's bloom and simple indexes join incoming records with all stored ones, so each copy
    of a key is a location.
    """

    keys: Numbers  # position of the located key, ascending
    slices: Numbers  # position of the slice, ascending for a key; -1 for a key in none
    tombstones: Mask  # whether the slice only deletes the key, which has another location too
    num_keys: int  # of the lookup

    @classmethod
    def nowhere(cls, num_keys: int) -> RecordLocations:
        """Return the locations of keys that are not stored."""
        nowhere = np.full(num_keys, -1, dtype=np.int64)
        return cls(np.arange(num_keys), nowhere, np.zeros(num_keys, np.bool_), num_keys)

    @property
    def first(self) -> Numbers:
        """The first slice (int64) of each key; -1 for a key without a location."""
        first = np.full(self.num_keys, -1, dtype=np.int64)
        first[self.keys[::-1]] = self.slices[::-1]
        return first

    @property
    def most(self) -> int:
        """How many locations a key has at most."""
        return int(np.bincount(self.keys).max(initial=0))

    def nth(self, number: int) -> tuple[Numbers, Numbers]:
        """Return the keys (int64) with more than `number` locations, and the slice of that one."""
        every = np.arange(len(self.keys))
        begins = np.maximum.accumulate(np.where(np.diff(self.keys, prepend=-1) > 0, every, 0))
        here = np.flatnonzero(every - begins == number)
        return self.keys[here], self.slices[here]

    def only(self, wanted: Mask) -> RecordLocations:
        """Return some of the locations."""
        kept = self.keys[wanted], self.slices[wanted], self.tombstones[wanted]
        return RecordLocations(*kept, self.num_keys)

    def take(self, positions: Numbers) -> RecordLocations:
        """Return the locations of keys by position, repeated as the positions are."""
        counts = np.bincount(self.keys, minlength=self.num_keys)
        starts = np.cumsum(counts) - counts
        taken = counts[positions]
        keys = np.repeat(np.arange(len(positions)), taken)
        # Of the locations of one key, the first, the second, and so on.
        at = np.repeat(starts[positions], taken) + ranks(taken)
        return RecordLocations(keys, self.slices[at], self.tombstones[at], len(positions))
