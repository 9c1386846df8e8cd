"""Storage on Google Cloud Storage and Azure; only this and `clouds` import obstore.

obstore has one interface for both, creates an object on condition, repeats no request if it is
told so, and needs no other package.
"""

from __future__ import annotations

import builtins
import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, cast

from hoodie_ds.errors import AccessDeniedError, StorageError, UnavailableError
from hoodie_ds.storage import clouds
from hoodie_ds.storage.connections import connection
from hoodie_ds.storage.path import check_path
from hoodie_ds.storage.protocol import FileStatus, Upload, Version
from hoodie_ds.storage.streams import PART_BYTES, GuardedInput, ranges_input, whole_output


@dataclass(frozen=True, slots=True)
class ObjectStorage:
    """A `Storage` on a store of obstore."""

    root: str  # URL without credentials
    options: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)

    def read(self, path: str) -> bytes:
        """Return a whole file."""
        with self._call("read", path) as (store, key):
            return cast(bytes, store.get(key).bytes().to_bytes())

    def open_input(self, path: str) -> BinaryIO:
        """Open a file for reading in ranges."""
        with self._call("open", path) as (store, key):
            size = store.head(key)["size"]

        def translated(read: Callable[[], bytes]) -> bytes:
            with self._call("read", path):
                return read()

        ranges = ranges_input(size, lambda start, end: store.get_range(key, start=start, end=end))
        return cast(BinaryIO, GuardedInput(ranges, translated))

    def open_output(self, path: str) -> contextlib.AbstractContextManager[BinaryIO]:
        """Open a new file for writing, which is held in memory and stored at the end."""
        check_path(path)
        return whole_output(lambda data: self._put("write", path, data, "create"))

    def begin_upload(self, path: str) -> Upload:
        """Begin a new file in parts."""
        return _Upload(self, path)

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Create a file, whole, for exactly one caller."""
        self._put("create", path, data, "create")

    def replace(self, path: str, data: bytes) -> None:
        """Create or overwrite a file, whole."""
        self._put("replace", path, data, "overwrite")

    def read_version(self, path: str) -> tuple[bytes, Version]:
        """Return a whole file and its version."""
        with self._call("read", path) as (store, key):
            found = store.get(key)
            return found.bytes().to_bytes(), _version(found.meta)

    def replace_version(self, path: str, data: bytes, version: Version) -> Version:
        """Replace a file that has a version, and return its new one."""
        return _version(self._put("replace", path, data, version))

    def list(
        self, path: str, recursive: bool = False, *, folders: bool = False
    ) -> builtins.list[FileStatus]:
        """Return the files in a folder, or its sub-folders."""
        with self._call("list", path, root_allowed=True) as (store, key):
            if recursive and not folders:
                found, below = store.list(key).collect(), []
            else:
                listed = store.list_with_delimiter(key)
                found, below = listed["objects"], listed["common_prefixes"]
        if folders:
            statuses = [FileStatus(folder.removeprefix(self._folder), 0) for folder in below]
        else:
            statuses = [
                FileStatus(
                    one["path"].removeprefix(self._folder),
                    one["size"],
                    int(one["last_modified"].timestamp() * 1000),
                )
                for one in found
                if one["path"] != key  # how some tools mark the folder itself
            ]
        return sorted(statuses, key=lambda status: status.path)

    def delete(self, path: str) -> None:
        """Delete a file or a folder with all that is in it."""
        with self._call("delete", path) as (store, key):
            _delete(store, [one["path"] for one in store.list(key).collect()] or [key])

    def delete_many(self, paths: Collection[str]) -> None:
        """Delete files, on Azure with a request for each 256."""
        for path in paths:
            check_path(path)
        if paths:
            with self._call("delete", min(paths)) as (store, _):
                _delete(store, [self._folder + path for path in sorted(set(paths))])

    def _put(self, verb: str, path: str, data: bytes, mode: object) -> Mapping[str, object]:
        with self._call(verb, path) as (store, key):
            put = store.put(key, data, mode=mode, use_multipart=False)
            return cast(Mapping[str, object], put)

    @contextlib.contextmanager
    def _call(
        self, verb: str, path: str, *, root_allowed: bool = False
    ) -> Iterator[tuple[Any, str]]:
        """Yield the store and the file's key; any failure becomes a typed error."""
        check_path(path, root_allowed=root_allowed)
        what = f"cannot {verb} {path!r} below {self.root!r}"
        with connection(self._place, self.options, clouds.connect, what) as store:
            yield store, (self._folder + path).rstrip("/")

    @property
    def _place(self) -> str:
        """The URL of the bucket or container."""
        return "/".join(self.root.split("/", 3)[:3])

    @property
    def _folder(self) -> str:
        """What the keys of the table's files begin with: empty if it is the whole bucket."""
        _, _, folder = self.root.partition("://")[2].partition("/")
        return f"{folder}/" if folder else ""


class _Upload:
    """A file that obstore sends in parts, each again by itself if it fails.

    obstore knows no condition for parts. So a look shows whether the name is taken, and of several
    callers at once the last one wins: nobody else writes the name of a data file.
    """

    def __init__(self, storage: ObjectStorage, path: str) -> None:
        import obstore

        self._storage = storage
        self._path = path
        self._completing = False
        with storage._call("write", path) as (store, key):
            with contextlib.suppress(FileNotFoundError):
                store.head(key)
                raise FileExistsError(key)
            repeating = clouds.connect(storage._place, storage.options, repeats=True)
            self._writer = obstore.open_writer(
                repeating, key, buffer_size=PART_BYTES, max_concurrency=1
            )

    def put(self, number: int, part: bytes) -> None:
        """Store the next part; after an error none can follow."""
        try:
            with self._storage._call("write", self._path):
                self._writer.write(part)
        except UnavailableError as error:
            raise StorageError(str(error)) from error

    def complete(self) -> None:
        """Make a file of the parts; a repeated call only looks for it."""
        if self._completing:
            with self._storage._call("write", self._path) as (store, key):
                store.head(key)
                raise FileExistsError(key)
        self._completing = True
        try:
            with self._storage._call("write", self._path):
                self._writer.close()
        except AccessDeniedError:
            raise
        except StorageError as error:
            # Parts of a file that a try without an answer has completed are refused.
            raise UnavailableError(str(error)) from error

    def abort(self) -> None:
        """Do nothing: obstore cannot delete parts."""


def _version(answer: Mapping[str, object]) -> dict[str, object]:
    """Return obstore's name of the version in an answer: an ETag, or Google's generation too."""
    return {name: answer[name] for name in ("e_tag", "version") if answer[name] is not None}


def _delete(store: Any, keys: Sequence[str]) -> None:  # noqa: ANN401
    from obstore.exceptions import GenericError

    try:
        store.delete(keys)
    except (FileNotFoundError, GenericError) as error:
        if not _is_gone(error):
            raise
        if len(keys) > 1:  # the first that is missing has ended the request
            for key in keys:
                _delete(store, [key])


def _is_gone(error: Exception) -> bool:
    """Whether there was no file to delete.

    Azure with a hierarchical namespace keeps the folders of deleted files and lists no folder among
    files, so that a folder with others below may be left.
    """
    return isinstance(error, FileNotFoundError) or "non-empty directory" in str(error)
