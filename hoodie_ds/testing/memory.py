"""A storage in memory, which is cheap to copy."""

from __future__ import annotations

import builtins
import io
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import BinaryIO

from hoodie_ds.environment import Clock, SystemClock
from hoodie_ds.errors import AlreadyExistsError, NotFoundError
from hoodie_ds.storage.path import check_path
from hoodie_ds.storage.protocol import FileStatus, Version


class MemoryStorage:
    """A `Storage` that keeps its files in this object.

    It is equal only to itself, so caches of other tables never apply to it.

    Parameters
    ----------
    root : str
        Its name.
    files : mapping of str to bytes, optional
        Its first files.
    clock : Clock, optional
        Gives files their times; the machine's by default.
    """

    def __init__(
        self,
        root: str = "memory://table",
        files: Mapping[str, bytes] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._root = root
        self._clock = clock or SystemClock()
        self._files = dict(files or {})
        self._modified_ms = dict.fromkeys(self._files, self._clock.now_ms())
        self._lock = threading.Lock()

    @property
    def root(self) -> str:
        """The name given."""
        return self._root

    @property
    def files(self) -> dict[str, bytes]:
        """All files by path, as they are now."""
        with self._lock:
            return dict(self._files)

    def copy(self) -> MemoryStorage:
        """Return another storage with the same name and files."""
        copied = MemoryStorage(self._root, self.files, self._clock)
        with self._lock:
            copied._modified_ms = dict(self._modified_ms)
        return copied

    def read(self, path: str) -> bytes:
        """Return a whole file."""
        check_path(path)
        with self._lock:
            found = self._files.get(path)
        if found is None:
            raise NotFoundError(f"cannot read {path!r} below {self._root!r}: there is no such file")
        return found

    def open_input(self, path: str) -> BinaryIO:
        """Open a file for reading."""
        return io.BytesIO(self.read(path))

    @contextmanager
    def open_output(self, path: str) -> Iterator[BinaryIO]:
        """Open a new file for writing; it is visible once the block is left."""
        check_path(path)
        content = KeptBuffer()
        yield content
        self.put_if_absent(path, content.getvalue())

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Create a file, whole, for exactly one caller."""
        check_path(path)
        with self._lock:
            taken = path in self._files
            if not taken:
                self._put(path, data)
        if taken:
            raise AlreadyExistsError(f"cannot create {path!r} below {self._root!r}: it is there")

    def replace(self, path: str, data: bytes) -> None:
        """Create or overwrite a file, whole."""
        check_path(path)
        with self._lock:
            self._put(path, data)

    def read_version(self, path: str) -> tuple[bytes, Version]:
        """Return a whole file and its version, which is its content."""
        content = self.read(path)
        return content, content

    def replace_version(self, path: str, data: bytes, version: Version) -> Version:
        """Replace a file that has a version, and return its new one."""
        check_path(path)
        with self._lock:
            is_known = self._files.get(path) == version
            if is_known:
                self._put(path, data)
        if not is_known:
            raise AlreadyExistsError(
                f"cannot replace {path!r} below {self._root!r}: it has changed"
            )
        return data

    def _put(self, path: str, data: bytes) -> None:
        self._files[path] = bytes(data)
        self._modified_ms[path] = self._clock.now_ms()

    def list(
        self, path: str, recursive: bool = False, *, folders: bool = False
    ) -> builtins.list[FileStatus]:
        """Return the files in a folder, or its sub-folders."""
        check_path(path, root_allowed=True)
        prefix = f"{path}/" if path else ""
        with self._lock:
            below = {
                p: FileStatus(p, len(data), self._modified_ms[p])
                for p, data in self._files.items()
                if p.startswith(prefix)
            }
        if folders:
            rest = (p[len(prefix) :] for p in below)
            names = {name.partition("/")[0] for name in rest if "/" in name}
            return [FileStatus(prefix + name, 0) for name in sorted(names)]
        return [
            status
            for p, status in sorted(below.items())
            if recursive or "/" not in p[len(prefix) :]
        ]

    def delete(self, path: str) -> None:
        """Delete a file, or a folder with all that is in it."""
        check_path(path)
        with self._lock:
            for found in [p for p in self._files if p == path or p.startswith(f"{path}/")]:
                del self._files[found]

    def delete_many(self, paths: Collection[str]) -> None:
        """Delete files."""
        for path in paths:
            self.delete(path)


class KeptBuffer(io.BytesIO):
    """A file in memory that keeps its content when a writer closes it."""

    def close(self) -> None:
        """Do nothing: the storage still needs the content."""
