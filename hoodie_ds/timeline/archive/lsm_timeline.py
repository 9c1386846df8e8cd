"""The archived timeline of layout 2: Parquet files of instants in ``.hoodie/timeline/history``.

`hoodie_ds.timeline.archive.lsm_snapshot` says which files count. A row is an instant with the bytes
of its files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.errors import CorruptFileError, NotFoundError
from hoodie_ds.formats.parquet.base_file_reader import read_base_file
from hoodie_ds.hints import COPY
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.archive.each_file import each_file
from hoodie_ds.timeline.archive.lsm_snapshot import ArchiveFile, newest_snapshot
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.timeline import Timeline, once_per_timeline

_TIME, _ENDED, _ACTION, _BODY = "instantTime", "completionTime", "action", "metadata"
_PLAN: Final = "plan"
_SCHEMA: Final = pa.schema(
    [
        (_TIME, pa.string()),
        (_ENDED, pa.string()),
        (_ACTION, pa.string()),
        (_BODY, pa.binary()),
        (_PLAN, pa.binary()),
    ]
)


@dataclass(frozen=True, slots=True)
class ArchivedRow:
    """An instant in a file of the archive.

    `time` and `ended` are its requested and completion time, `action` is that of the completed
    instant, `body` and `plan` are empty where the archive has nothing.
    """

    time: str
    ended: str
    action: Action
    body: bytes
    plan: bytes

    @property
    def key(self) -> tuple[str, Action]:
        """Time and action, which no other instant has both of."""
        return self.time, self.action


def archived_body(storage: Storage, instant: Instant) -> bytes | None:
    """Return the content of an instant's completed file; None if the archive does not have it."""

    def listed() -> Iterator[ArchiveFile]:
        files = reversed(newest_snapshot(storage).files)
        return (file for file in files if file.may_hold(instant.time))

    for _, rows in each_file(storage, listed, partial(_read, columns=[_TIME, _BODY])):
        found = rows.filter(pc.field(_TIME) == instant.time)
        if found.num_rows:
            body = found[_BODY][0].as_py()
            return None if body is None else bytes(body)
    return None


def archived_keys(storage: Storage, file: ArchiveFile) -> list[tuple[str, str]]:
    """Return times and actions of the instants in a file of the archive.

    Raises `NotFoundError` if the file is gone: it was merged into another one.
    """
    return _pairs(_read(storage, file, [_TIME, _ACTION]))


def whole_rows(storage: Storage, file: ArchiveFile) -> Iterator[ArchivedRow]:
    """Yield all instants in a file of the archive, the oldest first; raises as `archived_keys`."""
    rows = _read(storage, file, _SCHEMA.names).sort_by(_TIME)
    for found in zip(*(column.to_pylist() for column in rows.columns), strict=True):
        time, end, action, body, plan = found
        try:
            known = Action(action)
        except ValueError as error:
            raise CorruptFileError(
                f"{file.path}: instant {time} has the action {action!r}, which is unknown",
                COPY,
            ) from error
        yield ArchivedRow(time, end or time, known, body or b"", plan or b"")


def archived_bodies(
    storage: Storage, file: ArchiveFile, action: Action
) -> list[tuple[str, bytes | None]]:
    """Return times and bodies of an action's instants in a file; raises as `archived_keys`."""
    rows = _read(storage, file, [_TIME, _ACTION, _BODY])
    return _pairs(rows.filter(pc.field(_ACTION) == action.value).select([_TIME, _BODY]))


def archived_rows(
    storage: Storage, file: ArchiveFile, bodies: bool = False
) -> list[tuple[Instant, bytes | None]]:
    """Return the instants in a file by time, with their bodies if asked.

    Raises as `archived_keys`.
    """
    columns = [_TIME, _ENDED, _ACTION, *([_BODY] if bodies else [])]
    rows = sorted(_read(storage, file, columns).to_pylist(), key=lambda row: str(row[_TIME]))
    return [
        (
            Instant(
                row[_TIME], Action(row[_ACTION]), State.COMPLETED, 0, 2, str(row[_ENDED] or "")
            ),
            row.get(_BODY),
        )
        for row in rows
    ]


def each_archived_rows(
    storage: Storage, bodies: bool = False
) -> Iterator[tuple[ArchiveFile, list[tuple[Instant, bytes | None]]]]:
    """Yield the files of the archive, those of later times first, with their `archived_rows`."""

    def listed() -> list[ArchiveFile]:
        files = newest_snapshot(storage).files
        return sorted(files, key=lambda file: max(file.bounds), reverse=True)

    return each_file(storage, listed, partial(archived_rows, bodies=bodies))


def ended(storage: Storage, timeline: Timeline, time: str) -> str | None:
    """Return when the write of a time was completed; None if neither timeline nor archive has it.

    The archive is read for what the active timeline does not have: seldom, as files are cleaned
    before the instants that wrote them are archived.
    """
    instant = timeline.commit_at(time)
    if instant is not None:
        return instant.ended
    if timeline.is_pending(time) and not timeline.starts_after(time):
        return None
    return archived_end(storage, timeline, time)


def archived_end(storage: Storage, timeline: Timeline, time: str) -> str | None:
    """Return the completion time of an archived instant; None if the archive has none of a time.

    The timeline was loaded before the archive is read.
    """
    files = _files(storage, timeline)

    def read(storage: Storage, file: ArchiveFile) -> Mapping[str, str]:
        try:
            return _times(storage, file)
        except NotFoundError:  # merged into another one
            files[:] = newest_snapshot(storage).files
            raise

    found = each_file(storage, lambda: [f for f in files if f.may_hold(time)], read)
    return next((times[time] for _, times in found if time in times), None)


@once_per_timeline
def _files(storage: Storage, timeline: Timeline) -> list[ArchiveFile]:
    return list(newest_snapshot(storage).files)


@lru_cache(maxsize=64)
def _times(storage: Storage, file: ArchiveFile) -> Mapping[str, str]:
    """Completion times of the instants in a file of the archive."""
    rows = _read(storage, file, [_TIME, _ENDED])
    return {time: end or time for time, end in _pairs(rows) if time}


def _pairs(rows: pa.Table) -> list[tuple[Any, Any]]:
    """The values of two columns."""
    first, second = (column.to_pylist() for column in rows.columns)
    return list(zip(first, second, strict=True))


def _read(storage: Storage, file: ArchiveFile, columns: list[str]) -> pa.Table:
    with storage.open_input(file.path) as source:
        return read_base_file(source, _SCHEMA, columns, file.path)
