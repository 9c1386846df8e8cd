"""The checks that a storage's server obeys the conditions of puts.

A server that does not know a condition (``If-None-Match``, ``If-Match``, Google's
``x-goog-if-generation-match``) silently ignores it and overwrites: two writers would both believe
that they won.
"""

from __future__ import annotations

from typing import Final

from hoodie_ds.config.concurrency import Concurrency
from hoodie_ds.config.enums import LockProvider
from hoodie_ds.config.file_options import FileOptions
from hoodie_ds.errors import AlreadyExistsError, OptionError
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.storage.retrying import RetryingStorage

PROBES: Final = ".hoodie/.temp/hoodie_ds/probe-"
"""Prefix of the paths of probes: files that may exist before there is a table."""

_obeying_versions: Final[set[Storage]] = set()


def check_condition_obeyed(storage: Storage, unique: str) -> None:
    """Put one file twice, and raise `OptionError` if the server accepts both.

    `unique` makes the name unique. The local disk and the memory of this process need no check.
    """
    if not isinstance(storage, RetryingStorage):
        return
    path = PROBES + unique
    storage.put_if_absent(path, b"first")
    try:
        storage.put_if_absent(path, b"second")
    except AlreadyExistsError:
        return
    finally:
        storage.delete(path)
    raise OptionError(
        FileOptions.allow_non_atomic_storage.key,
        None,
        f"the server of {storage.root} ignores the condition of a put (If-None-Match, or Google's "
        "x-goog-if-generation-match) and overwrites what is there, so two writers could both "
        "believe that they won; use one that obeys it, or set the option to true only if one "
        "process at a time ever writes to the table",
    )


def check_versions_obeyed(storage: Storage, unique: str) -> None:
    """Replace one version of a file twice, and raise `OptionError` if the server accepts both.

    Once for each storage and process, else as `check_condition_obeyed`.
    """
    if not isinstance(storage, RetryingStorage) or storage in _obeying_versions:
        return
    path = PROBES + unique
    storage.put_if_absent(path, b"first")
    try:
        version = storage.read_version(path)[1]
        storage.replace_version(path, b"second", version)
        storage.replace_version(path, b"third", version)
    except AlreadyExistsError:
        _obeying_versions.add(storage)
        return
    finally:
        storage.delete(path)
    raise OptionError(
        Concurrency.lock_provider.key,
        LockProvider.STORAGE.value,
        f"the server of {storage.root} ignores the condition of a put (If-Match, or Google's "
        "x-goog-if-generation-match) and overwrites what is there, so two writers could hold the "
        "lock; leave the option out, and let no other engine write at the same time",
    )
