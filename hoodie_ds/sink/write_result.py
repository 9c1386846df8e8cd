"""What a write tells its caller."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hoodie_ds.handles.context import WriteStatus


@dataclass(frozen=True, slots=True)
class WriteResult:
    """What a write did.

    Rows are counted as in the commit's write statistics, which Hudi keeps too: a row that goes to
    a log file counts as updated, whether its key was there or not, and rows whose whole file group
    is replaced, by an overwrite or a partition delete, are not counted.

    Parameters
    ----------
    instant_time : str or None
        The commit; None where there is none, as nothing was to be written, or as it was written
        before under another instant.
    inserted, updated, deleted : int
        Rows.
    already_committed : bool
        Whether the batch was found in the table; then nothing was changed.
    """

    instant_time: str | None = None
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    already_committed: bool = False

    @classmethod
    def of(cls, instant_time: str, statuses: Iterable[WriteStatus] | None) -> WriteResult:
        """Return the result of a commit.

        Parameters
        ----------
        instant_time : str
            Its time.
        statuses : iterable of WriteStatus or None
            Its files; None if it was complete before.
        """
        if statuses is None:
            return cls(instant_time, already_committed=True)
        stats = [status.stat for status in statuses]
        return cls(
            instant_time,
            sum(stat.num_inserts for stat in stats),
            sum(stat.num_update_writes for stat in stats),
            sum(stat.num_deletes for stat in stats),
        )
