"""A bloom filter in front of many slices: a key that none of them holds is not searched in each.

Without it a batch of new keys costs a search in every slice of the state, which grows with the
table. Keys that pass the filter are searched as before, so an answer stays exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Final

import numpy as np
from rbloom import Bloom

from hoodie_ds.columns.arrow_columns import Mask
from hoodie_ds.columns.java_hash import UInts
from hoodie_ds.index.stored_keys import KeySource, SliceKeys

_FALSE_POSITIVES: Final = 0.01
_ASKED_FOR: Final = 10
"""Testing a key costs as much as searching it in that many slices (230 and 25 ns)."""
_ADDED_FOR: Final = 2
"""Adding a key costs less than searching one in that many slices (40 ns)."""


class FrontFilter:
    """A filter of the keys of all slices that were looked up.

    It keeps keys of slices that are gone, until it is full; then it is rebuilt, with room for twice
    the current keys.
    """

    def __init__(self) -> None:
        self._bloom: Bloom | None = None
        self._room = 0
        self._sources: set[KeySource] = set()

    @property
    def nbytes(self) -> int:
        """Bytes of the filter."""
        return self._bloom.size_in_bits // 8 if self._bloom is not None else 0

    def ask(
        self, held: Mapping[KeySource, SliceKeys], hashes: UInts
    ) -> tuple[Set[KeySource], Mask]:
        """Return the slices that need a search only for some keys, and which keys those are.

        There are no such slices if searching them costs less than the filter.
        """
        new = {source: keys for source, keys in held.items() if source not in self._sources}
        num_new = sum(keys.num_keys for keys in new.values())
        if len(hashes) * (len(held) - _ASKED_FOR) <= _ADDED_FOR * num_new:
            return frozenset(), np.ones(len(hashes), np.bool_)
        if self._bloom is None or num_new > self._room:
            new = dict(held)
            num_new = sum(keys.num_keys for keys in new.values())
            self._room = 2 * num_new
            self._sources = set()
            self._bloom = Bloom(max(1, self._room), _FALSE_POSITIVES)
        for keys in new.values():
            self._bloom.update(keys.live.hashes.tolist(), keys.dead.hashes.tolist())
        self._room -= num_new
        self._sources |= new.keys()
        # Key by key, but within C: the filter has no bulk call.
        passed = map(self._bloom.__contains__, hashes.tolist())
        return self._sources & held.keys(), np.fromiter(passed, np.bool_, len(hashes))
