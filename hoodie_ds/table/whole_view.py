"""A file-system view for writers, which must not miss a file."""

from __future__ import annotations

from dataclasses import dataclass

from hoodie_ds.storage.protocol import FileStatus
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.table.live_files import check_listed


@dataclass(frozen=True)
class WholeView(FileSystemView):
    """A view that lists no partition of which a file is missing that commits name.

    A write that continued without the file would bring back the slice before it, or store keys a
    second time; and its commit would make reads succeed again, which fail until then.
    """

    def data_files(self) -> list[FileStatus]:
        """All data files, see `FileSystemView.data_files`; raises as `check_listed`."""
        listed = super().data_files()
        self._check(listed)
        return listed

    def files_of(self, partition_path: str) -> list[FileStatus]:
        """All files of a partition; raises as `data_files` does."""
        listed = super().files_of(partition_path)
        self._check(listed, partition_path)
        return listed

    def _check(self, listed: list[FileStatus], partition_path: str | None = None) -> None:
        found = {status.path for status in listed}
        check_listed(self.storage, self.timeline, found, partition_path)
