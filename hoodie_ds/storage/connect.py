"""From a base path to its storage. Invariant: no writer gets a storage whose put can race."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from typing import Final

from hoodie_ds.config.base_path import check_base_path, scheme_of
from hoodie_ds.config.file_options import FileOptions, StorageOptions
from hoodie_ds.config.read_options import ReadOptions
from hoodie_ds.config.write_options import WriteOptions
from hoodie_ds.errors import OptionError, StorageError
from hoodie_ds.extras import remedy
from hoodie_ds.storage.clouds import CLOUDS
from hoodie_ds.storage.fsspec_storage import (
    S3_SCHEMES,
    FsspecStorage,
    has_atomic_put,
    is_known_not_to_be_atomic,
)
from hoodie_ds.storage.hdfs_storage import HdfsStorage
from hoodie_ds.storage.local import LocalStorage
from hoodie_ds.storage.object_storage import ObjectStorage
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.storage.retrying import RetryingStorage
from hoodie_ds.storage.s3_storage import S3Storage

_OTHER_NAMES: Final = {
    **dict.fromkeys(("wasb", "wasbs"), "abfss://container@account.dfs.core.windows.net/folder"),
    "s3n": "s3a://bucket/folder",
    "viewfs": "hdfs://nameservice/folder",
    "local": "file:///folder",
}
"""Schemes of clients that Hadoop has given up, and others, with what the files are called here."""
_CHAINED: Final = frozenset(
    [
        "blockcache",
        "cached",
        "data",
        "dir",
        "filecache",
        "generic",
        "libarchive",
        "reference",
        "simplecache",
        "tar",
        "zip",
    ]
)
"""Schemes of fsspec that are a view of what another URL names."""


def open_storage(
    base_path: str,
    storage_options: Mapping[str, str] | None = None,
    allow_non_atomic: bool = False,
    for_write: bool = True,
    retry_ms: int = StorageOptions.storage_retry_ms.default or 0,
) -> Storage:
    """Return the storage of a table's folder, which need not exist yet.

    A relative path starts at the working directory of this process; ``~`` is its user's home. The
    values of `storage_options` never appear in a message. `allow_non_atomic` accepts for writing a
    file system without atomic put-if-absent, on which two writers may both believe that they won;
    otherwise such a file system is an `OptionError`.
    """
    place = check_base_path(base_path)
    scheme = scheme_of(place)
    if scheme == "file":
        return LocalStorage(os.path.realpath(os.path.expanduser(_local_path(place))))
    if scheme in _OTHER_NAMES:
        raise OptionError("path", place, f"its files have another name: {_OTHER_NAMES[scheme]}")
    if scheme in _CHAINED:
        raise OptionError("path", place, "chained file systems are not accepted")
    if scheme in CLOUDS:
        _check_installed(scheme, "obstore", CLOUDS[scheme])
        return RetryingStorage(ObjectStorage(place, dict(storage_options or {})), retry_ms)
    if scheme == "hdfs":
        _check_installed(scheme, "hdfs_native", "hdfs")
        return RetryingStorage(HdfsStorage(place, dict(storage_options or {})), retry_ms)
    refuses = for_write and not allow_non_atomic
    # Checked before the package is required: a user would install it in vain.
    atomic = not (refuses and is_known_not_to_be_atomic(scheme)) and has_atomic_put(scheme)
    if refuses and not atomic:
        raise OptionError(
            FileOptions.allow_non_atomic_storage.key,
            None,
            f"writing to {scheme}:// is refused, because it is not known to create a file for "
            "exactly one of several writers; set it to true only if one process at a time "
            "ever writes to the table",
        )
    kind = S3Storage if scheme in S3_SCHEMES else FsspecStorage
    storage = kind(place, dict(storage_options or {}), atomic)
    return storage if scheme == "memory" else RetryingStorage(storage, retry_ms)


def storage_to_write(options: WriteOptions) -> Storage:
    """Return the storage of the table that a write names; see `open_storage`."""
    return open_storage(
        options.base_path,
        options.storage_options,
        options.allow_non_atomic_storage,
        retry_ms=options.storage_retry_ms,
    )


def storage_to_read(options: ReadOptions | WriteOptions, folder: str | None = None) -> Storage:
    """Return the storage of an options' table, or of `folder`, for reading."""
    return open_storage(
        options.base_path if folder is None else folder,
        options.storage_options,
        for_write=False,
        retry_ms=options.storage_retry_ms,
    )


def _check_installed(scheme: str, package: str, extra: str) -> None:
    """Raise a `StorageError` that says what to install if the package of a scheme is missing."""
    try:
        importlib.import_module(package)
    except ImportError as error:
        raise StorageError(
            f"no file system for {scheme}://: {package} is not installed: {remedy(extra)}"
        ) from error


def _local_path(place: str) -> str:
    if scheme_of(place) != "file" or not place.lower().startswith("file:"):
        return place
    path = place[len("file:") :]
    if not path.startswith("//"):
        return path
    host, slash, rest = path[2:].partition("/")
    if host not in ("", "localhost") or not slash:
        raise OptionError("path", place, "a file URL names no host: write file:///folder")
    return slash + rest
