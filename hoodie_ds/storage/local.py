"""Storage on a local disk, or a network disk mounted as one.

Invariant: a name given by `LocalStorage.put_if_absent` or `LocalStorage.replace` shows either
nothing, the old content or the whole new content, also after a power loss. Content is synced before
the name appears, and the folder before the call returns. A killed process may leave a file named
``.<digits>-<digits>.tmp`` behind, which no listing shows.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import os
import stat
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import BinaryIO, Final

from hoodie_ds.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    NotFoundError,
    OutOfSpaceError,
    PathEscapeError,
    StorageError,
)
from hoodie_ds.storage.path import check_path, is_unfinished
from hoodie_ds.storage.protocol import FileStatus, Pieces, walked

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
_FOLDER: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_PUTS: Final = 10
"""Tries of a put while another process deletes the file's folder."""

_NO_LINKS: Final = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
_ERRORS: Final[dict[int | None, tuple[type[StorageError], str]]] = {
    errno.ENOSPC: (OutOfSpaceError, "free space on the disk"),
    errno.EDQUOT: (OutOfSpaceError, "raise the quota"),
    errno.EACCES: (AccessDeniedError, "check the permissions"),
    errno.EPERM: (AccessDeniedError, "check the permissions"),
    errno.EROFS: (AccessDeniedError, "the file system is read-only"),
    errno.ENOENT: (NotFoundError, "check that it exists"),
    errno.ENOTDIR: (NotFoundError, "check that its parents are folders"),
    errno.EEXIST: (AlreadyExistsError, "take another name"),
}


@dataclass(frozen=True, slots=True)
class LocalStorage:
    """A `Storage` on a local disk."""

    root: str  # absolute, symbolic links resolved; it need not exist yet

    def read(self, path: str) -> bytes:
        """Return a whole file."""
        with self._errors("read", path), open(self._inside(path), "rb") as file:
            return file.read()

    def open_input(self, path: str) -> BinaryIO:
        """Open a file for reading; later failures are an `OSError` of the file object."""
        with self._errors("open", path):
            return open(self._inside(path), "rb")

    @contextlib.contextmanager
    def open_output(self, path: str) -> Iterator[BinaryIO]:
        """Open a new file for writing; its name shows at once, its content when complete."""
        full = self._inside(path)
        with self._errors("write", path):
            descriptor = _open_new(full)
            try:
                # The descriptor outlives the file object: writers such as Arrow's may close that.
                with os.fdopen(descriptor, "wb", closefd=False) as file:
                    yield file
                os.fsync(descriptor)
                _sync_folder(os.path.dirname(full))
            except BaseException:
                _unlink_own(full, descriptor)
                raise
            finally:
                os.close(descriptor)

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Create a file, whole, for exactly one caller."""
        self.put_pieces(path, lambda: (data,))

    def put_pieces(self, path: str, pieces: Pieces) -> None:
        """Create a file, whole, of its pieces, for exactly one caller."""
        full = self._inside(path)
        with self._errors("create", path):
            if os.path.lexists(full):  # the losers of a race need no sync
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
            _put(full, pieces, _link)

    def replace(self, path: str, data: bytes) -> None:
        """Create or overwrite a file, whole.

        The checksum that Hadoop keeps next to its files is deleted first: it would mark the new
        content as damaged, and a file without one is read as it is.
        """
        full = self._inside(path)
        folder, name = os.path.split(full)
        with self._errors("replace", path):
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                os.unlink(os.path.join(folder, f".{name}.crc"))
            _put(full, lambda: (data,), os.replace)

    def set_modified(self, path: str, modified_ms: int) -> None:
        """Set when a file was last written, in milliseconds since the Unix epoch."""
        with self._errors("set the time of", path):
            os.utime(self._inside(path), ns=(modified_ms * 10**6,) * 2)

    def list(
        self, path: str, recursive: bool = False, *, folders: bool = False
    ) -> builtins.list[FileStatus]:
        """Return the files in a folder, or its sub-folders."""
        check_path(path, root_allowed=True)
        with self._errors("list", path):
            return walked(self._scan, path, recursive, folders)

    def names(self, path: str, beginning: str = "") -> builtins.list[str]:
        """Return the names in a folder, including folders and unfinished files."""
        with self._errors("list", path):
            try:
                found = os.listdir(self._inside(path))
            except (FileNotFoundError, NotADirectoryError):
                return []
        return [name for name in found if name.startswith(beginning)] if beginning else found

    def delete(self, path: str) -> None:
        """Delete a file, durably, or a folder with its content; links are not followed."""
        check_path(path)
        parent, _, name = path.rpartition("/")
        full = os.path.join(self._inside(parent, root_allowed=True), name)
        with self._errors("delete", path):
            try:
                if not stat.S_ISDIR(os.lstat(full).st_mode):
                    os.unlink(full)
                    _sync_folder(os.path.dirname(full))
                    return
            except (FileNotFoundError, NotADirectoryError):
                return
            _delete_folder(full)

    def delete_many(self, paths: Collection[str]) -> None:
        """Delete files, durably: each folder is synced once, after its files are deleted."""
        folders: dict[str, str] = {}
        for path in paths:
            check_path(path)
            parent, _, name = path.rpartition("/")
            folder = self._inside(parent, root_allowed=True)
            with (
                self._errors("delete", path),
                contextlib.suppress(FileNotFoundError, NotADirectoryError),
            ):
                os.unlink(os.path.join(folder, name))
                folders[folder] = path
        for folder, path in folders.items():
            with self._errors("delete", path), contextlib.suppress(FileNotFoundError):
                _sync_folder(folder)

    def _scan(self, path: str) -> tuple[builtins.list[FileStatus], builtins.list[FileStatus]]:
        """Return the files and the sub-folders of a folder; none if it is missing."""
        files: list[FileStatus] = []
        folders: list[FileStatus] = []
        try:
            with os.scandir(self._inside(path, root_allowed=True)) as scan:
                for entry in scan:
                    below = f"{path}/{entry.name}" if path else entry.name
                    if entry.is_symlink():
                        self._inside(below)
                    if entry.is_dir():
                        folders.append(FileStatus(below, 0))
                    elif not is_unfinished(entry.name):
                        files += _file_status(entry, below)
        except (FileNotFoundError, NotADirectoryError):
            return [], []
        return files, folders

    def _inside(self, path: str, *, root_allowed: bool = False) -> str:
        """Return the absolute path; `PathEscapeError` if it, or a link on it, leaves the root."""
        check_path(path, root_allowed=root_allowed)
        full = os.path.join(self.root, path) if path else self.root
        if self._has_link(path):
            real = os.path.realpath(full)
            if real != self.root and not real.startswith(self.root.rstrip("/") + "/"):
                raise PathEscapeError(
                    f"{path!r} below {self.root!r} is refused: a symbolic link leads outside; "
                    "remove it"
                )
        return full

    def _has_link(self, path: str) -> bool:
        """Whether a link is on the path below the root, which had none when it was resolved."""
        parts = accumulate(path.split("/") if path else (), os.path.join, initial=self.root)
        return any(map(os.path.islink, parts))

    @contextlib.contextmanager
    def _errors(self, verb: str, path: str) -> Iterator[None]:
        """Turn the operating system's errors into this library's."""
        try:
            yield
        except OSError as error:
            kind, remedy = _ERRORS.get(error.errno, (StorageError, "look at the disk"))
            raise kind(
                f"cannot {verb} {path!r} below {self.root!r}: {error.strerror or error}; {remedy}"
            ) from error


def _file_status(entry: os.DirEntry[str], path: str) -> builtins.list[FileStatus]:
    """Return the status of a file; none if it was deleted while its folder was read."""
    try:
        found = entry.stat()
    except FileNotFoundError:
        return []
    return [FileStatus(path, found.st_size, found.st_mtime_ns // 1_000_000)]


def _open_new(full: str) -> int:
    """Create a file that must not exist, its parent folders too, and return its descriptor."""
    try:
        return os.open(full, _NEW, 0o666)
    except FileNotFoundError:
        _make_folders(os.path.dirname(full))
        return os.open(full, _NEW, 0o666)


def _write_temporary(folder: str, pieces: Pieces) -> str:
    """Write a synced file under a name that no other thread or process uses; return its path."""
    attempt = 0
    while True:
        temporary = os.path.join(folder, f".{os.getpid()}-{attempt}.tmp")
        try:
            descriptor = _open_new(temporary)
            break
        except FileExistsError:  # of another thread, or of a dead process with the same id
            attempt += 1
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(pieces())
            file.flush()
            os.fsync(descriptor)
    except BaseException:
        _unlink_quietly(temporary)
        raise
    return temporary


def _put(full: str, pieces: Pieces, name: Callable[[str, str], None]) -> None:
    """Write a file under a temporary name and give it its own, durably.

    It tries again if another process deletes the folder meanwhile, which deletes only earlier
    content.
    """
    for _ in range(_PUTS - 1):
        with contextlib.suppress(FileNotFoundError):
            _put_once(full, pieces, name)
            return
    _put_once(full, pieces, name)


def _put_once(full: str, pieces: Pieces, name: Callable[[str, str], None]) -> None:
    temporary = _write_temporary(os.path.dirname(full), pieces)
    try:
        name(temporary, full)
    except BaseException:
        _unlink_quietly(temporary)
        raise
    _sync_folder(os.path.dirname(full))


def _link(temporary: str, full: str) -> None:
    try:
        os.link(temporary, full)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        raise StorageError(
            f"the file system of {full!r} has no hard links, which an atomic put-if-absent "
            "needs; keep the table on another one"
        ) from error
    _unlink_quietly(temporary)


def _make_folders(folder: str) -> None:
    """Create a folder and its missing parents, and sync each new one's parent."""
    parent = os.path.dirname(folder)
    try:
        os.mkdir(folder)
    except FileExistsError:  # another process made it just now, and may not have synced it yet
        if not os.path.isdir(folder):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)) from None
    except FileNotFoundError:
        _make_folders(parent)
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder)
    _sync_folder(parent)


def _sync_folder(folder: str) -> None:
    descriptor = os.open(folder, _FOLDER)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some network disks cannot sync a folder, nor need it
            raise
    finally:
        os.close(descriptor)


def _unlink_quietly(full: str) -> None:
    """Remove a file after a failure, which is the error to report."""
    with contextlib.suppress(OSError):
        os.unlink(full)


def _unlink_own(full: str, descriptor: int) -> None:
    """Remove a file after a failure, unless its name belongs to another file by now."""
    with contextlib.suppress(OSError):
        if os.path.samestat(os.lstat(full), os.fstat(descriptor)):
            os.unlink(full)


def _delete_folder(full: str) -> None:
    with os.scandir(full) as scan:
        entries = [(entry.path, entry.is_dir(follow_symlinks=False)) for entry in scan]
    for path, is_folder in entries:
        with contextlib.suppress(FileNotFoundError):
            if is_folder:
                _delete_folder(path)
            else:
                os.unlink(path)
    try:
        os.rmdir(full)
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise  # else another process has put a file there since, as if after this delete
