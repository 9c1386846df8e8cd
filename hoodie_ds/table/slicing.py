"""Which log files are on top of which base file: where the layouts of the timeline differ.

In layout 1 a log file's name has the instant of the base file that it belongs to, or of the pending
compaction whose base file it will belong to. Log files from before a downgrade keep their names,
and the commits that wrote them identify them. In layout 2 it has the instant that wrote it, which
belongs to the newest base file that was begun before that instant was completed: a compaction
includes what was complete when it was planned (Hudi's ``CompletionTimeQueryView``). Log files merge
in the order in which their instants were requested, whichever was completed first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final, Protocol

from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.file_name import LogFileName
from hoodie_ds.table.file_slice import BaseFile, FileGroupId, FileSlice, LogFile
from hoodie_ds.timeline.archive.lsm_timeline import ended
from hoodie_ds.timeline.file_changes import file_changes
from hoodie_ds.timeline.instant import Instant
from hoodie_ds.timeline.instant_time import padded
from hoodie_ds.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Moment:
    """What slices are made from; `is_committed` is for what was written under an instant time."""

    storage: Storage
    timeline: Timeline
    is_committed: Callable[[str], bool]


class Slicing(Protocol):
    """The rule of one layout."""

    @property
    def shares_log_files(self) -> bool:
        """Whether a log file may hold blocks of several instants."""
        ...

    def start(self, log: LogFileName, commit: Instant) -> str:
        """Return the time by which a log file that a commit wrote to is told from older slices.

        It belongs to the slice of a base file if it is not less than the base file's instant time.
        """
        ...

    def named_after(self, start: str, own: str) -> str:
        """Return the instant that the next log file of a slice is named after.

        `start` is the base instant of the slice, that of a pending compaction included, and `own`
        the instant that writes the log file.
        """
        ...

    def latest(
        self, moment: Moment, group: FileGroupId, base: BaseFile | None, logs: Collection[LogFile]
    ) -> FileSlice | None:
        """Return the latest slice of a group, of its newest visible base file and all log files."""
        ...


class _ByBaseInstant:
    """The rule of layout 1."""

    shares_log_files: Final = True

    def start(self, log: LogFileName, commit: Instant) -> str:
        return padded(log.base_instant)

    def named_after(self, start: str, own: str) -> str:
        return start

    def latest(
        self, moment: Moment, group: FileGroupId, base: BaseFile | None, logs: Collection[LogFile]
    ) -> FileSlice | None:
        by_start: dict[str, list[LogFile]] = {}
        for log in logs:
            by_start.setdefault(log.name.base_instant, []).append(log)
        pending = (i.time for i in moment.timeline.pending_compactions)
        compacting = {time for time in pending if not moment.is_committed(time)}
        starts = {t for t in by_start if t in compacting or moment.is_committed(t)}
        if base is not None:
            starts.add(base.name.instant_time)
        slices = [
            FileSlice(
                group,
                start,
                base if base is not None and base.name.instant_time == start else None,
                tuple(sorted(by_start.get(start, ()), key=_age)),
            )
            for start in sorted(starts, key=padded)
        ]
        if not slices:
            return None
        latest = slices.pop()
        if latest.base_instant in compacting and slices:
            # Logs named after a pending compaction still belong on top of the slice before it.
            before = slices.pop()
            latest = _joined(before, latest)
        while slices and latest.base is None and _begins_nothing(moment, latest):
            latest = _joined(slices.pop(), latest)
        return latest


class _ByCompletion:
    """The rule of layout 2."""

    shares_log_files: Final = False

    def start(self, log: LogFileName, commit: Instant) -> str:
        return padded(commit.ended)

    def named_after(self, start: str, own: str) -> str:
        return own

    def latest(
        self, moment: Moment, group: FileGroupId, base: BaseFile | None, logs: Collection[LogFile]
    ) -> FileSlice | None:
        visible = [log for log in logs if moment.is_committed(log.name.base_instant)]
        if base is not None:
            visible = [log for log in visible if self._is_above(moment, base, log)]
        ordered = tuple(sorted(visible, key=_requested))
        if base is None and not ordered:
            return None
        start = base.name.instant_time if base else ordered[0].name.base_instant
        return FileSlice(group, start, base, ordered)

    def _is_above(self, moment: Moment, base: BaseFile, log: LogFile) -> bool:
        """Whether a log file is on top of a base file, and not of an earlier one."""
        written, start = padded(log.name.base_instant), padded(base.name.instant_time)
        if written >= start:  # it was completed later still
            return True
        completed = ended(moment.storage, moment.timeline, log.name.base_instant)
        return completed is None or padded(completed) >= start


SLICINGS: Final[dict[int, Slicing]] = {1: _ByBaseInstant(), 2: _ByCompletion()}
"""The rules, by the version of the layout."""


def _joined(before: FileSlice, logs: FileSlice) -> FileSlice:
    """A slice with the log files on top of it, after its own."""
    return FileSlice(before.group, before.base_instant, before.base, before.logs + logs.logs)


def _begins_nothing(moment: Moment, logs: FileSlice) -> bool:
    """Whether log files were written under layout 2, which names them after their writers.

    A downgrade leaves them as they are. In layout 1 a commit names no log file of its own after
    itself where the file group is older. Only its files show that of an archived commit, and a
    compaction leaves a base file.
    """
    commit = moment.timeline.commit_at(logs.base_instant)
    if commit is None:
        return True
    written = file_changes(moment.storage, commit).added
    return any(log.path in written for log in logs.logs)


def _age(log: LogFile) -> tuple[int, str]:
    return log.name.version, log.name.write_token


def _requested(log: LogFile) -> tuple[str, int, str]:
    return padded(log.name.base_instant), *_age(log)
