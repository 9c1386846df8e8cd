"""What a function does wrongly, where it takes more than a line to say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import cycle
from typing import Any

import pyarrow as pa

from hoodie_ds.config.properties.keys import METADATA_PARTITIONS
from hoodie_ds.errors import CommitOutcomeUnknownError, NotFoundError, StorageError
from hoodie_ds.formats.avro.schema import arrow_to_avro
from hoodie_ds.storage.decisive_put import put_decisively
from hoodie_ds.table.table import Table, update_properties
from hoodie_ds.timeline.file_changes import FileChanges
from hoodie_ds.timeline.instant import Instant
from hoodie_ds.timeline.paths import instant_path
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction import completion
from tests.mutants.patches import Changed, returns


class Unlisted(dict[Any, Any]):
    """A mapping in which nothing is found by `in`."""

    __contains__ = returns(False)


_BY_NAME: dict[Any, Any] = {}


def by_name(read: Any, storage: Any, file: Any, written: Any) -> Any:
    """Read a file, unless one of its name was read before."""
    if (storage, file) not in _BY_NAME:
        _BY_NAME[storage, file] = read(storage, file, written)
    return _BY_NAME[storage, file]


def overwriting(put: Any, storage: Any, *given: Any) -> Any:
    """Replace what is there."""
    return put(Changed(storage, put_if_absent=storage.replace), *given)


def passing_over(put: Any, *given: Any) -> Any:
    """Take a put that certainly failed for done."""
    try:
        return put(*given)
    except CommitOutcomeUnknownError:
        raise
    except StorageError:
        return True


def leaving_out(_: Any, storage: Any, listed: Any, read: Any) -> Iterator[tuple[Any, Any]]:
    """Read the files of an archive that are there."""
    for file in listed():
        with suppress(NotFoundError):
            yield file, read(storage, file)


def untold(table: Table, completed: Instant, body: bytes) -> bool:
    """Make an instant visible, and tell no follower."""
    return put_decisively(table.storage, instant_path(completed), body)


def telling_later(_: Any, table: Table, completed: Instant, body: bytes, *__: Any) -> bool:
    """Make an instant visible, and then tell the followers."""
    done = untold(table, completed, body)
    for follower in vars(completion)["own_followers"](table):
        follower.before(table, completed, FileChanges())
    return done


def telling_the_cause(put: Any, *given: Any) -> Any:
    """Tell of a put that may have taken effect as of one that failed."""
    try:
        return put(*given)
    except CommitOutcomeUnknownError as unknown:
        raise (unknown.__cause__ or unknown) from None


def deleting(abort: Any, coordinator: Any, messages: Sequence[Any]) -> None:
    """Delete the files of a batch when it is given up."""
    for message in messages:
        for status in message.statuses if message else ():
            coordinator.storage.delete(status.stat.path)
    abort(coordinator, messages)


def not_waiting(_: Any, flusher: Any) -> None:
    """Take a flush for done that may fail."""
    if flusher._pending:
        _, size = flusher._pending.popleft()
        flusher.in_flight_bytes -= size


def marking_late(opened: Any, context: Any, *given: Any) -> Iterator[Any]:
    """Put the marker of a file after the file."""
    puts: list[tuple[Any, ...]] = []
    storage = Changed(context.storage, put_if_absent=lambda *put: puts.append(put))
    yield from opened(Changed(context, storage=storage), *given)
    for put in puts:
        context.storage.put_if_absent(*put)


def listing_again(slices: Any, pinned: Any, *given: Any) -> Any:
    """List the folders again after what is in them was looked at."""
    view = pinned.view

    def listed(files: Any) -> list[Any]:
        folders = sorted({file.folder for file in files})
        return [found for path in folders for found in view.latest_slices(path)]

    return slices(Changed(pinned, view=Changed(view, slices_among=listed)), *given)


def knowing_no_other(apply_pending: Any, exclusion: Any, timeline: Any) -> Any:
    """Take the timeline of before the lock, as a single writer may."""
    changed = Changed(exclusion, pending=Changed(exclusion.pending, is_shared=False))
    found = apply_pending(changed, timeline)
    exclusion._before = changed._before
    return found


def dividing(replace: Any, changed: Any, /, **changes: Any) -> Any:
    """Divide the names of partitions at their commas."""
    if "partitions_to_delete" in changes:
        paths = changes["partitions_to_delete"]
        changes["partitions_to_delete"] = tuple(
            p.strip() for path in paths for p in path.split(",")
        )
    return replace(changed, **changes)


def once_more() -> Any:
    """Make what lets an archiver put all its instants at first, and take them for archived then."""
    first = cycle([True, False])
    return lambda _, __, ___, entries: sorted(entries, key=_key) if next(first) else []


def _key(entry: Any) -> Any:
    return entry.key


def of_arrow(table: Table, _timeline: Timeline, columns: pa.Schema) -> str:
    """The Avro schema that Arrow's types make, whatever the table has said."""
    return arrow_to_avro(columns, table.properties.name)


def announcing(create: Any, table: Any, timeline: Any, name: str, now_ms: int, *given: Any) -> Any:
    """Name a partition of the metadata table in the table's properties before it is made."""
    named = update_properties(table, {METADATA_PARTITIONS: name}, (), now_ms)
    return create(named, timeline, name, now_ms, *given)
