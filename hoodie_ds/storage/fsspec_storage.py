"""Storage on any file system that fsspec knows; only this imports fsspec.

Invariant: the user's credentials (keys, tokens, passwords) never appear in a message or a
representation.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import inspect
import io
import re
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from glob import has_magic
from typing import Any, BinaryIO, Final, cast

import fsspec

from hoodie_ds.config.file_options import STORAGE_OPTION_PREFIX
from hoodie_ds.errors import OptionError, StorageError
from hoodie_ds.extras import remedy
from hoodie_ds.storage.connections import argument, connection, refused
from hoodie_ds.storage.path import check_path
from hoodie_ds.storage.protocol import FileStatus, Version
from hoodie_ds.storage.streams import GuardedInput, whole_output

S3_SCHEMES: Final = ("s3", "s3a")
_OBJECTS: Final = ("client_kwargs", "config_kwargs", "s3_additional_kwargs")
"""Options of s3fs with arguments of the libraries below."""

_REST: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_UNKNOWN: Final = re.compile(r"unexpected keyword argument '(\w+)'")
# The memory file system hands one shared object with one position to all readers and writers.
_MEMORY_LOCK: Final = threading.RLock()


def is_known_not_to_be_atomic(scheme: str) -> bool:
    """Whether no release of a scheme's package creates files atomically; none need be installed."""
    return scheme in fsspec.available_protocols() and scheme not in (*S3_SCHEMES, "memory")


def has_atomic_put(scheme: str) -> bool:
    """Whether a scheme's file system is known to create a file for exactly one caller.

    ``memory`` is guarded by a lock within the process. s3fs sends ``If-None-Match: *`` with the
    request if it has the argument ``mode``; older releases ignore it silently. An `OptionError`
    means that fsspec does not know the scheme, a `StorageError` that its package is not installed.
    """
    try:
        system: Any = fsspec.get_filesystem_class(scheme)
    except ImportError as error:
        # fsspec's own sentence names the package; that of S3 has an extra here
        fault = f"s3fs is not installed: {remedy('s3')}" if scheme in S3_SCHEMES else str(error)
        raise StorageError(f"no file system for {scheme}://: {fault}") from error
    except ValueError as error:
        remedies = "give a local path, or s3://, gs://, abfss://, az:// or hdfs://"
        raise OptionError("path", f"{scheme}://...", f"no file system; {remedies}") from error
    if scheme in S3_SCHEMES:
        return "mode" in inspect.signature(system._pipe_file).parameters
    return scheme == "memory"


@dataclass(frozen=True, slots=True)
class FsspecStorage:
    """A `Storage` on a file system of fsspec."""

    root: str  # URL without credentials
    options: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    atomic_put: bool = False  # if not, a look-up precedes the write

    def read(self, path: str) -> bytes:
        """Return a whole file."""
        with self._call("read", path) as (system, full):
            return cast(bytes, system.cat_file(full))

    def open_input(self, path: str) -> BinaryIO:
        """Open a file for reading; errors of its reads are typed too."""
        with self._call("open", path) as (system, full):
            if self._in_memory:
                return io.BytesIO(system.cat_file(full))
            file = system.open(full, "rb")

        def translated(read: Callable[[], bytes]) -> bytes:
            with self._call("read", path):
                return read()

        return cast(BinaryIO, GuardedInput(file, translated))

    def open_output(self, path: str) -> contextlib.AbstractContextManager[BinaryIO]:
        """Open a new file for writing, which is held in memory and stored at the end."""
        check_path(path)
        return whole_output(lambda data: self._create("write", path, data))

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Create a file, whole, for exactly one caller."""
        self._create("create", path, data)

    def replace(self, path: str, data: bytes) -> None:
        """Create or overwrite a file, whole."""
        with self._call("replace", path) as (system, full):
            system.pipe_file(full, data)

    def read_version(self, path: str) -> tuple[bytes, Version]:
        """Return a whole file in memory, twice: its content is its version."""
        content = self.read(path)
        return content, content

    def replace_version(self, path: str, data: bytes, version: Version) -> Version:
        """Replace a file in memory that has a version, and return its new one."""
        with self._call("replace", path) as (system, full):
            if system.cat_file(full) != version:
                raise FileExistsError
            system.pipe_file(full, data)
            return data

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
                    info["name"][len(prefix) :].rstrip("/"), info["size"] or 0, modified_ms(info)
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

    def delete_many(self, paths: Collection[str]) -> None:
        """Delete files."""
        for path in paths:
            self.delete(path)

    @property
    def _scheme(self) -> str:
        return self.root.split("://", 1)[0]

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
            with refused_conditions():
                system.pipe_file(full, data, mode="create")

    @contextlib.contextmanager
    def _call(
        self, verb: str, path: str, *, root_allowed: bool = False
    ) -> Iterator[tuple[Any, str]]:
        """Yield the file system and the full path; any failure becomes a typed error."""
        check_path(path, root_allowed=root_allowed)
        guard = _MEMORY_LOCK if self._in_memory else contextlib.nullcontext()
        with self._connection(f"cannot {verb} {path!r} below {self.root!r}") as system, guard:
            root = system._strip_protocol(self.root).rstrip("/")
            yield system, f"{root}/{path}" if path else root

    def _connection(self, what: str) -> contextlib.AbstractContextManager[Any]:
        return connection(self._scheme, self.options, _connect, what)


def _connect(scheme: str, options: Mapping[str, str]) -> Any:  # noqa: ANN401
    """Make a file system.

    fsspec's cache would return a failed one again, and is shared with other code of the process.
    The S3 library's two layers of retries are off: they would repeat a conditional put whose answer
    was lost, and then report the name as taken by another writer.
    """
    arguments = {name: argument(text) for name, text in options.items()}
    try:
        return _opened(scheme, options, arguments)
    except TypeError as error:
        unknown = _UNKNOWN.search(str(error))
        named = unknown[1] if unknown is not None else None
        for name, value in arguments.items():
            if name == named or (isinstance(value, dict) and named in value):
                remedy = f"fsspec knows no {named!r} for {scheme}://; leave it out or correct it"
                raise refused(name, options, remedy) from None
        raise


def _opened(scheme: str, options: Mapping[str, str], arguments: dict[str, object]) -> Any:  # noqa: ANN401
    fresh = {"use_listings_cache": False, "skip_instance_cache": True}
    if scheme not in S3_SCHEMES:
        known = inspect.signature(fsspec.get_filesystem_class(scheme).__init__).parameters.values()
        required = (of.name for of in known if of.default is of.empty and of.kind not in _REST)
        missing = [name for name in required if name not in ("self", *arguments)]
        if missing:
            needed = f"fsspec needs it for {scheme}://"
            raise OptionError.of(
                [OptionError(STORAGE_OPTION_PREFIX + name, None, needed) for name in missing]
            )
        return fsspec.filesystem(scheme, **fresh, **arguments)
    for name in _OBJECTS:
        if not isinstance(arguments.get(name, {}), dict):
            raise refused(name, options, 'give a JSON object, such as {"region_name": "eu-west-1"}')
    given = cast(dict[str, object], arguments.get("config_kwargs", {}))
    config = {**given, "retries": {"total_max_attempts": 1}}
    system = fsspec.filesystem(scheme, **fresh, **{**arguments, "config_kwargs": config})
    system.retries = 1
    system.connect()  # else its first request would be what refuses options
    return system


@contextlib.contextmanager
def refused_conditions() -> Iterator[None]:
    """Turn what some releases of s3fs raise for a condition that failed, an invalid argument."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.EINVAL and "pre-condition" in str(error).lower():
            raise FileExistsError from error
        raise


def modified_ms(info: Mapping[str, object]) -> int:
    """When a file was last written; each file system has its own key for it."""
    for key in ("LastModified", "mtime", "created"):
        found = info.get(key)
        if isinstance(found, datetime):
            return int(found.timestamp() * 1000)
        if isinstance(found, (int, float)):
            return int(found * 1000)
    return 0
