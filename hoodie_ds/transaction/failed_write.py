"""The files that a failed write left: from its markers, or by reading all files.

Writes of this library put a marker before each file. Other engines may keep markers elsewhere, so
for their instants the table's files are read.

A file is deleted only if no other writer can take its name, even if a process is stopped before the
deletion and resumes later. The name of a base file holds its writer's instant. In table version 6
the name of a log file holds the slice's: Hudi on the JVM takes the version and token that follow
the newest log file. So only those log files are deleted whose token is unique to an attempt of this
library, as the marker says, or whose slice began with the failed write. Any other log file stays,
and a command block hides its blocks, as in Hudi.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress

from hoodie_ds.errors import CorruptFileError, NotFoundError
from hoodie_ds.formats.log.log_block import HeaderKey, read_blocks
from hoodie_ds.storage.protocol import Storage, abort_uploads
from hoodie_ds.table.file_name import LogFileName, written_by
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.table.slicing import SLICINGS
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.bodies.commit_metadata import OWNER_KEY, CommitMetadata
from hoodie_ds.timeline.bodies.rollback_metadata import PartitionRollback
from hoodie_ds.timeline.instant import Instant, State
from hoodie_ds.timeline.instant_time import padded
from hoodie_ds.timeline.loading import read_commit
from hoodie_ds.timeline.paths import (
    instant_path,
    manifest_number,
    marked_file,
    marker_folder,
    work_folder,
)
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction.late_file_notes import note_late_files


def is_ours(table: Table, instant: Instant) -> bool:
    """Whether this library opened a pending instant.

    Not if its inflight file is missing or another engine's. If the file is damaged, a manifest
    decides, as only this library writes manifests: Spark may be past the batches in it.
    """
    path = instant_path(instant.at(State.INFLIGHT))
    try:
        return OWNER_KEY in CommitMetadata.from_bytes(table.storage.read(path), path).extra
    except NotFoundError:
        return False
    except CorruptFileError:
        listed = table.storage.list(work_folder(instant.time))
        return any(manifest_number(status.path) is not None for status in listed)


def files_of(table: Table, timeline: Timeline, instant: Instant) -> dict[str, PartitionRollback]:
    """Find the files that a pending write left, by partition path."""
    storage, time = table.storage, instant.time
    marked = marked_files(table, time)
    whole = {path for path, marker in marked.items() if _is_safe(storage, time, path, marker)}
    shared = {path for path in marked if path not in whole}
    if not is_ours(table, instant):
        listed = {s.path for s in FileSystemView(storage, timeline).data_files()}
        whole |= {path for path in listed if is_named_after(path, time)}
        shared |= listed - whole
    if not SLICINGS[timeline.layout].shares_log_files:
        shared = set()
    mixed = {path: size for path in shared if (size := _size_if_written_by(storage, path, time))}
    return _by_folder(whole, mixed)


def files_of_completed(table: Table, instant: Instant) -> dict[str, PartitionRollback]:
    """Find the files of a completed write, by partition path.

    All files of the slices that it began are deleted with it, even if others appended to them. In
    other slices its blocks must be hidden, as in Hudi.
    """
    storage, time = table.storage, instant.time
    commit = read_commit(storage, instant)
    partitions = {stat.partition_path for stat in commit.stats}
    sizes = {s.path: s.size for path in partitions for s in storage.list(path)}
    whole = {path for path in sizes if is_named_after(path, time)}
    mixed = {path: sizes[path] for path in commit.file_paths - whole if path in sizes}
    return _by_folder(whole, mixed)


def _by_folder(whole: Iterable[str], mixed: Mapping[str, int]) -> dict[str, PartitionRollback]:
    by_folder: dict[str, tuple[list[str], dict[str, int]]] = {}
    for path in sorted(whole):
        by_folder.setdefault(path.rpartition("/")[0], ([], {}))[0].append(path)
    for path, size in sorted(mixed.items()):
        by_folder.setdefault(path.rpartition("/")[0], ([], {}))[1][path] = size
    return {
        folder: PartitionRollback(tuple(files), logs) for folder, (files, logs) in by_folder.items()
    }


def was_committed(table: Table, timeline: Timeline, time: str) -> bool:
    """Whether data files hold rows that were committed under the time of a pending instant of ours.

    That is so if a late task opened an instant again that had been completed and archived. Its own
    files are those that markers announce.
    """
    if not timeline.starts_after(time):
        return False
    marked = marked_files(table, time)
    files = (status.path for status in FileSystemView(table.storage, timeline).data_files())
    return any(
        is_named_after(path, time) or _size_if_written_by(table.storage, path, time)
        for path in files
        if path not in marked
    )


def marked_files(table: Table, time: str) -> dict[str, str]:
    """Files that the markers of an instant announce, put or not, each with its marker."""
    listed = table.storage.list(marker_folder(time), recursive=True)
    return announced(time, [status.path for status in listed])


def announced(time: str, paths: Iterable[str]) -> dict[str, str]:
    """Files that markers among an instant's temporary files announce, each with its marker."""
    marked = ((marked_file(time, path), path) for path in sorted(paths))
    return {path: marker for path, marker in marked if path is not None}


def marked_by(storage: Storage, marker: str) -> str:
    """Return the attempt that put a marker; empty if that is not known."""
    with suppress(NotFoundError):
        return storage.read(marker).decode(errors="replace")
    return ""


def delete_leftovers(
    storage: Storage, time: str, marked: Mapping[str, str], *, is_complete: bool = False
) -> None:
    """Delete announced files that no commit names, and note that they may still come late.

    If the instant has completed (`is_complete`), others append to the slices that it began.
    """
    safe = [
        path
        for path, marker in sorted(marked.items())
        if _is_safe(storage, time, path, marker, is_complete=is_complete)
    ]
    if safe:
        note_late_files(storage, time, safe)
        abort_uploads(storage, safe)
    for path in safe:
        storage.delete(path)


def _is_safe(
    storage: Storage, time: str, path: str, marker: str, *, is_complete: bool = False
) -> bool:
    """Whether an announced file may be deleted: no other writer can take its name."""
    is_own = written_by(path.rpartition("/")[2]) is not None
    if is_own or (not is_complete and is_named_after(path, time)):
        return True
    return bool(marked_by(storage, marker))


def is_named_after(path: str, time: str) -> bool:
    """Whether a file's name says that an instant wrote it or began its slice."""
    name = path.rpartition("/")[2]
    log = LogFileName.parse(name)
    return time == (written_by(name) if log is None else log.base_instant)


def _size_if_written_by(storage: Storage, path: str, time: str) -> int:
    """Size of a log file that has blocks of an instant; 0 for any other file."""
    log = LogFileName.parse(path.rpartition("/")[2])
    if log is None or padded(log.base_instant) > padded(time):
        return 0
    # A log file's name has its slice, not its writers; its blocks have them.
    try:
        data = storage.read(path)
    except NotFoundError:
        return 0  # another process is rolling the same write back
    times = {b.header.get(HeaderKey.INSTANT_TIME) for b in read_blocks(data, path, lenient=True)}
    return len(data) if time in times else 0
