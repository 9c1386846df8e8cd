"""Temporary files of instants: markers where Hudi has them, and what only this library knows."""

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

    To be taken before the timeline is loaded: what is announced there by an instant that is not on
    a timeline loaded later is that of one that has been rolled back. Of an instant that is opened
    meanwhile, nothing but a claim is found here, however long the sweep takes.
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
    """Delete the temporary files of an instant.

    The markers last: `finish` of `exclusive_commit` takes an instant without them for one that
    others may have taken back.
    """
    storage.delete(work_folder(time))
    storage.delete(marker_folder(time))


def _moved(storage: Storage, path: str) -> str:
    """Return where a file lies now, after moving one of an earlier release.

    Those lay beside the markers, where they kept Hudi from finding these. Any process may be
    killed in between, or move the same file at the same time: the content is the same.
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
