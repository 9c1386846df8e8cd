"""Values computed once for a table's timeline, and again for the next one."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Final, TypeVar

from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.timeline import Timeline

T = TypeVar("T")
_TABLES: Final = 8


def once_per_timeline(
    compute: Callable[[Storage, Timeline], T],
) -> Callable[[Storage, Timeline], T]:
    """Keep the last value of each table for as long as it is asked for the same timeline object.

    A timeline that is loaded anew is another one, though it shows the same instants.
    """

    @lru_cache(maxsize=_TABLES)
    def last(_: Storage) -> list[tuple[Timeline, T]]:
        return []

    @wraps(compute)
    def known(storage: Storage, timeline: Timeline) -> T:
        kept = last(storage)
        if not kept or kept[0][0] is not timeline:
            kept[:] = [(timeline, compute(storage, timeline))]
        return kept[0][1]

    return known
