"""What `hdfs_native.Client` does for a storage, in memory, with the same errors."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

_STACK = (
    "\n\tat org.apache.hadoop.hdfs.server.namenode.FSDirectory.resolvePath(FSDirectory.java:756)"
)


@dataclass
class Status:
    path: str
    isdir: bool = True
    length: int = 0
    modification_time: int = 0


@dataclass
class Reader:
    content: bytes

    def __len__(self) -> int:
        return len(self.content)

    def read(self) -> bytes:
        return self.content

    def read_range(self, offset: int, len: int) -> bytes:
        return self.content[offset : offset + len]


@dataclass
class Writer:
    """A file that shows no content before it is closed."""

    client: HdfsInMemory
    path: str
    content: bytearray = field(default_factory=bytearray)

    def write(self, data: bytes | memoryview) -> int:
        self.content += data
        return len(data)

    def close(self) -> None:
        with self.client.lock:
            if self.path not in self.client.files:
                raise FileNotFoundError(f"File does not exist: {self.path}{_STACK}")
            self.client.files[self.path] = (bytes(self.content), _now_ms())

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class HdfsInMemory:
    """A NameNode; folders stay when their files are deleted."""

    def __init__(self) -> None:
        self.files: dict[str, tuple[bytes, int]] = {}
        self.folders: set[str] = set()
        self.lock = threading.RLock()

    def create(self, path: str) -> Writer:
        with self.lock:
            if ":" in path:
                raise _refused("fs.InvalidPathException", f"Invalid path name {path}")
            if path in self.files or path in self.folders:
                raise FileExistsError(f"{path} already exists{_STACK}")
            self._check_folders(path, "fs.ParentNotDirectoryException")
            self.folders |= set(_above(path))
            self.files[path] = (b"", _now_ms())
            return Writer(self, path)

    def read(self, path: str) -> Reader:
        with self.lock:
            self._check_folders(path, "security.AccessControlException")
            if path not in self.files:
                raise FileNotFoundError(f"File does not exist: {path}{_STACK}")
            return Reader(self.files[path][0])

    def rename(self, source: str, target: str, overwrite: bool) -> None:
        with self.lock:
            if target in self.files and not overwrite:
                raise FileExistsError(f"rename destination {target} already exists{_STACK}")
            self.files[target] = self.files.pop(source)

    def delete(self, path: str, recursive: bool = False) -> bool:
        with self.lock:
            self._check_folders(path, "security.AccessControlException")
            found = path in self.files or path in self.folders
            self.files = {at: file for at, file in self.files.items() if not _is_in(at, path)}
            self.folders = {at for at in self.folders if not _is_in(at, path)}
            return found

    def list_status(self, path: str) -> Iterator[Status]:
        with self.lock:
            self._check_folders(path, "security.AccessControlException")
            if path not in self.files and path not in self.folders:
                raise FileNotFoundError(path)
            files = [
                Status(at, False, len(content), written)
                for at, (content, written) in self.files.items()
                if at == path or _above(at)[0] == path
            ]
            below = (at for at in self.folders if _above(at)[0] == path != at)
            return iter([*files, *map(Status, below)])

    def _check_folders(self, path: str, name: str) -> None:
        for above in _above(path):
            if above in self.files:
                raise _refused(name, f"{above} (is not a directory)")


def _above(path: str) -> list[str]:
    """The folders of a path, the nearest one first."""
    parts = path.split("/")
    return ["/".join(parts[:end]) or "/" for end in range(len(parts) - 1, 0, -1)]


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _refused(name: str, message: str) -> RuntimeError:
    quoted = (message + _STACK).replace("\n", "\\n").replace("\t", "\\t").replace('"', '\\"')
    return RuntimeError(f'RPCError("org.apache.hadoop.{name}", "{quoted}")')


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
