"""Results of calls of table services, as returned to the caller and logged."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar, overload

from hoodie_ds.config.service_switches import Service
from hoodie_ds.log import Log
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.bodies.clean_metadata import CleanerPlan
from hoodie_ds.timeline.bodies.clustering_plan import ClusteringPlan
from hoodie_ds.timeline.bodies.commit_metadata import WriteStat
from hoodie_ds.timeline.bodies.compaction_plan import CompactionPlan
from hoodie_ds.timeline.file_changes import file_changes
from hoodie_ds.timeline.instant import Instant

PlanT = TypeVar("PlanT")
T_co = TypeVar("T_co", covariant=True)

_UNITS: Final = ("bytes", "KB", "MB", "GB", "TB")
_UNIT: Final = 1024
_NAMED: Final = 3
"""Instant times that a string lists; of more only the first and the last are shown."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a table service wrote and deleted.

    Parameters
    ----------
    files_written, bytes_written : int
        New data files.
    rows_written : int
        Rows in them; of base files all that they hold.
    files_deleted, bytes_deleted : int
        Deleted files, without those that others had deleted before.
    """

    files_written: int = 0
    bytes_written: int = 0
    rows_written: int = 0
    files_deleted: int = 0
    bytes_deleted: int = 0

    @classmethod
    def of_files(cls, stats: Iterable[WriteStat]) -> Work:
        """Return what a commit has written, by its write stats."""
        work = cls()
        for stat in stats:
            work += cls(1, stat.file_size_bytes, stat.num_writes)
        return work

    def __add__(self, other: Work) -> Work:
        return Work(
            self.files_written + other.files_written,
            self.bytes_written + other.bytes_written,
            self.rows_written + other.rows_written,
            self.files_deleted + other.files_deleted,
            self.bytes_deleted + other.bytes_deleted,
        )

    def __str__(self) -> str:
        return self.text()

    def text(self, would: str = "") -> str:
        """Return its string, with `would` before the verbs, as "would be "."""
        written = f"{counted(self.files_written, 'file')} {would}written"
        if self.bytes_written:
            rows = counted(self.rows_written, "row")
            written += f" ({size_text(self.bytes_written)}, {rows})"
        deleted = f"{counted(self.files_deleted, 'file')} {would}deleted"
        if self.bytes_deleted:
            deleted += f" ({size_text(self.bytes_deleted)})"
        both = ((written, self.files_written), (deleted, self.files_deleted))
        said = [part for part, files in both if files]
        return ", ".join(said) or "no files"


@dataclass(frozen=True, slots=True, repr=False)
class _OfPlan(ABC, Generic[PlanT]):
    """What was carried out by one plan, or would be."""

    instant_time: str | None  # None if it is not planned yet
    plan: PlanT

    def __repr__(self) -> str:
        time = self.instant_time or "not planned yet"
        return f"<{type(self).__name__} {time}: {self._extent()}>"

    @abstractmethod
    def _extent(self) -> str:
        """Return the extent of the plan."""


class Compaction(_OfPlan[CompactionPlan]):
    """A compaction that was carried out, or would be; its plan says what it merges."""

    __slots__ = ()

    def _extent(self) -> str:
        logs = sum(len(one.log_files) for one in self.plan.operations)
        groups = counted(len(self.plan.operations), "file group")
        return f"{groups}, {counted(logs, 'log file')}"


class Clustering(_OfPlan[ClusteringPlan]):
    """A clustering that was carried out, or would be; its plan says what it rewrites."""

    __slots__ = ()

    def _extent(self) -> str:
        groups = sum(len(group.slices) for group in self.plan.groups)
        return f"{counted(groups, 'file group')} in {counted(len(self.plan.groups), 'group')}"


class Cleaning(_OfPlan[CleanerPlan]):
    """A clean that was carried out, or would be; its plan says what it deletes."""

    __slots__ = ()

    def _extent(self) -> str:
        files = counted(len(self.plan.paths), "file")
        return f"{files} in {counted(len(self.plan.files), 'partition')}, {self.plan.policy}"


@dataclass(frozen=True, slots=True, repr=False)
class ServiceResult(Sequence[T_co]):
    """What a call of a table service did, or would do: a sequence, empty if there was nothing.

    So it is false if there was nothing to do, and its string says so.

    Parameters
    ----------
    service : Service
        The service.
    done : tuple
        What was carried out: a `Compaction`, `Clustering` or `Cleaning` for each instant, also of
        plans that others had made; each archived `Instant` of archiving.
    work : Work
        Files, bytes and rows of all of them; of a dry call as far as the plans say.
    dry : bool
        Whether nothing was changed.
    duration_ms : int
        Duration in milliseconds.
    reason : str
        Why nothing was done, if there may be something to do.
    """

    service: Service
    done: tuple[T_co, ...] = ()
    work: Work = Work()
    dry: bool = False
    duration_ms: int = 0
    reason: str = ""

    @overload
    def __getitem__(self, index: int) -> T_co: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[T_co]: ...

    def __getitem__(self, index: int | slice) -> T_co | Sequence[T_co]:
        return self.done[index]

    def __len__(self) -> int:
        return len(self.done)

    @property
    def times(self) -> tuple[str, ...]:
        """Instant times of what was carried out; the plan of a dry call has none yet."""
        return tuple(time for time in map(_instant_time, self.done) if time is not None)

    def __repr__(self) -> str:
        return f"<ServiceResult: {self}>"

    def __str__(self) -> str:
        what = f"{'dry ' if self.dry else ''}{self.service.value}"
        if not self.done:
            return f"{what}, nothing to do{self.reason and ' now, '}{self.reason}"
        times = list(self.times) + ["new"] * (len(self.done) - len(self.times))
        if len(times) > _NAMED:
            times = [f"of {counted(len(times), 'instant')}, {times[0]} to {times[-1]}"]
        extent = self.work.text("would be ") if self.dry else f"{self.work}, {self.duration_ms} ms"
        return f"{what} {' '.join(times)}, {extent}"


def work_of(table: Table, time: str) -> Work:
    """Return what the completed instant of a service wrote, whichever process completed it."""
    completed = table.load_timeline().commit_at(time)
    if completed is None:  # it was rolled back since
        return Work()
    return Work.of_files(file_changes(table.storage, completed).added.values())


def tell(root: str, service: Service, time: str, work: Work) -> None:
    """Log that a service has carried out an instant."""
    Log(root, time).info("%s %s: %s", service.value, time, work)


def size_text(size: int) -> str:
    """Format a number of bytes for people, such as ``1.5 MB``."""
    number, unit = float(size), 0
    while number >= _UNIT and unit < len(_UNITS) - 1:
        number, unit = number / _UNIT, unit + 1
    return f"{number:,.1f} {_UNITS[unit]}" if unit else counted(size, "byte")


def counted(number: int, noun: str) -> str:
    """Format a number of things, such as ``2 files``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _instant_time(done: object) -> str | None:
    if isinstance(done, Instant):
        return done.time
    assert isinstance(done, _OfPlan), done
    return done.instant_time
