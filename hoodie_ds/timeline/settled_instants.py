"""The old part of a timeline, which seldom changes, in little memory.

Writers complete and roll back young instants, and archive old ones. So instants that are older than
many completed ones are kept together; a load compares their names with those listed, and parses all
of them again if one has come or gone.
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
from hoodie_ds.timeline.paths import V1

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
    """Return a sum over instants that identifies a set of them (64 bits, in any order)."""
    texts = (f"{i.time} {i.action.value} {i.num_batches}".encode() for i in instants)
    return sum(map(xxhash.xxh3_64_intdigest, texts)) & _MASK


@dataclass(frozen=True, eq=False)
class Settled:
    """Completed instants of one layout with times of 17 digits, by time.

    `times` and `ends` (completion times, 0 where there is none) are int64, `codes` of actions
    uint8. `digest` is that of the instants that brought data files. Without instants, `layout` is
    1.
    """

    times: _Times = field(default_factory=lambda: np.empty(0, np.int64))
    codes: _Codes = field(default_factory=lambda: np.empty(0, np.uint8))
    digest: int = 0
    ends: _Times = field(default_factory=lambda: np.empty(0, np.int64))
    layout: int = V1.version

    @classmethod
    def unpacked(cls, packed: bytes, digest: int, layout: int) -> Settled:
        """Return the instants of a layout from `packed`."""
        raw = zlib.decompressobj().decompress(packed, _LARGEST)
        if not raw:
            return cls(digest=digest)
        has_ends = layout != V1.version
        count = len(raw) // (17 if has_ends else 9)
        times = np.cumsum(np.frombuffer(raw, np.int64, count), dtype=np.int64)
        codes = np.frombuffer(raw, np.uint8, count, 8 * count)
        ends = np.frombuffer(raw[9 * count :], np.int64) if has_ends else np.zeros_like(times)
        return cls(times, codes, digest, ends, layout)

    @cached_property
    def packed(self) -> bytes:
        """Compressed for `unpacked`: differences of times, actions, completion times."""
        distances = np.diff(self.times, prepend=np.int64(0))
        ends = self.ends.tobytes() if self.layout != V1.version else b""
        return zlib.compress(distances.tobytes() + self.codes.tobytes() + ends, 1)

    @property
    def latest_end(self) -> str:
        """The greatest completion time; empty if there is none."""
        latest = int(self.ends.max(initial=0))
        return str(latest) if latest else ""

    def __len__(self) -> int:
        return len(self.times)

    def before(self, time: str) -> Settled:
        """Return those before a time, without a digest."""
        count = int(np.searchsorted(self.times, int(time)))
        return Settled(self.times[:count], self.codes[:count], 0, self.ends[:count], self.layout)

    def extended(self, later: Iterable[Instant]) -> Settled | None:
        """Return these and later instants; None if one is not completed or has a short time."""
        added = tuple(later)
        layouts = {i.layout for i in added} | ({self.layout} if len(self) else set())
        if len(layouts) > 1 or any(len(i.time) != _LENGTH or i.num_batches for i in added):
            return None
        times = np.array([int(i.time) for i in added], np.int64)
        codes = np.array([_CODES[i.action] for i in added], np.uint8)
        ends = np.array([int(i.completion_time or 0) for i in added], np.int64)
        digest = instants_digest(i for i in added if i.action in WRITE_ACTIONS)
        return Settled(
            np.concatenate([self.times, times]),
            np.concatenate([self.codes, codes]),
            (self.digest + digest) & _MASK,
            np.concatenate([self.ends, ends]),
            layouts.pop() if layouts else self.layout,
        )

    @cached_property
    def instants(self) -> tuple[Instant, ...]:
        """All of them, by time; this takes time and memory."""
        return tuple(self._at(range(len(self))))

    def write_at(self, time: str) -> Instant | None:
        """Return the instant of a time that brought data files, if there is one."""
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
        """Return the instants of a time; there is one at most."""
        if len(time) != _LENGTH or not len(self):
            return ()
        position = int(np.searchsorted(self.times, int(time)))
        found = position < len(self) and self.times[position] == int(time)
        return tuple(self._at([position] if found else []))

    def writes_beyond(self, other: Settled) -> Iterator[Instant]:
        """Yield those that brought data files, from the first difference to another one on."""
        shared = min(len(self), len(other))
        alike = (self.times[:shared] == other.times[:shared]) & (
            self.codes[:shared] == other.codes[:shared]
        )
        mine, theirs = self.ends[:shared], other.ends[:shared]
        alike &= (mine == theirs) | (mine == 0) | (theirs == 0)
        begin = shared if alike.all() else 0
        return self._at(self._writes[np.searchsorted(self._writes, begin) :].tolist())

    @cached_property
    def _writes(self) -> npt.NDArray[np.intp]:
        return np.flatnonzero(_WRITES[self.codes])

    def _at(self, positions: Iterable[int]) -> Iterator[Instant]:
        times, codes, ends = self.times, self.codes, self.ends
        for position in positions:
            time, end = str(times[position]), str(ends[position] or "")
            action = _ACTIONS[codes[position]]
            yield Instant(time, action, State.COMPLETED, 0, self.layout, end)
