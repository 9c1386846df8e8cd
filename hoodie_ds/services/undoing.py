"""What a rollback or a restore removes from a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hoodie_ds.errors import NotFoundError, TimelineError
from hoodie_ds.services.results import counted, size_text
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.file_changes import file_changes
from hoodie_ds.timeline.instant import WRITE_ACTIONS, Instant, State
from hoodie_ds.timeline.instant_time import padded
from hoodie_ds.timeline.paths import CONVERTED


@dataclass(frozen=True, slots=True)
class Loss:
    """An instant that is removed.

    Parameters
    ----------
    time : str
        Its instant time.
    action : str
        Its action, as Hudi names it.
    completed : bool
        Whether it is completed; readers have seen nothing of a pending one.
    files : int
        Number of files that its commit names.
    rows : int
        Number of rows that it inserted, updated and deleted; 0 if it rewrote stored rows.
    returning : int
        Number of file groups that it replaced, or deleted with their partition: their rows are
        visible again afterwards.
    bytes : int
        Size of the files that its commit names.
    """

    time: str
    action: str
    completed: bool
    files: int = 0
    rows: int = 0
    returning: int = 0
    bytes: int = 0

    @classmethod
    def of(cls, storage: Storage, instant: Instant) -> Loss:
        """Return what is lost with an instant.

        Raises
        ------
        TimelineError, CorruptFileError
            Its completed file is missing, or cannot be read.
        """
        done = instant.state is State.COMPLETED
        if not done or instant.action not in WRITE_ACTIONS:
            return cls(instant.time, instant.action.value, done)
        done_by = file_changes(storage, instant)
        stats = done_by.added.values()
        changed = (s.num_inserts + s.num_update_writes + s.num_deletes for s in stats)
        rows = 0 if done_by.is_rewrite else sum(changed)
        back = 0 if done_by.is_rewrite else len(done_by.replaced_groups)
        size = sum(stat.file_size_bytes for stat in stats)
        files = len(stats)
        return cls(instant.time, instant.action.value, done, files, rows, back, size)

    def __str__(self) -> str:
        if not self.completed:
            return f"{self.time} {self.action}, pending"
        return f"{self.time} {self.action}, {_extent(self)}"


@dataclass(frozen=True, slots=True, repr=False)
class Undoing:
    """What a rollback or a restore removes from a table; false if that is nothing.

    Parameters
    ----------
    target : str
        Time of the newest completed write that stays; empty if none does.
    losses : tuple of Loss
        The instants that are removed, the newest first.
    """

    target: str
    losses: tuple[Loss, ...]

    def __bool__(self) -> bool:
        return bool(self.losses)

    def __repr__(self) -> str:
        return f"<Undoing: {self}>"

    def __str__(self) -> str:
        target = f"back to {self.target or 'the empty table'}"
        if not self.losses:
            return f"{target}, nothing to do"
        if len(self.losses) > 1:
            return f"{target}, without {counted(len(self.losses), 'instant')}, {_extent(self)}"
        lost = self.losses[0]
        if padded(lost.time) < padded(self.target):  # pending, or its completed file is lost
            return f"without {lost}; later writes stay, up to {self.target}"
        return f"{target}, without {lost}"

    @property
    def bytes(self) -> int:
        """Size of those files."""
        return sum(loss.bytes for loss in self.losses)

    @property
    def files(self) -> int:
        """Number of files of removed completed instants; some log files only get blocks hidden."""
        return sum(loss.files for loss in self.losses)

    @property
    def rows(self) -> int:
        """Number of rows that removed completed instants inserted, updated and deleted."""
        return sum(loss.rows for loss in self.losses)

    @property
    def returning(self) -> int:
        """Number of file groups that removed completed instants had replaced, or deleted."""
        return sum(loss.returning for loss in self.losses)


def _extent(lost: Loss | Undoing) -> str:
    """Say what is lost and what comes back."""
    files = f"{counted(lost.files, 'file')} ({size_text(lost.bytes)})"
    back = f", {counted(lost.returning, 'file group')} back" if lost.returning else ""
    return f"{files} and {counted(lost.rows, 'row')} lost{back}"


def check_written_since(storage: Storage, times: Iterable[str]) -> None:
    """Refuse to roll back writes that are older than the timeline's current layout."""
    try:
        converted_at = storage.read(CONVERTED).decode()
    except NotFoundError:
        return
    older = [time for time in times if time <= converted_at]
    if older:
        raise TimelineError(
            f"{storage.root}: {older[0]} was written before the table's version was changed; what "
            "is older than that cannot be taken back"
        )
