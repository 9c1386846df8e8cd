"""Retries of the operations of a remote storage.

Invariant: the outcome of a conditional put is never guessed. Once one try of it may have taken
effect, the content that is there is compared with the intended one; a try without an answer ends in
`UnavailableError`, which says neither that the file exists nor that it does not.
"""

from __future__ import annotations

import builtins
import hashlib
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import BinaryIO, Final, TypeVar, cast

from hoodie_ds.config.file_options import StorageOptions
from hoodie_ds.environment import Clock, Pauses, RandomPauses, SystemClock
from hoodie_ds.errors import AlreadyExistsError, NotFoundError, StorageError, UnavailableError
from hoodie_ds.log import Log
from hoodie_ds.storage.path import check_path
from hoodie_ds.storage.protocol import (
    FileStatus,
    Pieces,
    ReplacesVersions,
    SendsOutputs,
    Storage,
    TakesParts,
    Version,
    abort_uploads,
    names_in,
)
from hoodie_ds.storage.streams import PART_BYTES, GuardedInput, output_in_parts, whole_output

T = TypeVar("T")

_FIRST_PAUSE_MS: Final = 100
_LONGEST_PAUSE_MS: Final = 10_000


@dataclass(frozen=True, slots=True)
class RetryingStorage:
    """A `Storage` that retries operations on which `inner` raises `UnavailableError`."""

    inner: Storage  # does not retry by itself
    deadline_ms: int  # no further try begins after this time
    clock: Clock = field(default_factory=SystemClock)
    pauses: Pauses = field(default_factory=RandomPauses)

    @property
    def root(self) -> str:
        """The base path, without credentials."""
        return self.inner.root

    def read(self, path: str) -> bytes:
        """Return a whole file."""
        return self._retry(lambda: self.inner.read(path))

    def open_input(self, path: str) -> BinaryIO:
        """Open a file for reading; each read is retried."""
        file = self._retry(lambda: self.inner.open_input(path))
        return cast(BinaryIO, GuardedInput(file, self._retry))

    def open_output(self, path: str) -> AbstractContextManager[BinaryIO]:
        """Open a new file for writing, which is stored at the end, a large one in parts before."""
        check_path(path)
        if isinstance(self.inner, SendsOutputs):
            return self._sent(self.inner, path)

        def store(data: bytes) -> None:
            self.put_if_absent(path, data)

        if not isinstance(self.inner, TakesParts):
            return whole_output(store)
        return output_in_parts(store, lambda: _RetryingUpload(self, path))

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Create a file, whole, for exactly one caller."""
        put, found = self.inner.put_if_absent, self._holds
        self._once(lambda: put(path, data), lambda: found(path, data) or None)

    def put_pieces(self, path: str, pieces: Pieces) -> None:
        """Create a file, whole, of its pieces, for exactly one caller."""
        if isinstance(self.inner, SendsOutputs):  # there its name would show at once
            self.put_if_absent(path, b"".join(pieces()))
            return
        with self.open_output(path) as file:
            file.writelines(pieces())

    def replace(self, path: str, data: bytes) -> None:
        """Create or overwrite a file, whole."""
        self._retry(lambda: self.inner.replace(path, data))

    def read_version(self, path: str) -> tuple[bytes, Version]:
        """Return a whole file and its version."""
        return self._retry(lambda: self._versions.read_version(path))

    def replace_version(self, path: str, data: bytes, version: Version) -> Version:
        """Replace a file that has a version, and return its new one."""

        def found() -> Version | None:
            content, newest = self._versions.read_version(path)
            return newest if content == data else None

        return self._once(lambda: self._versions.replace_version(path, data, version), found)

    def list(
        self, path: str, recursive: bool = False, *, folders: bool = False
    ) -> builtins.list[FileStatus]:
        """Return the files in a folder, or its sub-folders."""
        return self._retry(lambda: self.inner.list(path, recursive, folders=folders))

    def names(self, path: str, beginning: str = "") -> builtins.list[str]:
        """Return the names in a folder, as `names_in`."""
        return self._retry(lambda: names_in(self.inner, path, beginning))

    def delete(self, path: str) -> None:
        """Delete a file or a folder with all that is in it."""
        self._retry(lambda: self.inner.delete(path))

    def delete_many(self, paths: Collection[str]) -> None:
        """Delete files; all of them again if one of them was unavailable."""
        self._retry(lambda: self.inner.delete_many(paths))

    def abort_uploads(self, paths: Collection[str]) -> None:
        """Delete parts, as `protocol.abort_uploads`; what may not be listed or deleted stays."""
        try:
            self._retry(lambda: abort_uploads(self.inner, paths))
        except StorageError as error:  # of the right to do so nothing else depends
            Log(self.root).warning("parts of %d dropped files may be left: %s", len(paths), error)

    @contextmanager
    def _sent(self, storage: SendsOutputs, path: str) -> Iterator[BinaryIO]:
        """Open an output that is sent while it is written; only its creation is retried."""
        with ExitStack() as stack:
            yield self._retry(lambda: stack.enter_context(storage.open_output(path)))

    def _holds(self, path: str, data: bytes) -> bool:
        return self.inner.read(path) == data

    @property
    def _versions(self) -> ReplacesVersions:
        return cast(ReplacesVersions, self.inner)

    def _once(self, put: Callable[[], T], found: Callable[[], T | None]) -> T:
        """Retry a conditional put; `found` looks for its result if an earlier try may have won."""
        maybe_done = False

        def attempt() -> T:
            nonlocal maybe_done
            try:
                return put()
            except UnavailableError:
                maybe_done = True
                raise
            except AlreadyExistsError:
                with suppress(NotFoundError):
                    if maybe_done and (own := found()) is not None:
                        return own
                raise
            except StorageError as error:
                if maybe_done:  # it says nothing about the earlier try
                    raise UnavailableError(str(error)) from error
                raise

        return self._retry(attempt)

    def _retry(self, operation: Callable[[], T]) -> T:
        started, waited, longest, tries = self.clock.now_ms(), 0, _FIRST_PAUSE_MS, 1
        while True:
            try:
                return operation()
            except UnavailableError as error:
                # What was waited counts too: a wall clock may be set back.
                spent = max(self.clock.now_ms() - started, waited)
                if spent >= self.deadline_ms:
                    raise UnavailableError(
                        f"{error}; gave up after {tries} tries in {spent} ms "
                        f"({StorageOptions.storage_retry_ms.key} = {self.deadline_ms})"
                    ) from error
                Log().debug("try %d failed: %s", tries, error)
            waited += self.pauses.pause(min(longest, self.deadline_ms - spent))
            longest, tries = min(2 * longest, _LONGEST_PAUSE_MS), tries + 1


class _RetryingUpload:
    """A file on its way to `storage.inner` in parts, each of which is retried."""

    def __init__(self, storage: RetryingStorage, path: str) -> None:
        self._storage = storage
        self._path = path
        self._digest = hashlib.blake2b()
        inner = cast(TakesParts, storage.inner)
        self._upload = storage._retry(lambda: inner.begin_upload(path))

    def put(self, number: int, part: bytes) -> None:
        """Store the next part."""
        self._storage._retry(lambda: self._upload.put(number, part))
        self._digest.update(part)

    def complete(self) -> None:
        """Make a file of the parts."""
        self._storage._once(self._upload.complete, lambda: self._is_there() or None)

    def abort(self) -> None:
        """Delete the parts, by one try."""
        self._upload.abort()

    def _is_there(self) -> bool:
        """Whether the file has the content that was sent."""
        found = hashlib.blake2b()
        with self._storage.inner.open_input(self._path) as file:
            while part := file.read(PART_BYTES):
                found.update(part)
        return found.digest() == self._digest.digest()
