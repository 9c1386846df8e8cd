"""Loading the active timeline, and what its instants did; nothing known is read twice."""

from __future__ import annotations

from base64 import b64decode, b64encode
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any, Final
from zlib import crc32

from hoodie_ds.config.properties import keys
from hoodie_ds.config.properties.java_properties import parse_properties
from hoodie_ds.errors import CorruptFileError, NotFoundError, TimelineError
from hoodie_ds.hints import given_up
from hoodie_ds.storage.protocol import Storage, names_in
from hoodie_ds.timeline.archive.archived_timeline import find_archived, has_completed
from hoodie_ds.timeline.archive.lsm_timeline import archived_body, archived_end
from hoodie_ds.timeline.bodies.commit_metadata import CommitMetadata
from hoodie_ds.timeline.commands import changing
from hoodie_ds.timeline.instant import Instant
from hoodie_ds.timeline.paths import LAYOUTS, PROPERTIES, V1, V2, commit_path
from hoodie_ds.timeline.settled_instants import Settled
from hoodie_ds.timeline.summaries import newest_summary, read_summaries, write_summary
from hoodie_ds.timeline.timeline import Timeline

_TABLES: Final = 8
"""Tables whose last timeline a process keeps."""
_UNSETTLED: Final = 150
"""Completed instants that are never settled: more than Hudi keeps of an active timeline."""
_SUMMARIES: Final = {V1.version: "timeline", V2.version: "timeline2"}
"""Kinds of summaries by layout: a table may return to an earlier layout."""


def load_timeline(storage: Storage, layout: int) -> Timeline:
    """Read the active timeline: the files of its layout's folder.

    All names are listed each time, since another engine may complete, archive or roll back an
    instant of any time, and its clock may be behind. Only names that are new or gone since the last
    load are parsed; see `hoodie_ds.timeline.settled_instants`.
    """
    memory = _memory(storage, layout)
    known = memory.known
    if known is None:
        summed_up = read_summaries(storage, _SUMMARIES[layout], partial(_summed_up, layout))
        known = next(summed_up, _Known(Timeline(layout=layout)))
        memory.saved = known.start
    names = names_in(storage, LAYOUTS[layout].folder)
    memory.known = _with_more_settled(_as_listed(names, known))
    return memory.known.timeline


def steps_at(storage: Storage, layout: int, time: str) -> list[Instant]:
    """Return what the active timeline has at an instant time, one instant for each file.

    Every task asks for it, so only names that begin with the time are listed where the storage can.
    """
    names = names_in(storage, LAYOUTS[layout].folder, time)
    found = filter(None, map(LAYOUTS[layout].parse, sorted(names)))
    return [step for step in found if step.time == time]


def save_timeline(storage: Storage, layout: int) -> None:
    """Write a summary of the settled instants, if there are more since the last one.

    Nothing depends on a summary that cannot be written.
    """
    memory, kind = _memory(storage, layout), _SUMMARIES[layout]
    known, rule = memory.known, LAYOUTS[layout]
    if known is None or known.start <= memory.saved:
        return
    memory.saved = newest_summary(storage, kind).up_to
    if known.start <= memory.saved:
        return
    content = {
        "settled": b64encode(known.timeline.settled.packed).decode(),
        "digest": known.timeline.settled.digest,
        "savepoints": [rule.file_name(i) for i in known.timeline.savepoints],
        "names": [name for name in known.names if rule.parse(name)],
        "earlier": known.earlier,
    }
    write_summary(storage, kind, known.start, content)
    memory.saved = known.start


@dataclass(frozen=True, slots=True)
class _Known:
    """A timeline and the names that it was made of.

    `names` are those from `start` on, the second (14 digits) at which what is not settled begins;
    `start` is empty if nothing is settled. `earlier` has the number of names before, and the sum of
    their checksums (`_counted`).
    """

    timeline: Timeline = field(default_factory=Timeline)
    names: set[str] = field(default_factory=set)
    start: str = ""
    earlier: tuple[int, int] = (0, 0)


@dataclass(slots=True)
class _Memory:
    """What this process knows of a table's timeline."""

    known: _Known | None = None
    saved: str = ""


@lru_cache(maxsize=_TABLES)
def _memory(_: Storage, layout: int) -> _Memory:
    return _Memory()


def _summed_up(layout: int, content: Mapping[str, Any]) -> _Known:
    """What a summary says; see `save_timeline`."""
    settled = Settled.unpacked(b64decode(content["settled"]), content["digest"], layout)
    names = set(content["names"])
    timeline = replace(_of_names({*names, *content["savepoints"]}, layout), settled=settled)
    return _Known(timeline, names, content["up_to"], tuple(content["earlier"]))


def _as_listed(every: list[str], known: _Known) -> _Known:
    """The timeline of all listed names, by changing the known one."""
    names = {name for name in every if name >= known.start}
    if known.earlier != _counted([name for name in every if "0" <= name < known.start]):
        return _Known(_of_names(every, known.timeline.layout), set(every))
    return replace(known, timeline=_changed(known, names), names=names)


def _counted(names: list[str]) -> tuple[int, int]:
    """Return the number of names, and a sum of checksums by which sets of them are known."""
    return len(names), sum(map(crc32, map(str.encode, names)))


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
    return _Known(
        replace(timeline, recent=recent, settled=settled),
        {name for name in known.names if name >= start},
        start,
        (known.earlier[0] + count, known.earlier[1] + total),
    )


def _of_names(names: Iterable[str], layout: int) -> Timeline:
    found = filter(None, map(LAYOUTS[layout].parse, sorted(names)))
    return Timeline.of(found, layout=layout)


def _changed(known: _Known, names: set[str]) -> Timeline:
    """Return the timeline of some names, given that of others which are mostly the same."""
    timeline = known.timeline
    parse = LAYOUTS[timeline.layout].parse
    changed = [instant.time for name in known.names ^ names if (instant := parse(name))]
    if not changed:
        return timeline
    since = min(changed)[:14]
    later = _of_names((name for name in names if name >= since), timeline.layout)
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
    """Read what a completed write instant did; cached, as completed files never change.

    An instant that was archived since the timeline was loaded is read from the archive, so that
    readers continue. Raises `TimelineError` if the instant was rolled back since then.
    """
    path = commit_path(instant)
    try:
        data = storage.read(path)
    except NotFoundError as error:
        archived = _find_archived(storage, instant, path)
        if archived is not None:
            return archived
        raise TimelineError(
            f"{path} is gone: the instant was archived or rolled back while it was being read; "
            "load the table again"
        ) from error
    return parse_commit(storage, instant, data, path)


def parse_commit(storage: Storage, instant: Instant, data: bytes, path: str) -> CommitMetadata:
    """Parse the file of a completed write; if it is damaged the error says how to give it up."""
    try:
        if not data:
            raise CorruptFileError(f"{storage.root}/{path} is empty")
        return CommitMetadata.from_bytes(data, f"{storage.root}/{path}")
    except CorruptFileError as error:
        remedy = given_up(changing(storage, "rollback", instant.time))
        raise error.with_remedy(remedy) from error


def _find_archived(storage: Storage, instant: Instant, path: str) -> CommitMetadata | None:
    if instant.num_batches:  # a manifest, which is never archived
        return None
    if instant.layout != V1.version:
        body = archived_body(storage, instant)
        return None if body is None else CommitMetadata.from_bytes(body, path)
    with suppress(NotFoundError):
        entry = find_archived(storage, archive_folder(storage), instant)
        return None if entry is None else entry.commit(path)
    return None


def is_archived(storage: Storage, timeline: Timeline, time: str) -> bool:
    """Whether the archive of a timeline has a completed instant of a time.

    Reads files of the archive, the newest first: for rare questions.
    """
    if timeline.layout != V1.version:
        return archived_end(storage, timeline, time) is not None
    return has_completed(storage, archive_folder(storage), time)


def archive_folder(storage: Storage) -> str:
    """Path of the archive of layout 1, of a metadata table too."""
    raw = parse_properties(storage.read(PROPERTIES), f"{storage.root}/{PROPERTIES}")
    return f"{V1.folder}/{raw.get(keys.ARCHIVE_FOLDER) or 'archived'}"
