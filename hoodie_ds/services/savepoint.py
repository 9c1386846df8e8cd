"""Savepoints: commits whose files no clean deletes, so that a restore can return to them.

As in Hudi, a savepoint is an instant with the time of the commit that it keeps. It is a decision
of the log: a clean that was being planned meanwhile is planned again, with the savepoint.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

from hoodie_ds.errors import TimelineError
from hoodie_ds.formats.log.log_block import first_instant
from hoodie_ds.log import Log
from hoodie_ds.services.archive_planner import hidden_files
from hoodie_ds.services.archiving import archive_left_behind, left_behind
from hoodie_ds.services.cleaning import clean
from hoodie_ds.services.context import Decided, ServiceContext
from hoodie_ds.services.earlier_state import check_files_are_kept, timeline_at
from hoodie_ds.services.results import counted, size_text
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.file_slice import LogFile
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.table.live_files import newest_commit_of
from hoodie_ds.table.slicing import SLICINGS
from hoodie_ds.timeline.bodies.savepoint_metadata import savepoint_to_bytes
from hoodie_ds.timeline.file_changes import file_changes
from hoodie_ds.timeline.instant import Action, State
from hoodie_ds.timeline.paths import in_partition
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction.decision_log import Outcome
from hoodie_ds.transaction.temporary_files import left_over


@dataclass(frozen=True, slots=True, repr=False)
class Savepoint:
    """A commit whose files are kept.

    Parameters
    ----------
    time : str
        Its instant time.
    files : tuple of str
        Paths of the base and log files of its latest slices.
    bytes : int
        Size of the files.
    """

    time: str
    files: tuple[str, ...]
    bytes: int = 0

    def __repr__(self) -> str:
        return f"<Savepoint {self}>"

    def __str__(self) -> str:
        return f"{self.time}: {counted(len(self.files), 'file')} ({size_text(self.bytes)})"


def make_savepoint(
    context: ServiceContext, time: str | None, user: str, comments: str, *, dry: bool = False
) -> Savepoint:
    """Keep the files of a commit, by default the newest, until its savepoint is deleted.

    An existing savepoint stays as it is. Raises `TimelineError` if the active timeline has no such
    completed commit, or a clean deleted one of its files, or will.
    """
    table = context.open_table()
    storage, now_ms = table.storage, context.clock.now_ms()

    def plan(timeline: Timeline) -> Savepoint:
        commit = _commit(storage, timeline, time)
        check_files_are_kept(table, timeline, commit, f"a savepoint at {commit}")
        sizes = _files(storage, timeline, commit)
        return Savepoint(commit, tuple(sorted(sizes)), sum(sizes.values()))

    if dry:
        return plan(context.current_timeline(table))
    found: list[Savepoint] = []

    def decide(timeline: Timeline) -> Decided | None:
        found[:] = [plan(timeline)]
        made = (i.time for i in timeline.savepoints if i.state is State.COMPLETED)
        if found[0].time in made:
            return None
        instant = table.instant(found[0].time, Action.SAVEPOINT, State.INFLIGHT)
        names: dict[str, list[str]] = {}
        for path in found[0].files:
            partition, _, name = path.rpartition("/")
            names.setdefault(partition, []).append(name)
        body = savepoint_to_bytes(names, user, now_ms, comments)
        return Decided(Outcome.SCHEDULE, instant, body)

    context.decide(table, Action.SAVEPOINT, decide)
    Log(storage.root, found[0].time).info("savepoint %s", found[0])
    return found[0]


def delete_savepoint(context: ServiceContext, time: str, *, dry: bool = False) -> Savepoint:
    """Let cleans delete the files of a commit again; the commit itself stays.

    But if commits after it are archived it is archived first: the active timeline begins with the
    oldest commit without a savepoint, and files of archived commits after that one would not be
    visible. If it replaced file groups whose files still exist, the table is cleaned before that.
    Raises `TimelineError` if there is no such savepoint, or the commit must be archived and another
    savepoint, or the retention, keeps what it replaced.
    """
    table = context.open_table()
    timeline = context.current_timeline(table)
    known = _known(table.storage, timeline, time)
    if dry:
        return known
    commit = left_behind(table, timeline, time)
    if commit is not None and any(hidden_files(table.storage, commit)):
        clean(context)
    left, found = left_over(table.storage), [known]

    def decide(timeline: Timeline) -> Decided:
        found[:] = [_known(table.storage, timeline, time)]
        archive_left_behind(context, table, timeline, time, left)
        return Decided(Outcome.ROLL_BACK, table.instant(time, Action.SAVEPOINT, State.INFLIGHT))

    context.decide(table, Action.SAVEPOINT, decide)
    Log(table.storage.root, time).info("savepoint deleted, %s", found[0])
    return found[0]


def _known(storage: Storage, timeline: Timeline, time: str) -> Savepoint:
    """Return a savepoint as it is on the timeline; one that was only begun keeps nothing yet."""
    known = {savepoint.time: savepoint for savepoint in timeline.savepoints}
    if time not in known:
        raise TimelineError(
            f"{storage.root}: there is no savepoint at {time}; its savepoints are "
            f"{', '.join(known) or 'none'}"
        )
    if known[time].state is not State.COMPLETED:
        return Savepoint(time, ())
    files = file_changes(storage, known[time]).kept
    listed = (storage.list(partition) for partition in {file.rpartition("/")[0] for file in files})
    sizes = {status.path: status.size for status in chain.from_iterable(listed)}
    return Savepoint(time, tuple(sorted(files)), sum(sizes.get(file, 0) for file in files))


def _commit(storage: Storage, timeline: Timeline, time: str | None) -> str:
    """Return the time of a completed commit."""
    newest = next(timeline.commits_backwards(), None)
    if newest is None:
        raise TimelineError(f"{storage.root} has no completed commit that could be kept")
    if time is None:
        return newest.time
    if timeline.commit_at(time) is None:
        first = timeline.first_commit
        raise TimelineError(
            f"{storage.root}: {time} is no completed commit of the active timeline, which goes "
            f"from {first.time if first else newest.time} to {newest.time}; name one of those"
        )
    return time


def _files(storage: Storage, timeline: Timeline, time: str) -> dict[str, int]:
    """Sizes of the files of the latest slices at a time, by path."""
    view = FileSystemView(storage, timeline_at(timeline, time), verify=False)
    found: dict[str, int] = {}
    for slice_ in view.slices_among(view.data_files()):
        found |= {} if slice_.base is None else {slice_.base.path: slice_.base.size}
        logs = (log for log in slice_.logs if not _is_begun(storage, timeline, log))
        found |= {in_partition(log.partition_path, log.file_name): log.size for log in logs}
    return found


def _is_begun(storage: Storage, timeline: Timeline, log: LogFile) -> bool:
    """Whether a pending write created a log file: its rollback deletes the file.

    In layout 1 the name of a log file does not say who wrote it.
    """
    if not SLICINGS[timeline.layout].shares_log_files or not timeline.pending:
        return False
    time = first_instant(storage.read(log.path), log.path)
    begun = time is not None and timeline.is_pending(time)
    return begun and newest_commit_of(storage, timeline, log) is None
