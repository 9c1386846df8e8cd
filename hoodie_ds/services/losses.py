"""What a rollback or a restore takes off a table, said before it does so."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hoodie_ds.errors import NotFoundError, TimelineError
from hoodie_ds.services.results import counted, size_text
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.file_changes import file_changes
from hoodie_ds.timeline.instant import WRITE_ACTIONS, Instant, State
from hoodie_ds.timeline.paths import CONVERTED


@dataclass(frozen=True, slots=True)
class Loss:
    """An instant that goes.

    Parameters
    ----------
    time : str
        Its time.
    action : str
        What it did, as Hudi names it.
    completed : bool
        Whether it is part of the table; of one that is pending nobody has seen anything.
    files : int
        How many files its commit names.
    rows : int
        How many rows it inserted, updated and deleted; none where it wrote stored rows anew.
    returning : int
        How many file groups it had put others in place of, or deleted with their partition: their
        rows are back afterwards.
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
        """Return what goes with an instant.

        Raises
        ------
        TimelineError, CorruptFileError
            Its completed file is gone, or cannot be read.
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
        return f"{self.time} {self.action}, {_told(self)}"


@dataclass(frozen=True, slots=True, repr=False)
class Undoing:
    """What a rollback or a restore takes off a table; false if that is nothing.

    Parameters
    ----------
    target : str
        Time of the newest completed write that stays; empty if none does.
    losses : tuple of Loss
        The instants that go, the newest first.
    """

    target: str
    losses: tuple[Loss, ...]

    def __bool__(self) -> bool:
        return bool(self.losses)

    def __repr__(self) -> str:
        return f"<Undoing: {self}>"

    def __str__(self) -> str:
        target = f"back to {self.target}" if self.target else "back to the empty table"
        if not self.losses:
            return f"{target}, nothing to do"
        if len(self.losses) == 1:
            return f"{target}, without {self.losses[0]}"
        return f"{target}, without {counted(len(self.losses), 'instant')}, {_told(self)}"

    @property
    def bytes(self) -> int:
        """Size of those files."""
        return sum(loss.bytes for loss in self.losses)

    @property
    def files(self) -> int:
        """Files of completed instants that go, or of which blocks are hidden."""
        return sum(loss.files for loss in self.losses)

    @property
    def rows(self) -> int:
        """Rows that were inserted, updated and deleted by completed instants that go."""
        return sum(loss.rows for loss in self.losses)

    @property
    def returning(self) -> int:
        """File groups that completed instants that go had replaced, or deleted."""
        return sum(loss.returning for loss in self.losses)


def _told(lost: Loss | Undoing) -> str:
    """Say what goes and what comes back."""
    files = f"{counted(lost.files, 'file')} ({size_text(lost.bytes)})"
    back = f", {counted(lost.returning, 'file group')} back" if lost.returning else ""
    return f"{files} and {counted(lost.rows, 'row')} lost{back}"


def check_written_since(storage: Storage, times: Iterable[str]) -> None:
    """Refuse to take back what was written before the timeline came into its layout.

    Parameters
    ----------
    storage : Storage
        Rooted at the table's base path.
    times : iterable of str
        Of the instants that are to be taken back.

    Raises
    ------
    TimelineError
        One of them is older: log files and markers of then are another layout's.
    """
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
