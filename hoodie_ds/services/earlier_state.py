"""An earlier state of a table: its timeline, and whether its files still exist.

Savepoints keep such a state, and rollbacks and restores return to one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Final

from hoodie_ds.config.archiving_options import ArchivingOptions
from hoodie_ds.errors import NotFoundError, TimelineError
from hoodie_ds.hints import COPY, missing
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.file_name import BaseFileName, CdcFileName, LogFileName
from hoodie_ds.table.file_slice import FileGroupId
from hoodie_ds.table.gathered_files import LiveFiles
from hoodie_ds.table.live_files import newest_files
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.archive.archive import Archive, archive_of
from hoodie_ds.timeline.bodies.clean_metadata import CleanMetadata, read_plan
from hoodie_ds.timeline.file_changes import file_changes
from hoodie_ds.timeline.instant import WRITE_ACTIONS, Action, Instant, State
from hoodie_ds.timeline.instant_time import padded
from hoodie_ds.timeline.paths import instant_path
from hoodie_ds.timeline.timeline import Timeline

_DEFAULTS: Final = ArchivingOptions()
_REMEDY: Final = "choose a later instant"


def timeline_at(timeline: Timeline, time: str) -> Timeline:
    """Return a timeline without the writes after a time."""
    return timeline.past(time, lambda instant: _is_later_write(instant, time))


def later_writes(timeline: Timeline, time: str) -> tuple[Instant, ...]:
    """Return the writes and planned rewrites after a time, completed or not, the newest first."""
    later = (i for i in (*timeline.completed, *timeline.pending) if _is_later_write(i, time))
    return tuple(sorted(later, key=lambda instant: padded(instant.time), reverse=True))


def table_archive(table: Table, options: ArchivingOptions = _DEFAULTS) -> Archive:
    """Return the archive of a table; only writers of it pass options."""
    return archive_of(
        table.storage,
        table.layout,
        table.properties.archive_folder,
        entries_per_block=options.entries_per_block,
        files_per_level=options.files_per_level,
    )


def _is_later_write(instant: Instant, time: str) -> bool:
    return instant.action in WRITE_ACTIONS and padded(instant.time) > padded(time)


def check_files_are_kept(
    table: Table, timeline: Timeline, time: str, what: str, *, retained: bool = True
) -> None:
    """Refuse with `TimelineError` if cleans deleted files that the table had at a time, or will.

    `time` is that of the last write that counts, and `what` names the use of the files in the
    message. With `retained`, cleans must also state that they retain the files of that time, as
    Hudi demands.
    """
    storage = table.storage
    cleans = [i for i in (*timeline.completed, *timeline.pending) if i.action is Action.CLEAN]
    past = timeline_at(timeline, time)
    is_kept = any(i.time == time and i.state is State.COMPLETED for i in timeline.savepoints)
    if retained and not is_kept:  # a clean keeps the files of a savepoint in any case
        _check_retained(storage, cleans, time, what)
    listed = {status.path for status in storage.list("", recursive=True)}
    condemned = set().union(*(_deleted(storage, i) for i in cleans if i.state != State.COMPLETED))
    live = LiveFiles(Timeline(layout=timeline.layout))
    live.grow(storage, past)
    for file in live.named(past):
        if file.path not in listed or file.path in condemned:
            whose = f"which {file.instant} names"
            if any(file.path in _deleted(storage, clean) for clean in cleans):
                raise _lost(storage, what, file.path, whose)
            is_live = file.group in {one.group for one in newest_files(storage, timeline)}
            remedy = f"{COPY}, or {_REMEDY}"
            if is_live:
                remedy = missing(table.command, file.path, listed, remedy)
            raise TimelineError(
                f"{storage.root}: {what} needs {file.path}, {whose}, and it is missing, lost or "
                f"taken by a clean that is archived; {remedy}"
            )
    replaced = set(live.replaced(past))
    left = _starts(listed - condemned)
    gone = [found for found in _gone(storage, cleans, left, time) if found[0] not in replaced]
    archived = _replaced_in_archive(table, time) if gone else set()
    for group, path, clean in gone:
        if group not in archived:
            raise _lost(storage, what, path, f"which {clean} deletes")


def _gone(
    storage: Storage,
    cleans: Iterable[Instant],
    starts: Mapping[FileGroupId | None, set[str]],
    time: str,
) -> Iterator[tuple[FileGroupId | None, str, Instant]]:
    """Files that cleans delete and that were the newest of their groups at a time, if not replaced.

    `starts` says when the remaining slices begin, by group.
    """
    for clean in cleans:
        for path in sorted(_deleted(storage, clean)):
            group, start = _place(path)
            newer = any(start < other <= padded(time) for other in starts.get(group, ()))
            if start <= padded(time) and not newer:
                yield group, path, clean


def _replaced_in_archive(table: Table, time: str) -> set[FileGroupId]:
    """File groups that archived commits up to a time replaced.

    A clean that deleted them may be on the active timeline longer than those commits are.
    """
    return {FileGroupId(*group) for group in table_archive(table).replaced(time)}


def _check_retained(storage: Storage, cleans: Iterable[Instant], time: str, what: str) -> None:
    for clean in cleans:
        earliest = _earliest_retained(storage, clean)
        if earliest and padded(time) < padded(earliest):
            raise TimelineError(
                f"{storage.root}: {what} needs the files of {time}, but clean {clean.time} keeps "
                f"those since {earliest} alone; {_REMEDY}"
            )


def _lost(storage: Storage, what: str, path: str, whose: str) -> TimelineError:
    return TimelineError(
        f"{storage.root}: {what} needs {path}, {whose}, and a clean took it or will; {_REMEDY}"
    )


def _starts(paths: Iterable[str]) -> dict[FileGroupId | None, set[str]]:
    """Start times of the slices of each file group."""
    found: dict[FileGroupId | None, set[str]] = {}
    for path in paths:
        group, start = _place(path)
        found.setdefault(group, set()).add(start)
    return found


def _place(path: str) -> tuple[FileGroupId | None, str]:
    """Group of a data file, and when its slice begins; None for other files."""
    partition, _, name = path.rpartition("/")
    base, log = BaseFileName.parse(name) or CdcFileName.parse(name), LogFileName.parse(name)
    if base is not None:
        return FileGroupId(partition, base.file_id), padded(base.instant_time)
    if log is not None:
        return FileGroupId(partition, log.file_id), padded(log.base_instant)
    return None, ""


def _earliest_retained(storage: Storage, clean: Instant) -> str:
    """The first commit whose files a clean keeps; empty for a clean by versions."""
    with suppress(NotFoundError):
        if clean.state is not State.COMPLETED:
            kept = read_plan(storage, clean).earliest
            return "" if kept is None else kept.time
        path = instant_path(clean)
        data = storage.read(path)
        return CleanMetadata.from_bytes(data, path).earliest if data else ""
    return ""


def _deleted(storage: Storage, clean: Instant) -> frozenset[str]:
    """Paths of the files that a clean deleted, or will; none once it is archived."""
    with suppress(NotFoundError):
        return file_changes(storage, clean).deleted
    return frozenset()
