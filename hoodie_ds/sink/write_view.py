"""The files that a write builds on."""

from __future__ import annotations

from dataclasses import dataclass

from hoodie_ds.errors import TimelineError, WriteConflictError
from hoodie_ds.storage.protocol import FileStatus
from hoodie_ds.table.whole_view import WholeView


@dataclass(frozen=True)
class WriteView(WholeView):
    """A whole view for a write, to which what others took away meanwhile is a conflict.

    Parameters
    ----------
    remedy : str
        What to do after a conflict.
    """

    remedy: str = ""

    def _check(self, listed: list[FileStatus], partition_path: str | None = None) -> None:
        try:
            super()._check(listed, partition_path)
        except TimelineError as error:
            raise WriteConflictError(
                f"{error}; the batch is not committed and can be run again; {self.remedy}"
            ) from error
