"""Record keys of file slices kept in memory: the state of the state index (RFC-24).

The table is the truth and this is a cache of it: a slice is known by all of its files and, as log
files hold blocks that count only once their commit is complete, by the moment at which those were
read. So a slice that anybody changed or rolled back is another one, and what was dropped is simply
read again.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock

from hoodie_ds.index.stored_keys import SliceKeys
from hoodie_ds.table.file_slice import FileSlice


@dataclass(frozen=True, slots=True)
class Place:
    """What keys were read from.

    Parameters
    ----------
    root : str
        Root of the table's storage.
    slice : FileSlice
        The slice.
    as_of : str
        The timeline by which log files were read; empty without log files.
    """

    root: str
    slice: FileSlice
    as_of: str


class KeyCache:
    """Keys of the slices that were looked at last.

    Parameters
    ----------
    max_bytes : int
        Bytes of keys and their hashes that are kept at most.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._held_bytes = 0
        self._slices: OrderedDict[Place, SliceKeys] = OrderedDict()
        self._lock = Lock()

    def get(self, place: Place) -> SliceKeys | None:
        """Return the keys of a slice; None if they are not kept."""
        with self._lock:
            keys = self._slices.get(place)
            if keys is not None:
                self._slices.move_to_end(place)
            return keys

    def put(self, place: Place, keys: SliceKeys) -> None:
        """Keep the keys of a slice, and let go of others where there is no room."""
        with self._lock:
            self._drop(place)
            self._slices[place] = keys
            self._held_bytes += keys.nbytes
            while self._held_bytes > self._max_bytes:
                self._drop(next(iter(self._slices)))

    def _drop(self, place: Place) -> None:
        keys = self._slices.pop(place, None)
        if keys is not None:
            self._held_bytes -= keys.nbytes


@lru_cache(maxsize=1)
def shared_key_cache(max_bytes: int) -> KeyCache:
    """Return the cache that all tasks of this process share, batch after batch."""
    return KeyCache(max_bytes)
