"""The input of each group of a plan: the newest slices of its file groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import xxhash

from hoodie_ds.errors import CorruptFileError
from hoodie_ds.storage.protocol import FileStatus
from hoodie_ds.table.file_slice import FileGroupId, FileSlice
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.table.gathered_files import NamedFile, of_slice
from hoodie_ds.table.live_files import newest_commit_of, newest_files, remedy_for
from hoodie_ds.timeline.bodies.clustering_plan import ClusteringGroup


@dataclass(frozen=True, slots=True)
class GroupInput:
    """The slices of one group of a plan."""

    # in the plan's order, without file groups that were replaced since
    slices: tuple[FileSlice, ...]
    digest: str  # of the committed files in them: it changes with any commit to them


class PlanInputs:
    """The input slices of the groups of a plan, in one view of the table."""

    def __init__(self, view: FileSystemView, groups: Sequence[ClusteringGroup]) -> None:
        self._view = view
        self._groups = groups
        paths = {one.partition_path for group in groups for one in group.slices}
        listed = [status for path in sorted(paths) for status in view.storage.list(path)]
        self.files: list[FileStatus] = [status for status in listed if status.folder in paths]
        self._slices = {slice_.group: slice_ for slice_ in view.slices_among(self.files)}

    def of(self, number: int) -> GroupInput:
        """Return the input of the group with a number, from 0.

        Raises `CorruptFileError` if a committed file is missing.
        """
        wanted = [FileGroupId(s.partition_path, s.file_id) for s in self._groups[number].slices]
        slices = tuple(self._slices[group] for group in wanted if group in self._slices)
        self._check_nothing_is_missing(wanted)
        committed = sorted(file for slice_ in slices for file in self._committed(slice_))
        return GroupInput(slices, xxhash.xxh3_64_hexdigest("\n".join(committed).encode()))

    def _committed(self, slice_: FileSlice) -> Iterable[str]:
        """Committed files of a slice; log files may grow, if other engines write them."""
        view = self._view
        yield from [slice_.base.path] if slice_.base else []
        for log in slice_.logs:
            commit = newest_commit_of(view.storage, view.timeline, log)
            if commit is not None and log.path in commit.added:
                yield f"{log.path} {commit.added[log.path].file_size_bytes}"

    def _check_nothing_is_missing(self, groups: Sequence[FileGroupId]) -> None:
        there = {status.path for status in self.files}
        for group in groups:
            base = self._slices[group].base if group in self._slices else None
            named, root = self._named.get(group, ()), self._view.storage.root
            for path in sorted(of_slice(named, base) - there):
                raise CorruptFileError(
                    f"{root}/{path} is missing, which a clustering is to rewrite",
                    remedy_for(self._view.storage, self._view.timeline, path),
                )

    @cached_property
    def _named(self) -> dict[FileGroupId, list[NamedFile]]:
        """Files that commits name, of the newest slices."""
        found: dict[FileGroupId, list[NamedFile]] = {}
        for file in newest_files(self._view.storage, self._view.timeline):
            found.setdefault(file.group, []).append(file)
        return found
