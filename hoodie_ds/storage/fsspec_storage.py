"""Storage on any file system that fsspec knows; the only module that imports fsspec.

Invariant: what the user gave to reach the file system (keys, tokens, passwords) never appears in a
message or a representation.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import inspect
import io
import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from glob import has_magic
from types import TracebackType
from typing import Any, BinaryIO, Final, cast

import fsspec

from hoodie_ds.errors import HoodieError, StorageError
from hoodie_ds.storage.foreign_errors import chained, meaning
from hoodie_ds.storage.path import check_path
from hoodie_ds.storage.protocol import FileStatus
from hoodie_ds.storage.streams import GuardedInput, whole_output

_S3: Final = ("s3", "s3a")
_LEAST_SECRET: Final = 100_000
"""Smaller numbers within options are time-outs and sizes, which are part of other texts too."""

# The memory file system hands one shared object with one position to all readers and writers.
_MEMORY_LOCK: Final = threading.RLock()


def has_atomic_put(scheme: str) -> bool:
    """Whether a scheme's file system is known to create a file for exactly one caller.

    ``memory`` is guarded by a lock within the process. s3fs sends ``If-None-Match: *`` with the
    request if it knows the argument ``mode``; older releases drop it silently.

    Raises
    ------
    StorageError
        fsspec does not know the scheme, or the package for it is not installed.
    """
    try:
        system: Any = fsspec.get_filesystem_class(scheme)
    except (ValueError, ImportError) as error:
        raise StorageError(f"no file system for {scheme}://: {error}") from error
    if scheme in _S3:
        return "mode" in inspect.signature(system._pipe_file).parameters
    return scheme == "memory"


@dataclass(frozen=True, slots=True)
class FsspecStorage:
    """A `Storage` on a file system of fsspec.

    Parameters
    ----------
    root : str
        URL of the table's folder, without credentials.
    options : mapping of str to str
        Arguments of the file system's class; ``true``, ``false`` and JSON objects are taken as
        such. Values are secrets.
    atomic_put : bool
        Whether the file system's exclusive create is atomic; if not, a look-up precedes the write.
    """

    root: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    atomic_put: bool = False

    def read(self, path: str) -> bytes:
        """Return a whole file."""
        with self._call("read", path) as (system, full):
            return cast(bytes, system.cat_file(full))

    def open_input(self, path: str) -> BinaryIO:
        """Open a file for reading; the errors of its reads are typed too."""
        with self._call("open", path) as (system, full):
            if self._in_memory:
                return io.BytesIO(system.cat_file(full))
            file = system.open(full, "rb")

        def translated(read: Callable[[], bytes]) -> bytes:
            with self._call("read", path):
                return read()

        return cast(BinaryIO, GuardedInput(file, translated))

    def open_output(self, path: str) -> contextlib.AbstractContextManager[BinaryIO]:
        """Open a new file for writing; its content is held in memory and stored at the end."""
        check_path(path)
        return whole_output(lambda data: self._create("write", path, data))

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Create a file, whole, for exactly one caller."""
        self._create("create", path, data)

    def replace(self, path: str, data: bytes) -> None:
        """Create or overwrite a file, whole."""
        with self._call("replace", path) as (system, full):
            system.pipe_file(full, data)

    def list(
        self, path: str, recursive: bool = False, *, folders: bool = False
    ) -> builtins.list[FileStatus]:
        """Return the files in a folder, or its sub-folders."""
        with self._call("list", path, root_allowed=True) as (system, full):
            try:
                found = (
                    system.find(full, detail=True).values()
                    if recursive and not folders
                    else system.ls(full, detail=True)
                )
            except (FileNotFoundError, NotADirectoryError):
                return []
            prefix = full.rstrip("/") + "/"
            wanted = "directory" if folders else "file"
            statuses = [
                FileStatus(
                    info["name"][len(prefix) :].rstrip("/"), info["size"] or 0, _modified_ms(info)
                )
                for info in found
                if info["type"] == wanted
                and info["name"].startswith(prefix)
                # An object named like a folder is some tools' way to mark an empty one.
                and (folders or not info["name"].endswith("/"))
            ]
        below = path + "/" if path else ""
        return sorted(
            (replace(status, path=below + status.path) for status in statuses),
            key=lambda status: status.path,
        )

    def delete(self, path: str) -> None:
        """Delete a file or a folder with all that is in it."""
        with (
            self._call("delete", path) as (system, full),
            contextlib.suppress(FileNotFoundError),
        ):
            if has_magic(full):  # fsspec would take the name for a pattern and delete others too
                for name in system.find(full):
                    system.rm_file(name)
            else:
                system.rm(full, recursive=True)

    @property
    def _in_memory(self) -> bool:
        return self.root.startswith("memory://")

    def _create(self, verb: str, path: str, data: bytes) -> None:
        with self._call(verb, path) as (system, full):
            if not self.atomic_put:
                if system.exists(full):
                    raise FileExistsError
                system.pipe_file(full, data)
                return
            try:
                system.pipe_file(full, data, mode="create")
            except OSError as error:
                # Some releases of s3fs report the failed If-None-Match as an invalid argument.
                if error.errno == errno.EINVAL and "pre-condition" in str(error).lower():
                    raise FileExistsError from error
                raise

    @contextlib.contextmanager
    def _call(
        self, verb: str, path: str, *, root_allowed: bool = False
    ) -> Iterator[tuple[Any, str]]:
        """Yield the file system and the full path; what goes wrong becomes a typed error."""
        check_path(path, root_allowed=root_allowed)
        arguments = {name: _argument(text) for name, text in self.options.items()}
        translation = _Translation(f"cannot {verb} {path!r} below {self.root!r}", arguments)
        guard = _MEMORY_LOCK if self._in_memory else contextlib.nullcontext()
        with translation, guard:
            options = tuple(sorted(self.options.items()))
            system = _file_system(self.root.split("://", 1)[0], options, os.getpid())
            root = system._strip_protocol(self.root).rstrip("/")
            yield system, f"{root}/{path}" if path else root


@dataclass(frozen=True, slots=True)
class _Translation:
    """Turns whatever a file system's library raises into a `StorageError` without secrets."""

    what: str
    secrets: object

    def __enter__(self) -> None:
        return

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not isinstance(error, Exception) or isinstance(error, HoodieError):
            return
        secrets = list(_texts(self.secrets))
        shown = f"{type(error).__name__}: {error}"
        for secret in secrets:
            shown = shown.replace(secret, "***")
        # The original error is chained only if nothing in it holds what the message must not.
        safe = not any(secret in str(link) for link in chained(error) for secret in secrets)
        raise meaning(error)(f"{self.what}: {shown}") from (error if safe else None)


@lru_cache(maxsize=16)
def _file_system(scheme: str, options: tuple[tuple[str, str], ...], process: int) -> Any:  # noqa: ANN401
    """Return the file system of a scheme; after a fork the child makes its own.

    The S3 library's two layers of retries are off: they would repeat a conditional put whose
    answer was lost, and then report the name as taken by somebody else.
    """
    arguments = {name: _argument(text) for name, text in options}
    if scheme not in _S3:
        return fsspec.filesystem(scheme, use_listings_cache=False, **arguments)
    given = arguments.pop("config_kwargs", None)
    config = {**(given if isinstance(given, dict) else {}), "retries": {"total_max_attempts": 1}}
    # Not from fsspec's cache: others in this process may use the same file system with retries.
    system = fsspec.filesystem(
        scheme,
        use_listings_cache=False,
        skip_instance_cache=True,
        config_kwargs=config,
        **arguments,
    )
    system.retries = 1
    return system


def _modified_ms(info: Mapping[str, object]) -> int:
    """When a file was last written; each file system has a name of its own for it."""
    for key in ("LastModified", "mtime", "created"):
        found = info.get(key)
        if isinstance(found, datetime):
            return int(found.timestamp() * 1000)
        if isinstance(found, (int, float)):
            return int(found * 1000)
    return 0


def _argument(text: str) -> object:
    lower = text.strip().lower()
    if lower in ("true", "false"):
        return lower == "true"
    if lower.startswith("{"):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    return text


def _texts(value: object) -> Iterator[str]:
    """Yield the texts within an argument."""
    if isinstance(value, dict):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _texts(part)
    elif isinstance(value, str) and value:
        yield value
    elif isinstance(value, int) and abs(value) >= _LEAST_SECRET:
        yield str(value)
