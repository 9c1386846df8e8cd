"""An incremental query: rows that commits of a range wrote, as they are at the end of the range.

Only files that the commits of the range wrote are read: in a merge-on-read table a row that loses
against an older one in a snapshot is part of the answer, as in Hudi. Rows that a compaction or
clustering rewrote keep the commit that wrote them.

Log blocks of ``MERGE INTO`` and ``UPDATE`` have some of the columns. Where the range does not have
the others, the row is that of the snapshot at the end of the range, if the range wrote it. (Hudi
1.2 reads such blocks as whole rows, and runs out of memory.)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.columns.meta_columns import COMMIT_TIME, RECORD_KEY
from hoodie_ds.config.query_options import IncrementalOptions
from hoodie_ds.errors import NotFoundError, TimelineError
from hoodie_ds.filters.predicate import ALL, Predicate
from hoodie_ds.reader.commit_range import CommitRange, commits_in_range, moment
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.reader.pruner import Pruner
from hoodie_ds.reader.scan_plan import ScanPlan, ScanTask
from hoodie_ds.reader.snapshot import refusing_deleted_files
from hoodie_ds.reader.time_travel import before, travel
from hoodie_ds.slices.file_slice_reader import FileSliceReader
from hoodie_ds.storage.protocol import FileStatus, Storage
from hoodie_ds.table.file_slice import BaseFile, FileGroupId, FileSlice, LogFile
from hoodie_ds.table.fs_view import FileSystemView, data_file
from hoodie_ds.table.live_files import check_nothing_is_missing
from hoodie_ds.table.slicing import SLICINGS, Moment
from hoodie_ds.timeline.file_changes import file_changes
from hoodie_ds.timeline.instant import Instant
from hoodie_ds.timeline.instant_time import padded
from hoodie_ds.timeline.paths import V1
from hoodie_ds.timeline.timeline import Timeline

_ASKED_SINGLY = 32
"""If so many files of a partition are needed, it is listed to find missing ones."""


@dataclass(frozen=True, slots=True)
class IncrementalQuery:
    """The query of the rows that some commits wrote.

    Files of `commits` are read, and rows of those at `times` returned; with `full_scan` the whole
    table is read. `path_glob` is the end of the paths to read, and `end` the table at the end of
    the range, `pinned` if None.
    """

    pinned: PinnedTable
    commits: tuple[Instant, ...]
    times: tuple[str, ...]
    full_scan: bool = False
    path_glob: str | None = None
    end: PinnedTable | None = None

    @property
    def schema(self) -> pa.Schema:
        """Columns of the rows."""
        return self.pinned.schema

    def plan(self, predicate: Predicate = ALL) -> ScanPlan:
        """Return what to read; files are listed when its tasks are iterated over.

        Partitions and buckets are left out that the predicate rules out, and row groups of base
        files, also those without rows of the range.
        """
        pinned, times = self.pinned, frozenset(self.times)
        view = pinned.view
        if not self.full_scan:
            storage, timeline = pinned.table.storage, pinned.timeline
            view = _SomeInstants(storage, timeline, pinned.verify, only=times)
        reader = replace(pinned.reader(view), only_commits=self.times)
        pruner = pinned.pruner(predicate)
        return ScanPlan(
            self.schema,
            _Executor(pinned, reader, self.times, self.end or pinned, pruner),
            self._tasks(pruner),
        )

    def _tasks(self, pruner: Pruner | None) -> Iterator[ScanTask]:
        if not self.times:
            return
        if self.full_scan:
            slices = self.pinned.slices(pruner)
        else:
            slices = slices_in_range(self.pinned.view, self.commits)
            if pruner is not None:
                keeps = pruner.keeps
                files = ((s, _last_file(s)) for s in slices)
                slices = (s for s, f in files if keeps(FileStatus(f.path, f.size)))
        if self.path_glob is not None:
            root = self.pinned.table.storage.root
            matches = re.compile(_of_glob(f"*{self.path_glob}")).fullmatch
            slices = (s for s in slices if matches(f"{root}/{_last_file(s).path}"))
        yield from map(RangeTask, slices)


@dataclass(frozen=True, slots=True)
class RangeTask(ScanTask):
    """A file slice of which the rows of some commits count."""

    @property
    def is_base_only(self) -> bool:
        """False: rows of other commits are between the requested ones."""
        return False


def incremental(pinned: PinnedTable, options: IncrementalOptions) -> IncrementalQuery:
    """Return the query of a range.

    Raises as `commits_in_range`, and if what the query needs has been cleaned or archived, and
    options or the table's version do not allow a scan of the whole table.
    """
    found = commits_in_range(pinned, options)
    if options.end_schema and options.end is not None:
        pinned = pinned.with_columns_of(pinned.at(_until(pinned, options.end)))
    storage, scan = pinned.table.storage, options.full_scan
    if scan or (scan is None and pinned.timeline.layout != V1.version):
        # As in Hudi, files that later commits of the range replaced count too.
        if found.archived or _missing(storage, _paths(storage, found.active)) is not None:
            return _full_scan(pinned, found, options)
    else:
        slices = slices_in_range(pinned.view, found.active)
        gone = _missing(storage, (file.path for s in slices for file in _files(s)))
        if gone is not None:
            raise _too_far(storage, options, f"{gone} has been cleaned")
        if found.archived and scan is not None:
            raise _too_far(storage, options, f"{found.archived[0].time} has been archived")
        if found.archived:
            return _full_scan(_at_the_end(pinned, found, options), found, options)
    times = tuple(instant.time for instant in found.active)
    end = pinned
    if options.end is not None and any(moment(i) > options.end for i in pinned.timeline.commits):
        end = replace(pinned, timeline=_until(pinned, options.end), is_past=True)
    return IncrementalQuery(pinned, found.active, times, False, options.path_glob, end)


def slices_in_range(view: FileSystemView, commits: Iterable[Instant]) -> Iterator[FileSlice]:
    """Yield the latest slices of what some commits wrote, by group, without replaced ones."""
    groups: dict[FileGroupId, dict[str, BaseFile | LogFile]] = {}
    replaced: set[FileGroupId] = set()
    for instant in commits:
        commit = file_changes(view.storage, instant)
        for path, stat in commit.added.items():
            file = data_file(stat.partition_path, FileStatus(path, stat.file_size_bytes))
            if file is not None:  # Hudi leaves the path out where it wrote nothing
                group = FileGroupId(stat.partition_path, file.name.file_id)
                groups.setdefault(group, {})[path] = file
        replaced |= {FileGroupId(p, i) for p, ids in commit.replaced.items() for i in ids}
    for group in sorted(groups.keys() - replaced):
        files = groups[group].values()
        bases = [file for file in files if isinstance(file, BaseFile)]
        newest = max(bases, key=lambda file: padded(file.name.instant_time), default=None)
        base_file = None if newest is None else view.checked(newest)
        logs = [file for file in files if isinstance(file, LogFile)]
        at = Moment(view.storage, view.timeline, view.is_committed)
        latest = SLICINGS[view.timeline.layout].latest(at, group, base_file, logs)
        if latest is not None:
            yield latest


@dataclass(frozen=True)
class _SomeInstants(FileSystemView):
    """A view in which the blocks of some instants count, if not of all."""

    only: frozenset[str] = field(default=frozenset())

    def is_committed(self, time: str) -> bool:
        """Whether what was written under an instant time is read."""
        return super().is_committed(time) and time in self.only


@dataclass(frozen=True, slots=True)
class _Executor:
    """Reads the rows of some commits in file slices."""

    pinned: PinnedTable
    reader: FileSliceReader
    times: tuple[str, ...]
    end: PinnedTable
    pruner: Pruner | None

    def read(self, task: ScanTask, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield the rows of a slice that the commits wrote; see `SliceExecutor.read`."""
        lacking: list[pa.Array] = []
        fetched = _with(columns, COMMIT_TIME)
        with refusing_deleted_files(self.pinned, task.slice):
            for rows in self.reader.read(task.slice, fetched, pruner=self.pruner, lacking=lacking):
                yield self._of_range(rows).select(list(columns))
        if not lacking:
            return
        keys = pa.concat_arrays(lacking)
        for whole in self._whole(task.slice.group):
            with refusing_deleted_files(self.end, whole):
                for rows in self.end.reader().read(whole, _with(fetched, RECORD_KEY)):
                    written = self._of_range(rows)
                    found = pc.is_in(written.column(RECORD_KEY), value_set=keys)
                    yield written.filter(found).select(list(columns))

    def _of_range(self, rows: pa.Table) -> pa.Table:
        times = pa.array(self.times, pa.string())
        return rows.filter(pc.is_in(rows.column(COMMIT_TIME), value_set=times))

    def _whole(self, group: FileGroupId) -> Iterator[FileSlice]:
        """The slice of a file group at the end of the range."""
        storage, view = self.end.table.storage, self.end.view
        files = storage.list(group.partition_path)
        found = {file.path for file in files}
        check_nothing_is_missing(storage, view.timeline, found, group)
        yield from view.slices_among(
            file
            for file in files
            if file.path.rpartition("/")[2].removeprefix(".").startswith(group.file_id)
        )


def _with(columns: Sequence[str], other: str) -> list[str]:
    return list(dict.fromkeys([*columns, other]))


def _full_scan(
    pinned: PinnedTable, found: CommitRange, options: IncrementalOptions
) -> IncrementalQuery:
    times = tuple(instant.time for instant in (*found.archived, *found.active))
    return IncrementalQuery(pinned, (), times, True, options.path_glob)


def _until(pinned: PinnedTable, end: str) -> Timeline:
    """The timeline at the end of a range."""
    return before(pinned.timeline, end, lambda instant: moment(instant) <= end)


def _at_the_end(
    pinned: PinnedTable, found: CommitRange, options: IncrementalOptions
) -> PinnedTable:
    """The table as the last commit of a range left it, with the present columns.

    Beyond a savepoint commits are archived that are later than active ones.
    """
    last = max((*found.archived, *found.active), key=moment)
    try:
        then = travel(pinned, last.time)
    except TimelineError as error:
        why = f"{found.archived[0].time} has been archived"
        raise _too_far(pinned.table.storage, options, why) from error
    return then.with_columns_of(pinned)


def _too_far(storage: Storage, options: IncrementalOptions, why: str) -> TimelineError:
    return TimelineError(
        f"{storage.root}: the range from {options.begin} reaches back too far: {why}; begin later, "
        f"let the cleaner retain more commits, or set {IncrementalOptions.full_scan.key}=true for "
        "those of its rows that are still in the table"
    )


def _paths(storage: Storage, commits: Iterable[Instant]) -> Iterator[str]:
    for instant in commits:
        yield from filter(None, file_changes(storage, instant).added)


def _missing(storage: Storage, paths: Iterable[str]) -> str | None:
    """Return a missing one of some files; None if all exist."""
    for folder, inside in groupby(sorted(paths), key=lambda path: path.rpartition("/")[0]):
        names = list(inside)
        if len(names) < _ASKED_SINGLY:
            gone = (path for path in names if not _is_there(storage, path))
        else:
            there = {status.path for status in storage.list(folder)}
            gone = (path for path in names if path not in there)
        found = next(gone, None)
        if found is not None:
            return found
    return None


def _is_there(storage: Storage, path: str) -> bool:
    try:
        storage.open_input(path).close()
    except NotFoundError:
        return False
    return True


def _files(slice_: FileSlice) -> Iterator[BaseFile | LogFile]:
    yield from (slice_.base,) if slice_.base is not None else ()
    yield from slice_.logs


def _last_file(slice_: FileSlice) -> BaseFile | LogFile:
    """The file of a slice by whose path Hudi selects it."""
    return slice_.base or slice_.logs[-1]


def _of_glob(glob: str) -> str:
    """Return the regular expression of a Hadoop glob: ``*`` matches slashes as well."""
    found: list[str] = []
    depth = 0
    for part in re.findall(r"\\.|\[[^\]]+\]|.", glob, re.DOTALL):
        depth += {"{": 1, "}": -1}.get(part, 0)
        special = {"*": ".*", "?": ".", "{": "(?:", "}": ")"}
        if part == "," and depth:
            found.append("|")
        elif len(part) > 1 and part[0] == "[":
            found.append("[" + part[1:].replace("!", "^", 1) if part[1] == "!" else part)
        else:
            found.append(special.get(part) or re.escape(part.removeprefix("\\")))
    return "".join(found)
