"""Notes of late files: data files that appear after their instant has ended, in no commit.

A process may be stopped in the put of a data file until others have ended its instant and deleted
the markers, and its storage may complete the file after the process has died. No marker names such
a file. Readers of this library do not see it: a commit names its own files, and an instant that was
rolled back does not count. Readers that list folders take it for committed once the instant is
archived.

So a process that deletes markers first notes the announced files that no commit names. File names
are unique to an attempt, so no other file ever has them. Archiving deletes the files when it
archives the instant, and again one run later. A table without failures has no such notes.
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


def note_late_files(storage: Storage, time: str, files: Collection[str]) -> None:
    """Note files that may come late; called before their markers are deleted."""
    body = json.dumps(sorted(files)).encode()
    with suppress(AlreadyExistsError):  # put by an earlier attempt or another process
        storage.put_if_absent(late_path(time, xxhash.xxh3_64_hexdigest(body)), body)


def delete_late_files(table: Table, timeline: Timeline, start: str) -> None:
    """Delete late files of instants before a time, `start`, where the timeline is about to start.

    A note of an instant before the current start is read for the second time, then deleted.
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
    """Files that a note names; none if another process has deleted it."""
    try:
        body = storage.read(note)
    except NotFoundError:
        return []
    with suppress(ValueError, RecursionError):
        found = json.loads(body)
        if isinstance(found, list) and all(isinstance(path, str) for path in found):
            return [path for path in found if not path.startswith(f"{HOODIE}/")]
    raise CorruptFileError(
        f"{storage.root}/{note} is not a list of late files: {body[:100]!r}",
        f"delete it, and files of instant {note.rpartition('/')[2].partition('_')[0]} that no "
        "commit names",
    )
