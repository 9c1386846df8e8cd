"""The promise that every storage keeps, in eight operations.

A `Storage` is one table's base path on one file system. Paths given to it and returned by it are
relative to that root, with ``/`` between their components; the empty path is the root itself.
A path that would leave the root raises `PathEscapeError` before anything is touched.

All implementations are picklable and cheap to construct, and hold no listing caches: what another
process made durable is seen by the next call.
"""

from __future__ import annotations

import builtins
from collections.abc import Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import BinaryIO, Protocol


@dataclass(frozen=True, slots=True)
class FileStatus:
    """One stored file.

    Parameters
    ----------
    path : str
        Relative to the storage's root, ``/`` between components.
    size : int
        Length in bytes.
    modified_ms : int
        When it was last written, in milliseconds since the Unix epoch, by the storage's own clock:
        to be compared with the times of other files of the same storage and nothing else; 0 where
        the storage does not tell.
    """

    path: str
    size: int
    modified_ms: int = field(default=0, compare=False)

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
        """The base path, without credentials: fit for messages and metadata."""
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

        The others get `AlreadyExistsError` and then read the winner's whole content. Missing
        parent folders are made. After any other error the file may or may not be there: read it.
        On a remote storage a repeated request may lose against its own first try, so a loser that
        wants to know whether it won compares the content with its own.
        """
        ...

    def replace(self, path: str, data: bytes) -> None:
        """Create or overwrite a file; readers see the whole old or the whole new content."""
        ...

    def list(
        self, path: str, recursive: bool = False, *, folders: bool = False
    ) -> builtins.list[FileStatus]:
        """Return the files in a folder, sorted by path; a missing folder has none.

        ``recursive`` takes in the files of all folders below. ``folders`` returns the direct
        sub-folders instead, with size 0; on object stores a folder exists while a file in it does.
        Unfinished files of a `put_if_absent` or `replace` (leading dot, ``.tmp``) are left out.
        """
        ...

    def delete(self, path: str) -> None:
        """Delete a file, or a folder with all that is in it; neither existing is no error.

        A file stays deleted. A folder, or parts of it, may be back after a power cut.
        """
        ...

    def delete_many(self, paths: Collection[str]) -> None:
        """Delete files, with few requests where the storage can; none existing is no error.

        In any order. An error names one that could not be deleted; others may be left too.
        """
        ...
