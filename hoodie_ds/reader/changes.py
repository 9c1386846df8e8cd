"""A CDC query: each change that commits of a range made to a row, with what the row was before.

What a commit has logged (``.cdc`` files) is read from there. Where it has logged nothing, the file
group after the commit is compared with what it was before: a row is new or changed if it has the
commit's own time. Rewrites by compactions and clusterings have no changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from hoodie_ds.config.query_options import IncrementalOptions
from hoodie_ds.errors import TimelineError
from hoodie_ds.filters.predicate import ALL, Predicate
from hoodie_ds.reader.change_executor import CHANGES, ChangeExecutor, ChangeTask, past
from hoodie_ds.reader.commit_range import commits_in_range
from hoodie_ds.reader.pinned_table import PinnedTable
from hoodie_ds.reader.scan_plan import ScanPlan
from hoodie_ds.table.file_name import BaseFileName, LogFileName
from hoodie_ds.table.file_slice import BaseFile, FileGroupId, FileSlice
from hoodie_ds.table.fs_view import PREFIX_LENGTH, PartitionFiles
from hoodie_ds.timeline.bodies.commit_metadata import CommitMetadata, WriteStat
from hoodie_ds.timeline.file_changes import file_changes
from hoodie_ds.timeline.instant import Instant
from hoodie_ds.timeline.loading import read_commit
from hoodie_ds.timeline.paths import in_partition


@dataclass(frozen=True, slots=True)
class ChangesQuery:
    """The query of the changes that some commits made, in the order of the range."""

    pinned: PinnedTable
    commits: tuple[Instant, ...]

    @property
    def schema(self) -> pa.Schema:
        """The columns ``op``, ``ts_ms``, ``before`` and ``after``."""
        return CHANGES

    def plan(self, predicate: Predicate = ALL) -> ScanPlan:
        """Return what to read, all changes; commits are read when its tasks are iterated over."""
        return ScanPlan(CHANGES, ChangeExecutor(self.pinned), self._tasks())

    def _tasks(self) -> Iterator[ChangeTask]:
        for instant in self.commits:
            commit = read_commit(self.pinned.table.storage, instant)
            if commit.is_rewrite:
                continue
            logged = _groups_with_logs(commit)
            replaced = [
                FileGroupId(p, i) for p, ids in commit.replaced.items() for i in sorted(ids)
            ]
            after = _Past(self.pinned, instant, True, logged)
            before = _Past(self.pinned, instant, False, [*logged, *replaced])
            for group in logged:
                yield ChangeTask(after.slice_of(group), instant, before.slice_if_any(group))
            for stat in commit.stats:
                base = BaseFileName.parse(stat.path.rpartition("/")[2])
                if base is None:  # Hudi leaves the path out where it wrote nothing
                    continue
                group = FileGroupId(stat.partition_path, base.file_id)
                if group not in logged:
                    yield self._of_file(instant, stat, group, base)
            for group in replaced:
                yield ChangeTask(before.slice_of(group), instant, is_gone=True)

    def _of_file(
        self, instant: Instant, stat: WriteStat, group: FileGroupId, base: BaseFileName
    ) -> ChangeTask:
        """What a commit did to a file group of which it wrote the base file."""
        after = FileSlice(group, instant.time, self._known(group.partition_path, base), ())
        before = self._base_before(instant, stat, group)
        return ChangeTask(after, instant, before, stat.change_files)

    def _known(self, partition: str, name: BaseFileName) -> BaseFile:
        """A base file with what its commit says of it."""
        view = self.pinned.view
        instant = view.timeline.commit_at(name.instant_time)
        path = in_partition(partition, str(name))
        stats = {} if instant is None else file_changes(view.storage, instant).added
        size = stats[path].file_size_bytes if path in stats else 0
        return view.checked(BaseFile(partition, name, size))

    def _base_before(
        self, instant: Instant, stat: WriteStat, group: FileGroupId
    ) -> FileSlice | None:
        """The base file that a commit rewrote; None if the file group is new."""
        if stat.prev_commit in ("", "null"):
            return None
        name = BaseFileName.parse(stat.prev_base_file) or self._written(stat.prev_commit, group)
        if name is None:
            raise _cleaned(self.pinned, instant, f"the base file before {stat.path}")
        return FileSlice(group, name.instant_time, self._known(group.partition_path, name), ())

    def _written(self, time: str, group: FileGroupId) -> BaseFileName | None:
        """The base file of a group that an instant wrote, as its commit or a listing shows."""
        view = self.pinned.view
        written = view.timeline.commit_at(time)
        if written is not None:
            paths = list(file_changes(view.storage, written).added)
        else:
            paths = [found.path for found in view.storage.list(group.partition_path)]
        names = (BaseFileName.parse(p.rpartition("/")[2]) for p in paths)
        of_group = (n for n in names if n is not None and n.file_id == group.file_id)
        return next((n for n in of_group if n.instant_time == time), None)


class _Past:
    """File slices as they were before a commit, or with it, by listings.

    An older slice, kept by a savepoint or an unfinished clean, does not count as one that was
    cleaned: the slice must have what the last commit wrote to the file group.
    """

    def __init__(
        self, pinned: PinnedTable, instant: Instant, included: bool, groups: Iterable[FileGroupId]
    ) -> None:
        self._instant = instant
        self._then = past(pinned, instant, included)
        self._written = _last_written(self._then, set(groups))
        self._listed: dict[str, PartitionFiles] = {}

    def slice_of(self, group: FileGroupId) -> FileSlice:
        """The slice of a file group that must have existed."""
        found = self.slice_if_any(group)
        if found is None:
            raise _cleaned(self._then, self._instant, f"the file slice of {group}")
        return found

    def slice_if_any(self, group: FileGroupId) -> FileSlice | None:
        """The slice of a file group; None if there was none."""
        partition = group.partition_path
        if partition not in self._listed:
            self._listed[partition] = self._then.view.partition(partition)
        slices = self._listed[partition].latest_slices(group.file_id[:PREFIX_LENGTH])
        found = next((slice_ for slice_ in slices if slice_.group == group), None)
        files = () if found is None else found.files
        if not self._written.get(group, set()) <= {file.path for file in files}:
            raise _cleaned(self._then, self._instant, f"the file slice of {group}")
        return found


def _last_written(pinned: PinnedTable, groups: set[FileGroupId]) -> dict[FileGroupId, set[str]]:
    """The files that the newest commit of a timeline wrote to each group, if it is not archived."""
    found: dict[FileGroupId, set[str]] = {}
    commits = pinned.timeline.commits_backwards()
    while (left := groups - found.keys()) and (instant := next(commits, None)) is not None:
        for path, stat in file_changes(pinned.table.storage, instant).added.items():
            group = FileGroupId(stat.partition_path, stat.file_id)
            if path and group in left:  # Hudi leaves the path out where it wrote nothing
                found.setdefault(group, set()).add(path)
    return found


def changes(pinned: PinnedTable, options: IncrementalOptions) -> ChangesQuery:
    """Return the CDC query of a range.

    Raises as `commits_in_range`, and if commits of the range have been archived.
    """
    found = commits_in_range(pinned, options)
    if found.archived:
        raise TimelineError(
            f"{pinned.table.storage.root}: the range from {options.begin} reaches back too far: "
            f"{found.archived[-1].time} has been archived, and its changes are not "
            "known any more; begin later, and archive less"
        )
    return ChangesQuery(pinned, found.active)


def _groups_with_logs(commit: CommitMetadata) -> dict[FileGroupId, None]:
    """File groups that a commit wrote log files to, each once: there may be several of a group."""
    names = ((s.partition_path, LogFileName.parse(s.path.rpartition("/")[2])) for s in commit.stats)
    return {FileGroupId(folder, log.file_id): None for folder, log in names if log is not None}


def _cleaned(pinned: PinnedTable, instant: Instant, what: str) -> TimelineError:
    return TimelineError(
        f"{pinned.table.storage.root}: the changes of {instant.time} are not known any more: "
        f"{what} has been cleaned; begin later, and let the cleaner retain more commits"
    )
