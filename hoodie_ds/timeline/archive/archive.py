"""The archive of a table for archiving, services and queries, in either timeline layout."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain
from typing import Final, Protocol

from hoodie_ds.formats.avro.container import read_record
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.archive.archived_timeline import (
    archived_instants,
    each_archive_file,
    put_archive_file,
)
from hoodie_ds.timeline.archive.each_file import each_file
from hoodie_ds.timeline.archive.entry import ArchivedEntry
from hoodie_ds.timeline.archive.entry import entry_of as log_entry
from hoodie_ds.timeline.archive.lsm_snapshot import ArchiveFile, newest_snapshot
from hoodie_ds.timeline.archive.lsm_timeline import (
    archived_bodies,
    archived_keys,
    archived_rows,
    each_archived_rows,
)
from hoodie_ds.timeline.archive.lsm_writer import (
    FILES_PER_LEVEL,
    LsmEntry,
    merge_and_clean,
    put_entries,
)
from hoodie_ds.timeline.archive.lsm_writer import entry_of as lsm_entry
from hoodie_ds.timeline.bodies.commit_metadata import CommitMetadata
from hoodie_ds.timeline.instant import WRITE_ACTIONS, Action, Instant, State
from hoodie_ds.timeline.instant_time import padded
from hoodie_ds.timeline.paths import HOODIE, V1, instant_path
from hoodie_ds.timeline.timeline import Timeline

ENTRIES_PER_BLOCK: Final = 10
_STATES: Final = list(State)
_WRITES: Final = frozenset(action.value for action in WRITE_ACTIONS)


@dataclass(frozen=True, slots=True)
class ActiveFile:
    """A file of an instant on the active timeline: its step, content, and when it was written."""

    step: Instant
    body: bytes
    written: str


class Archive(Protocol):
    """The instants that have left the active timeline."""

    def put(self, instants: Sequence[Sequence[ActiveFile]]) -> frozenset[str]:
        """Put the files of instants, the oldest first, durably: then they may leave the timeline.

        Returns what `tidy` needs. Raises `CorruptFileError` if a file or the archive is damaged.
        """
        ...

    def tidy(self, settled: frozenset[str]) -> None:
        """Keep the archive in few files, once what was put has left the active timeline."""
        ...

    def newest_write(self) -> str:
        """Return the time of the newest write in the archive; empty if it has none."""
        ...

    def writes_backwards(self) -> Iterator[tuple[Instant, CommitMetadata]]:
        """Yield the completed writes and what they did, the newest first; of ties any.

        Files of the archive are read one after another, on demand. A write may come twice if
        another archiver merges files meanwhile.
        """
        ...

    def replaced(self, until: str) -> Iterator[tuple[str, str]]:
        """Yield partition and file id of what writes up to a time have replaced."""
        ...


def archive_of(
    storage: Storage,
    layout: int,
    folder: str,
    *,
    entries_per_block: int = ENTRIES_PER_BLOCK,
    files_per_level: int = FILES_PER_LEVEL,
) -> Archive:
    """Return the archive of a table; only layout 1 has its `folder` as an option.

    `entries_per_block` is for layout 1 (``hoodie.commits.archival.batch``), `files_per_level` for
    layout 2 (``hoodie.timeline.compaction.batch.size``).
    """
    if layout == V1.version:
        return _LogArchive(storage, f"{HOODIE}/{folder}", entries_per_block)
    return _LsmArchive(storage, files_per_level)


@dataclass(frozen=True, slots=True)
class _LogArchive:
    """The archive of layout 1: a log file for each run of an archiver."""

    storage: Storage
    folder: str
    entries_per_block: int

    def put(self, instants: Sequence[Sequence[ActiveFile]]) -> frozenset[str]:
        """Put a file; there is nothing to tidy."""
        entries = [entry for files in instants for entry in self._entries(files)]
        put_archive_file(self.storage, self.folder, entries, self.entries_per_block)
        return frozenset()

    def tidy(self, settled: frozenset[str]) -> None:
        """Do nothing, as Hudi does on storages without appends."""

    def newest_write(self) -> str:
        writes = (e.instant.time for _, e in self._read() if e.instant.action in WRITE_ACTIONS)
        return max(writes, key=padded, default="")

    def writes_backwards(self) -> Iterator[tuple[Instant, CommitMetadata]]:
        """Yield the writes, by the files' order and in each by time."""
        for path, entries in each_archive_file(self.storage, self.folder, backwards=True):
            done = (e for e in entries if e.instant.state is State.COMPLETED)
            writes = [e for e in done if e.instant.action in WRITE_ACTIONS]
            for entry in sorted(writes, key=lambda e: padded(e.instant.time), reverse=True):
                yield entry.instant, entry.commit(path)

    def replaced(self, until: str) -> Iterator[tuple[str, str]]:
        for path, entry in self._read():
            instant = entry.instant
            is_done = instant.action is Action.REPLACE_COMMIT and instant.state is State.COMPLETED
            if is_done and padded(instant.time) <= padded(until):
                yield from _pairs(entry.commit(path).replaced)

    def _read(self) -> Iterator[tuple[str, ArchivedEntry]]:
        for path, entries in each_archive_file(self.storage, self.folder):
            for entry in entries:
                yield path, entry

    @staticmethod
    def _entries(files: Sequence[ActiveFile]) -> Iterator[ArchivedEntry]:
        plan = b""
        for file in sorted(files, key=lambda file: _STATES.index(file.step.state)):
            plan = file.body if file.step.state is State.REQUESTED else plan
            yield log_entry(file.step, file.body, plan, file.written)


@dataclass(frozen=True, slots=True)
class _LsmArchive:
    """The archive of layout 2: Parquet files that are merged level by level."""

    storage: Storage
    files_per_level: int

    def put(self, instants: Sequence[Sequence[ActiveFile]]) -> frozenset[str]:
        """Put a file of the instants that the archive lacks; returns names to delete later."""
        return put_entries(self.storage, [e for files in instants for e in self._entries(files)])

    def tidy(self, settled: frozenset[str]) -> None:
        merge_and_clean(self.storage, settled, self.files_per_level)

    def newest_write(self) -> str:
        newest = ""

        def listed() -> Iterator[ArchiveFile]:
            return (f for f in newest_snapshot(self.storage).files if f.may_hold_later(newest))

        for _, keys in each_file(self.storage, listed, archived_keys):
            writes = [time for time, action in keys if action in _WRITES]
            newest = max(filter(None, [newest, *writes]), key=padded, default="")
        return newest

    def writes_backwards(self) -> Iterator[tuple[Instant, CommitMetadata]]:
        """Yield the writes, those of files with later times first."""
        for file, rows in each_archived_rows(self.storage, bodies=True):
            for instant, body in reversed(rows):
                if instant.action in WRITE_ACTIONS and body:
                    yield instant, CommitMetadata.from_bytes(body, file.path)

    def replaced(self, until: str) -> Iterator[tuple[str, str]]:
        read = partial(archived_bodies, action=Action.REPLACE_COMMIT)
        for file, bodies in each_file(self.storage, partial(_newest, self.storage), read):
            for time, body in bodies:
                if padded(time) <= padded(until):
                    yield from _pairs(CommitMetadata.from_bytes(body or b"", file.path).replaced)

    @staticmethod
    def _entries(files: Sequence[ActiveFile]) -> Iterator[LsmEntry]:
        done = [file for file in files if file.step.state is State.COMPLETED]
        if not done:
            return  # another archiver has archived it
        # As in Hudi, the last one of an instant that was completed twice.
        last = max(done, key=lambda file: file.step.completion_time)
        _check_whole(last)
        yield lsm_entry(last.step, {file.step: file.body for file in files})


def archived_writes(storage: Storage, timeline: Timeline, folder: str) -> list[Instant]:
    """Return the completed writes that the archive has and the active timeline has not, by time.

    The timeline was loaded before: an archiver adds to the archive first.
    """
    if timeline.layout == V1.version:
        archived = archived_instants(storage, f"{HOODIE}/{folder}")
        found = {i.time: i for i in archived if i.action in WRITE_ACTIONS}
    else:
        found = {i.time: i for i in _writes_ended_after(storage, "")}
    return [found[time] for time in sorted(found) if timeline.commit_at(time) is None]


def archived_writes_ended_after(storage: Storage, timeline: Timeline, moment: str) -> list[Instant]:
    """Return those writes of layout 2 with a completion time after `moment`, by time.

    A process reads a file of the archive once, unless it has such a write.
    """
    late = sorted(_writes_ended_after(storage, moment), key=lambda instant: instant.time)
    return [instant for instant in late if timeline.commit_at(instant.time) is None]


def _writes_ended_after(storage: Storage, moment: str) -> list[Instant]:
    def late(storage: Storage, file: ArchiveFile) -> list[Instant]:
        writes = _writes(storage, file) if _latest_end(storage, file) > moment else []
        return [instant for instant in writes if instant.ended > moment]

    found = each_file(storage, partial(_newest, storage), late)
    return list(dict.fromkeys(chain.from_iterable(instants for _, instants in found)))


def _newest(storage: Storage) -> tuple[ArchiveFile, ...]:
    return newest_snapshot(storage).files


@lru_cache(maxsize=256)
def _latest_end(storage: Storage, file: ArchiveFile) -> str:
    """The last completion time of a write in a file of the archive; empty if it has none."""
    return max((instant.ended for instant in _writes(storage, file)), default="")


def _writes(storage: Storage, file: ArchiveFile) -> list[Instant]:
    return [i for i, _ in archived_rows(storage, file) if i.action in WRITE_ACTIONS]


def _check_whole(file: ActiveFile) -> None:
    """Raise `CorruptFileError` if a completed file is damaged: that is not archived."""
    path = instant_path(file.step)
    if not file.body:
        return  # as in Hudi, whose writers may leave an empty file where they are killed
    if file.step.action in WRITE_ACTIONS:
        CommitMetadata.from_bytes(file.body, path)
    else:
        read_record(file.body, path)


def _pairs(replaced: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    for partition, file_ids in replaced.items():
        for file_id in file_ids:
            yield partition, file_id
