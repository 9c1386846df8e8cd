"""A storage that records every operation and fails, or ends the process, where it is told to.

The faults are those of an object store or a disk as a writer sees them. A process is one
`FaultyStorage`: after a crash all of its operations crash, whatever handlers still run, and only
what the wrapped storage holds survives.
"""

from __future__ import annotations

import builtins
import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from fnmatch import fnmatchcase
from typing import BinaryIO, Final, TypeVar

from hoodie_ds.errors import AlreadyExistsError, NotFoundError, StorageError
from hoodie_ds.storage.protocol import FileStatus, Storage
from hoodie_ds.testing.memory import KeptBuffer
from hoodie_ds.testing.simulated import SimulatedCrash

_Result = TypeVar("_Result")


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
    """What goes wrong with an operation.

    The last four break the promise of `Storage`: a storage that does so is not supported, and
    they show what happens on one.
    """

    CRASH_BEFORE = "crash before"
    """The process ends before the operation takes effect (F1; of a driver F15, of a task F12)."""
    CRASH_AFTER = "crash after"
    """The process ends after it took effect (F2, F15)."""
    TORN = "torn"
    """The process ends while a file is written in parts: a prefix of it is visible (F3)."""
    LOST_ANSWER = "lost answer"
    """It takes effect and raises `StorageError` (F2)."""
    FAILED = "failed"
    """It has no effect and raises `StorageError` (F6, F7)."""
    REPEATED = "repeated"
    """The transport sends a put twice: the second answers that the file is there (F5)."""
    MISSING = "missing"
    """A file is not found although it is there (F9)."""
    LAGGING = "lagging"
    """A listing leaves out the files that were made last (F8)."""
    DELAYED = "delayed"
    """It raises `StorageError`, and takes effect some operations later (F2)."""
    FLIPPED = "flipped"
    """A bit of what is read is another (F10)."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation as it was asked for.

    Parameters
    ----------
    number : int
        Counts from 1.
    kind : Kind
        What it does.
    path : str
        To which file or folder.
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
    """A rule by which operations go wrong; conditions left out hold for all operations.

    Parameters
    ----------
    effect : Effect
        What goes wrong.
    at : int, optional
        Number of the operation.
    kinds : frozenset of Kind, optional
        Kinds of operations.
    path : str
        Shell pattern of the path, in which ``*`` takes in ``/`` too.
    skip : int
        How many operations pass first although the rule applies to them.
    times : int
        How often the rule strikes.
    keep : int
        ``TORN``: how many bytes are visible. ``LAGGING``: how many files are not. ``DELAYED``:
        after how many operations it takes effect.
    """

    effect: Effect
    at: int | None = None
    kinds: frozenset[Kind] | None = None
    path: str = "*"
    skip: int = 0
    times: int = 1
    keep: int = 1

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


@dataclass
class Recorder:
    """What one or several storages were asked for, in order."""

    operations: list[Operation] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, operation: Operation) -> None:
        """Record an operation."""
        self.operations.append(operation)
        self.notes.append(str(operation))

    def note(self, text: str) -> None:
        """Record something else that belongs to the trace."""
        self.notes.append(text)

    @property
    def trace_hash(self) -> str:
        """Digest of everything recorded: equal for equal runs."""
        return hashlib.sha256("\n".join(self.notes).encode()).hexdigest()


class FaultyStorage:
    """A `Storage` around another one, as one process sees it.

    Parameters
    ----------
    inner : Storage
        Holds the files.
    faults : sequence of Fault
        What goes wrong; the first that applies strikes.
    recorder : Recorder, optional
        Takes the operations; one of its own by default.
    before_each : callable, optional
        Called before each operation: lets another actor run in between (F13, F14, F16, F17).
    """

    def __init__(
        self,
        inner: Storage,
        faults: Sequence[Fault] = (),
        recorder: Recorder | None = None,
        before_each: Callable[[Operation], None] | None = None,
    ) -> None:
        self._inner = inner
        self._faults = list(faults)
        self._before_each = before_each
        self._lock = threading.Lock()
        self._number = 0
        self._made: builtins.list[str] = []
        self._delayed: builtins.list[tuple[int, Callable[[], object]]] = []
        self.recorder = recorder or Recorder()
        self.crashed = False

    @property
    def root(self) -> str:
        """The wrapped storage's."""
        return self._inner.root

    def read(self, path: str) -> bytes:
        """Return a whole file."""
        return self._do(Kind.READ, path, lambda: self._inner.read(path))

    def open_input(self, path: str) -> BinaryIO:
        """Open a file for reading."""
        return self._do(Kind.OPEN, path, lambda: self._inner.open_input(path))

    @contextmanager
    def open_output(self, path: str) -> Iterator[BinaryIO]:
        """Open a new file for writing; the wrapped storage gets it when the block is left."""
        self._do(Kind.CREATE, path, lambda: None)
        content = KeptBuffer()
        yield content
        data = content.getvalue()
        self._do(Kind.WRITE, path, lambda: _write(self._inner, path, data), data)

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Create a file, whole."""
        self._do(Kind.PUT, path, lambda: self._inner.put_if_absent(path, data), data)

    def replace(self, path: str, data: bytes) -> None:
        """Create or overwrite a file, whole."""
        self._do(Kind.REPLACE, path, lambda: self._inner.replace(path, data), data)

    def list(
        self, path: str, recursive: bool = False, *, folders: bool = False
    ) -> builtins.list[FileStatus]:
        """Return the files in a folder, or its sub-folders."""
        return self._do(Kind.LIST, path, lambda: self._inner.list(path, recursive, folders=folders))

    def delete(self, path: str) -> None:
        """Delete a file or a folder."""
        self._do(Kind.DELETE, path, lambda: self._inner.delete(path))

    def _do(self, kind: Kind, path: str, work: Callable[[], _Result], data: bytes = b"") -> _Result:
        with self._lock:
            if self.crashed:
                raise SimulatedCrash("the process has ended")
            self._number += 1
            digest = hashlib.sha256(data).hexdigest()[:16] if data else ""
            operation = Operation(self._number, kind, path, len(data), digest)
            self.recorder.add(operation)
            fault = next((fault for fault in self._faults if fault.strikes(operation)), None)
            due = [later for at, later in self._delayed if at <= operation.number]
            self._delayed = [entry for entry in self._delayed if entry[0] > operation.number]
        for later in due:
            later()
        if self._before_each is not None:
            self._before_each(operation)
        if fault is None:
            result = work()
        else:
            self.recorder.note(f"{fault.effect.value} {fault.keep}")
            result = self._go_wrong(fault, operation, work, data)
        if kind in (Kind.WRITE, Kind.PUT, Kind.REPLACE):
            self._made.append(path)
        return result

    def _go_wrong(
        self, fault: Fault, operation: Operation, work: Callable[[], _Result], data: bytes
    ) -> _Result:
        what = f"{operation.kind.value} {operation.path!r} below {self.root!r}"
        match fault.effect:
            case Effect.CRASH_BEFORE:
                self._end(operation)
            case Effect.CRASH_AFTER:
                try:
                    work()
                finally:  # an operation that fails may be the last one too
                    self._end(operation)
            case Effect.TORN:
                _write(self._inner, operation.path, data[: fault.keep])
                self._end(operation)
            case Effect.FAILED:
                raise StorageError(f"{what} failed (simulated)")
            case Effect.LOST_ANSWER:
                work()
                raise StorageError(f"{what}: the answer was lost (simulated)")
            case Effect.DELAYED:
                self._delayed.append((operation.number + fault.keep, work))
                raise StorageError(f"{what} timed out (simulated)")
            case Effect.MISSING:
                raise NotFoundError(f"{what}: not found (simulated)")
        result = work()
        if fault.effect is Effect.REPEATED:
            raise AlreadyExistsError(f"{what}: it is there (simulated)")
        if fault.effect is Effect.LAGGING and isinstance(result, builtins.list):
            hidden = set(self._made[-fault.keep :])
            result[:] = [status for status in result if status.path not in hidden]
        if fault.effect is Effect.FLIPPED and isinstance(result, bytes) and result:
            middle = len(result) // 2
            flipped = bytes([result[middle] ^ 1])
            return result[:middle] + flipped + result[middle + 1 :]  # type: ignore[return-value]
        return result

    def _end(self, operation: Operation) -> None:
        self.crashed = True
        raise SimulatedCrash(f"at operation {operation}")


def _write(storage: Storage, path: str, data: bytes) -> None:
    with storage.open_output(path) as file:
        file.write(data)
