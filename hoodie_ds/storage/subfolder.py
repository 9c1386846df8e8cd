"""A folder of a storage as a storage of its own: a table within a table."""

from __future__ import annotations

import builtins
from collections.abc import Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import BinaryIO

from hoodie_ds.storage.path import check_path
from hoodie_ds.storage.protocol import FileStatus, Pieces, Storage, names_in, put_pieces


@dataclass(frozen=True, slots=True)
class SubfolderStorage:
    """A `Storage` of the files below `folder` of `inner`."""

    inner: Storage
    folder: str

    @property
    def root(self) -> str:
        """The base path, without credentials."""
        return f"{self.inner.root}/{self.folder}"

    def read(self, path: str) -> bytes:
        """Return a whole file."""
        return self.inner.read(self._below(path))

    def open_input(self, path: str) -> BinaryIO:
        """Open a file for reading."""
        return self.inner.open_input(self._below(path))

    def open_output(self, path: str) -> AbstractContextManager[BinaryIO]:
        """Open a new file for writing."""
        return self.inner.open_output(self._below(path))

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Create a file, whole, for exactly one caller."""
        self.inner.put_if_absent(self._below(path), data)

    def put_pieces(self, path: str, pieces: Pieces) -> None:
        """Create a file, whole, of its pieces, as `protocol.put_pieces`."""
        put_pieces(self.inner, self._below(path), pieces)

    def replace(self, path: str, data: bytes) -> None:
        """Create or overwrite a file, whole."""
        self.inner.replace(self._below(path), data)

    def list(
        self, path: str, recursive: bool = False, *, folders: bool = False
    ) -> builtins.list[FileStatus]:
        """Return the files in a folder, or its sub-folders."""
        start = len(self.folder) + 1
        listed = self.inner.list(self._folder(path), recursive, folders=folders)
        return [replace(status, path=status.path[start:]) for status in listed]

    def names(self, path: str, beginning: str = "") -> builtins.list[str]:
        """Return the names in a folder, as `names_in`."""
        return names_in(self.inner, self._folder(path), beginning)

    def delete(self, path: str) -> None:
        """Delete a file or a folder with all that is in it."""
        self.inner.delete(self._below(path))

    def delete_many(self, paths: Collection[str]) -> None:
        """Delete files."""
        self.inner.delete_many([self._below(path) for path in paths])

    def _folder(self, path: str) -> str:
        return self._below(path) if path else self.folder

    def _below(self, path: str) -> str:
        return f"{self.folder}/{check_path(path)}"
