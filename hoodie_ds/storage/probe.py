"""The check that a storage's server obeys the condition of a put-if-absent.

A server that does not know the condition (``If-None-Match``, Google's
``x-goog-if-generation-match``) silently ignores it and overwrites: two writers would both believe
that they won.
"""

from __future__ import annotations

from typing import Final

from hoodie_ds.config.file_options import FileOptions
from hoodie_ds.errors import AlreadyExistsError, OptionError
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.storage.retrying import RetryingStorage

PROBES: Final = ".hoodie/.temp/hoodie_ds/probe-"
"""Prefix of the paths of probes: files that may exist before there is a table."""


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
