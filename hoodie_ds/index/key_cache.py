"""Record keys of file slices kept in memory; those of the state index from batch to batch.

The table is the truth and this is a cache of it: a slice is known by all of its files and, as log
files hold blocks that count only once their commit is complete, by the moment at which those were
read. So a slice that anybody changed or rolled back is another one, and what was dropped is simply
read again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Set
from threading import Lock

from hoodie_ds.columns.arrow_columns import Mask
from hoodie_ds.index.front_filter import FrontFilter
from hoodie_ds.index.stored_keys import KeyQuery, KeySource, SliceKeys


class KeyCache:
    """Keys of the slices that were looked at last.

    `max_bytes` bounds the keys, their hashes and the filter in front of them.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._held_bytes = 0
        self._slices: OrderedDict[KeySource, SliceKeys] = OrderedDict()
        self._front = FrontFilter()
        self._lock = Lock()

    @property
    def front_bytes(self) -> int:
        """Bytes of the filter in front of the slices."""
        return self._front.nbytes

    def get(self, source: KeySource) -> SliceKeys | None:
        """Return the keys of a slice; None if they are not kept."""
        with self._lock:
            keys = self._slices.get(source)
            if keys is not None:
                self._slices.move_to_end(source)
            return keys

    def put(self, source: KeySource, keys: SliceKeys) -> None:
        """Keep the keys of a slice, and let go of others where there is no room."""
        with self._lock:
            self._drop(source)
            self._slices[source] = keys
            self._held_bytes += keys.nbytes
            self._make_room()

    def ask_front(
        self, sources: Iterable[KeySource], query: KeyQuery
    ) -> tuple[Set[KeySource], Mask]:
        """Return which slices need not be searched for all keys, and for which they need be.

        See `FrontFilter.ask`; of the sources those are meant whose keys are kept.
        """
        with self._lock:
            held = {source: self._slices[source] for source in sources if source in self._slices}
            answer = self._front.ask(held, query.hashes)
            self._make_room()
            return answer

    def _make_room(self) -> None:
        while self._slices and self._held_bytes + self._front.nbytes > self._max_bytes:
            self._drop(next(iter(self._slices)))
        if not self._slices:
            self._front = FrontFilter()

    def _drop(self, source: KeySource) -> None:
        keys = self._slices.pop(source, None)
        if keys is not None:
            self._held_bytes -= keys.nbytes
