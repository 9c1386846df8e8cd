"""Loading the active timeline, and what its instants did; what is known is not read again."""

from __future__ import annotations

from base64 import b64decode, b64encode
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from hoodie_ds.errors import NotFoundError, TimelineError
from hoodie_ds.storage.names import names_in, names_since
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.commit_metadata import CommitMetadata
from hoodie_ds.timeline.instant import Instant
from hoodie_ds.timeline.instants import Timeline
from hoodie_ds.timeline.layout.v1 import V1
from hoodie_ds.timeline.paths import commit_path
from hoodie_ds.timeline.settled import Settled
from hoodie_ds.timeline.summaries import newest_summary, read_summary, write_summary

__all__ = ["Timeline", "load_timeline", "read_commit", "save_timeline"]

_TABLES: Final = 8
"""Tables of which a process remembers the last timeline."""
_UNSETTLED: Final = 150
"""Completed instants that are never settled: more than Hudi keeps of an active timeline."""
_SUMMARY: Final = "timeline"


def load_timeline(storage: Storage) -> Timeline:
    """Read the active timeline: the files of its layout's folder.

    What is new or gone since the last time is taken in, so that a long timeline is not taken apart
    anew. A storage that lists all names at once is asked for all of them, and the answer is exact.
    One that lists a thousand at a time is asked for those that are not settled, and for all where
    one of these is gone or the table was restored; see `hoodie_ds.timeline.settled`.

    Parameters
    ----------
    storage : Storage
        Rooted at the table's base path.

    Raises
    ------
    StorageError
        The folder cannot be listed.
    """
    memory = _memory(storage)
    known = memory.known
    if known is None and not memory.is_misled:
        known = read_summary(storage, _SUMMARY, _summed_up)
        memory.saved = "" if known is None else known.start
    found = None if known is None else _with_changes(storage, known)
    memory.known = _with_more_settled(found or _of_all(storage))
    return memory.known.timeline


def save_timeline(storage: Storage) -> None:
    """Write down the settled instants that this process knows, where more are since the last time.

    Raises
    ------
    StorageError
        They cannot be written, which nothing else depends on.
    """
    memory = _memory(storage)
    known = memory.known
    if known is None or known.start <= memory.saved:
        return
    memory.saved = newest_summary(storage, _SUMMARY).up_to
    if known.start <= memory.saved:
        return
    content = {
        "settled": b64encode(known.timeline.settled.packed).decode(),
        "digest": known.timeline.settled.digest,
        "savepoints": [V1.file_name(i) for i in known.timeline.savepoints],
        "names": [name for name in known.names if V1.parse(name)],
        "earlier": known.earlier[0],
    }
    write_summary(storage, _SUMMARY, known.start, content)
    memory.saved = known.start


@dataclass(frozen=True, slots=True)
class _Known:
    """A timeline and the names that it was made of.

    Parameters
    ----------
    timeline : Timeline
        What they made.
    names : set of str
        Those from `start` on.
    start : str
        Second at which what is not settled begins, 14 digits; empty if nothing is.
    earlier : tuple of int and (int or None)
        How many names come before, and a sum of their hashes in this process, if known.
    """

    timeline: Timeline
    names: set[str]
    start: str = ""
    earlier: tuple[int, int | None] = (0, 0)


@dataclass(slots=True)
class _Memory:
    """What this process knows of a table's timeline."""

    known: _Known | None = None
    saved: str = ""
    is_misled: bool = False

    def forget(self) -> None:
        """Have all names looked at next time, as one that should be there is not."""
        self.known, self.is_misled = None, True


@lru_cache(maxsize=_TABLES)
def _memory(_: Storage) -> _Memory:
    return _Memory()


def _of_all(storage: Storage) -> _Known:
    names = set(names_in(storage, V1.folder))
    return _Known(_of_names(names), names)


def _summed_up(content: Mapping[str, Any]) -> _Known:
    """What a summary says; see `save_timeline`."""
    settled = Settled.unpacked(b64decode(content["settled"]), content["digest"])
    names = set(content["names"])
    timeline = replace(_of_names({*names, *content["savepoints"]}), settled=settled)
    return _Known(timeline, names, content["up_to"], (content["earlier"], None))


def _with_changes(storage: Storage, known: _Known) -> _Known | None:
    """What is known, with what changed since; None if all names are to be looked at."""
    listed = names_since(storage, V1.folder, known.start) if known.start else None
    if listed is not None:
        names = set(listed)
        lost = any(V1.parse(name) for name in known.names - names)
        if lost or any(".restore" in name for name in names - known.names):
            return None
        return replace(known, timeline=_changed(known, names), names=names)
    every = names_in(storage, V1.folder)
    names = {name for name in every if name >= known.start}
    earlier = _counted([name for name in every if "0" <= name < known.start])
    if earlier[0] != known.earlier[0] or known.earlier[1] not in (None, earlier[1]):
        return None
    return replace(known, timeline=_changed(known, names), names=names, earlier=earlier)


def _counted(names: list[str]) -> tuple[int, int]:
    """Count names and sum up their hashes."""
    return len(names), sum(map(hash, names))


def _with_more_settled(known: _Known) -> _Known:
    """Settle what is older than many completed instants, and than all pending ones."""
    timeline = known.timeline
    if len(timeline.recent) < 2 * _UNSETTLED:
        return known
    ends = (timeline.recent[-_UNSETTLED], *timeline.pending[:1])
    start = min(instant.time[:14] for instant in ends)
    older = _before(timeline.recent, start)
    settled = timeline.settled.extended(older)
    if not older or settled is None:
        return known
    recent = timeline.recent[len(older) :]
    count, total = _counted([name for name in known.names if "0" <= name < start])
    before, hashes = known.earlier
    return _Known(
        replace(timeline, recent=recent, settled=settled),
        {name for name in known.names if name >= start},
        start,
        (before + count, None if hashes is None else hashes + total),
    )


def _of_names(names: Iterable[str]) -> Timeline:
    found = (V1.parse(name) for name in sorted(names))
    return Timeline.of(instant for instant in found if instant is not None)


def _changed(known: _Known, names: set[str]) -> Timeline:
    """Return the timeline of some names, given that of others which are mostly the same."""
    timeline = known.timeline
    changed = [instant.time for name in known.names ^ names if (instant := V1.parse(name))]
    if not changed:
        return timeline
    since = min(changed)[:14]
    later = _of_names(name for name in names if name >= since)
    return replace(
        timeline,
        recent=_before(timeline.recent, since) + later.recent,
        pending=_before(timeline.pending, since) + later.pending,
        savepoints=_before(timeline.savepoints, since) + later.savepoints,
    )


def _before(instants: tuple[Instant, ...], second: str) -> tuple[Instant, ...]:
    """Instants of earlier seconds: 14 digits compare alike with times of 14 and of 17."""
    return instants[: bisect_left(instants, second, key=lambda instant: instant.time)]


@lru_cache(maxsize=512)
def read_commit(storage: Storage, instant: Instant) -> CommitMetadata:
    """Read what a completed write instant did; kept, as completed files never change.

    Raises
    ------
    TimelineError
        The instant has been archived since the timeline was loaded.
    CorruptFileError
        The file is not what a version 6 table holds there.
    """
    path = commit_path(instant)
    try:
        data = storage.read(path)
    except NotFoundError as error:
        _memory(storage).forget()
        raise TimelineError(
            f"{path} is gone: the instant was archived or rolled back while it was being read; "
            "load the table again"
        ) from error
    return CommitMetadata.from_bytes(data, path)
