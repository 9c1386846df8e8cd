"""Temporary files of instants: markers where Hudi has them, and files of this library alone."""

from __future__ import annotations

from contextlib import suppress

from hoodie_ds.errors import AlreadyExistsError, NotFoundError
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.paths import (
    TEMP,
    instant_of_temporary,
    marker_folder,
    moved_path,
    work_folder,
)


def left_over(storage: Storage) -> dict[str, frozenset[str]]:
    """Temporary files of instants, by instant time.

    Call it before the timeline is loaded: then an instant with markers that is not on the timeline
    was rolled back, and one that is opened meanwhile has at most a claim here.
    """
    files: dict[str, set[str]] = {}
    for status in storage.list(TEMP, recursive=True):
        path = _moved(storage, status.path)
        time = instant_of_temporary(path)
        if time is not None:
            files.setdefault(time, set()).add(path)
    return {time: frozenset(paths) for time, paths in files.items()}


def temporary_files(storage: Storage, time: str) -> set[str]:
    """Return the paths of an instant's temporary files, its markers among them."""
    folders = (work_folder(time), marker_folder(time))
    return {status.path for folder in folders for status in storage.list(folder, recursive=True)}


def delete_temporary(storage: Storage, time: str) -> None:
    """Delete the temporary files of an instant, the markers last.

    `finish` of `exclusive_commit` assumes that an instant without markers may be rolled back.
    """
    storage.delete(work_folder(time))
    storage.delete(marker_folder(time))


def is_of_earlier_release(storage: Storage, time: str) -> bool:
    """Whether an unfinished instant is one of an earlier release, which the next batch takes up."""
    return any(moved_path(status.path) for status in storage.list(marker_folder(time)))


def _moved(storage: Storage, path: str) -> str:
    """Move a file of an earlier release to its new place; returns the path of any file.

    The old place was the folder of markers, where such files kept Hudi from finding markers. Any
    process may be killed in between, or move the same file at the same time.
    """
    now = moved_path(path)
    if now is None:
        return path
    with suppress(NotFoundError):  # another process has just moved it
        body = storage.read(path)
        with suppress(AlreadyExistsError):
            storage.put_if_absent(now, body)
        storage.delete(path)
    return now
