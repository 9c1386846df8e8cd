"""Batches that two instants of several micro-batches hold, left by two drivers of a query.

A driver may begin without seeing the instant of another driver started meanwhile, and nothing of
such an instant is visible before its last batch. So a commit checks the instants that wait for
further batches, and a recovery keeps one of those that hold the same batch.
"""

from __future__ import annotations

import json
from contextlib import suppress

from hoodie_ds.errors import CorruptFileError, NotFoundError, WriteConflictError
from hoodie_ds.sink.replay.past_writers import recall
from hoodie_ds.sink.replay_guard import BATCH_KEY, BatchId, ReplayGuard
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.table import Table
from hoodie_ds.timeline.bodies.commit_metadata import CommitMetadata
from hoodie_ds.timeline.instant import WRITE_ACTIONS, Instant, State
from hoodie_ds.timeline.paths import manifest_path
from hoodie_ds.timeline.timeline import Timeline
from hoodie_ds.transaction.manifest import newest_manifest
from hoodie_ds.transaction.ownership import owner_of, takes_several_batches


def check_held_by_no_other(
    storage: Storage, batch_id: BatchId, time: str, timeline: Timeline
) -> None:
    """Refuse a batch that another instant than its own, at `time`, holds and keeps open.

    It raises a `WriteConflictError`: another driver of the query has written the batch.
    """
    for instant in timeline.pending:
        last = None if instant.time == time else _last(storage, instant)
        if last is not None and last.query_id == batch_id.query_id and last >= batch_id:
            raise WriteConflictError(
                f"{storage.root}: another driver of query {batch_id.query_id} has written "
                f"{batch_id} under instant {instant.time}, so it is not committed again; "
                "restart the query, with one driver, and it continues after that batch"
            )


def is_superseded(table: Table, timeline: Timeline, instant: Instant) -> bool:
    """Whether the batches of a pending instant are in the table, or in a later such instant."""
    storage = table.storage
    last = _last(storage, instant)
    first = None if last is None else _first(storage, instant)
    if last is None or first is None:
        return False
    guard = recall(storage, timeline, ReplayGuard.load(storage, timeline), first)
    if guard.holds(first):
        return True
    mine = last.batch_id, instant.time
    others = [(i.time, _last(storage, i)) for i in timeline.pending if i.time != instant.time]
    known = [(b.batch_id, time) for time, b in others if b and b.query_id == last.query_id]
    return max([mine, *known]) != mine


def _last(storage: Storage, instant: Instant) -> BatchId | None:
    """The newest micro-batch in an instant of several; None for any other instant."""
    if instant.action not in WRITE_ACTIONS:
        return None
    with suppress(CorruptFileError):  # recovery reports the remedy
        owner = owner_of(storage, instant.at(State.INFLIGHT))
        if owner is not None and takes_several_batches(owner):
            found = newest_manifest(storage, instant)
            return (
                None if found is None else _parse(found[1], manifest_path(instant.time, found[0]))
            )
    return None


def _first(storage: Storage, instant: Instant) -> BatchId | None:
    """The first micro-batch of an instant; None if its manifest does not name it."""
    path = manifest_path(instant.time, 1)
    with suppress(NotFoundError, CorruptFileError):
        return _parse(storage.read(path), path)
    return None


def _parse(manifest: bytes, path: str) -> BatchId | None:
    text = CommitMetadata.from_bytes(manifest, path).extra.get(BATCH_KEY, "null")
    try:
        found = json.loads(text)
        return BatchId(str(found["query"]), int(found["batch"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
