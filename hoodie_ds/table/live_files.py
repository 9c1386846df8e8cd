"""Files of the newest file slices, as the commits name them.

Slices are made of the files in a listing. A listing does not show that a file was lost, so a reader
that trusted it alone would return fewer rows, or older ones. A process reads each commit once, and
begins with the summaries of writers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import chain, islice, takewhile
from threading import Lock
from typing import Final

from hoodie_ds.environment import forget_at_fork
from hoodie_ds.errors import CorruptFileError, TimelineError
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.file_name import BaseFileName
from hoodie_ds.table.file_slice import FileGroupId, LogFile
from hoodie_ds.table.file_writers import newest_commit_naming
from hoodie_ds.table.gathered_files import LiveFiles, NamedFile
from hoodie_ds.table.lost_files import remedy_of
from hoodie_ds.timeline.file_changes import FileChanges, file_changes
from hoodie_ds.timeline.instant import Action, Instant
from hoodie_ds.timeline.instant_status import InstantStatus, counts, status_of
from hoodie_ds.timeline.instant_time import padded
from hoodie_ds.timeline.loading import load_timeline
from hoodie_ds.timeline.paths import HOODIE, V1, V2, commit_path
from hoodie_ds.timeline.summaries import (
    SummaryFile,
    delete_summaries,
    newest_summary,
    read_summaries,
    write_summary,
)
from hoodie_ds.timeline.timeline import Timeline

_TABLES: Final = 8
_SUMMARIES: Final = {V1.version: "files", V2.version: "files2"}
"""Kinds of summaries by layout: a table may return to an earlier layout."""
_FEWEST_COMMITS: Final = 20
_MOST_COMMITS: Final = 200
_BYTES_A_COMMIT: Final = 2_500
"""For each so many bytes, a summary may be a commit older."""
_AT_ONCE: Final = 64
"""Commits without a summary that a writer adds with each of its own."""


def every(partition_path: str) -> bool:
    """Name all partitions."""
    return True


def check_nothing_is_missing(
    storage: Storage,
    timeline: Timeline,
    found: Collection[str],
    group: FileGroupId | None = None,
    among: Callable[[str], bool] = every,
) -> None:
    """Compare the files that commits name in the newest slices with the listed paths `found`.

    `among` says of which partitions, by their paths. Files of older slices, and of replaced file
    groups, may have been cleaned; archived commits are not read. The timeline was loaded before the
    listing. Raises `CorruptFileError` with the file and the commit that wrote it, or
    `TimelineError` with the clean or rollback that deleted it since.
    """
    kept = _kept(storage, timeline.layout)
    with kept.lock:
        every_named = kept.grown(storage, timeline).named(timeline, group)
        named = (file for file in every_named if among(file.group.partition_path))
        _check_found(storage, timeline, _newest(storage, timeline, named, found), found)


def check_listed(
    storage: Storage, timeline: Timeline, found: Collection[str], partition_path: str | None = None
) -> None:
    """Compare what a writer has listed with what commits name, at a bounded cost.

    Without summaries of many commits, as in a table of another engine, only the newest are read.
    All of the table was listed if `partition_path` is None. Raises as `check_nothing_is_missing`.
    """
    if timeline.first_commit is None:
        return
    kept, joined, committed = _kept(storage, timeline.layout), timeline.joined, _committed(timeline)
    if joined is not None:
        stats = file_changes(storage, joined).added.values()
        paths = (s.path for s in stats if partition_path in (None, s.partition_path))
        _check_found(storage, timeline, ((path, joined) for path in paths), found)
    with kept.lock:
        named = kept.near(storage, committed).named(committed, partition_path)
        _check_found(storage, timeline, _newest(storage, committed, named, found), found)


def _newest(
    storage: Storage, timeline: Timeline, named: Iterable[NamedFile], found: Collection[str]
) -> Iterator[tuple[str, Instant]]:
    """Paths of named files of newest slices, with their commits.

    An archived commit has made a newer base file where the older one is gone and a newer one
    exists: all other commits that could have would name theirs.
    """
    bases: Mapping[FileGroupId, list[BaseFileName]] | None = None
    for file in named:
        newer: list[str] = []
        if file.path not in found:
            bases = _bases(found) if bases is None else bases
            there = bases.get(file.group, ())
            newer = [base.instant_time for base in there if file.is_before(base)]
        if all(status_of(storage, timeline, t) is not InstantStatus.ARCHIVED for t in newer):
            yield file.path, file.instant


def _bases(found: Collection[str]) -> dict[FileGroupId, list[BaseFileName]]:
    """Names of the listed base files, by file group."""
    bases: dict[FileGroupId, list[BaseFileName]] = {}
    for path in found:
        folder, _, name = path.rpartition("/")
        base = BaseFileName.parse(name)
        if base is not None:
            bases.setdefault(FileGroupId(folder, base.file_id), []).append(base)
    return bases


def near_groups(
    storage: Storage, timeline: Timeline, partition_path: str | None = None
) -> set[FileGroupId]:
    """Return the file groups whose files `check_listed` compares."""
    kept, committed = _kept(storage, timeline.layout), _committed(timeline)
    with kept.lock:
        return kept.near(storage, committed).groups(committed, partition_path)


def _committed(timeline: Timeline) -> Timeline:
    """A timeline without the instant that a writer joins, whose files change with the batch."""
    joined = timeline.joined
    if joined is None:
        return timeline
    return replace(timeline, recent=tuple(i for i in timeline.recent if i is not joined))


def _check_found(
    storage: Storage,
    timeline: Timeline,
    named: Iterable[tuple[str, Instant]],
    found: Collection[str],
) -> None:
    for path, instant in named:
        if path not in found:
            raise taken_since(storage, timeline, [path], [instant]) or CorruptFileError(
                f"{storage.root}/{path} is missing, which {commit_path(instant)} names",
                remedy_of(storage, timeline, instant, path, found),
            )


def newest_files(storage: Storage, timeline: Timeline) -> list[NamedFile]:
    """Return the files of the newest slices; see `check_nothing_is_missing`."""
    kept = _kept(storage, timeline.layout)
    with kept.lock:
        return list(kept.grown(storage, timeline).named(timeline))


def remedy_for(storage: Storage, timeline: Timeline, path: str) -> str:
    """Return the remedy for a lost or damaged data file, by the newest commit that names it."""
    named = newest_files(storage, timeline)
    commit = next((file.instant for file in named if file.path == path), None)
    return remedy_of(storage, timeline, commit, path)


@contextmanager
def naming_remedies(storage: Storage, timeline: Timeline) -> Iterator[None]:
    """Name in errors of damaged data files the remedy for a missing one."""
    try:
        yield
    except CorruptFileError as error:
        if not error.path or error.path.startswith(f"{HOODIE}/"):
            raise
        raise error.with_remedy(remedy_for(storage, timeline, error.path)) from error


def taken_since(
    storage: Storage, timeline: Timeline, paths: Iterable[str], commits: Iterable[Instant]
) -> TimelineError | None:
    """Return the rollback or clean that deleted one of some files since a timeline was loaded.

    Any of `commits`, which are on that timeline, may have written the missing file.
    """
    now = load_timeline(storage, timeline.layout)
    undone = rolled_back(storage, commits, now)
    if undone is not None:
        return undone
    wanted = tuple(paths)
    for clean in now.cleans_beyond(timeline):
        gone = file_changes(storage, clean).deleted
        path = next((path for path in wanted if path in gone), None)
        if path is not None:
            return TimelineError(
                f"{storage.root}: clean {clean.time} took {path}; read again, or as of a later "
                "moment"
            )
    return None


def rolled_back(
    storage: Storage, commits: Iterable[Instant], now: Timeline
) -> TimelineError | None:
    """Return which of some commits is rolled back by now: off the timeline, and not archived.

    A writer's own instant that waits for more batches is pending and counts.
    """
    for commit in commits:
        if commit.num_batches and now.is_pending(commit.time):
            continue
        if not counts(storage, now, commit.time):
            return TimelineError(f"{storage.root}: {commit} was rolled back meanwhile; read again")
    return None


def newest_commit_of(storage: Storage, timeline: Timeline, log: LogFile) -> FileChanges | None:
    """Return the newest commit that wrote to a log file; None if there is none.

    It answers from what is known of the newest slices, and calls `newest_commit_naming` for a file
    of an older one.
    """
    kept, start = _kept(storage, timeline.layout), log.name.base_instant
    with kept.lock, suppress(LookupError):
        if kept.known is not None and kept.known.seen is timeline:
            group = FileGroupId(log.partition_path, log.name.file_id)
            instant = kept.known.newest_naming(group, log.path, start)
            # One that was archived since does not count any more.
            found = None if instant is None else timeline.commit_at(instant.time)
            return None if found is None else file_changes(storage, found)
    return newest_commit_naming(storage, timeline, log.path, start)


def replaced_ids(storage: Storage, timeline: Timeline) -> Mapping[str, frozenset[str]]:
    """Return the file ids that replace commits have hidden, by partition path.

    `FileSystemView.replaced_ids` returns those of one partition.
    """
    if not timeline.replace_commits:
        return {}
    kept = _kept(storage, timeline.layout)
    with kept.lock:
        if kept.replaced is None or kept.replaced[0] is not timeline:
            kept.replaced = timeline, _replaced_ids(storage, timeline, kept.live(storage))
        return kept.replaced[1]


def save_live_files(storage: Storage, timeline: Timeline) -> None:
    """Store a summary of the newest slices' files, if many commits were made since the last one.

    Nothing depends on a summary that cannot be written.
    """
    kept, kind = _kept(storage, timeline.layout), _SUMMARIES[timeline.layout]
    if not _is_due(kept.saved, timeline):
        return
    kept.saved = newest_summary(storage, kind)
    if not _is_due(kept.saved, timeline):
        return
    with kept.lock:
        live = kept.grown(storage, timeline, _AT_ONCE)
        newest = next(live.seen.commits_backwards())
        write_summary(storage, kind, padded(newest.time), live.to_json())


def forget_completed(storage: Storage, pending: Instant) -> None:
    """Delete the summaries that have a pending instant as completed: its completed file was lost.

    In layout 1 a process could not tell the files that it gets now from those of before.
    """
    if pending.layout == V1.version:
        time, kind = pending.time, _SUMMARIES[pending.layout]
        delete_summaries(
            *(storage, kind, padded(time)),
            lambda content: LiveFiles.from_json(1, content).seen.commit_at(time) is not None,
        )


def _is_due(last: SummaryFile, timeline: Timeline) -> bool:
    """Whether many commits were made since a summary; a long one is made less often."""
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
        for partition, ids in file_changes(storage, instant).replaced.items()
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
    newest: LiveFiles | None = None
    """The newest commits, for a writer, without a summary of the older ones."""
    saved: SummaryFile = field(default_factory=SummaryFile)
    replaced: tuple[Timeline, Mapping[str, frozenset[str]]] | None = None
    lock: Lock = field(default_factory=Lock)

    def live(self, storage: Storage) -> LiveFiles:
        """What is known, at first from the newest summary."""
        if self.known is None:
            self.known = next(_summed_up(storage, self.layout))
        return self.known

    def grown(self, storage: Storage, timeline: Timeline, at_once: int | None = None) -> LiveFiles:
        """What is known with the commits of a timeline, or with `at_once` of its settled ones.

        Where commits were rolled back, or the table was replaced, an older summary may be true.
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

    def near(self, storage: Storage, timeline: Timeline) -> LiveFiles:
        """What is known with the commits of a timeline, few of them added at once."""
        known = (live for live in (self.known, self.newest) if live is not None)
        for live in chain(known, _summed_up(storage, self.layout)):
            if live.seen is timeline:  # as for each partition of a write but the first
                return live
            new = islice(timeline.commits_beyond(live.seen), _AT_ONCE + 1)
            if len(list(new)) <= _AT_ONCE and live.grow(storage, timeline):
                if live not in (self.known, self.newest):
                    self.known, self.saved = live, SummaryFile()
                return live
        self.newest = LiveFiles.of_newest(storage, timeline, _AT_ONCE)
        return self.newest


def _summed_up(storage: Storage, layout: int) -> Iterator[LiveFiles]:
    """Yield the summaries, the newest first, then an empty one, which is true of each table."""
    yield from read_summaries(storage, _SUMMARIES[layout], partial(LiveFiles.from_json, layout))
    yield LiveFiles(Timeline(layout=layout))


def _beginning(seen: Timeline, timeline: Timeline, at_once: int | None) -> Timeline:
    """A timeline, or its part with at most `at_once` settled commits more than were seen."""
    new = list(islice(timeline.commits_beyond(seen), 0 if at_once is None else at_once + 1))
    if len(new) <= (at_once or 0) or timeline.settled.write_at(new[-1].time) is None:
        return timeline
    settled = timeline.settled.before(new[-1].time)
    return Timeline(settled=settled, layout=timeline.layout)


@lru_cache(maxsize=_TABLES)
def _kept(storage: Storage, layout: int) -> _Kept:
    return _Kept(layout)


forget_at_fork(_kept.cache_clear)
