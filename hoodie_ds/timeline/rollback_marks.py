"""Marks of instants that were rolled back and whose rollbacks are archived.

A mark is an empty file with the instant's time as its name. Archiving makes them and folds them:
many become one file that lists their times, so that their number does not grow with the table's
history. A file of marks is named by its content and never changes. It is put before the marks in it
are deleted, so a mark is never missing, wherever a process is killed.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from functools import lru_cache
from typing import Final

import xxhash

from hoodie_ds.errors import AlreadyExistsError, CorruptFileError, NotFoundError
from hoodie_ds.hints import COPY
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.paths import FOLDED_UNDONE, UNDONE, undone_path

MOST_FILES: Final = 64
"""Files of marks before archiving folds them."""
_RELISTINGS: Final = 8


def mark_undone(storage: Storage, time: str) -> None:
    """Mark an instant as undone; the mark stays when its rollback is archived."""
    with suppress(AlreadyExistsError):
        storage.put_if_absent(undone_path(time), b"")


def marked_times(storage: Storage) -> frozenset[str]:
    """Return the times of all instants that have a mark."""
    return _times(storage, _files(storage))


def fold_marks(storage: Storage) -> None:
    """Put the marks of a table into one file, if there are many."""
    files = _files(storage)
    if len(files) <= MOST_FILES:
        return
    body = "\n".join(sorted(_times(storage, files))).encode()
    path = f"{UNDONE}/{FOLDED_UNDONE}{xxhash.xxh3_128_hexdigest(body)}"
    with suppress(AlreadyExistsError):  # another process folds the same
        storage.put_if_absent(path, body)
    storage.delete_many([file for file in files if file != path])


def _files(storage: Storage) -> list[str]:
    return [status.path for status in storage.list(UNDONE)]


def _times(storage: Storage, files: Collection[str]) -> frozenset[str]:
    """Times in files that were just listed; listed again if one was folded since."""
    for _ in range(_RELISTINGS):
        with suppress(NotFoundError):
            return _read(storage, files)
        files = _files(storage)
    return _read(storage, files)


def _read(storage: Storage, files: Collection[str]) -> frozenset[str]:
    folded = {path for path in files if _is_folded(path)}
    single = (path.rpartition("/")[2] for path in files if path not in folded)
    return frozenset(single).union(*(_folded(storage, path) for path in folded))


def _is_folded(path: str) -> bool:
    return path.startswith(f"{UNDONE}/{FOLDED_UNDONE}")


@lru_cache(maxsize=64)
def _folded(storage: Storage, path: str) -> frozenset[str]:
    body = storage.read(path)
    if xxhash.xxh3_128_hexdigest(body) != path.removeprefix(f"{UNDONE}/{FOLDED_UNDONE}"):
        raise CorruptFileError(
            f"{storage.root}/{path} is damaged: it lists the instants whose rollbacks are archived,"
            " and its name is the hash of its content",
            COPY,
        )
    return frozenset(body.decode().split("\n"))
