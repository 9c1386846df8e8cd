"""Record keys of file slices kept in memory; the state index keeps them from batch to batch.

The table is the truth and this is a cache of it: a slice is identified by all of its files and, as
blocks of log files count only once their commit is complete, by the timeline of the read. So a
slice that any process changed or rolled back is another one, and dropped keys are read again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Set
from threading import Lock

from hoodie_ds.columns.arrow_columns import Mask
from hoodie_ds.index.front_filter import FrontFilter
from hoodie_ds.index.stored_keys import KeyQuery, KeySource, SliceKeys


class KeyCache:
    """Keys of the slices that were read last, up to `max_bytes` with their hashes and filter."""

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
        """Return the keys of a slice; None if they are not cached."""
        with self._lock:
            keys = self._slices.get(source)
            if keys is not None:
                self._slices.move_to_end(source)
            return keys

    def put(self, source: KeySource, keys: SliceKeys) -> None:
        """Cache the keys of a slice, and evict others if there is no room."""
        with self._lock:
            self._drop(source)
            self._slices[source] = keys
            self._held_bytes += keys.nbytes
            self._make_room()

    def ask_front(
        self, sources: Iterable[KeySource], query: KeyQuery
    ) -> tuple[Set[KeySource], Mask]:
        """Return which cached slices need a search only for some keys; see `FrontFilter.ask`."""
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
