"""A storage that records every operation, and fails or ends the process by given faults.

A process is one `FaultyStorage`: after a crash all of its operations crash, even those of error
handlers, and only what the wrapped storage holds survives.
"""

from __future__ import annotations

import builtins
import hashlib
import io
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import BinaryIO, TypeVar, cast

from hoodie_ds.errors import AlreadyExistsError, NotFoundError
from hoodie_ds.storage.protocol import FileStatus, ReplacesVersions, Storage, Version
from hoodie_ds.testing.fault import OF_CONTENT, Effect, Fault, Kind, Operation
from hoodie_ds.testing.memory import KeptBuffer
from hoodie_ds.testing.simulated import SimulatedCrash

_Result = TypeVar("_Result")


@dataclass
class Recorder:
    """The operations on one or several storages, in order."""

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
        Faults; the first that matches applies.
    recorder : Recorder, optional
        Records the operations; its own by default.
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
        self._deleted: builtins.list[FileStatus] = []
        self._delayed: builtins.list[tuple[int, Callable[[], object]]] = []
        self.recorder = recorder or Recorder()
        self.crashed = False

    @property
    def root(self) -> str:
        """Root of the wrapped storage."""
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

    def read_version(self, path: str) -> tuple[bytes, Version]:
        """Return a whole file and its version."""
        inner = cast(ReplacesVersions, self._inner)
        return self._do(Kind.READ, path, lambda: inner.read_version(path))

    def replace_version(self, path: str, data: bytes, version: Version) -> Version:
        """Replace a file that has a version."""
        inner = cast(ReplacesVersions, self._inner)
        return self._do(
            Kind.REPLACE, path, lambda: inner.replace_version(path, data, version), data
        )

    def list(
        self, path: str, recursive: bool = False, *, folders: bool = False
    ) -> builtins.list[FileStatus]:
        """Return the files in a folder, or its sub-folders."""
        return self._do(Kind.LIST, path, lambda: self._inner.list(path, recursive, folders=folders))

    def delete(self, path: str) -> None:
        """Delete a file or a folder."""
        if any(fault.effect is Effect.STALE for fault in self._faults):
            there = self._inner.list("", recursive=True)
            self._deleted += [s for s in there if f"{s.path}/".startswith(f"{path}/")]
        self._do(Kind.DELETE, path, lambda: self._inner.delete(path))

    def delete_many(self, paths: Collection[str]) -> None:
        """Delete files one by one, so that a crash may leave some."""
        for path in paths:
            self.delete(path)

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
                finally:  # a failing operation may be the last one, too
                    self._end(operation)
            case Effect.TORN:
                _write(self._inner, operation.path, data[: fault.keep])
                self._end(operation)
            case Effect.FAILED:
                raise fault.error(f"{what} failed (simulated)")
            case Effect.LOST_ANSWER:
                work()
                raise fault.error(f"{what}: the answer was lost (simulated)")
            case Effect.DELAYED:
                self._delayed.append((operation.number + fault.keep, work))
                raise fault.error(f"{what} timed out (simulated)")
            case Effect.MISSING:
                raise NotFoundError(f"{what}: not found (simulated)")
        result = work()
        if fault.effect is Effect.REPEATED:
            raise AlreadyExistsError(f"{what}: it is there (simulated)")
        answer: object = result
        if operation.kind is Kind.LIST and isinstance(result, builtins.list):
            answer = self._listed(fault, operation, result)
        elif operation.kind is Kind.READ and isinstance(result, bytes):
            answer = self._content(fault, operation, result)
        elif operation.kind is Kind.OPEN and fault.effect in OF_CONTENT:
            answer = io.BytesIO(self._content(fault, operation, self._inner.read(operation.path)))
        return cast(_Result, answer)

    def _listed(
        self, fault: Fault, operation: Operation, statuses: builtins.list[FileStatus]
    ) -> builtins.list[FileStatus]:
        """Return a listing with an anomaly."""
        match fault.effect:
            case Effect.LAGGING:
                own = [path for path in self._made if path in {s.path for s in statuses}]
                by_age = [s.path for s in sorted(statuses, key=lambda s: s.modified_ms)]
                hidden = set((own or by_age)[-fault.keep :])
                return [status for status in statuses if status.path not in hidden]
            case Effect.STALE:
                here = [s for s in self._deleted if s.folder == operation.path]
                return [*statuses, *here[-fault.keep :]]
            case Effect.DOUBLED:
                return [*statuses, *statuses]
            case Effect.MISSIZED:
                return [replace(s, size=max(0, s.size - fault.keep)) for s in statuses]
        return statuses

    def _content(self, fault: Fault, operation: Operation, data: bytes) -> bytes:
        """Return content with an anomaly."""
        middle = len(data) // 2
        match fault.effect:
            case Effect.FLIPPED if data:
                return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
            case Effect.SHORT:
                return data[: fault.keep]
            case Effect.EXTENDED:
                return data + bytes(fault.keep)
            case Effect.ZEROED:
                zeros = data[middle : middle + fault.keep]
                return data[:middle] + bytes(len(zeros)) + data[middle + len(zeros) :]
            case Effect.SWAPPED:
                for status in self._inner.list("", recursive=True):
                    if status.size == len(data) and status.path != operation.path:
                        return self._inner.read(status.path)
        return data

    def _end(self, operation: Operation) -> None:
        self.crashed = True
        raise SimulatedCrash(f"at operation {operation}")


def _write(storage: Storage, path: str, data: bytes) -> None:
    with storage.open_output(path) as file:
        file.write(data)
