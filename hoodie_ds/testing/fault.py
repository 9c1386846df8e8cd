"""Faults of storage operations, those of an object store or a disk as a writer sees them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase
from typing import Final

from hoodie_ds.errors import StorageError


class Kind(str, Enum):
    """What an operation does; a file written in parts is a ``CREATE`` and a ``WRITE``."""

    READ = "read"
    OPEN = "open"
    CREATE = "create"
    WRITE = "write"
    PUT = "put"
    REPLACE = "replace"
    LIST = "list"
    DELETE = "delete"


MUTATING: Final = frozenset({Kind.WRITE, Kind.PUT, Kind.REPLACE, Kind.DELETE})
"""Kinds of operations that change what is stored."""


class Effect(str, Enum):
    """What goes wrong with an operation; `ANOMALIES` affect reads and listings only.

    A storage with anomalies of listings breaks the contract of `Storage` and is not supported; they
    show what happens on one.
    """

    CRASH_BEFORE = "crash before"
    """The process ends before the operation takes effect (F1; of a driver F15, of a task F12)."""
    CRASH_AFTER = "crash after"
    """The process ends after it took effect (F2, F15)."""
    TORN = "torn"
    """The process ends while a file is written in parts: a prefix of it is visible (F3)."""
    LOST_ANSWER = "lost answer"
    """It takes effect and raises the fault's error (F2)."""
    FAILED = "failed"
    """It has no effect and raises the fault's error (F6, F7)."""
    REPEATED = "repeated"
    """The transport sends a put twice: the second answers that the file is there (F5)."""
    MISSING = "missing"
    """A file is not found although it is there (F9)."""
    LAGGING = "lagging"
    """A listing leaves out the files that were made last (F8)."""
    STALE = "stale"
    """A listing still shows the files of the folder that were deleted last (F8)."""
    DOUBLED = "doubled"
    """A listing shows every file twice (F8)."""
    MISSIZED = "missized"
    """A listing shows smaller sizes (F9)."""
    DELAYED = "delayed"
    """It raises the fault's error, and takes effect some operations later (F2)."""
    FLIPPED = "flipped"
    """A bit in the middle of what is read is flipped (F10)."""
    SHORT = "short"
    """What is read ends early (F9, F10)."""
    EXTENDED = "extended"
    """What is read has zeros at its end (F10)."""
    ZEROED = "zeroed"
    """What is read has zeros in its middle, as where a page was never written (F10)."""
    SWAPPED = "swapped"
    """What is read is another file of the same size, if there is one (F10)."""


OF_LISTINGS: Final = frozenset({Effect.LAGGING, Effect.STALE, Effect.DOUBLED, Effect.MISSIZED})
"""Answers of a listing that are not what is stored."""
OF_CONTENT: Final = frozenset(
    {Effect.FLIPPED, Effect.SHORT, Effect.EXTENDED, Effect.ZEROED, Effect.SWAPPED}
)
"""Answers of a read that are not what is stored."""
ANOMALIES: Final = frozenset({Effect.MISSING}) | OF_LISTINGS | OF_CONTENT
"""Answers that are not what is stored."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation as it was requested.

    Parameters
    ----------
    number : int
        Counts from 1.
    kind : Kind
        What it does.
    path : str
        Path of the file or folder.
    size : int
        Bytes given.
    digest : str
        Of the bytes given.
    """

    number: int
    kind: Kind
    path: str
    size: int = 0
    digest: str = ""

    def __str__(self) -> str:
        return f"{self.number} {self.kind.value} {self.path} {self.size} {self.digest}"


@dataclass(slots=True)
class Fault:
    """A rule for operations that fail; a condition left out matches all operations.

    Parameters
    ----------
    effect : Effect
        What goes wrong.
    at : int, optional
        Number of the operation.
    kinds : frozenset of Kind, optional
        Kinds of operations.
    path : str
        Shell pattern of the path, in which ``*`` matches ``/`` too.
    skip : int
        How many matching operations pass first.
    times : int
        How often the rule applies.
    keep : int
        ``TORN``, ``SHORT``: how many bytes are visible. ``EXTENDED``, ``ZEROED``: how many are
        zeros. ``MISSIZED``: how many too few are shown. ``LAGGING``: how many files are not shown,
        ``STALE``: how many are. ``DELAYED``: after how many operations it takes effect.
    error : type of StorageError
        Error to raise, such as `UnavailableError` (F6) or `OutOfSpaceError` (F7).
    """

    effect: Effect
    at: int | None = None
    kinds: frozenset[Kind] | None = None
    path: str = "*"
    skip: int = 0
    times: int = 1
    keep: int = 1
    error: type[StorageError] = StorageError

    def strikes(self, operation: Operation) -> bool:
        """Whether the rule applies; counts it if so."""
        applies = (
            self.times > 0
            and self.at in (None, operation.number)
            and (self.kinds is None or operation.kind in self.kinds)
            and fnmatchcase(operation.path, self.path)
        )
        if applies and self.skip > 0:
            self.skip -= 1
            return False
        self.times -= applies
        return applies
