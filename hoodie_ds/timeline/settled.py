"""The old part of a timeline, which seldom changes any more, in little room.

Writers complete and roll back at the young end, and archive the old one. So instants that are
older than many completed ones are kept together; whoever loads a timeline compares their names
with those listed, and takes all of them anew where one has come or gone.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
import xxhash

from hoodie_ds.timeline.instant import WRITE_ACTIONS, Action, Instant, State

_ACTIONS: Final = tuple(Action)
_CODES: Final = {action: code for code, action in enumerate(_ACTIONS)}
_WRITES: Final = np.array([action in WRITE_ACTIONS for action in _ACTIONS])
_LENGTH: Final = 17
_LARGEST: Final = 1 << 28
_MASK: Final = (1 << 64) - 1

MALFORMED: Final = (
    ValueError,
    TypeError,
    LookupError,
    OverflowError,
    RecursionError,
    zlib.error,
)
"""What taking damaged JSON apart raises, with packed instants in it."""

_Times = npt.NDArray[np.int64]
_Codes = npt.NDArray[np.uint8]


def instants_digest(instants: Iterable[Instant]) -> int:
    """Return a sum over instants by which sets of them are known (64 bits, in any order)."""
    texts = (f"{i.time} {i.action.value} {i.num_batches}".encode() for i in instants)
    return sum(map(xxhash.xxh3_64_intdigest, texts)) & _MASK


@dataclass(frozen=True, eq=False)
class Settled:
    """Completed instants of times of 17 digits, by time, of layout 1.

    Parameters
    ----------
    times : numpy.ndarray of int64
        Their times as numbers, ascending.
    codes : numpy.ndarray of uint8
        Their actions.
    digest : int
        See `instants_digest`; of the instants that brought data files.
    """

    times: _Times = field(default_factory=lambda: np.empty(0, np.int64))
    codes: _Codes = field(default_factory=lambda: np.empty(0, np.uint8))
    digest: int = 0

    @classmethod
    def unpacked(cls, packed: bytes, digest: int) -> Settled:
        """Return what `packed` was made of."""
        raw = zlib.decompressobj().decompress(packed, _LARGEST)
        times = np.cumsum(np.frombuffer(raw, np.int64, len(raw) // 9), dtype=np.int64)
        return cls(times, np.frombuffer(raw, np.uint8, len(times), 8 * len(times)), digest)

    @cached_property
    def packed(self) -> bytes:
        """What `unpacked` takes: the distances of the times, then the actions, compressed."""
        distances = np.diff(self.times, prepend=np.int64(0))
        return zlib.compress(distances.tobytes() + self.codes.tobytes(), 1)

    def __len__(self) -> int:
        return len(self.times)

    def before(self, time: str) -> Settled:
        """Return those before a time, without a digest."""
        count = int(np.searchsorted(self.times, int(time)))
        return Settled(self.times[:count], self.codes[:count])

    def extended(self, later: Iterable[Instant]) -> Settled | None:
        """Return these and later instants; None where one of them is not of the kind."""
        added = tuple(later)
        if any(len(i.time) != _LENGTH or i.num_batches or i.layout != 1 for i in added):
            return None
        times = np.array([int(i.time) for i in added], np.int64)
        codes = np.array([_CODES[i.action] for i in added], np.uint8)
        digest = instants_digest(i for i in added if i.action in WRITE_ACTIONS)
        return Settled(
            np.concatenate([self.times, times]),
            np.concatenate([self.codes, codes]),
            (self.digest + digest) & _MASK,
        )

    @cached_property
    def instants(self) -> tuple[Instant, ...]:
        """All of them, by time; this takes time and room."""
        return tuple(self._at(range(len(self))))

    def write_at(self, time: str) -> Instant | None:
        """Return the instant with a time that brought data files, if there is one."""
        return next((i for i in self.at(time) if i.action in WRITE_ACTIONS), None)

    def of_action(self, action: Action) -> tuple[Instant, ...]:
        """Those with an action, by time."""
        return tuple(self._at(np.flatnonzero(self.codes == _CODES[action]).tolist()))

    def writes(self) -> Iterator[Instant]:
        """Yield those that brought data files, the oldest first."""
        return self._at(self._writes.tolist())

    def writes_backwards(self) -> Iterator[Instant]:
        """Yield those that brought data files, the newest first."""
        return self._at(map(int, reversed(self._writes)))

    def at(self, time: str) -> tuple[Instant, ...]:
        """Return the instants with a time; there is one at most."""
        if len(time) != _LENGTH or not len(self):
            return ()
        position = int(np.searchsorted(self.times, int(time)))
        found = position < len(self) and self.times[position] == int(time)
        return tuple(self._at([position] if found else []))

    def writes_beyond(self, other: Settled) -> Iterator[Instant]:
        """Yield those that brought data files, from where another one goes another way."""
        shared = min(len(self), len(other))
        alike = (self.times[:shared] == other.times[:shared]).all()
        begin = shared if alike and (self.codes[:shared] == other.codes[:shared]).all() else 0
        return self._at(self._writes[np.searchsorted(self._writes, begin) :].tolist())

    @cached_property
    def _writes(self) -> npt.NDArray[np.intp]:
        return np.flatnonzero(_WRITES[self.codes])

    def _at(self, positions: Iterable[int]) -> Iterator[Instant]:
        times, codes = self.times, self.codes
        for position in positions:
            time = str(times[position])
            yield Instant(time, _ACTIONS[codes[position]], State.COMPLETED)
