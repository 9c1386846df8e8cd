"""Orphans: data files that no commit names, nor ever will.

A task that was late, or killed, may leave such a file under an instant that completed without it or
was rolled back. Readers of this library see none of them; readers that list folders may. A writer
deletes the files that its markers name, so orphans are files of engines or crashes without.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from hoodie_ds.config.properties.keys import INITIAL_VERSION
from hoodie_ds.formats.log.log_block import HeaderKey, read_blocks
from hoodie_ds.log import Log
from hoodie_ds.services.context import ServiceContext
from hoodie_ds.services.results import counted, size_text
from hoodie_ds.storage.protocol import FileStatus, Storage
from hoodie_ds.table.file_name import BaseFileName, LogFileName
from hoodie_ds.table.file_writers import newest_commit_naming
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.file_changes import file_changes
from hoodie_ds.timeline.instant import State
from hoodie_ds.timeline.rollbacks import refuse_restore, undone_times
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction.decision_log import Decision
from hoodie_ds.transaction.lost_instants import vanished_instants

_FIRST_WITH_OWN_LOGS: Final = 8
"""From this table version on each log file is named after the commit that wrote it."""


@dataclass(frozen=True, slots=True, repr=False)
class Orphans:
    """Files that no commit names; false if there are none.

    Parameters
    ----------
    files : tuple of str
        Their paths.
    bytes : int
        Their size.
    dry : bool
        Whether they were only listed, not deleted.
    """

    files: tuple[str, ...]
    bytes: int
    dry: bool = False

    def __bool__(self) -> bool:
        return bool(self.files)

    def __repr__(self) -> str:
        return f"<Orphans: {self}>"

    def __str__(self) -> str:
        if not self.files:
            return "no files that no commit names, nothing to do"
        files = f"{counted(len(self.files), 'file')} that no commit names"
        return f"{files} ({size_text(self.bytes)}){'' if self.dry else ', deleted'}"


def find_orphans(
    table: Table, timeline: Timeline, files: Iterable[FileStatus]
) -> tuple[list[FileStatus], list[Decision]]:
    """Return the data files of a table that no commit names, nor ever will.

    Also returns the decisions of completed writes that have data files, or blocks of log files, but
    no instant any more. Not orphans are files of pending instants, whose writer may be at work;
    files of completed writes whose instants have vanished, which a copy of the timeline may bring
    back; files of archived instants, whose commits are not read; and log files of timeline layout
    1, which are named after their base files. The timeline must be loaded after the files were
    listed.
    """
    files, has_own_logs = list(files), _has_own_logs(table)
    unnamed = _unnamed(table, timeline, files, has_own_logs)
    logs = (
        []
        if has_own_logs
        else [s.path for s in files if LogFileName.parse(s.path.rpartition("/")[2])]
    )
    vanished = vanished_instants(table, timeline) if unnamed or logs else {}
    orphans = [status for time, status in unnamed if time not in vanished]
    times = [time for time, _ in unnamed]
    times += sorted(_logged(table.storage, logs)) if vanished else []
    return orphans, [vanished[time] for time in dict.fromkeys(times) if time in vanished]


def _has_own_logs(table: Table) -> bool:
    """Whether all log files are named after the commits that wrote them."""
    began_as = table.properties.raw.get(INITIAL_VERSION, "").strip()
    versions = (table.properties.version, *([int(began_as)] if began_as.isdecimal() else []))
    return min(versions) >= _FIRST_WITH_OWN_LOGS


def _logged(storage: Storage, paths: Iterable[str]) -> set[str]:
    """Times of the instants of the blocks of log files that no rollback block hides."""
    written: set[str | None] = set()
    hidden: set[str | None] = set()
    for path in paths:
        for block in read_blocks(storage.read(path), path, lenient=True):
            written.add(block.header.get(HeaderKey.INSTANT_TIME))
            hidden.add(block.header.get(HeaderKey.TARGET_INSTANT_TIME))
    return {time for time in written - hidden if time is not None}


def _unnamed(
    table: Table, timeline: Timeline, files: Iterable[FileStatus], has_own_logs: bool
) -> list[tuple[str, FileStatus]]:
    """Data files that no commit names, each with the time of its instant."""
    view, undone = FileSystemView(table.storage, timeline), undone_times(table.storage, timeline)
    done = (i for i in timeline.savepoints if i.state is State.COMPLETED)
    kept = frozenset(path for i in done for path in file_changes(table.storage, i).kept)
    free = (status for status in files if status.path not in kept)
    timed = ((_time_of(status, has_own_logs), status) for status in free)
    return [(t, status) for t, status in timed if t and _is_unnamed(view, undone, t, status.path)]


def _time_of(status: FileStatus, has_own_logs: bool) -> str:
    """Time of the instant that a file is named after; empty if its name does not say."""
    name = status.path.rpartition("/")[2]
    base, log = BaseFileName.parse(name), LogFileName.parse(name)
    if base is not None:
        return base.instant_time
    return log.base_instant if log is not None and has_own_logs else ""


def _is_unnamed(view: FileSystemView, undone: frozenset[str], time: str, path: str) -> bool:
    timeline = view.timeline
    if timeline.commit_at(time) is not None:
        return not view.names(time, path) and not _is_shared(view, time, path)
    if timeline.is_pending(time):
        return False
    if time in undone:
        return True
    return not timeline.at(time) and not view.is_committed(time)


def _is_shared(view: FileSystemView, time: str, path: str) -> bool:
    """Whether a later commit wrote to a file: Hudi names some after a clustering of buckets."""
    return newest_commit_naming(view.storage, view.timeline, path, time) is not None


def delete_orphans(context: ServiceContext, *, dry: bool = False) -> Orphans:
    """Delete the data files that no commit names, nor ever will; a dry call only lists them.

    Raises `TimelineError` while a restore is pending.
    """
    table = context.open_table()
    # Listed before the timeline is loaded, so an instant that is not there was rolled back.
    files = FileSystemView(table.storage, Timeline(layout=table.layout)).data_files()
    timeline = table.load_timeline()
    refuse_restore(table.storage.root, timeline)
    found, _ = find_orphans(table, timeline, files)
    if found and not dry:
        table.storage.delete_many([status.path for status in found])
        Log(table.storage.root).info("%d files deleted that no commit names", len(found))
    return Orphans(tuple(s.path for s in found), sum(s.size for s in found), dry)
