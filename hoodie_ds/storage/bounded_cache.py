"""A cache of what a process has found out about one table, of bounded size."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Generic, Protocol, TypeVar


class Sized(Protocol):
    """A value that knows about how much memory it takes."""

    @property
    def nbytes(self) -> int:
        """Bytes."""
        ...


Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value", bound=Sized)


class BoundedCache(Generic[Key, Value]):
    """The values that were used last, of no more than `max_bytes`; threads may share it."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._found: OrderedDict[Key, Value] = OrderedDict()
        self._held_bytes = 0
        self._lock = Lock()

    def get(self, key: Key) -> Value | None:
        """Return a value; None if it is not known."""
        with self._lock:
            found = self._found.get(key)
            if found is not None:
                self._found.move_to_end(key)
            return found

    def put(self, key: Key, value: Value) -> None:
        """Keep a value, unless there is one, in place of those not used for longest."""
        with self._lock:
            if key in self._found:
                return
            self._found[key] = value
            self._held_bytes += value.nbytes
            while self._held_bytes > self._max_bytes:
                _, dropped = self._found.popitem(last=False)
                self._held_bytes -= dropped.nbytes
