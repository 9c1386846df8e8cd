"""The pinned timeline, by which the rows of a micro-batch are assigned to file groups.

Assigners run before the batch has begun, in many tasks, some of them twice. The first one pins its
timeline in a file, and all others use that.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Final

from hoodie_ds.errors import AlreadyExistsError, CorruptFileError, NotFoundError
from hoodie_ds.sink.replay_guard import BatchId, ReplayGuard
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.timeline.instant import Instant
from hoodie_ds.timeline.paths import LAYOUTS, PINNED_TIMELINES, Layout
from hoodie_ds.timeline.settled_instants import MALFORMED, Settled
from hoodie_ds.timeline.timeline import Timeline

_ABANDONED_MS: Final = 7 * 24 * 3600 * 1000
_FORGOTTEN_AT_ONCE: Final = 100
_NUMBER: Final = re.compile(r"[0-9]{1,19}")


def pin_timeline(
    storage: Storage, batch_id: BatchId, current_timeline: Callable[[], Timeline]
) -> Timeline:
    """Return the timeline that all assigners of a micro-batch see.

    If none is pinned, the current one is loaded and pinned; but not before the table's first
    commit, as until then it looks the same to all.
    """
    path = f"{PINNED_TIMELINES}/{batch_id.query_id}_{batch_id.batch_id}"
    with suppress(NotFoundError):
        return _parse(storage.read(path), path)
    timeline = current_timeline()
    if timeline.first_commit is None:
        return timeline
    young = (*timeline.recent, *timeline.pending, *timeline.savepoints)
    content = {
        "layout": timeline.layout,
        "instants": [[LAYOUTS[i.layout].file_name(i), i.num_batches] for i in young],
        "settled": b64encode(timeline.settled.packed).decode(),
        "digest": timeline.settled.digest,
    }
    body = json.dumps(content).encode()
    with suppress(AlreadyExistsError):
        storage.put_if_absent(path, body)
        return timeline
    return _parse(storage.read(path), path)


def forget_pinned(storage: Storage, guard: ReplayGuard) -> None:
    """Delete the pinned timelines of committed batches and of ended queries.

    A query counts as ended if its pinned timeline is a week older than the newest one, by the
    storage's clock. A still later assigner pins another one, and its batch is refused.
    """
    pinned = storage.list(PINNED_TIMELINES)
    newest_ms = max((status.modified_ms for status in pinned), default=0)
    old = 0
    for status in pinned:
        query_id, _, number = status.path.rpartition("/")[2].rpartition("_")
        if _NUMBER.fullmatch(number) and guard.holds(BatchId(query_id, int(number))):
            storage.delete(status.path)
        elif old < _FORGOTTEN_AT_ONCE and 0 < status.modified_ms < newest_ms - _ABANDONED_MS:
            storage.delete(status.path)
            old += 1


def _parse(body: bytes, path: str) -> Timeline:
    try:
        content = json.loads(body)
        layout = LAYOUTS[content["layout"]]
        found = [_instant(layout, *entry) for entry in content["instants"]]
        packed = b64decode(content["settled"])
        settled = Settled.unpacked(packed, content["digest"], layout.version)
    except MALFORMED as error:
        raise CorruptFileError(
            f"{path}: the pinned timeline is damaged ({error})",
            "delete it and start the query again",
        ) from error
    return Timeline.of(filter(None, found), settled, layout.version)


def _instant(layout: Layout, name: object, num_batches: object) -> Instant | None:
    if not isinstance(name, str) or not isinstance(num_batches, int):
        raise TypeError(f"{name!r} with {num_batches!r} batches is no instant")
    instant = layout.parse(name)
    return None if instant is None else replace(instant, num_batches=num_batches)
