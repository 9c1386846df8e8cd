"""The files of a timeline as they are in another layout: names, and the bytes of commits.

In layout 2 names have completion times. As in Hudi's upgrade that of an instant is the time at
which its completed file was written, but within what the timeline says of its order: after the
instant began, and before the next one did. So what a compaction has taken in is told from what
came after it even where the storage's clock is not that of the writers. Files of commits are JSON
in layout 1 and Avro in layout 2; all others are the same in both.

In layout 1 Hudi on the JVM takes the time at which a completed file was written for the completion
time, and by it tells to which base file log files belong that are named by their own instants. So
on a local disk, as in Hudi's downgrade, files keep the times that their names had.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from hoodie_ds.errors import CorruptFileError, SchemaError
from hoodie_ds.formats.avro.container import is_container, read_record
from hoodie_ds.storage.local import LocalStorage
from hoodie_ds.storage.protocol import FileStatus, Storage
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.bodies.commit_body import avro_of_json, json_body
from hoodie_ds.timeline.bodies.replace_plan import is_clustering
from hoodie_ds.timeline.instant import Action, Instant, State
from hoodie_ds.timeline.instant_time import epoch_ms, following, format_time, padded
from hoodie_ds.timeline.layout import LAYOUTS, V1
from hoodie_ds.timeline.paths import instant_path
from hoodie_ds.transaction.completion import carry_over

_BETWEEN_CHECKS: Final = 8
_OF_COMMITS: Final = frozenset({Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT})


@dataclass(frozen=True, slots=True)
class Source:
    """A file of the timeline as it is.

    Parameters
    ----------
    instant : Instant
        The step that it records.
    status : FileStatus
        Where it is, and when it was written.
    """

    instant: Instant
    status: FileStatus


def files_of(storage: Storage, layout: int) -> list[Source]:
    """Return the files of instants in the folder of a layout, by path.

    Parameters
    ----------
    storage : Storage
        Rooted at the table's base path.
    layout : int
        Version of the layout.
    """
    found = []
    for status in storage.list(LAYOUTS[layout].folder):
        instant = LAYOUTS[layout].parse(status.path.rpartition("/")[2])
        if instant is not None:
            found.append(Source(instant, status))
    return found


def converted(table: Table, files: Collection[Source], to: int, now_ms: int) -> dict[str, Source]:
    """Return where files of a timeline are to be in another layout, by path.

    Parameters
    ----------
    table : Table
        The table, in the layout that it has.
    files : collection of Source
        All files of its completed instants.
    to : int
        Version of the other layout.
    now_ms : int
        What time it is: no instant was completed later.
    """
    clustered = {f.instant.time for f in files if _is_plan_of_clustering(table.storage, f)}
    ends = {} if to == V1.version else _completion_times(table, files, now_ms)
    targets = {}
    for file in files:
        instant = file.instant
        action = instant.action
        if action is Action.CLUSTERING or (
            action is Action.REPLACE_COMMIT
            and instant.state is not State.COMPLETED
            and instant.time in clustered
        ):
            action = LAYOUTS[to].clustering
        end = ends.get(file.status.path, "")
        target = replace(instant, action=action, layout=to, completion_time=end)
        targets[instant_path(target)] = file
    return targets


def _is_plan_of_clustering(storage: Storage, file: Source) -> bool:
    instant, path = file.instant, file.status.path
    if instant.action is not Action.REPLACE_COMMIT or instant.state is not State.REQUESTED:
        return False
    return is_clustering(storage.read(path), path)


def _completion_times(table: Table, files: Collection[Source], now_ms: int) -> dict[str, str]:
    """Return the completion time of each completed file, by its path."""
    utc = table.properties.timeline_in_utc
    limits = next_times(file.instant.time for file in files)
    now = format_time(now_ms, utc)
    ends = {}
    for file in files:
        start = file.instant.time
        if file.instant.state is State.COMPLETED:
            modified = file.status.modified_ms
            written = format_time(modified, utc) if modified else padded(start)
            ends[file.status.path] = ended_within(start, min(written, now), limits.get(start))
    return ends


def next_times(times: Iterable[str]) -> Mapping[str, str]:
    """Return the time after each of some instant times, the last left out."""
    return dict(pairwise(sorted(set(times), key=padded)))


def ended_within(start: str, written: str, limit: str | None) -> str:
    """Return when an instant was completed: before the next one was begun.

    Parameters
    ----------
    start : str
        Its time.
    written : str
        When its completed file was written, as far as is known: a copy is written later.
    limit : str or None
        Time of the next instant, if there is one.
    """
    ended = max(following(padded(start)), written)
    if limit is not None and ended >= padded(limit):
        # The last moment before the next one begins; the same if that is one later.
        return _preceding(padded(limit), padded(start))
    return ended


def _preceding(time: str, start: str) -> str:
    """Return the instant time one millisecond earlier, or a start that is not before it."""
    before = str(int(time) - 1) if int(time[14:]) else start
    return max(before, start)


def put_converted(
    table: Table, targets: Mapping[str, Source], to: int, check: Callable[[], None]
) -> None:
    """Put files of a timeline where they are in another layout; may be done again.

    Parameters
    ----------
    table : Table
        The table, in the layout that it has.
    targets : mapping of str to Source
        From `converted`.
    to : int
        Version of the other layout.
    check : callable
        Called now and then; raises if others have gone on with the table. What is put late stays
        without effect: it is there already, or in a layout that the table does not have.

    Raises
    ------
    NotFoundError
        A file is gone.
    CorruptFileError
        A file is damaged.
    """
    storage = table.storage
    for number, (path, file) in enumerate(targets.items()):
        body = converted_body(storage.read(file.status.path), file.instant, to, file.status.path)
        if number % _BETWEEN_CHECKS == 0:
            check()
        carry_over(storage, path, body)
        ended = file.instant.completion_time
        if to == V1.version and ended and isinstance(storage, LocalStorage):
            storage.set_modified(path, epoch_ms(ended, table.properties.timeline_in_utc))


def converted_body(data: bytes, instant: Instant, to: int, path: str) -> bytes:
    """Return the content of a file of the timeline as another layout has it.

    Parameters
    ----------
    data : bytes
        As it is.
    instant : Instant
        The step that it records.
    to : int
        Version of the other layout.
    path : str
        Where it is from, for messages.

    Raises
    ------
    CorruptFileError
        It is damaged.
    """
    if instant.action not in _OF_COMMITS or not data:
        return data
    if instant.state is State.REQUESTED:
        plan = instant.action is Action.REPLACE_COMMIT or to != V1.version
        return data if plan else b""  # Hudi's upgrade puts an empty record where nothing was
    if is_container(data) == (to != V1.version):
        return data
    if to == V1.version:
        body = read_record(data, path)
        body.pop("version", None)
        return json_body(body)
    replaces = instant.action is Action.REPLACE_COMMIT and instant.state is State.COMPLETED
    try:
        return avro_of_json(json.loads(data), replaces=replaces)
    except (ValueError, TypeError, AttributeError, RecursionError, SchemaError) as error:
        raise CorruptFileError(f"{path} is not what a commit says: {error}") from error
