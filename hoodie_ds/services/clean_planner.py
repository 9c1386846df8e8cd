"""Which files a clean deletes (Hudi's ``CleanPlanner``).

A version of a file group is superseded once there is a newer one. It stays as long as somebody may
read the table as of then: readers and writers within the retention, savepoints, and writers of
pending instants. Each of those reads at one time, and sees the newest version before it.

Only partitions are listed in which something was superseded since the last clean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, takewhile
from typing import Final

from hoodie_ds.config.cleaning_options import CleaningOptions
from hoodie_ds.config.enums import CleaningPolicy
from hoodie_ds.storage.protocol import FileStatus, Storage
from hoodie_ds.table.file_name import BaseFileName, CdcFileName, LogFileName
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.archive.lsm_timeline import ended
from hoodie_ds.timeline.bodies.clean_metadata import SAVEPOINTS_KEY, CleanerPlan, CleanMetadata
from hoodie_ds.timeline.file_changes import file_changes
from hoodie_ds.timeline.instant import WRITE_ACTIONS, Action, Instant, State
from hoodie_ds.timeline.instant_time import format_time, padded
from hoodie_ds.timeline.paths import V1, in_partition, instant_path
from hoodie_ds.timeline.timeline import Timeline

_LISTED_AT_ONCE: Final = 8
_LOOKED_AT: Final = 8
"""Commits that are read to decide whether a plan may find anything."""
_HOUR_MS: Final = 3_600_000
_NEVER: Final = "9" * 18
"""Later than every instant time."""


def plan_clean(
    table: Table, timeline: Timeline, options: CleaningOptions, now_ms: int
) -> CleanerPlan | None:
    """Choose the files that a clean deletes; None if there are none.

    Raises `CorruptFileError` if a savepoint or an earlier clean cannot be read, and `TimelineError`
    if a commit was archived since the timeline was loaded.
    """
    newest = next(timeline.commits_backwards(), None)
    by_versions = options.policy is CleaningPolicy.KEEP_LATEST_FILE_VERSIONS
    utc = table.properties.timeline_in_utc
    earliest = None if by_versions else earliest_to_retain(timeline, options, now_ms, utc)
    if newest is None or (earliest is None and not by_versions):
        return None
    planner = _Planner(table.storage, timeline, earliest, options.versions if by_versions else 1)
    files = planner.files()
    if not files:
        return None
    extra = {SAVEPOINTS_KEY: ",".join(planner.savepoints)} if planner.savepoints else {}
    sizes = planner.sizes_of(files)
    return CleanerPlan(options.policy.value, earliest, newest.time, files, extra, sizes)


def earliest_to_retain(
    timeline: Timeline, options: CleaningOptions, now_ms: int, utc: bool
) -> Instant | None:
    """Return the oldest commit whose view of the table must stay readable; None for all of them.

    It is never later than the last commit before a pending write, whose writer may read the table
    as of then (Hudi's ``CleanerUtils.getEarliestCommitToRetain``).
    """
    if options.policy is CleaningPolicy.KEEP_LATEST_BY_HOURS:
        start = format_time(now_ms - options.hours * _HOUR_MS, utc)
        within = list(_since(timeline, start))
        found = within[-1] if within else None
    else:
        latest = list(islice(timeline.commits_backwards(), options.commits + 1))
        found = latest[-2] if len(latest) > options.commits else None
    pending = next(_pending_times(timeline), _NEVER)
    if found is None or padded(found.time) <= pending:
        return found
    before = (i for i in timeline.commits_backwards() if padded(i.time) < pending)
    return next(before, None)


def commits_since_last(storage: Storage, timeline: Timeline) -> int:
    """Count the commits since the last clean, by which Hudi decides whether the next one is due."""
    last = last_clean(storage, timeline)
    start = padded(last.last_completed) if last and last.last_completed else ""
    later = takewhile(lambda i: padded(i.time) > start, timeline.commits_backwards())
    return sum(1 for _ in later)


def may_find_something(
    storage: Storage, timeline: Timeline, options: CleaningOptions, now_ms: int, utc: bool
) -> bool:
    """Whether one of the last commits that need not be retained has superseded anything.

    Reads a few commits, however large the table is: a table to which rows are only added is never
    planned for. What is missed here is found once anything is superseded again.
    """
    limit = _NEVER
    if options.policy is not CleaningPolicy.KEEP_LATEST_FILE_VERSIONS:
        earliest = earliest_to_retain(timeline, options, now_ms, utc)
        limit = "" if earliest is None else padded(earliest.time)
    older = (i for i in timeline.commits_backwards() if padded(i.time) < limit)
    partitions = (set(_superseding(storage, commit)) for commit in islice(older, _LOOKED_AT))
    return any(partitions)  # the partition of an unpartitioned table is the empty string


def last_clean(storage: Storage, timeline: Timeline) -> CleanMetadata | None:
    """Return the metadata of the newest completed clean; None if there is none, or it is empty."""
    cleans = [i for i in timeline.deletions if i.action is Action.CLEAN]
    if not cleans:
        return None
    path = instant_path(cleans[-1])
    data = storage.read(path)
    return CleanMetadata.from_bytes(data, path) if data else None


def _superseding(storage: Storage, instant: Instant) -> Iterator[str]:
    """Partitions in which a commit added new versions of file groups, or replaced them."""
    changes = file_changes(storage, instant)
    yield from changes.replaced
    for stat in changes.added.values():
        if stat.log is None and (changes.is_rewrite or stat.prev_commit != "null"):
            yield stat.partition_path


def _since(timeline: Timeline, start: str) -> Iterator[Instant]:
    """Commits from a time on, the newest first."""
    return takewhile(lambda i: padded(i.time) >= padded(start), timeline.commits_backwards())


def _pending_times(timeline: Timeline) -> Iterator[str]:
    return (padded(i.time) for i in timeline.pending if i.action in WRITE_ACTIONS)


@dataclass(frozen=True)
class _Planner:
    """Computes one plan."""

    storage: Storage
    timeline: Timeline
    earliest: Instant | None  # from `earliest_to_retain`; None where versions are counted
    versions: int  # newest versions of each file group that always stay

    def files(self) -> dict[str, tuple[str, ...]]:
        """Names of the files to delete, by partition path."""
        partitions = self._changed_partitions()
        listed: Iterable[tuple[str, Sequence[FileStatus]]]
        if partitions is None:
            by_folder: dict[str, list[FileStatus]] = {}
            for status in self._view.data_files():
                by_folder.setdefault(status.folder, []).append(status)
            listed = sorted(by_folder.items())
        else:
            with ThreadPoolExecutor(_LISTED_AT_ONCE, "hoodie-clean") as pool:
                listed = list(zip(partitions, pool.map(self.storage.list, partitions), strict=True))
        found = {partition: self._superseded(partition, files) for partition, files in listed}
        return {partition: names for partition, names in found.items() if names}

    def sizes_of(self, files: Mapping[str, Iterable[str]]) -> dict[str, int]:
        """Sizes of files that `files` returned, by path."""
        named = ((partition, name) for partition, names in files.items() for name in names)
        paths = (in_partition(partition, name) for partition, name in named)
        return {path: self._sizes[path] for path in paths}

    @cached_property
    def _sizes(self) -> dict[str, int]:
        """Sizes of the files that were listed, by path."""
        return {}

    @cached_property
    def savepoints(self) -> tuple[str, ...]:
        """Times of the savepoints."""
        return tuple(savepoint.time for savepoint in self.timeline.savepoints)

    @cached_property
    def _view(self) -> FileSystemView:
        return FileSystemView(self.storage, self.timeline)

    @property
    def _limit(self) -> str:
        """Versions from this time on stay."""
        return _NEVER if self.earliest is None else padded(self.earliest.time)

    @cached_property
    def _moments(self) -> tuple[str, ...]:
        """Times at which somebody may read the table: the newest versions before each are kept."""
        after = (f"{padded(time)}0" for time in self.savepoints)  # including that commit
        limit = () if self.earliest is None else (self._limit,)
        return (*limit, *_pending_times(self.timeline), *after)

    @cached_property
    def _saved(self) -> frozenset[str]:
        """Paths of the files that savepoints keep."""
        done = (i for i in self.timeline.savepoints if i.state is State.COMPLETED)
        return frozenset(path for i in done for path in file_changes(self.storage, i).kept)

    @cached_property
    def _replaced(self) -> Mapping[tuple[str, str], str]:
        """When the file groups were replaced, by partition path and file id."""
        found: dict[tuple[str, str], str] = {}
        for instant in self.timeline.replace_commits:
            for group in file_changes(self.storage, instant).replaced_groups:
                found.setdefault(group, padded(instant.time))
        return found

    def _changed_partitions(self) -> list[str] | None:
        """Partitions where something was superseded since the last clean; None for all."""
        last = None if self.earliest is None else last_clean(self.storage, self.timeline)
        if last is None or not last.earliest or self.timeline.starts_after(last.earliest):
            return None
        if last.savepoints - set(self.savepoints):
            return None  # what a deleted savepoint kept
        commits = (i for i in _since(self.timeline, last.earliest) if padded(i.time) < self._limit)
        return sorted({partition for i in commits for partition in _superseding(self.storage, i)})

    def _superseded(self, partition: str, files: Iterable[FileStatus]) -> tuple[str, ...]:
        """Names of the files of a partition to delete."""
        groups: dict[str, list[_File]] = {}
        for status in files:
            file = _file(status.path.rpartition("/")[2])
            if file is not None and self._is_visible(file, status.path):
                self._sizes[status.path] = status.size
                groups.setdefault(file.file_id, []).append(file)
        names: list[str] = []
        for file_id, named in sorted(groups.items()):
            found = self._as_merged(named)
            replaced_at = self._replaced.get((partition, file_id))
            for version in self._to_go(_versions(found), replaced_at):
                if self._saved.isdisjoint(in_partition(partition, name) for name in version):
                    names += version
        return tuple(names)

    def _as_merged(self, files: list[_File]) -> list[_File]:
        """In layout 2 a log file belongs to the newest base file begun before it was completed."""
        newest = max((file.start for file in files if not file.is_log), key=padded, default="")
        return [
            replace(file, start=self._completed(file.start))
            if file.number and padded(file.start) < padded(newest)
            else file
            for file in files
        ]

    def _completed(self, time: str) -> str:
        if self.timeline.layout == V1.version:
            return time
        # If it is not known any more, readers too assume that it is later than the base file.
        return ended(self.storage, self.timeline, time) or _NEVER

    def _is_visible(self, file: _File, path: str) -> bool:
        if not self._view.is_committed(file.start):
            return False  # also log files named after a pending compaction, which are new
        return file.is_log or self._view.names(file.start, path)

    def _to_go(
        self, versions: Mapping[str, list[str]], replaced_at: str | None
    ) -> Iterator[list[str]]:
        """Yield the names of the files of superseded versions, the newest first."""
        starts = list(versions)
        moments: Iterable[str] = self._moments
        if replaced_at is None:
            going = [start for start in starts[: -self.versions] if start < self._limit]
        elif replaced_at < self._limit:
            going = starts
            moments = (moment for moment in moments if moment <= replaced_at)
        else:
            return
        seen = {max((s for s in starts if s < moment), default="") for moment in moments}
        for start in reversed(going):
            if start not in seen:
                yield versions[start]


@dataclass(frozen=True, slots=True)
class _File:
    """A data file; `start` is the time at which its version of the file group begins."""

    name: str
    file_id: str
    start: str
    is_log: bool
    number: int = 0  # the version of a log file


def _file(name: str) -> _File | None:
    base, log = BaseFileName.parse(name), LogFileName.parse(name)
    if base is not None:
        return _File(name, base.file_id, base.instant_time, is_log=False)
    if log is not None:
        return _File(name, log.file_id, log.base_instant, is_log=True, number=log.version)
    changes = CdcFileName.parse(name)  # belongs to the base file of the same instant
    if changes is not None:
        return _File(name, changes.file_id, changes.instant_time, is_log=True)
    return None


def _versions(files: Iterable[_File]) -> dict[str, list[str]]:
    """Names of files by the start of their version, oldest first; the base file comes first.

    Log files alone supersede nothing: they belong to the version before, if there is one.
    """
    starts = {padded(file.start) for file in files if not file.is_log}
    versions: dict[str, list[str]] = {}
    newest = ""
    for file in sorted(files, key=_by_version):
        if not newest or padded(file.start) in starts:
            newest = padded(file.start)
        versions.setdefault(newest, []).append(file.name)
    return versions


def _by_version(file: _File) -> tuple[str, bool, int, str]:
    return padded(file.start), file.is_log, file.number, file.name
