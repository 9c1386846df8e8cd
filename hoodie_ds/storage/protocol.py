"""The contract of every storage, in eight operations, and what only some can do.

A `Storage` is one table's base path on one file system. Paths given to it and returned by it are
relative to that root, with ``/`` between their components; the empty path is the root itself. A
path that would leave the root raises `PathEscapeError` before any file is touched.

All implementations are picklable and cheap to construct, and hold no listing caches: the next call
sees what another process made durable.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import BinaryIO, ClassVar, Literal, Protocol, TypeAlias, runtime_checkable


@dataclass(frozen=True, slots=True)
class FileStatus:
    """One stored file; its path is relative to the storage's root."""

    path: str
    size: int
    modified_ms: int = field(default=0, compare=False)
    """Last write in milliseconds since the Unix epoch by the storage's own clock, comparable only
    with those of files of the same storage; 0 if the storage does not report it."""

    @property
    def folder(self) -> str:
        """Path of the folder that holds the file, empty for the root."""
        return self.path.rpartition("/")[0]


class Storage(Protocol):
    """What the layers above may do to the files of one table.

    Every method raises `PathEscapeError` for a path outside the root, `AccessDeniedError` and
    `OutOfSpaceError` for what their names say, and `StorageError` for any other failure.
    """

    def __hash__(self) -> int:
        """Storages are keys of what is remembered about completed instants."""
        ...

    @property
    def root(self) -> str:
        """The base path, without credentials: safe for messages and metadata."""
        ...

    def read(self, path: str) -> bytes:
        """Return a whole file; `NotFoundError` if there is none."""
        ...

    def open_input(self, path: str) -> BinaryIO:
        """Open a file for reading with ``seek``; `NotFoundError` if there is none."""
        ...

    def open_output(self, path: str) -> AbstractContextManager[BinaryIO]:
        """Open a new file for writing; `AlreadyExistsError` if there is one.

        The file is durable once the block is left normally, and gone if it is left by an
        exception. Missing parent folders are made. Whether the name is taken may show only when
        the block is left.
        """
        ...

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Create a file, whole and durable, for exactly one of all callers in all processes.

        The others get `AlreadyExistsError` and can then read the winner's whole content. Missing
        parent folders are made. After any other error the file may or may not exist: read it. On a
        remote storage a repeated request may lose against its own first try, so a loser that must
        know whether it won compares the content with its own.
        """
        ...

    def replace(self, path: str, data: bytes) -> None:
        """Create or overwrite a file; readers see the whole old or the whole new content."""
        ...

    def list(
        self, path: str, recursive: bool = False, *, folders: bool = False
    ) -> builtins.list[FileStatus]:
        """Return the files in a folder, sorted by path; none if the folder is missing.

        ``recursive`` includes the files of all folders below. ``folders`` returns the direct
        sub-folders instead, with size 0; on object stores a folder exists while a file in it does.
        Unfinished files of a `put_if_absent` or `replace` (leading dot, ``.tmp``) are left out.
        """
        ...

    def delete(self, path: str) -> None:
        """Delete a file, or a folder with all that is in it; neither existing is no error.

        A file stays deleted. A folder, or parts of it, may reappear after a power loss.
        """
        ...

    def delete_many(self, paths: Collection[str]) -> None:
        """Delete files, with few requests where the storage can; none existing is no error.

        In any order. An error names one that could not be deleted; others may be left too.
        """
        ...


Version: TypeAlias = object
"""Which content a file has: an ETag, a generation, or whatever else the storage compares."""


class ReplacesVersions(Storage, Protocol):
    """A storage that replaces a file only while it has a known version, as object stores do.

    Contents that are put this way must differ, or an older version may seem to be back.
    """

    def read_version(self, path: str) -> tuple[bytes, Version]:
        """Return a whole file and its version; `NotFoundError` if there is none."""
        ...

    def replace_version(self, path: str, data: bytes, version: Version) -> Version:
        """Replace a file that has a version, for exactly one of several callers.

        Returns the new version. The others get `AlreadyExistsError`, also if the file was deleted,
        where a storage does not tell by `NotFoundError`. After any other error the file may have
        the new content: read it.
        """
        ...


class Upload(Protocol):
    """A new file on its way to a storage in parts; nobody sees it before it is complete.

    After an `UnavailableError` a call can be repeated.
    """

    def put(self, number: int, part: bytes) -> None:
        """Store a part, in place of one with the same number; the first has number 1."""
        ...

    def complete(self) -> None:
        """Make a file of the parts, for exactly one of several callers.

        The others get `AlreadyExistsError`; so may a repeated call whose first try has won. A
        storage without a condition for it may let the last win that began before there was a file.
        """
        ...

    def abort(self) -> None:
        """Delete the parts, where the storage can."""
        ...


@runtime_checkable
class TakesParts(Protocol):
    """A storage that need not be given a file as a whole."""

    def begin_upload(self, path: str) -> Upload:
        """Begin a new file; `PathEscapeError` for a path outside the root."""
        ...


@runtime_checkable
class SendsOutputs(Storage, Protocol):
    """A storage that sends an output while it is written, so that no write is repeated."""

    sends_outputs: ClassVar[Literal[True]]


@runtime_checkable
class NamesFiles(Protocol):
    """A storage that lists names faster than files, or some names faster than all.

    A timeline is a folder of very many small files. A disk takes ten times as long to report the
    size of each as to list their names; S3 lists those that begin alike without the others.
    """

    def names(self, path: str, beginning: str = "") -> builtins.list[str]:
        """Return the names in a folder that have a beginning, maybe of folders and others too."""
        ...


def names_in(storage: Storage, path: str, beginning: str = "") -> list[str]:
    """Return the names of a folder's files that have a beginning, in any order.

    Names of folders and unfinished files may be among them.
    """
    names = getattr(storage, "names", None)  # looked up by name: storages are wrapped in others
    if callable(names):
        return list(names(path, beginning))
    listed = (status.path.rpartition("/")[2] for status in storage.list(path))
    return [name for name in listed if name.startswith(beginning)]


Pieces: TypeAlias = Callable[[], Iterable[bytes]]
"""What returns the content of a file piece by piece, each time that it is called."""


def put_pieces(storage: Storage, path: str, pieces: Pieces) -> None:
    """Create a file as `Storage.put_if_absent` does, with few pieces of it in memory at a time.

    A storage that cannot do so is given the file as a whole.
    """
    put = getattr(storage, "put_pieces", None)  # as in `names_in`
    if callable(put):
        put(path, pieces)
    else:
        storage.put_if_absent(path, b"".join(pieces()))


def abort_uploads(storage: Storage, paths: Collection[str]) -> None:
    """Delete the parts that dead writers have sent of files, where the storage can list them.

    A writer of such a file that is still alive fails. What is complete stays.
    """
    abort = getattr(storage, "abort_uploads", None)  # as in `names_in`
    if paths and callable(abort):
        abort(paths)


def walked(
    scan: Callable[[str], tuple[list[FileStatus], list[FileStatus]]],
    path: str,
    recursive: bool,
    folders: bool,
) -> list[FileStatus]:
    """Return what `Storage.list` does, where `scan` returns the files and folders of a folder."""
    found: list[FileStatus] = []
    pending = [path]
    while pending:
        files, below = scan(pending.pop())
        found += below if folders else files
        if recursive:
            pending += [folder.path for folder in below]
    return sorted(found, key=lambda status: status.path)
