"""The archived instants of a table, the newest first, file by file of the archive."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from hoodie_ds.table.table import Table
from hoodie_ds.timeline.archive.archived_timeline import each_archive_file
from hoodie_ds.timeline.archive.entry import ArchivedEntry
from hoodie_ds.timeline.archive.lsm_timeline import each_archived_rows
from hoodie_ds.timeline.bodies.commit_metadata import CommitMetadata
from hoodie_ds.timeline.instant import WRITE_ACTIONS, Action, Instant, State
from hoodie_ds.timeline.instant_time import padded
from hoodie_ds.timeline.paths import HOODIE, V1, commit_path


@dataclass(frozen=True, slots=True)
class ArchivedInstant:
    """A completed instant of the archive, and when its first and last file were written.

    The times are instant times, empty if not known. `commit` returns None if it is no write.
    """

    instant: Instant
    begun: str
    ended: str
    commit: Callable[[], CommitMetadata | None]


def archived_backwards(table: Table, *, bodies: bool = False) -> Iterator[ArchivedInstant]:
    """Yield the archived instants of a table, those of the newest file first.

    One file of the archive is held at a time. An instant that two files have is yielded once.
    `bodies` says whether what writes did is read too.
    """
    seen: set[tuple[str, Action]] = set()
    read = _of_log if table.layout == V1.version else _of_lsm
    for found in read(table, bodies):
        key = found.instant.time, found.instant.action
        if key not in seen:
            seen.add(key)
            yield found


def _of_log(table: Table, _bodies: bool) -> Iterator[ArchivedInstant]:
    folder = f"{HOODIE}/{table.properties.archive_folder}"
    for _, entries in each_archive_file(table.storage, folder, backwards=True):
        begun: dict[str, str] = {}
        done: dict[tuple[str, Action], ArchivedEntry] = {}
        for entry in entries:
            begun.setdefault(entry.instant.time, entry.transition)
            if entry.instant.state is State.COMPLETED:
                done[entry.instant.time, entry.instant.action] = entry
        for entry in sorted(done.values(), key=lambda e: padded(e.instant.time), reverse=True):
            start = begun.get(entry.instant.time, "")
            commit = partial(_commit_of_entry, entry)
            yield ArchivedInstant(entry.instant, start, entry.transition, commit)


def _commit_of_entry(entry: ArchivedEntry) -> CommitMetadata | None:
    if entry.instant.action not in WRITE_ACTIONS:
        return None
    return entry.commit(commit_path(entry.instant))


def _of_lsm(table: Table, bodies: bool) -> Iterator[ArchivedInstant]:
    for _, rows in each_archived_rows(table.storage, bodies):
        for instant, body in reversed(rows):
            commit = partial(_commit_of_row, instant, body)
            yield ArchivedInstant(instant, instant.time, instant.completion_time, commit)


def _commit_of_row(instant: Instant, body: bytes | None) -> CommitMetadata | None:
    if body is None or instant.action not in WRITE_ACTIONS:
        return None
    return CommitMetadata.from_bytes(body, commit_path(instant))
