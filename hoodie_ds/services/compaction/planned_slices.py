"""The file slices that a compaction plan names, as of when it is carried out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

from hoodie_ds.errors import CorruptFileError, TimelineError
from hoodie_ds.slices.uncommitted_logs import is_uncommitted, was_never_committed
from hoodie_ds.storage.protocol import FileStatus
from hoodie_ds.table.file_name import BaseFileName, LogFileName
from hoodie_ds.table.file_slice import FileGroupId, FileSlice, LogFile
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.table.gathered_files import NamedFile, of_slice
from hoodie_ds.table.live_files import newest_files, remedy_for
from hoodie_ds.timeline.bodies.compaction_plan import CompactionOperation
from hoodie_ds.timeline.instant_time import padded
from hoodie_ds.timeline.paths import in_partition


@dataclass(frozen=True)
class PlannedSlices:
    """The slices that a compaction merges, in one view of the table."""

    view: FileSystemView
    time: str  # of the plan's instant

    @cached_property
    def _named(self) -> dict[FileGroupId, list[NamedFile]]:
        """Files that commits name, of the slices before the plan."""
        found: dict[FileGroupId, list[NamedFile]] = {}
        for file in newest_files(self.view.storage, self.view.timeline):
            name = file.path.rpartition("/")[2]
            log, base = LogFileName.parse(name), BaseFileName.parse(name)
            start = log.base_instant if log else base.instant_time if base else self.time
            if padded(start) < padded(self.time):
                found.setdefault(file.group, []).append(file)
        return found

    def _named_of(self, slice_: FileSlice) -> set[str]:
        """Paths of the named files of a slice, or of a later one."""
        return of_slice(self._named.get(slice_.group, ()), slice_.base)

    def listing(self, partition_path: str) -> tuple[list[FileStatus], dict[FileGroupId, FileSlice]]:
        """List a partition: its files, and the slices as of the time of the plan."""
        listed = self.view.storage.list(partition_path)
        found = self.view.slices_among(listed)
        return listed, {slice_.group: self._before(slice_) for slice_ in found}

    def replaced(
        self, operation: CompactionOperation, listed: Iterable[FileStatus]
    ) -> FileSlice | None:
        """Return the slice of a file group that was replaced after the plan, of listed files.

        It is merged all the same, as in Hudi: a rollback of the replace commit brings the group
        back, whose later log files belong to the new base file. None if a clean took files of it.
        """
        view = replace(self.view, shows_replaced=True)
        files = (status for status in listed if operation.file_id in status.path)
        with suppress(CorruptFileError):
            for found in view.slices_among(files):
                slice_ = self._before(found)
                self.check(operation, slice_)
                return slice_
        return None

    def _before(self, slice_: FileSlice) -> FileSlice:
        """A slice without the log files written after the plan."""
        early = (g for g in slice_.logs if padded(g.name.base_instant) < padded(self.time))
        return replace(slice_, logs=tuple(early))

    def merged(self, slice_: FileSlice) -> dict[str, int]:
        """Return the committed files of a slice, by path, with their sizes."""
        logs = (log for log in slice_.logs if not is_uncommitted(self.view, log))
        base = {} if slice_.base is None else {slice_.base.path: slice_.base.size}
        return base | {log.path: log.size for log in logs}

    def is_all(self, slice_: FileSlice, merged: Mapping[str, int]) -> bool:
        """Whether merged files are all committed files of a slice, listed or named."""
        return self.merged(slice_) == dict(merged) and self._named_of(slice_) <= merged.keys()

    def check(self, operation: CompactionOperation, slice_: FileSlice) -> None:
        """Refuse a slice of which a file is missing, or that was rewritten after it was planned.

        Raises `CorruptFileError` for the former, `TimelineError` for the latter.
        """
        root, partition = self.view.storage.root, operation.partition_path
        if padded(slice_.base_instant) >= padded(self.time):
            raise TimelineError(
                f"{root}: file group {slice_.group} was rewritten at {slice_.base_instant}, after "
                f"compaction {self.time} was planned for it, which cannot be carried out; cancel it"
            )
        found = {log.path for log in slice_.logs}
        planned = {in_partition(partition, name) for name in operation.log_files}
        if slice_.base is not None:
            found.add(slice_.base.path)
        elif operation.base_file is not None:
            planned.add(in_partition(partition, operation.base_file))
        for path in sorted((planned | self._named_of(slice_)) - found):
            log = LogFileName.parse(path.rpartition("/")[2])
            gone = LogFile(partition, log, path.rpartition("/")[2], 0) if log else None
            if gone is None or not was_never_committed(self.view, gone):
                raise CorruptFileError(
                    f"{root}/{path} is missing, which compaction {self.time} is to merge",
                    remedy_for(self.view.storage, self.view.timeline, path),
                )
