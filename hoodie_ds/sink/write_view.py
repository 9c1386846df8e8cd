"""The files that a write builds on, of which none may be missing."""

from __future__ import annotations

from dataclasses import dataclass

from hoodie_ds.errors import TimelineError, WriteConflictError
from hoodie_ds.storage.protocol import FileStatus
from hoodie_ds.table.fs_view import FileSystemView
from hoodie_ds.table.live_files import check_listed


@dataclass(frozen=True)
class WriteView(FileSystemView):
    """A view that lists no partition of which a file is missing that commits name.

    A write that went on without the file would bring back the slice before it, or store keys a
    second time; and its commit would make reads work again, which refuse until then.

    Parameters
    ----------
    remedy : str
        What to do after a conflict.
    """

    remedy: str = ""

    def data_files(self) -> list[FileStatus]:
        """All data files, see `FileSystemView.data_files`.

        Raises
        ------
        CorruptFileError
            A file is missing.
        WriteConflictError
            A clean or a rollback has taken one since the timeline was loaded.
        """
        return self._checked_listing(super().data_files())

    def files_of(self, partition_path: str) -> list[FileStatus]:
        """All files of a partition; raises as `data_files` does."""
        return self._checked_listing(super().files_of(partition_path), partition_path)

    def _checked_listing(
        self, listed: list[FileStatus], partition_path: str | None = None
    ) -> list[FileStatus]:
        try:
            found = {status.path for status in listed}
            check_listed(self.storage, self.timeline, found, partition_path)
        except TimelineError as error:
            raise WriteConflictError(
                f"{error}; the batch is not committed and can be run again; {self.remedy}"
            ) from error
        return listed
