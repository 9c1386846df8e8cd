"""The files of a timeline as they are in another layout: names, and the bytes of commits.

In layout 2 names have completion times. As in Hudi's upgrade the completion time of an instant is
when its completed file was written, but limited by the timeline: after the instant began, and
before the next one did. So log files that a compaction merged are distinguished from later ones
even if the storage's clock is not that of the writers. Files of commits are JSON in layout 1 and
Avro in layout 2; all others are the same in both.

In layout 1 Hudi on the JVM uses the modification time of a completed file as the completion time,
and assigns log files named after their own instants to base files by it. So on a local disk, as in
Hudi's downgrade, files get the times that their names had as modification times.
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
from hoodie_ds.timeline.paths import LAYOUTS, V1, instant_path
from hoodie_ds.transaction.completion import carry_over

_BETWEEN_CHECKS: Final = 8
_OF_COMMITS: Final = frozenset({Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT})


@dataclass(frozen=True, slots=True)
class Source:
    """A file of the timeline, and the step that it records."""

    instant: Instant  # the step
    status: FileStatus


def files_of(storage: Storage, layout: int) -> list[Source]:
    """Return the files of instants in the folder of a layout."""
    found = []
    for status in storage.list(LAYOUTS[layout].folder):
        instant = LAYOUTS[layout].parse(status.path.rpartition("/")[2])
        if instant is not None:
            found.append(Source(instant, status))
    return found


def converted(table: Table, files: Collection[Source], to: int, now_ms: int) -> dict[str, Source]:
    """Return the files of completed instants by their paths in another layout.

    No instant was completed after `now_ms`.
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
    """Return when an instant was completed: before the next one, at `limit`, was begun.

    `written` is the time of its completed file; a copy is written later.
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
    """Put files of a timeline where another layout has them; may be repeated.

    `check` is called now and then and raises if others have changed the table meanwhile. A file
    that is put late has no effect: it exists already, or the table does not have that layout.
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
    """Return the content of a file of the timeline in another layout; `path` is for messages."""
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
