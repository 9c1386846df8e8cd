"""The archived timeline of layout 2: Parquet files of instants in ``.hoodie/timeline/history``.

``_version_`` names the newest manifest, and that the files that count: others in the folder were
merged into them, or are of an archiver that was killed. A row is an instant with the bytes of its
files. A file's name begins with the first and the last instant time in it, which an upgrade from
layout 1 may give in either order (Hudi's ``LSMTimeline``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_ds.errors import CorruptFileError, NotFoundError
from hoodie_ds.formats.parquet.base_file_reader import read_base_file
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.instant import Instant
from hoodie_ds.timeline.instants import Timeline
from hoodie_ds.timeline.layout.v2 import V2

HISTORY: Final = f"{V2.folder}/history"
VERSION: Final = f"{HISTORY}/_version_"
_NAME: Final = re.compile(r"([0-9]{14,17})_([0-9]{14,17})_[0-9]+\.parquet", re.ASCII)
_TIME, _ENDED, _BODY = "instantTime", "completionTime", "metadata"
_SCHEMA: Final = pa.schema([(_TIME, pa.string()), (_ENDED, pa.string()), (_BODY, pa.binary())])
_TRIES: Final = 5


def lsm_files(storage: Storage) -> tuple[str, ...]:
    """Return the names of the files that the newest manifest lists; none without an archive.

    Raises
    ------
    CorruptFileError
        The version or the manifest is damaged, or the manifest is gone.
    """
    for _ in range(_TRIES):
        try:
            version = storage.read(VERSION).strip()
        except NotFoundError:
            return ()
        if not version.isdigit():
            raise _damaged(VERSION, f"{version[:40]!r} is no number")
        path = f"{HISTORY}/manifest_{version.decode()}"
        try:
            return _listed(storage.read(path), path)
        except NotFoundError:
            continue  # an archiver has put newer ones, and taken this one away
    raise _damaged(VERSION, f"it names {path}, which is missing")


def archived_body(storage: Storage, instant: Instant) -> bytes | None:
    """Return what the completed file of an instant said; None if the archive does not have it.

    Raises
    ------
    CorruptFileError
        A file of the archive is damaged.
    """
    for name in reversed(lsm_files(storage)):
        if not _may_hold(name, instant.time):
            continue
        rows = _rows(storage, name, [_TIME, _BODY])
        found = None if rows is None else rows.filter(pc.field(_TIME) == instant.time)
        if found is not None and found.num_rows:
            body = found[_BODY][0].as_py()
            return None if body is None else bytes(body)
    return None


def ended(storage: Storage, timeline: Timeline, time: str) -> str | None:
    """Return when the write of a time was completed, as its timeline or the archive tells.

    Only of what lies before the active timeline the archive is asked: which is seldom needed, as
    the cleaning of files goes before the archiving of those who wrote them.

    Parameters
    ----------
    storage : Storage
        Rooted at the table's base path.
    timeline : Timeline
        The table as it is looked at.
    time : str
        Requested time of the write.

    Returns
    -------
    str or None
        None where neither has the instant.

    Raises
    ------
    CorruptFileError
        A file of the archive is damaged.
    """
    instant = timeline.commit_at(time)
    if instant is not None:
        return instant.ended
    return archived_end(storage, timeline, time) if timeline.starts_after(time) else None


def archived_end(storage: Storage, timeline: Timeline, time: str) -> str | None:
    """Return the completion time of an archived instant; None if the archive has none of a time.

    Parameters
    ----------
    storage : Storage
        Rooted at the table's base path.
    timeline : Timeline
        Loaded before the archive is looked at.
    time : str
        Requested time of the instant.

    Raises
    ------
    CorruptFileError
        A file of the archive is damaged.
    """
    memory = _memory(storage)
    if memory.timeline is not timeline:
        memory.files, memory.timeline = lsm_files(storage), timeline
    for name in memory.files:
        if _may_hold(name, time) and time in (times := _times(storage, name)):
            return times[time]
    return None


@dataclass(slots=True)
class _Memory:
    """The files of the archive when a timeline was looked at."""

    timeline: Timeline | None = None
    files: tuple[str, ...] = ()


@lru_cache(maxsize=8)
def _memory(storage: Storage) -> _Memory:
    return _Memory()


@lru_cache(maxsize=64)
def _times(storage: Storage, name: str) -> Mapping[str, str]:
    """Completion times of the instants in a file of the archive."""
    rows = _rows(storage, name, [_TIME, _ENDED])
    if rows is None:  # merged into another one, which says the same of what was not looked up
        return {}
    pairs = zip(rows[_TIME].to_pylist(), rows[_ENDED].to_pylist(), strict=True)
    return {time: end or time for time, end in pairs if time}


def _rows(storage: Storage, name: str, columns: list[str]) -> pa.Table | None:
    path = f"{HISTORY}/{name}"
    try:
        with storage.open_input(path) as source:
            return read_base_file(source, _SCHEMA, columns, path)
    except NotFoundError:
        return None


def _listed(content: bytes, path: str) -> tuple[str, ...]:
    try:
        names = [str(file["fileName"]) for file in json.loads(content)["files"]]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise _damaged(path, repr(error)[:200]) from error
    for name in names:
        if _NAME.fullmatch(name) is None:
            raise _damaged(path, f"{name[:100]!r} is no file of the archive")
    return tuple(names)


def _may_hold(name: str, time: str) -> bool:
    match = _NAME.fullmatch(name)
    assert match is not None
    low, high = match.groups()
    return low <= time <= high or low > high  # an upgrade's, whose rows are in no order


def _damaged(path: str, what: str) -> CorruptFileError:
    return CorruptFileError(
        f"{path} does not tell the files of the archived timeline ({what}); restore the folder "
        "from a copy"
    )
