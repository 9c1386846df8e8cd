"""Opening the instant of an action, once, by the first of its tasks."""

from __future__ import annotations

from contextlib import suppress
from itertools import takewhile

from hoodie_ds.config.properties.keys import CREATE_SCHEMA
from hoodie_ds.errors import AlreadyExistsError, NotFoundError, WriteConflictError
from hoodie_ds.storage.protocol import Storage
from hoodie_ds.table.hashing_config import put_hashing_config
from hoodie_ds.table.table import check_unchanged, create_table
from hoodie_ds.timeline.bodies.commit_metadata import OWNER_KEY, CommitMetadata
from hoodie_ds.timeline.instant import Instant, State
from hoodie_ds.timeline.instant_time import following
from hoodie_ds.timeline.loading import steps_at
from hoodie_ds.timeline.paths import instant_path, start_path
from hoodie_ds.transaction.heartbeat import beat
from hoodie_ds.transaction.ownership import claim, mark_begun, owner_of
from hoodie_ds.transaction.pending_action import PendingAction


def open_instant(pending: PendingAction) -> str:
    """Put the instant of an action on the timeline, or join it where another task already has.

    All tasks of an action start from the same proposed time, and a name on the timeline never
    becomes free again. So all get the same time, which is returned.

    Raises `WriteConflictError` if the instant holds earlier micro-batches and is not available any
    more, or the table's properties were changed.
    """
    ensure_table(pending)
    if pending.creation_ms is None:
        check_unchanged(pending.table)
    time = _start_after_others(pending) if pending.concurrency.is_shared else pending.proposed_time
    while True:
        if pending.concurrency.is_shared:
            beat(pending.storage, time)  # first, or others may roll the instant back as a dead one
        inflight = pending.inflight(time)
        if owner_of(pending.table.storage, inflight) == pending.owner:
            return time  # another task was first
        later = _not_past(pending, time)
        if later != time:
            time = later
        elif _take(pending, inflight):
            return time
        else:
            time = _next(pending, time)


def _take(pending: PendingAction, inflight: Instant) -> bool:
    """Put the instant of an action, unless its time is another action's."""
    storage, time = pending.storage, inflight.time
    requested = inflight.at(State.REQUESTED)
    # A claim is deleted once its instant is on the timeline, so check the timeline after it.
    if not claim(storage, time, pending.owner) or _is_anothers(pending, requested):
        return False
    put_step(storage, inflight, State.REQUESTED, pending.plan)
    entries = {OWNER_KEY: pending.owner}
    metadata = CommitMetadata(operation_type=pending.operation_type, extra=entries)
    body = metadata.to_bytes(inflight.layout, inflight=True)
    is_first = put_step(storage, inflight, State.INFLIGHT, body)
    return is_first or owner_of(storage, inflight) == pending.owner


def begin_plan(storage: Storage, planned: Instant) -> None:
    """Put the inflight file of a plan, and before it a mark, as the file is empty as in Hudi."""
    mark_begun(storage, planned.time)
    put_step(storage, planned, State.INFLIGHT)


def put_step(storage: Storage, instant: Instant, state: State, body: bytes = b"") -> bool:
    """Put the requested or inflight file of an instant; returns False if it is there already."""
    assert state is not State.COMPLETED, f"{instant}: `put_completed` does that"
    try:
        storage.put_if_absent(instant_path(instant.at(state)), body)
    except AlreadyExistsError:
        return False
    return True


def _not_past(pending: PendingAction, time: str) -> str:
    """Return a time, or a later one if its instant counts as archived.

    Others may have completed a late task's instant, and another engine archived it. On the timeline
    again, it would hide the rows that the batch committed.
    """
    if not pending.concurrency.is_shared and _holds_last_known(pending):
        return time
    timeline = pending.table.load_timeline()
    if timeline.commit_at(time) is not None:  # archiving may have left only the completed file
        return _next(pending, time)
    past = timeline.starts_after(time) and not timeline.is_pending(time)
    return _later(pending, time) if past else time


def _holds_last_known(pending: PendingAction) -> bool:
    """Whether the last commit before the batch is still active, so no later instant is archived.

    Reads one file, as a listing grows with the timeline. Commits with savepoints prove nothing, as
    archiving skips them.
    """
    timeline = pending.timeline
    kept = {savepoint.time for savepoint in timeline.savepoints}
    known = (i for i in timeline.commits_backwards() if not i.num_batches and i.time not in kept)
    last = next(known, None)
    if last is None:
        return False
    with suppress(NotFoundError):
        pending.storage.read(instant_path(last.at(State.REQUESTED)))
        return True
    return False


def _later(pending: PendingAction, time: str) -> str:
    """Return a later time for a batch that began before the table had commits."""
    later = time if pending.timeline.first_commit else _start_after_others(pending)
    if later <= time:
        raise WriteConflictError(
            f"{pending.storage.root}: instant {time} of this batch is earlier than the active "
            "timeline, so it was completed and archived, or other writers continued without "
            f"it; nothing is written under it; {pending.concurrency.remedy}"
        )
    return later


def _next(pending: PendingAction, time: str) -> str:
    """Return the time to try after a taken one."""
    if pending.timeline.joined is not None:
        raise WriteConflictError(
            f"{pending.storage.root}: instant {time}, which holds earlier micro-batches of "
            "this query, belongs to another writer now; run the batch again"
        )
    return following(time)


def _is_anothers(pending: PendingAction, instant: Instant) -> bool:
    """Whether another action has the time of an instant, also without a second writer.

    An old driver or another process may have begun a rollback, a write or a service.
    """
    steps = steps_at(pending.storage, instant.layout, instant.time)
    return any(step.action is not instant.action for step in steps)


def owner_to_join(storage: Storage, joined: Instant) -> str:
    """Return the owner entry of an instant that earlier micro-batches opened."""
    owner = owner_of(storage, joined.at(State.INFLIGHT))
    if owner is None:
        raise WriteConflictError(
            f"{storage.root}: another writer completed or rolled back instant {joined.time} while "
            "this batch began; run the batch again"
        )
    return owner


def _start_after_others(pending: PendingAction) -> str:
    """Choose a time later than the instants that other writers opened since the batch began.

    All tasks must choose the same: the first one stores its choice for the others.
    """
    storage, proposed = pending.storage, pending.proposed_time
    timeline = pending.table.load_timeline()
    since = takewhile(lambda found: found.time >= proposed, timeline.commits_backwards())
    for instant in (*since, *timeline.pending):
        candidate = instant.time >= proposed and instant.action is pending.action
        if candidate and owner_of(storage, instant.at(State.INFLIGHT)) == pending.owner:
            return instant.time
    path = start_path(proposed, pending.attempt)
    latest = timeline.latest_time
    start = proposed if latest is None or latest < proposed else following(latest)
    try:
        storage.put_if_absent(path, start.encode())
    except AlreadyExistsError:
        start = storage.read(path).decode()
    return start


def ensure_table(pending: PendingAction, create_schema: str | None = None) -> None:
    """Create the table of an action that found none.

    `create_schema` is the Avro schema that the properties record if the action commits no rows.
    Raises `WriteConflictError` if another writer created another table at the same time.
    """
    if pending.creation_ms is None:
        return
    properties = pending.table.properties
    if create_schema is not None:
        properties = properties.with_changes({CREATE_SCHEMA: create_schema})
    created = create_table(pending.storage, properties, pending.creation_ms)
    if not created.properties.same_table(properties):
        raise WriteConflictError(
            f"{pending.storage.root}: another writer has just created table "
            f"{created.properties.name!r} here with other properties; run the write again"
        )
    put_hashing_config(created)
