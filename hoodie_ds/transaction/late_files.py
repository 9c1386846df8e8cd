"""Late files: what may still come under an instant that has ended, and is nobody's then.

A process may be stopped in the very put of a data file, for as long as it takes others to end its
instant and to delete the markers, and its storage may make the file whole after it has died. No
marker tells of such a file. Readers of this library see it neither under a commit, which names its
own files, nor under an instant that was undone. Readers that list folders take it for committed
once the instant lies before the active timeline.

So whoever deletes markers writes down before which files they announce and no commit names. The
names are those of single attempts, so nothing else ever has them. Archiving deletes the files, when
the instant comes to lie before the timeline, and once more one archive later. A table whose
instants all end well has no such notes.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from contextlib import suppress

import xxhash

from hoodie_ds.errors import AlreadyExistsError, CorruptFileError, NotFoundError
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.instant_time import padded
from hoodie_ds.timeline.paths import HOODIE, LATE, late_path
from hoodie_ds.timeline.timeline import Timeline


def remember_late(storage: Storage, time: str, files: Collection[str]) -> None:
    """Write down which files may come late, before their markers are deleted."""
    if not files:
        return
    body = json.dumps(sorted(files)).encode()
    with suppress(AlreadyExistsError):  # an earlier try of the same, or another process
        storage.put_if_absent(late_path(time, xxhash.xxh3_64_hexdigest(body)), body)


def delete_late(table: Table, timeline: Timeline, start: str) -> None:
    """Delete what has come late under instants that lie before a time.

    `start` is where the timeline is about to start. A note of an instant before the current start
    is read for the second time, and deleted after it.
    """
    storage, view = table.storage, FileSystemView(table.storage, timeline)
    for status in storage.list(LATE):
        time = status.path.rpartition("/")[2].partition("_")[0]
        if padded(time) >= padded(start):
            continue
        commit = timeline.commit_at(time)
        for path in _noted(storage, status.path):
            if commit is None or not view.names(time, path):
                storage.delete(path)
        if timeline.starts_after(time):
            storage.delete(status.path)


def _noted(storage: Storage, note: str) -> list[str]:
    """Files that a note tells of; none if another process has deleted it."""
    try:
        body = storage.read(note)
    except NotFoundError:
        return []
    with suppress(ValueError, RecursionError):
        found = json.loads(body)
        if isinstance(found, list) and all(isinstance(path, str) for path in found):
            return [path for path in found if not path.startswith(f"{HOODIE}/")]
    raise CorruptFileError(
        f"{storage.root}/{note} is not a list of late files: {body[:100]!r}; delete it, and files "
        f"of instant {note.rpartition('/')[2].partition('_')[0]} that no commit names"
    )
