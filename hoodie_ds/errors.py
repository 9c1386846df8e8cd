"""The one exception tree. Every error that a user can meet derives from `HoodieError`.

A message says what is wrong, which key, path or value it is about, and what to do. Catch
`HoodieError` for anything this library refuses or fails at; catch a leaf to react to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_SHOWN: Final = 40


class HoodieError(Exception):
    """Root of all errors raised by this library."""


class OptionError(HoodieError):
    """Options are unknown, malformed, missing, or contradict the table or one another.

    Parameters
    ----------
    key : str
        The option as the user wrote it; the first one if several are refused.
    value : object
        Its value; ``None`` if the option is missing.
    remedy : str
        What is allowed, or what to do instead.
    more : sequence of OptionError
        Further errors in the options of the same call.
    """

    def __init__(
        self, key: str, value: object, remedy: str, more: Sequence[OptionError] = ()
    ) -> None:
        shown = "is not set" if value is None else f"= {str(value)[:200]!r} is refused"
        message = f"option {key!r} {shown}: {remedy}"
        if more:
            listed = [message, *map(str, more[:_MOST_SHOWN])]
            numbered = " ".join(f"({number}) {one}." for number, one in enumerate(listed, 1))
            message = f"{1 + len(more)} options are refused. {numbered}"
        super().__init__(message)
        self.key = key
        self.value = value
        self.remedy = remedy
        self.more = tuple(more)

    @classmethod
    def of(cls, problems: Sequence[OptionError]) -> OptionError:
        """Return one error for several; `key` and `value` are those of the first."""
        first, *rest = (part for problem in problems for part in problem.parts)
        return cls(first.key, first.value, first.remedy, rest) if rest else first

    @property
    def parts(self) -> tuple[OptionError, ...]:
        """One error for each option that is refused."""
        return (OptionError(self.key, self.value, self.remedy), *self.more)

    def __reduce__(self) -> tuple[type[OptionError], tuple[object, ...]]:
        return type(self), (self.key, self.value, self.remedy, self.more)


class MissingPackageError(HoodieError, ImportError):
    """A package that only some installations need is not installed, or is too old."""


class TableNotFoundError(HoodieError):
    """The base path holds no Hudi table."""


class UnsupportedTableError(HoodieError):
    """The table exists but has a version or feature that this release does not handle."""


class SchemaError(HoodieError):
    """A batch's schema, or a value, cannot be stored in, or does not fit, the table's schema."""


class MergeHookError(HoodieError):
    """A user's merge hook failed, or its result cannot be used."""


class RecordKeyError(HoodieError):
    """A row has no usable record key or partition value."""


class MergeCardinalityError(HoodieError):
    """Rows of a merge's source match one row of the table, or insert one key; nothing was written.

    Which of them would win is not defined, as in SQL.
    """


class StorageError(HoodieError):
    """The file system refused or failed an operation."""


class NotFoundError(StorageError):
    """A requested file does not exist."""


class AlreadyExistsError(StorageError):
    """A put-if-absent found its name taken, or a replace another version than the one it knew."""


class AccessDeniedError(StorageError):
    """The file system denied access."""


class OutOfSpaceError(StorageError):
    """The file system is full or a quota is used up."""


class UnavailableError(StorageError):
    """A remote storage did not answer or asked to retry; the operation may have taken effect."""


class PathEscapeError(StorageError):
    """A path would leave the table's base path."""


class CorruptFileError(HoodieError):
    """A file of the table does not conform to its format.

    Parameters
    ----------
    damage : str
        What is wrong with which file.
    remedy : str
        What to do about it; empty if there is nothing to add.
    path : str
        The file, where code that knows the table may know a better remedy.
    """

    def __init__(self, damage: str, remedy: str = "", path: str = "") -> None:
        super().__init__(f"{damage}; {remedy}" if remedy else damage)
        self.damage = damage
        self.remedy = remedy
        self.path = path

    def with_remedy(self, remedy: str) -> CorruptFileError:
        """Return the same damage with another remedy."""
        return type(self)(self.damage, remedy)

    def __reduce__(self) -> tuple[type[CorruptFileError], tuple[str, str, str]]:
        return type(self), (self.damage, self.remedy, self.path)


class TimelineError(HoodieError):
    """The timeline does not allow the requested step."""


class ReplayMismatchError(HoodieError):
    """A batch's number is taken by a batch with other or unknown rows, or was passed over.

    The table is unchanged. The rows of the new batch may not be in the table; those of a number
    that was passed over are not.
    """


class MissedBatchesError(HoodieError):
    """The table has not seen earlier batches of the stream; nothing was written."""


class WriteConflictError(HoodieError):
    """Another writer changed what this write was based on; nothing was committed."""


class ClusteringConflictError(WriteConflictError):
    """A write changed file groups of a pending clustering's plan; nothing was committed.

    Parameters
    ----------
    message : str
        Names the clustering and a file group.
    instant_time : str
        The clustering's; empty if the error was restored from its message.
    """

    def __init__(self, message: str, instant_time: str = "") -> None:
        super().__init__(message)
        self.instant_time = instant_time

    def __reduce__(self) -> tuple[type[ClusteringConflictError], tuple[str, str]]:
        return type(self), (str(self), self.instant_time)


class CatalogError(HoodieError):
    """A catalog cannot be reached or refused a change; the table is unchanged."""


class DeltaSyncError(HoodieError):
    """The Delta log of a table cannot be brought up to date; the table is unchanged."""


class LockTimeoutError(HoodieError):
    """Other writers held the table's lock for too long, or took it over; nothing was committed."""


class CommitOutcomeUnknownError(HoodieError):
    """It is unknown whether the commit took effect; nothing was deleted."""
