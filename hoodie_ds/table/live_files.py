"""Files of the newest file slices, as the commits tell.

Slices are made of the files that a listing shows. Of a file that was lost it shows nothing, so a
reader that went by it alone would return fewer rows, or older ones, and not know it. A process
takes each commit in once, and begins with what writers have summed up.
"""

from __future__ import annotations

import os
from base64 import b64decode, b64encode
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, islice, takewhile
from threading import Lock
from typing import Any, Final

from hoodie_ds.errors import CorruptFileError, TimelineError
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.commit_files import CommitFiles, commit_files, newest_commit_naming
from hoodie_ds.table.file_name import BaseFileName, LogFileName
from hoodie_ds.table.file_slice import FileGroupId, LogFile
from hoodie_ds.table.slicing import SLICINGS
from hoodie_ds.timeline.clean_metadata import later_cleans, read_plan
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.instant_time import padded
from hoodie_ds.timeline.layout.v1 import V1
from hoodie_ds.timeline.paths import commit_path
from hoodie_ds.timeline.settled import Settled
from hoodie_ds.timeline.summaries import SummaryFile, newest_summary, read_summaries, write_summary
from hoodie_ds.timeline.timeline import Timeline, load_timeline

_TABLES: Final = 8
_SUMMARY: Final = "files"
_FEWEST_COMMITS: Final = 20
_MOST_COMMITS: Final = 200
_BYTES_A_COMMIT: Final = 2_500
"""A summary of so many bytes may be a commit older."""
_AT_ONCE: Final = 64
"""Commits that no summary has yet, of which a writer takes so many in with each of its own."""


@dataclass(slots=True)
class _Group:
    """Files of one file group: by path, when their slice begins, and the newest commit of each."""

    files: dict[str, tuple[str, Instant]] = field(default_factory=dict)
    newest_base: str = ""

    def add(self, path: str, start: str, instant: Instant, is_base: bool) -> None:
        """Take a file, and let go of those of older slices."""
        if start >= self.newest_base:
            known = self.files.get(path)
            if known is None or padded(known[1].time) < padded(instant.time):
                self.files[path] = start, instant
        if is_base and start > self.newest_base:
            self.newest_base = start
            self.files = {p: found for p, found in self.files.items() if found[0] >= start}


class LiveFiles:
    """The files of the newest slices, as commits tell that are taken in any order.

    Parameters
    ----------
    seen : Timeline
        Whose commits have been taken in.
    """

    def __init__(self, seen: Timeline) -> None:
        self.seen = seen
        self._groups: dict[FileGroupId, _Group] = {}
        self._replaced: dict[FileGroupId, set[Instant]] = {}

    def grow(self, storage: Storage, timeline: Timeline) -> bool:
        """Take in the commits that a timeline has more than what was seen.

        Returns
        -------
        bool
            False if commits that were taken in are not part of the timeline any more, so that
            nothing here can be used for it.
        """
        if timeline is self.seen:
            return True
        first = timeline.first_commit
        start = "" if first is None else padded(first.time)
        gone = list(self.seen.commits_beyond(timeline))
        if any(padded(i.time) >= start for i in gone):
            return False
        if gone:
            self._let_go(start)
        for instant in timeline.commits_beyond(self.seen):
            self._add(instant, commit_files(storage, instant))
        self.seen = timeline
        return True

    def _add(self, instant: Instant, commit: CommitFiles) -> None:
        rule = SLICINGS[instant.layout]
        for partition, ids in commit.replaced.items():
            for file_id in ids:
                self._replaced.setdefault(FileGroupId(partition, file_id), set()).add(instant)
        for stat in commit.stats.values():
            name = stat.path.rpartition("/")[2]
            base, log = BaseFileName.parse(name), LogFileName.parse(name)
            file = base or log
            if file is None:  # Hudi leaves the path out where it wrote nothing
                continue
            group = self._groups.setdefault(
                FileGroupId(stat.partition_path, file.file_id), _Group()
            )
            start = rule.start(log, instant) if log else padded(instant.time)
            group.add(stat.path, start, instant, base is not None)

    def _let_go(self, start: str) -> None:
        """Forget what only commits before a time say: they are archived."""
        replaced = {
            group: {instant for instant in instants if padded(instant.time) >= start}
            for group, instants in self._replaced.items()
        }
        self._replaced = {group: instants for group, instants in replaced.items() if instants}
        self._groups = {
            group: found
            for group, found in self._groups.items()
            if any(padded(instant.time) >= start for _, instant in found.files.values())
        }

    def newest_naming(self, group: FileGroupId, path: str, start: str) -> Instant | None:
        """Return the newest commit that wrote to a file of a group's newest slice.

        Raises
        ------
        LookupError
            The file is of an older slice, of which nothing is known any more.
        """
        found = self._groups.get(group, _Group())
        if padded(start) < found.newest_base:
            raise LookupError(path)
        known = found.files.get(path)
        return None if known is None else known[1]

    def named(self, timeline: Timeline) -> Iterator[tuple[str, Instant]]:
        """Yield the files that commits of a timeline name, and by which.

        Commits that were archived since they were taken are asked for nothing: whether their files
        still count, others that were archived with them tell.
        """
        first = "" if timeline.first_commit is None else padded(timeline.first_commit.time)
        for group, named in self._groups.items():
            if group in self._replaced:
                continue
            for path, (_, instant) in named.files.items():
                if padded(instant.time) >= first:
                    yield path, instant

    def replaced(self, timeline: Timeline) -> Iterator[FileGroupId]:
        """Yield the file groups that replace commits of a timeline have hidden."""
        for group, instants in self._replaced.items():
            if any(timeline.commit_at(instant.time) == instant for instant in instants):
                yield group

    def to_json(self) -> dict[str, object]:
        """Return what `from_json` takes."""
        return {
            "settled": b64encode(self.seen.settled.packed).decode(),
            "recent": [V1.file_name(i) for i in self.seen.recent],
            "groups": [
                [
                    *(g.partition_path, g.file_id, found.newest_base),
                    [(p, start, i.time, i.action.value) for p, (start, i) in found.files.items()],
                ]
                for g, found in self._groups.items()
            ],
            "replaced": [
                [g.partition_path, g.file_id, [i.time for i in sorted(instants)]]
                for g, instants in self._replaced.items()
            ],
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> LiveFiles:
        """Return what was summed up."""
        recent = tuple(filter(None, map(V1.parse, content["recent"])))
        settled = Settled.unpacked(b64decode(content["settled"]), 0)
        live = cls(Timeline(recent, settled=settled))
        for partition, file_id, newest_base, files in content["groups"]:
            found = {
                path: (start, Instant(time, Action(action), State.COMPLETED))
                for path, start, time, action in files
            }
            live._groups[FileGroupId(partition, file_id)] = _Group(found, newest_base)
        for partition, file_id, times in content["replaced"]:
            live._replaced[FileGroupId(partition, file_id)] = {
                Instant(time, Action.REPLACE_COMMIT, State.COMPLETED) for time in times
            }
        return live


def check_nothing_is_missing(storage: Storage, timeline: Timeline, found: Collection[str]) -> None:
    """Compare the files that make up the newest slices, as the commits tell, with a listing.

    Files of older slices may have been cleaned, those of replaced file groups too; commits that
    have been archived are not asked.

    Parameters
    ----------
    storage : Storage
        Rooted at the table's base path.
    timeline : Timeline
        The table as it is read; loaded before the listing.
    found : collection of str
        Paths of the data files that storage has.

    Raises
    ------
    CorruptFileError, TimelineError
        A file is missing; names it and the commit that wrote it, or the clean that took it.
    """
    kept = _kept(storage, timeline.layout)
    with kept.lock:
        live = kept.grown(storage, timeline)
        for path, instant in live.named(timeline):
            if path not in found:
                raise _cleaned(storage, timeline, path) or CorruptFileError(
                    f"{storage.root}/{path} is missing, which {commit_path(instant)} names; "
                    "restore it from a copy before going on, or roll back that commit and those "
                    "after it"
                )


def newest_files(storage: Storage, timeline: Timeline) -> list[str]:
    """Return the paths of the files that make up the newest slices, as the commits tell.

    See `check_nothing_is_missing` for the parameters, and for what is left out.
    """
    kept = _kept(storage, timeline.layout)
    with kept.lock:
        return [path for path, _ in kept.grown(storage, timeline).named(timeline)]


def _cleaned(storage: Storage, timeline: Timeline, path: str) -> TimelineError | None:
    for clean in later_cleans(timeline, load_timeline(storage, timeline.layout)):
        if path in read_plan(storage, clean).paths:
            return TimelineError(f"{storage.root}: clean {clean.time} took {path}; read again")
    return None


def newest_commit_of(storage: Storage, timeline: Timeline, log: LogFile) -> CommitFiles | None:
    """Return the newest commit that wrote to a log file; None if there is none.

    This is the function to call. It answers from what is known of the newest slices, and walks
    over the commits by `newest_commit_naming` for a file of an older one.

    Parameters
    ----------
    storage : Storage
        Rooted at the table's base path.
    timeline : Timeline
        Which commits there are.
    log : LogFile
        The file.
    """
    kept, start = _kept(storage, timeline.layout), log.name.base_instant
    with kept.lock, suppress(LookupError):
        if kept.known is not None and kept.known.seen is timeline:
            group = FileGroupId(log.partition_path, log.name.file_id)
            instant = kept.known.newest_naming(group, log.path, start)
            # One that was archived since says nothing any more.
            found = None if instant is None else timeline.commit_at(instant.time)
            return None if found is None else commit_files(storage, found)
    return newest_commit_naming(storage, timeline, log.path, start)


def replaced_ids(storage: Storage, timeline: Timeline) -> Mapping[str, frozenset[str]]:
    """Return the file ids that replace commits have hidden, by partition path.

    `FileSystemView.replaced_ids` gives those of one partition.

    Parameters
    ----------
    storage : Storage
        Rooted at the table's base path.
    timeline : Timeline
        Whose replace commits count.
    """
    if not timeline.replace_commits:
        return {}
    kept = _kept(storage, timeline.layout)
    with kept.lock:
        if kept.replaced is None or kept.replaced[0] is not timeline:
            kept.replaced = timeline, _replaced_ids(storage, timeline, kept.live(storage))
        return kept.replaced[1]


def save_live_files(storage: Storage, timeline: Timeline) -> None:
    """Sum up the files of the newest slices, where many commits were made since the last time.

    Parameters
    ----------
    storage : Storage
        Rooted at the table's base path.
    timeline : Timeline
        The table as it is; nothing settles, and so is summed up, in layouts after the first.

    Raises
    ------
    HoodieError
        Something could not be read or written, which nothing else depends on.
    """
    kept = _kept(storage, V1.version)
    if timeline.layout != V1.version or not _is_due(kept.saved, timeline):
        return
    kept.saved = newest_summary(storage, _SUMMARY)
    if not _is_due(kept.saved, timeline):
        return
    with kept.lock:
        live = kept.grown(storage, timeline, _AT_ONCE)
        newest = next(live.seen.commits_backwards())
        write_summary(storage, _SUMMARY, padded(newest.time), live.to_json())


def _is_due(last: SummaryFile, timeline: Timeline) -> bool:
    """Whether many commits were made since a summary; a long one is made more seldom."""
    due = max(_FEWEST_COMMITS, min(_MOST_COMMITS, last.size // _BYTES_A_COMMIT))
    younger = takewhile(lambda i: padded(i.time) > last.up_to, timeline.commits_backwards())
    return len(list(islice(younger, due))) == due


def _replaced_ids(
    storage: Storage, timeline: Timeline, live: LiveFiles
) -> Mapping[str, frozenset[str]]:
    later = (i for i in timeline.commits_beyond(live.seen) if i.action is Action.REPLACE_COMMIT)
    read = (
        FileGroupId(partition, file_id)
        for instant in later
        for partition, ids in commit_files(storage, instant).replaced.items()
        for file_id in ids
    )
    found: dict[str, set[str]] = {}
    for group in chain(live.replaced(timeline), read):
        found.setdefault(group.partition_path, set()).add(group.file_id)
    return {partition: frozenset(ids) for partition, ids in found.items()}


@dataclass(slots=True)
class _Kept:
    """What this process knows of a table whose timeline has a layout."""

    layout: int
    known: LiveFiles | None = None
    saved: SummaryFile = field(default_factory=SummaryFile)
    replaced: tuple[Timeline, Mapping[str, frozenset[str]]] | None = None
    lock: Lock = field(default_factory=Lock)

    def live(self, storage: Storage) -> LiveFiles:
        """What is known, at first from the newest summary."""
        if self.known is None:
            self.known = next(_summed_up(storage, self.layout))
        return self.known

    def grown(self, storage: Storage, timeline: Timeline, at_once: int | None = None) -> LiveFiles:
        """What is known with the commits of a timeline, or with so many of its settled ones.

        Where commits were taken back, or there is another table now, an older summary may be true.
        """
        known = () if self.known is None else (self.known,)
        live = next(
            live
            for live in chain(known, _summed_up(storage, self.layout))
            if live.grow(storage, _beginning(live.seen, timeline, at_once))
        )
        if live is not self.known:
            self.known, self.saved = live, SummaryFile()
        return live


def _summed_up(storage: Storage, layout: int) -> Iterator[LiveFiles]:
    """Yield what the summaries say, the newest first, then what is true of each table: nothing."""
    if layout == V1.version:  # only its writers sum up
        yield from read_summaries(storage, _SUMMARY, LiveFiles.from_json)
    yield LiveFiles(Timeline(layout=layout))


def _beginning(seen: Timeline, timeline: Timeline, at_once: int | None) -> Timeline:
    """A timeline, or that part of it which has so many settled commits more than were seen."""
    new = list(islice(timeline.commits_beyond(seen), 0 if at_once is None else at_once + 1))
    if len(new) <= (at_once or 0) or timeline.settled.write_at(new[-1].time) is None:
        return timeline
    return Timeline(settled=timeline.settled.before(new[-1].time))


@lru_cache(maxsize=_TABLES)
def _kept(storage: Storage, layout: int) -> _Kept:
    return _Kept(layout)


# A child of a fork would wait for ever for a lock that another thread of its parent holds.
os.register_at_fork(after_in_child=_kept.cache_clear)
