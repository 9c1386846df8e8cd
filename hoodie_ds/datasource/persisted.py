"""Rows that Python made of log files, in Spark's storage for later queries of the session.

Spark prunes nothing through a Python function: every query would merge the log files again, with
all columns of its DataFrame. Of persisted rows it takes the columns and batches that it needs. To
store them costs about as much as to make them, so that is done when they are asked for again.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from hashlib import sha256
from threading import Lock
from typing import Final

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from hoodie_ds.environment import forget_at_fork

_Key = tuple[Hashable, ...]

MOST_FRAMES: Final = 128
"""Each is a plan in the driver, and has its session, however few its rows are."""


@dataclass(frozen=True, slots=True)
class TableState:
    """A table at one moment as one session reads it.

    `table` says which table is read, and as of when if not the latest; `digest` depends on all that
    decides how a file slice is merged, such as the completed instants.
    """

    spark: SparkSession
    table: Hashable
    digest: bytes

    @classmethod
    def of(cls, spark: SparkSession, table: Hashable, merge: object) -> TableState:
        """Return the state of a table whose slices `merge` merges, once it is unpickled."""
        return cls(spark, table, pickle_digest(merge))


@dataclass(frozen=True, slots=True)
class _Entry:
    frame: DataFrame
    state: TableState
    size: int


class PersistedFrames:
    """The frames of all sessions of this process that were used last."""

    def __init__(self) -> None:
        self._entries: OrderedDict[_Key, _Entry] = OrderedDict()
        self._lock = Lock()

    def get(
        self,
        state: TableState,
        made_of: object,
        size: int,
        most: int,
        make: Callable[[], DataFrame],
    ) -> DataFrame:
        """Return the frame that `make` makes, or has made: the second time Spark is to persist it.

        `made_of` decides its rows, together with `state`. `size` counts towards `most`, beyond
        which, or `MOST_FRAMES`, frames go that were not used for longest, as do those of other
        states of the same table: Spark computes their rows again for a DataFrame that still has
        them.
        """
        if size > most:
            return make()
        session = state.spark._jsparkSession.sessionUUID()
        key = session, state.table, state.digest, pickle_digest(made_of)
        with self._lock:
            found = self._entries.pop(key, None)
            entry = self._entries[key] = found or _Entry(make(), state, size)
            if found is None:
                self._forget(key[:2], most)
            elif entry.frame.storageLevel == StorageLevel.NONE:  # or `clearCache` was called
                entry.frame.persist(StorageLevel.MEMORY_AND_DISK_DESER)
            return entry.frame

    def clear(self) -> None:
        """Forget all frames, which stay where they are."""
        self._entries, self._lock = OrderedDict(), Lock()

    def _forget(self, table: _Key, most: int) -> None:
        """Let other states of the newest entry's table go, and what is too much."""
        newest = next(reversed(self._entries.values()))
        held = 0
        for place, (key, entry) in enumerate([*reversed(self._entries.items())]):
            held += entry.size
            too_much = held > most or place >= MOST_FRAMES
            same_context = entry.frame.sparkSession.sparkContext is newest.state.spark.sparkContext
            outdated = key[:2] == table and entry.state.digest != newest.state.digest
            if too_much or outdated or not same_context:
                held -= entry.size
                del self._entries[key]
                if same_context:  # else it has been stopped
                    entry.frame.unpersist()


def pickle_digest(value: object) -> bytes:
    """Return a digest of a value's pickle: those of values that differ are different."""
    return sha256(pickle.dumps(value)).digest()


PERSISTED: Final = PersistedFrames()
forget_at_fork(PERSISTED.clear)
