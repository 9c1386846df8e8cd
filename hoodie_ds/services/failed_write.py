"""Which files a failed write left: by its markers if it is ours, else by looking at every file.

Ours always put a marker before a file. Other engines may keep markers elsewhere, so for their
instants the table's files themselves are asked.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from hoodie_ds.errors import CorruptFileError, NotFoundError
from hoodie_ds.formats.log_block import HeaderKey, read_blocks
from hoodie_ds.table.file_name import BaseFileName, LogFileName
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.table.opened import Table
from hoodie_ds.timeline.commit_metadata import OWNER_KEY, CommitMetadata
from hoodie_ds.timeline.instant import Instant, State
from hoodie_ds.timeline.instant_time import padded
from hoodie_ds.timeline.paths import (
    instant_path,
    manifest_number,
    marked_file,
    temp_folder,
)
from hoodie_ds.timeline.rollback_metadata import PartitionRollback
from hoodie_ds.timeline.timeline import Timeline


class Share(Enum):
    """How much of a file an instant wrote."""

    NOTHING = 0
    PART = 1
    ALL = 2


def is_ours(table: Table, instant: Instant) -> bool:
    """Whether this library opened a pending instant.

    An inflight file that another engine wrote, or that is missing, is not ours. Only this library
    leaves manifests, so one of them tells where the inflight file was damaged: the micro-batches
    in it may be ones that Spark has moved past.
    """
    path = instant_path(instant.at(State.INFLIGHT))
    try:
        return OWNER_KEY in CommitMetadata.from_bytes(table.storage.read(path), path).extra
    except NotFoundError:
        return False
    except CorruptFileError:
        listed = table.storage.list(temp_folder(instant.time))
        return any(manifest_number(status.path) is not None for status in listed)


def files_of(table: Table, timeline: Timeline, instant: Instant) -> dict[str, PartitionRollback]:
    """Find what a pending write instant left, by partition path.

    Parameters
    ----------
    table : Table
        The table.
    timeline : Timeline
        As it is now.
    instant : Instant
        A pending commit or delta commit.
    """
    whole = marked_files(table, instant.time)
    mixed: dict[str, int] = {}
    if not is_ours(table, instant):
        # Another engine's marker may name a log file that has other instants' blocks too.
        whole = {path for path in whole if BaseFileName.parse(path.rpartition("/")[2])}
        for status in FileSystemView(table.storage, timeline).data_files():
            share = _share(table, status.path, instant)
            if share is Share.ALL:
                whole.add(status.path)
            elif share is Share.PART:
                mixed[status.path] = status.size
    by_folder: dict[str, tuple[list[str], dict[str, int]]] = {}
    for path in sorted(whole):
        by_folder.setdefault(path.rpartition("/")[0], ([], {}))[0].append(path)
    for path, size in mixed.items():
        by_folder.setdefault(path.rpartition("/")[0], ([], {}))[1][path] = size
    return {
        folder: PartitionRollback(tuple(files), logs) for folder, (files, logs) in by_folder.items()
    }


def marked_files(table: Table, time: str) -> set[str]:
    """Files that the markers of an instant announce, written or not."""
    listed = table.storage.list(temp_folder(time), recursive=True)
    return announced(time, [status.path for status in listed])


def announced(time: str, paths: Iterable[str]) -> set[str]:
    """Files that some of an instant's markers announce, of the files in its temporary folder."""
    marked = (marked_file(time, path) for path in paths)
    return {path for path in marked if path is not None}


def _share(table: Table, path: str, instant: Instant) -> Share:
    name = path.rpartition("/")[2]
    base = BaseFileName.parse(name)
    if base is not None:
        return Share.ALL if base.instant_time == instant.time else Share.NOTHING
    log = LogFileName.parse(name)
    if log is None or padded(log.base_instant) > padded(instant.time):
        return Share.NOTHING
    # A log file's name tells its slice, not its writers; its blocks do.
    try:
        blocks = read_blocks(table.storage.read(path), path, lenient=True)
    except NotFoundError:
        return Share.NOTHING  # another process is rolling the same write back
    times = {block.header.get(HeaderKey.INSTANT_TIME) for block in blocks}
    if instant.time not in times:
        return Share.NOTHING
    return Share.ALL if times == {instant.time} else Share.PART
