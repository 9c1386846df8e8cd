"""Storage on HDFS; only this imports hdfs_native, a client that needs no JVM.

Invariant: a name given by `put_if_absent` or `replace` shows either nothing, the old content or the
whole new content. HDFS shows a new file while it is written, so the content is written under a
hidden name of the same folder and renamed, which the NameNode does at once, and without overwriting
for one of several callers. A killed process may leave a file ``.<32 hexadecimal digits>.tmp``
behind, which no listing shows.
"""

from __future__ import annotations

import builtins
import io
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, BinaryIO, ClassVar, Final, Literal, cast

from hoodie_ds.environment import IdSource, RandomIds
from hoodie_ds.errors import NotFoundError, StorageError
from hoodie_ds.storage.connections import connection, refuse_fork, refused
from hoodie_ds.storage.hdfs_errors import plain
from hoodie_ds.storage.path import check_path, is_unfinished
from hoodie_ds.storage.protocol import FileStatus, walked
from hoodie_ds.storage.streams import GuardedInput, ranges_input

_KERBEROS: Final = ("kerberos_principal", "kerberos_keytab", "kerberos_cache")
"""Options of the client itself, beside those of Hadoop."""


@dataclass(frozen=True, slots=True)
class HdfsStorage:
    """A `Storage` on HDFS."""

    root: str  # hdfs://host:port/folder, hdfs://nameservice/folder or hdfs:///folder
    options: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    ids: IdSource = field(default_factory=RandomIds, repr=False, compare=False)
    sends_outputs: ClassVar[Literal[True]] = True

    def read(self, path: str) -> bytes:
        """Return a whole file."""
        with self._call("read", path) as (client, full):
            return bytes(client.read(full).read())

    def open_input(self, path: str) -> BinaryIO:
        """Open a file for reading in ranges, as long as it is now."""
        with self._call("open", path) as (client, full):
            file = client.read(full)

        def translated(read: Callable[[], bytes]) -> bytes:
            with self._call("read", path):
                return read()

        ranges = ranges_input(len(file), lambda start, end: file.read_range(start, end - start))
        return cast(BinaryIO, GuardedInput(ranges, translated))

    @contextmanager
    def open_output(self, path: str) -> Iterator[BinaryIO]:
        """Open a new file for writing; its name shows at once, its content when complete."""
        with self._call("write", path) as (client, full):
            file = client.create(full)

        def send(data: memoryview) -> None:
            with self._call("write", path):
                file.write(data)

        try:
            yield cast(BinaryIO, _Output(send))
            with self._call("write", path):
                file.close()
        except BaseException:
            with suppress(StorageError):
                self.delete(path)
            raise

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Create a file, whole, for exactly one caller."""
        self._put("create", path, data, overwrite=False)

    def replace(self, path: str, data: bytes) -> None:
        """Create or overwrite a file, whole."""
        self._put("replace", path, data, overwrite=True)

    def list(
        self, path: str, recursive: bool = False, *, folders: bool = False
    ) -> builtins.list[FileStatus]:
        """Return the files in a folder, or its sub-folders."""
        return walked(self._scan, path, recursive, folders)

    def delete(self, path: str) -> None:
        """Delete a file or a folder with all that is in it, past the trash."""
        with suppress(NotFoundError), self._call("delete", path) as (client, full):
            client.delete(full, recursive=True)

    def delete_many(self, paths: Collection[str]) -> None:
        """Delete files, each by a request: HDFS has none for several."""
        for path in paths:
            self.delete(path)

    def _put(self, verb: str, path: str, data: bytes, *, overwrite: bool) -> None:
        with self._call(verb, path) as (client, full):
            temporary = f"{full.rpartition('/')[0]}/.{self.ids.unique()}.tmp"
            try:
                with client.create(temporary) as file:
                    file.write(data)
                client.rename(temporary, full, overwrite)
            except BaseException:
                with suppress(OSError, RuntimeError):
                    client.delete(temporary)
                raise

    def _scan(self, path: str) -> tuple[builtins.list[FileStatus], builtins.list[FileStatus]]:
        """Return the files and the sub-folders of a folder; none if it is missing."""
        files: builtins.list[FileStatus] = []
        folders: builtins.list[FileStatus] = []
        with (
            suppress(NotFoundError),
            self._call("list", path, root_allowed=True) as (client, full),
        ):
            for status in client.list_status(full):
                folder, _, name = status.path.rpartition("/")
                if folder != full.rstrip("/"):  # the path is that of a file
                    continue
                below = f"{path}/{name}" if path else name
                if status.isdir:
                    folders.append(FileStatus(below, 0))
                elif not is_unfinished(name):
                    files.append(FileStatus(below, status.length, status.modification_time))
        return files, folders

    @contextmanager
    def _call(
        self, verb: str, path: str, *, root_allowed: bool = False
    ) -> Iterator[tuple[Any, str]]:
        """Yield the client and the full path; any failure becomes a typed error."""
        check_path(path, root_allowed=root_allowed)
        host, _, folder = self.root.partition("://")[2].partition("/")
        place = f"/{folder}" if folder else ""
        what = f"cannot {verb} {path!r} below {self.root!r}"
        with connection(f"hdfs://{host}", self.options, connect, what, plain) as client:
            yield client, f"{place}/{path}" if path else place or "/"


def connect(place: str, options: Mapping[str, str]) -> Any:  # noqa: ANN401
    """Return a client of a NameNode, of a nameservice, or of the default file system.

    What the options do not say, it takes from ``core-site.xml`` and ``hdfs-site.xml``, where
    ``HADOOP_CONF_DIR`` or ``HADOOP_HOME`` says, as Hadoop's own clients do. Its user is that of a
    keytab or of a ticket's cache, if the options name one.
    """
    from hdfs_native import Client

    refuse_fork("hdfs_native")
    of_hadoop = dict(options)
    named = {name: of_hadoop.pop(name) for name in _KERBEROS if name in of_hadoop}
    for name in of_hadoop:
        if "." not in name:  # the client would ignore a mistyped name
            known = ", ".join(_KERBEROS)
            remedy = f"give a name of Hadoop's, such as dfs.nameservices, or one of {known}"
            raise refused(name, options, remedy)
    return Client(place, of_hadoop, **named)


class _Output(io.RawIOBase):
    """A new file that is sent while it is written; it is still open if a writer closes it."""

    def __init__(self, send: Callable[[memoryview], None]) -> None:
        self._send = send
        self._size = 0

    def write(self, data: bytes | memoryview) -> int:  # type: ignore[override]
        """Write all of `data`."""
        view = memoryview(data).cast("B")
        self._send(view)
        self._size += len(view)
        return len(view)

    def tell(self) -> int:
        """Return the number of bytes written so far."""
        return self._size

    def writable(self) -> bool:
        """Return true."""
        return True

    def close(self) -> None:
        """Do nothing: the file is complete at the end of the block."""
